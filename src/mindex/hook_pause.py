"""A pause of all hooks of one memory: a small file beside it that says until when."""

from pathlib import Path

from mindex.clock import LAST_MS, now_ms
from mindex.private_files import make_private_folder

_FILE = "hooks-paused"
WITHOUT_END = 2**62


def pause(folder: Path, until: int | None) -> None:
    """Let hooks do nothing until a moment, or (None) until `resume`."""
    make_private_folder(folder)
    (folder / _FILE).write_text(str(until if until is not None else ""), "utf-8")


def resume(folder: Path) -> bool:
    """End a pause. Returns whether there was one."""
    paused = is_paused(folder)
    (folder / _FILE).unlink(missing_ok=True)
    return paused


def is_paused(folder: Path) -> bool:
    """Return whether hooks are to do nothing now."""
    return now_ms() < paused_until(folder)


def paused_until(folder: Path) -> int:
    """Return when a pause ends, `WITHOUT_END` where only `resume` ends it; 0 if there was none.

    A file that cannot be read, or says no moment of the calendar, is a pause without an end.
    """
    try:
        text = (folder / _FILE).read_text("utf-8").strip()
    except FileNotFoundError:
        return 0
    except (OSError, UnicodeError):
        return WITHOUT_END
    is_moment = text.isdecimal() and len(text) <= len(str(LAST_MS)) and int(text) <= LAST_MS
    return int(text) if is_moment else WITHOUT_END
