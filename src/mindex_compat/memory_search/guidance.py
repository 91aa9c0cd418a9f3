"""What to do next, in the commands of memory-search: its notes and errors name no other ones."""

from pathlib import Path

from mindex import Memory
from mindex.datatypes import Guidance
from mindex.errors import NotFoundError
from mindex_compat.places import PLACES

GUIDANCE = Guidance(
    fill="`mindex ms collection add DIR` indexes a folder",
    add="`mindex ms facts set KEY VALUE` stores a fact",
    wait="search again when `mindex ms index` has ended; run it if it was interrupted",
    vectors="`mindex ms index` makes the vectors",
)
# Command of mindex → the one here. What has none is a command of mindex, and its name stays.
_WORDS = (
    ("`mindex index --remove ", "`mindex ms collection remove "),
    ("`mindex index FOLDER`", "`mindex ms collection add DIR`"),
    ("`mindex index", "`mindex ms index"),
    ("`mindex search", "`mindex ms search"),
    ("`mindex status", "`mindex ms status"),
    ("`mindex import", "`mindex ms import"),
)


def in_own_words(text: str) -> str:
    """Return a text with the commands of memory-search in place of those of mindex."""
    for theirs, own in _WORDS:
        text = text.replace(theirs, own)
    return text


def nothing_indexed(memory: Memory) -> NotFoundError:
    """The error of a search in a database that contains neither a collection nor an entry."""
    hint = "index a folder: `mindex ms collection add DIR`"
    if left := next(filter(Path.exists, PLACES["memory-search"](Path())), None):
        hint += f"; bring over what memory-search has: `mindex ms import {left}`"
    return NotFoundError(f"nothing is indexed in {memory.settings.database}", hint)
