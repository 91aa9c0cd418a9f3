"""The plan of a document's chunks: which are new, which are indexed again, which go."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindex.datatypes import Document, Record
from mindex.store.rules.chunks import StoredChunk, plan_chunks

DOCUMENT = Document("d", "notes", "a.md", "f", 4, 0)
CHUNK = Record("c", "chunk", "Text", title="Caching", tags=("redis",))


def test_new_and_removed_chunks_are_named_with_their_places() -> None:
    plan = plan_chunks({"old": StoredChunk("Old", ())}, [CHUNK], DOCUMENT, DOCUMENT)
    assert [(one.position, one.record.id) for one in plan.added] == [(0, "c")]
    assert (plan.kept, plan.removed) == ([], ("old",))


@pytest.mark.parametrize("tags", [("alpha",), ("zeta",), (), ("redis", "more")])
def test_a_chunk_with_other_tags_is_indexed_again_and_keeps_its_vectors(tags: tuple[str, ...]) -> None:
    (kept,) = plan_chunks({"c": StoredChunk("Caching", tags)}, [CHUNK], DOCUMENT, DOCUMENT).kept
    assert (kept.reindex, kept.reembed) == (True, False)


def test_a_chunk_with_another_title_is_indexed_and_embedded_again() -> None:
    (kept,) = plan_chunks({"c": StoredChunk("Storage", ("redis",))}, [CHUNK], DOCUMENT, DOCUMENT).kept
    assert (kept.reindex, kept.reembed) == (True, True)


def test_a_moved_document_is_indexed_again_and_an_unchanged_one_is_not() -> None:
    stored = {"c": StoredChunk("Caching", ("redis",))}
    (moved,) = plan_chunks(stored, [CHUNK], DOCUMENT, replace(DOCUMENT, path="b.md")).kept
    (same,) = plan_chunks(stored, [CHUNK], DOCUMENT, DOCUMENT).kept
    assert (moved.reindex, moved.reembed, same.reindex, same.reembed) == (True, False, False, False)
