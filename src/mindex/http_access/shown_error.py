"""What a client learns of an error: only the owner of a server learns where its database is.

A token for some collections does not learn either in which folders the server works.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from mindex.errors import MindexError, StoreError, UnreachableError
from mindex.http_access.current_principal import current_principal

_PLACE = "the memory of this server"
_HINT = "try again, or tell the server's owner"
_URL = re.compile(r"\b(?:postgres|postgresql|azure)://\S+?(?=[:;,.)]?(?:\s|$))")


def shown_error(error: MindexError, database: str, folders: Sequence[Path] = ()) -> MindexError:
    """The error as the current principal sees it.

    `database` is the path or URL that is not shown to others, `folders` are those of the server.
    """
    principal = current_principal()
    if principal is None or principal.is_owner:
        return error
    if principal.collections:
        error = _without_folders(error, folders)
    if not isinstance(error, StoreError):
        return error
    if isinstance(error, UnreachableError):
        return UnreachableError(f"{_PLACE} does not answer", _HINT)
    message = _URL.sub(_PLACE, error.message.replace(database, _PLACE))
    return error if message == error.message else type(error)(message, _HINT)


def _without_folders(error: MindexError, folders: Sequence[Path]) -> MindexError:
    shown = error.message, error.hint
    # The longest first, since one may be inside another; all paths begin with the root of the file system.
    for folder in sorted((str(one) for one in folders if one != Path(one.anchor)), key=len, reverse=True):
        shown = shown[0].replace(folder, "…"), shown[1].replace(folder, "…")
    return error if shown == (error.message, error.hint) else type(error)(*shown)


def error_before_login() -> StoreError:
    """The error of the store for a client that is not known yet: it is not said where the database is."""
    return StoreError(f"{_PLACE} does not answer", "try again in a moment")
