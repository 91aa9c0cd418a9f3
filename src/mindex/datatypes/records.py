"""What the store holds: collections, documents, records and their changes. Their vectors are in `vectors.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from mindex.nul import without_nul
from mindex.values import dataclass

# Those after `note` are never stored: `get` makes them.
Kind: TypeAlias = Literal[
    "chunk", "memory", "turn", "profile", "contact", "project", "skill", "note", "history", "timeline", "conflicts",
    "tags", "types", "sessions",
]  # fmt: skip
KINDS: tuple[Kind, ...] = ("chunk", "memory", "turn", "profile", "contact", "project", "skill", "note")

TYPES = (
    "fact", "preference", "decision", "event", "insight", "task", "relationship", "entity", "self", "background",
    "pattern", "project", "contact", "reference", "how-to", "problem",
)  # fmt: skip

# Fields of front matter that say what a document is about. Their names say nothing; that of another one (`due`) does.
DESCRIPTIVE_FIELDS = frozenset(
    {"title", "description", "summary", "subtitle", "excerpt", "abstract", "alias", "aliases"}
)


# The root of a collection that was imported begins so, and goes on with the program and its database.
IMPORTED = "import:"


@dataclass(frozen=True, slots=True)
class Collection:
    """A named folder that is indexed, or files that were imported."""

    name: str
    root: str
    exclude: tuple[str, ...] = ()
    context: str = ""
    indexed_at: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "exclude", without_nul(self.exclude))
        object.__setattr__(self, "context", without_nul(self.context))

    @property
    def imported(self) -> bool:
        """Whether its documents come from another program's database: it has no folder that could be indexed again."""
        return self.root.startswith(IMPORTED)


@dataclass(frozen=True, slots=True)
class Document:
    """One indexed file. `fingerprint` covers its bytes and everything else that its chunks depend on."""

    id: str
    collection: str
    path: str
    fingerprint: str
    size: int
    mtime_ns: int
    title: str = ""
    domain: str = "root"
    instruction: bool = False
    tags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    indexed_at: int = 0
    fields: tuple[str, ...] = ()  # of its front matter, each `key: value`

    def record(self, id_: str, text: str, title: str, tags: tuple[str, ...], first_line: int, last_line: int) -> Record:
        """The record of some of its lines."""
        return Record(
            id=id_,
            kind="chunk",
            text=text,
            title=title,
            tags=tags,
            created_at=self.mtime_ns // 1_000_000,
            updated_at=self.indexed_at,
            document=self.id,
            collection=self.collection,
            path=self.path,
            first_line=first_line,
            last_line=last_line,
            domain=self.domain,
            instruction=self.instruction,
            document_fields=self.fields,
        )


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of one file, as the chunker cut it: text with its lines, not yet a record."""

    text: str
    breadcrumb: tuple[str, ...]
    first_line: int
    last_line: int
    part: int = 1
    parts: int = 1


@dataclass(frozen=True, slots=True)
class Record:
    """Anything that can be found. Fields that do not apply to a kind stay at their defaults."""

    id: str
    kind: Kind
    text: str
    title: str = ""
    tags: tuple[str, ...] = ()
    agent: str = ""
    created_at: int = 0
    updated_at: int = 0
    # of a chunk
    document: str = ""
    collection: str = ""
    path: str = ""
    first_line: int = 0
    last_line: int = 0
    domain: str = ""
    instruction: bool = False
    document_fields: tuple[str, ...] = ()
    # of an entry
    number: int | None = None
    type: str = ""
    summary: str = ""
    context: str = ""
    source: str = ""
    importance: int | None = None
    confidence: float | None = None
    expires_at: int | None = None
    entities: tuple[str, ...] = ()
    fields: Mapping[str, object] = field(default_factory=dict)
    # when it was forgotten, or replaced by another record
    retired_at: int | None = None
    superseded_by: str = ""


CONFLICT_LINK = "conflict"  # the kind of the link between two memories in conflict
PROJECT_TAG = "project:"  # before the name of the project that an entry belongs to
CAPTURED = "hook"  # the source of everything that a hook captured begins so


@dataclass(frozen=True, slots=True)
class Conflict:
    """A memory that says something else about the same as another one, and what differs; a short view has its id."""

    id: str
    summary: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of an entry. `before` is None for the change that made it.

    `notes` and `conflicts` are about a change that was just made, for its caller; they are not stored. Changes that
    were made as one, and are undone as one, have the same `batch` id; it is empty for a change that was made alone.
    """

    change: int
    record: str
    at: int
    by: str
    action: str
    reason: str
    before: Record | None
    after: Record
    notes: tuple[str, ...] = ()
    batch: str = ""
    conflicts: tuple[Conflict, ...] = ()
