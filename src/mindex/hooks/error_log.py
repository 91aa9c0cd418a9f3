"""The log of hooks: why one of them did nothing. An agent must not see errors, and its user can look here."""

from contextlib import suppress
from pathlib import Path

from mindex.clock import now_ms, to_iso
from mindex.private_files import make_private_folder, open_private

FILE = "hooks.log"
_MAX_BYTES = 100_000


def log_error(folder: Path, hook: str, error: BaseException) -> None:
    """Append one line, without secrets. Never raises."""
    from mindex.redaction.redactor import Redactor  # its patterns take time to compile, and few hooks fail

    message = Redactor().redact_text(" ".join(str(error).split()))
    line = f"{to_iso(now_ms())} {hook}: {type(error).__name__}: {message[:500]}\n"
    with suppress(OSError, ValueError):
        make_private_folder(folder)
        path = folder / FILE
        if path.exists() and path.stat().st_size > _MAX_BYTES:
            path.replace(path.with_suffix(".log.old"))
        with open_private(path) as file:
            file.write(line.encode("utf-8", "replace"))
