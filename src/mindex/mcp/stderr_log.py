"""Lines for the server's log. It is stderr, because stdout belongs to the protocol."""

import sys

from mindex.present.terminal import for_terminal


def log_line(line: str) -> None:
    sys.stderr.write(f"{for_terminal(line) if sys.stderr.isatty() else line}\n")
    sys.stderr.flush()


def log_note(note: str) -> None:
    log_line(f"note: {note}")
