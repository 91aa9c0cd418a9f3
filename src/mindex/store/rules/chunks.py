"""Applying a document update: which chunks are added, kept, described again, embedded again, and removed."""

from collections.abc import Mapping, Sequence

from mindex.datatypes import Document, Record
from mindex.values import dataclass


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """What an update may change of a chunk that is stored. Its text cannot change: it is part of the chunk's id."""

    title: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlacedChunk:
    """A chunk of the update and its position in the document."""

    position: int
    record: Record
    reindex: bool = False  # its title or tags, or what is found of its document, changed: its words are indexed again
    reembed: bool = False  # its title or the document's description, which are embedded, changed: its vectors go


@dataclass(frozen=True, slots=True)
class ChunkPlan:
    """What brings the chunks of a document to their new state."""

    added: list[PlacedChunk]
    kept: list[PlacedChunk]
    removed: tuple[str, ...]


def plan_chunks(
    stored: Mapping[str, StoredChunk], records: Sequence[Record], before: Document | None, now: Document
) -> ChunkPlan:
    """Compare the stored chunks of a document, by id, with those it has now; `before` is the document as stored."""
    from mindex.embedding_text import embedded_fields  # its patterns are compiled; a search does without

    found_anew = before is not None and _found_by(before) != _found_by(now)
    embedded_anew = before is not None and embedded_fields(before.fields) != embedded_fields(now.fields)
    added, kept = [], []
    for position, record in enumerate(records):
        old = stored.get(record.id)
        if old is None:
            added.append(PlacedChunk(position, record))
            continue
        retitled = old.title != record.title
        reindex = found_anew or retitled or old.tags != record.tags
        kept.append(PlacedChunk(position, record, reindex, retitled or embedded_anew))
    present = {record.id for record in records}
    return ChunkPlan(added, kept, tuple(id_ for id_ in stored if id_ not in present))


def _found_by(document: Document) -> tuple[str, str, tuple[str, ...]]:
    """What every chunk of a document is found by."""
    return document.path, document.domain, document.fields
