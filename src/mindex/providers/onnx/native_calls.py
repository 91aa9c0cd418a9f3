"""Calls into ONNX Runtime, none of which may be running when the interpreter ends.

A daemon thread that returns from C++ code after that is ended by the interpreter in a place where C++ allows no
exception, and the process aborts: "terminate called without an active exception".
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# One call takes a tenth of a second, and making the ready copy of a model a few seconds, on a busy machine more.
_WAIT_SECONDS = 30.0

_changed = threading.Condition()
_running = 0
_ended = False


@contextmanager
def native_call() -> Iterator[None]:
    """A call that the end of the interpreter waits for. Once it has begun, no daemon thread gets in any more."""
    global _running
    with _changed:
        while _ended and threading.current_thread().daemon:
            _changed.wait()  # for ever: the thread ends with the process
        _running += 1
    try:
        yield
    finally:
        with _changed:
            _running -= 1
            _changed.notify_all()


@atexit.register
def _end() -> None:
    global _ended
    with _changed:
        _ended = True
        _changed.wait_for(lambda: _running == 0, _WAIT_SECONDS)
