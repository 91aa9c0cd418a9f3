"""Hits with the cosines of their embedded pieces, and the weights of the query's words."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindex.datatypes import Record
from mindex.embedding_text import embedding_pieces, piece_ranges
from mindex.memory import Memory

LONG = "\n\n".join(f"Paragraph {n} is about the harbour, its cranes and hall {n}." for n in range(60))


@pytest.mark.model
def test_a_hit_has_a_cosine_for_each_of_its_pieces_and_the_best_is_its_own(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db") as memory:
        memory.add(f"{LONG}\n\nThe harbour master drinks green tea at noon.")
        (hit,) = memory.search("what does the harbour master drink?", passages=True, limit=1).hits
        assert len(hit.piece_cosines) == len(embedding_pieces(hit.record)) > 1
        assert max(hit.piece_cosines) == pytest.approx(hit.trace.cosine, abs=1e-3)
        assert hit.piece_cosines.index(max(hit.piece_cosines)) == len(hit.piece_cosines) - 1
        (without,) = memory.search("what does the harbour master drink?", limit=1).hits
        assert without.piece_cosines == ()


def test_a_keyword_search_has_weights_of_words_and_no_cosines(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", options={"embedding.provider": "none"}) as memory:
        for number in range(5):
            memory.add(f"The harbour has crane number {number}, which is {'red' * (number == 1) or 'grey'}")
        answer = memory.search("red harbour", mode="keyword", passages=True)
        assert answer.term_weights["red"] > answer.term_weights["harbour"] > 0
        assert all(not hit.piece_cosines for hit in answer.hits)


def test_the_ranges_of_pieces_are_the_texts_that_are_embedded() -> None:
    record = Record(id="a", kind="chunk", text=LONG, title="Harbour", context="On the coast. " * 20, path="a.md")
    ranges = piece_ranges(record)
    assert len(ranges) == len(embedding_pieces(record)) > 2
    for (start, end), piece in zip(ranges, embedding_pieces(record), strict=True):
        assert piece.endswith(record.text[start:end])
