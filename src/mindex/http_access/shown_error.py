"""What a client learns of an error: only the owner of a server learns where its database is."""

import re

from mindex.errors import MindexError, StoreError, UnreachableError
from mindex.http_access.current_principal import current_principal

_PLACE = "the memory of this server"
_HINT = "try again, or tell the server's owner"
_URL = re.compile(r"\b(?:postgres|postgresql|azure)://\S+?(?=[:;,.)]?(?:\s|$))")


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
