"""What a client learns of an error: only the owner of a server learns where its database is."""

import re

from mindex.errors import MindexError, StoreError, UnreachableError
from mindex.http_access.current_principal import current_principal

PLACE = "the memory of this server"
_HINT = "try again, or tell the server's owner"
_URL = re.compile(r"\b(?:postgres|postgresql|azure)://\S+?(?=[:;,.)]?(?:\s|$))")


def shown_error(error: MindexError, database: str) -> MindexError:
    """The error as the current principal sees it. `database` is the path or URL that is not shown to others."""
    principal = current_principal()
    if principal is None or principal.is_owner or not isinstance(error, StoreError):
        return error
    if isinstance(error, UnreachableError):
        return _reworded(error, f"{PLACE} does not answer")
    message = _URL.sub(PLACE, error.message.replace(database, PLACE))
    return error if message == error.message else _reworded(error, message)


def _reworded(error: MindexError, message: str) -> MindexError:
    made = MindexError(message, _HINT)
    made.kind = error.kind
    return made
