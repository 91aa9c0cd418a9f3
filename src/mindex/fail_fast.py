"""Whether a read waits for a database that does not answer. A write always does; so does a read, unless the caller
disables it: a client of a server can ask again, while a command or a write with its reads would have to begin again."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_fails_fast: ContextVar[bool] = ContextVar("mindex_fails_fast", default=False)


def fails_fast() -> bool:
    """Return whether reads fail as soon as the database is seen to be down; threads of a request inherit it."""
    return _fails_fast.get()


@contextmanager
def fail_fast(on: bool = True) -> Iterator[None]:
    """Make reads in the block fail soon, or wait."""
    token = _fails_fast.set(on)
    try:
        yield
    finally:
        _fails_fast.reset(token)
