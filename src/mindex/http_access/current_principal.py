"""On whose behalf the current request is made, which its threads inherit, and what that one learns of an error."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from mindex.datatypes.access_tokens import Principal
from mindex.errors import MindexError, StoreError, UnreachableError, read_only_token

_current: ContextVar[Principal | None] = ContextVar("mindex_principal", default=None)
_PLACE = "the memory of this server"
_HINT = "try again, or tell the server's owner"
_URL = re.compile(r"\b(?:postgres|postgresql|azure)://\S+?(?=[:;,.)]?(?:\s|$))")


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
    if principal is not None and not principal.may_write:
        raise read_only_token()


def shown_error(error: MindexError, database: str) -> MindexError:
    """The error as the current principal sees it. `database` is the path or URL that is not shown to others."""
    principal = current_principal()
    if principal is None or principal.is_owner or not isinstance(error, StoreError):
        return error
    if isinstance(error, UnreachableError):
        return UnreachableError(f"{_PLACE} does not answer", _HINT)
    message = _URL.sub(_PLACE, error.message.replace(database, _PLACE))
    return error if message == error.message else type(error)(message, _HINT)


def error_before_login() -> StoreError:
    """The error of the store for a client that is not known yet: it is not said where the database is."""
    return StoreError(f"{_PLACE} does not answer", "try again in a moment")
