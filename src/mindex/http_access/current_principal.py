"""On whose behalf the current request is made; threads and tasks that a request starts inherit it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from mindex.datatypes.access_tokens import Principal
from mindex.errors import read_only_token

_current: ContextVar[Principal | None] = ContextVar("mindex_principal", default=None)


def current_principal() -> Principal | None:
    """The principal of the current request; None outside of one."""
    return _current.get()


@contextmanager
def acting_as(principal: Principal) -> Iterator[None]:
    """Make everything in the block act on behalf of this principal."""
    token = _current.set(principal)
    try:
        yield
    finally:
        _current.reset(token)


def require_write() -> None:
    """Raise AccessDeniedError if the current request may only read."""
    principal = current_principal()
    if principal is not None and principal.rights != "write":
        raise read_only_token()
