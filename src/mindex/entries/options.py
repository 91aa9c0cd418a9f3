"""The options of a memory, in one table: what the library, the command line, HTTP and the MCP tools call each one."""

from mindex.datatypes import TYPES
from mindex.datatypes.option import Option
from mindex.limits import MAX_FIELD, MAX_SUMMARY

_O = Option
_TYPES = ", ".join(TYPES)
# fmt: off
MEMORY_OPTIONS: tuple[Option, ...] = (
    _O("text", "text", "", "Text of the memory", argument="text"),
    _O("type", "text", "", f"One of {_TYPES}", choices=TYPES,
       flags="--type", metavar="T", completed_by="types", parameter="type",
       argument="type", argument_help=f"Default: estimated; {_TYPES}"),
    _O("importance", "integer", None, "Importance, 1 to 10 (default: estimated)",
       flags="--importance", metavar="N", parameter="importance",
       argument="importance", argument_help="1-10", argument_type="int | Omitted"),
    _O("confidence", "number", 1.0, "0 to 1",
       flags="--confidence", metavar="X", parameter="confidence",
       argument="confidence", argument_help="0-1, default 1", argument_type="float | Omitted"),
    _O("tags", "texts", (), "Tag",
       flags="--tag", metavar="T", completed_by="tags", parameter="tags", argument="tags"),
    _O("entities", "texts", None, "Entity name; default: detected",
       flags="--entity", metavar="E", parameter="entities",
       argument="entities", argument_help="Names; default: detected", argument_type="Texts | Omitted"),
    _O("summary", "text", "", "Summary, at most 20 words (default: first sentence)", longest=MAX_SUMMARY,
       flags="--summary", metavar="S", parameter="summary", argument="summary"),
    _O("context", "text", "", "Context, for example a project", longest=MAX_FIELD,
       flags="--context", metavar="S", parameter="context", argument="context", argument_help="A project or topic"),
    _O("source", "text", "", "Source", longest=MAX_FIELD,
       flags="--source", metavar="S", parameter="source", argument="source"),
    _O("expires", "text", None, "Expiry: 30d, 2h, friday, next week, 2027-01-31", annotation="str | int | None",
       flags="--expires", metavar="T", parameter="expires",
       argument="expires", argument_help="30d, 2027-01-31", argument_type="str | Omitted"),
    _O("ttl", "text", None, "Expiry, counted from now", annotation="-", flags="--ttl", metavar="30d"),
    _O("supersedes", "text", "", "Id of the memory that this one replaces",
       flags="--supersedes", metavar="ID", completed_by="entries", parameter="supersedes",
       argument="supersedes", argument_help="Id it replaces"),
    _O("anchor", "text", "", "File lines that the memory is about", longest=MAX_FIELD,
       flags="--anchor", metavar="PATH:10-40"),
    _O("fields", "object", None, "Fields that are stored with it and not searched"),
    _O("agent", "text", None, "Agent that the memory belongs to (default: setting)", parameter="agent"),
    _O("embed", "flag", True, "Make its vector now, before the call returns"),
)
# fmt: on
