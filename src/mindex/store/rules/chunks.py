"""Applying a document update: which chunks are added, kept, described anew, embedded anew, and removed."""

from collections.abc import Mapping, Sequence

from mindex.model import Record
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
    reindex: bool = False  # its title, tags or path changed: its words are indexed anew
    reembed: bool = False  # its title changed, which is embedded with the text: its vectors are dropped


@dataclass(frozen=True, slots=True)
class ChunkPlan:
    """What brings the chunks of a document to their new state."""

    added: list[PlacedChunk]
    kept: list[PlacedChunk]
    removed: tuple[str, ...]


def plan_chunks(stored: Mapping[str, StoredChunk], records: Sequence[Record], *, place_changed: bool) -> ChunkPlan:
    """Compare the stored chunks of a document, by id, with those it has now.

    `place_changed`: the document has another path or domain, which its chunks are found by.
    """
    added, kept = [], []
    for position, record in enumerate(records):
        old = stored.get(record.id)
        if old is None:
            added.append(PlacedChunk(position, record))
            continue
        retitled = old.title != record.title
        reindex = place_changed or retitled or old.tags != record.tags
        kept.append(PlacedChunk(position, record, reindex, retitled))
    present = {record.id for record in records}
    return ChunkPlan(added, kept, tuple(id_ for id_ in stored if id_ not in present))
