"""What hooks know of a conversation: how far its transcript was read, and what was recalled in it.

One small file for each conversation, locked while a hook works on it: two hooks at once work one after the other.
"""

import json
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path
from typing import Any
from zlib import crc32

from mindex.errors import StoreBusyError
from mindex.private_files import make_private_folder
from mindex.values import dataclass

_LOCK_SECONDS = 5.0
_MAX_BYTES = 1_000_000
_MAX_RECALLED = 20_000  # ids of 12 characters: a third of the most bytes
_KEPT_SECONDS = 30 * 86_400


@dataclass(slots=True)
class SessionState:
    """What is known of one conversation. Changes are saved at the end of the block of `session_state`."""

    started: bool = False  # its agent got the text of `session_start`
    recalled: list[str] = field(default_factory=list)  # ids
    transcript: str = ""
    turn_starts: int = 0  # the byte of the transcript at which its last turn begins
    last_turn: str = ""  # the id of the record of that turn; '' if it is not stored
    prompt: str = ""  # redacted; for agents without a transcript that can be read


@contextmanager
def session_state(folder: Path, session: str) -> Iterator[SessionState]:
    """Yield the state of a conversation, for this process alone. Raises StoreBusyError when another one keeps it."""
    make_private_folder(folder)
    descriptor = os.open(folder / _file_name(session), os.O_RDWR | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        _lock(descriptor)
        state = _parse(file.read(_MAX_BYTES))
        before = _dump(state)
        yield state
        del state.recalled[:-_MAX_RECALLED]
        if (after := _dump(state)) != before:
            with suppress(OSError):  # on a full disk a hook recalls all the same, perhaps what it recalled before
                file.seek(0)
                file.truncate()
                file.write(after)


def remove_old_states(folder: Path) -> None:
    """Remove the files of conversations that have rested for a month."""
    oldest = time.time() - _KEPT_SECONDS
    for file in folder.glob("*.json"):
        with suppress(OSError):
            if file.stat().st_mtime < oldest:
                file.unlink()


def _file_name(session: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}", session):
        return f"{session}.json"
    return f"{crc32(session.encode('utf-8', 'replace')):08x}.json"


def _parse(data: bytes) -> SessionState:
    """Return the state that a file holds; an empty one for a file that was cut short: what is stored is known by id."""
    state = SessionState()
    try:
        read: dict[str, Any] = json.loads(data or b"{}")
        for name, value in read.items():
            if type(value) is type(getattr(state, name, None)):
                setattr(state, name, value)
    except (ValueError, AttributeError):
        return SessionState()
    state.recalled = [one for one in state.recalled if isinstance(one, str)]
    return state


def _dump(state: SessionState) -> bytes:
    return json.dumps({name: getattr(state, name) for name in SessionState.__slots__}).encode()


if sys.platform == "win32":

    def _lock(descriptor: int) -> None:
        """There is no such lock; what is stored twice is known by its id."""
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        deadline = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise StoreBusyError("another hook of this conversation is still running", "") from None
                time.sleep(0.005)
            except OSError:  # a file system without locks
                return None
