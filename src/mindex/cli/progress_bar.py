"""`ProgressBar`: one line on stderr that is overwritten, on a terminal; nothing anywhere else."""

from __future__ import annotations

import sys

from mindex.model import Progress


class ProgressBar:
    """Call it with each step of the progress; it is erased at the end of its `with` block."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._written = False

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._written:
            sys.stderr.write("\r\x1b[K")

    def __call__(self, progress: Progress) -> None:
        if not self._shown:
            return
        share = progress.done / progress.total if progress.total else 1.0
        filled = int(24 * share)
        bar = "█" * filled + "·" * (24 - filled)
        detail = "".join(character if character.isprintable() else "?" for character in progress.detail)
        line = f"{progress.stage:>5} {bar} {progress.done}/{progress.total} {detail}"
        sys.stderr.write(f"\r\x1b[K{line[:100]}")
        sys.stderr.flush()
        self._written = True
