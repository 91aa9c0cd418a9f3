"""What an error says to the client that made the request: only the owner of a server learns where its database is."""

import re

from mindex.errors import MindexError, StoreError, UnreachableError
from mindex.http_access.current_principal import current_principal

PLACE = "the memory of this server"
_HINT = "try again, or tell the server's owner"
_URL = re.compile(r"\b(?:postgres|postgresql|azure)://\S+?(?=[:;,.)]?(?:\s|$))")


def error_text(error: MindexError, database: str) -> str:
    """The sentence of an error for the current principal. `database` is the path or URL that is not shown to others."""
    principal = current_principal()
    if principal is None or principal.is_owner or not isinstance(error, StoreError):
        return str(error)
    if isinstance(error, UnreachableError):
        return f"{PLACE} does not answer; {_HINT}"
    message = _URL.sub(PLACE, error.message.replace(database, PLACE))
    return str(error) if message == error.message else f"{message}; {_HINT}"
