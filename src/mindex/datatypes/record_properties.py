"""The properties of a record, in one table: what each one holds, and which outputs and commands use it.

`PROPERTIES` has one row for each field of `Record`, in the same order. The SQL of the store, the history of changes,
the JSONL and markdown exports, the import checks and the redaction of secrets take their properties from it. To add a
property, add a field to `Record` and a row here; a test fails when the two differ.

Each of three outputs prints the properties in its own order, which files and users depend on. The columns `jsonl`,
`history` and `markdown` hold the places: `in_order("jsonl")` returns the properties of that output, sorted.
"""

from typing import Literal, TypeAlias

from mindex.values import dataclass

# "time": milliseconds since 1970. "texts": a tuple of texts. "object": a JSON object.
ValueKind: TypeAlias = Literal["text", "texts", "time", "integer", "number", "flag", "object"]

# The properties that are made of the fields, in an entry whose text is: a profile, a turn, a contact …
MADE_OF_FIELDS = frozenset({"text", "title", "type", "summary"})


@dataclass(frozen=True, slots=True)
class RecordProperty:
    """One property of a record. `default` is its value where a record has none, as in `Record`."""

    name: str
    value: ValueKind
    default: object
    required: bool = False  # always written, even with the default value
    fixed: bool = False  # does not change once the record is stored
    editable: bool = False  # `add` and `update` of a memory take it
    redacted: bool = False  # free text: secrets are removed before it is stored
    chunk: bool = False  # only chunks have it: no history, not exported
    document: bool = False  # of a chunk, and stored with its document or collection
    jsonl: int = 0  # place in a line of the JSONL export; 0: not written, or by hand (the id)
    history: int = 0  # place among the differences that `history` prints; 0: not printed
    markdown: int = 0  # place in the line of facts below a heading of the markdown export; 0: not written
    markdown_name: str = ""  # its name there, if it is not `name`


_P = RecordProperty
# fmt: off
PROPERTIES: tuple[RecordProperty, ...] = (
    _P("id", "text", "", required=True, fixed=True, markdown=1),
    _P("kind", "text", "", required=True, fixed=True, jsonl=1),
    _P("text", "text", "", required=True, editable=True, redacted=True, jsonl=19, history=1),
    _P("title", "text", "", editable=True, redacted=True, jsonl=15, history=3, markdown=11),
    _P("tags", "texts", (), editable=True, redacted=True, jsonl=13, history=4, markdown=9),
    _P("agent", "text", "", fixed=True, jsonl=2),
    _P("created_at", "time", 0, fixed=True, jsonl=5, markdown=3, markdown_name="created"),
    _P("updated_at", "time", 0, jsonl=6, markdown=4, markdown_name="updated"),
    _P("document", "text", "", chunk=True, document=True),
    _P("collection", "text", "", chunk=True, document=True),
    _P("path", "text", "", chunk=True, document=True),
    _P("first_line", "integer", 0, chunk=True),
    _P("last_line", "integer", 0, chunk=True),
    _P("domain", "text", "", chunk=True, document=True),
    _P("instruction", "flag", False, chunk=True, document=True),
    _P("document_fields", "texts", (), chunk=True, document=True),
    _P("number", "integer", None, fixed=True, jsonl=3, markdown=2),
    _P("type", "text", "", editable=True, jsonl=4, history=2, markdown=6),
    _P("summary", "text", "", editable=True, redacted=True, jsonl=16, history=8, markdown=14),
    _P("context", "text", "", editable=True, redacted=True, jsonl=17, history=9, markdown=12),
    _P("source", "text", "", editable=True, redacted=True, jsonl=12, history=10, markdown=13),
    _P("importance", "integer", None, editable=True, jsonl=10, history=6, markdown=7),
    _P("confidence", "number", None, editable=True, jsonl=11, history=7, markdown=8),
    _P("expires_at", "time", None, editable=True, jsonl=7, history=11, markdown=5, markdown_name="expires"),
    _P("entities", "texts", (), editable=True, redacted=True, jsonl=14, history=5, markdown=10),
    _P("fields", "object", {}, editable=True, redacted=True, jsonl=18, history=12),
    _P("retired_at", "time", None, jsonl=8, history=13),
    _P("superseded_by", "text", "", jsonl=9, history=14),
)
# fmt: on
# What an entry has: the columns of its row, its history and its exports.
ENTRY_PROPERTIES = tuple(one for one in PROPERTIES if not one.chunk)


def in_order(output: Literal["jsonl", "history", "markdown"]) -> tuple[RecordProperty, ...]:
    """Return the properties that an output writes, in its order."""
    written = [one for one in PROPERTIES if getattr(one, output)]
    return tuple(sorted(written, key=lambda one: int(getattr(one, output))))
