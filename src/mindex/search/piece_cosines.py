"""How near each embedded piece of a hit is to the query: what the passages of an answer are chosen by, beside words."""

from collections.abc import Sequence

from mindex.datatypes import Hit, Model, VectorArray
from mindex.search.word_evidence import idf
from mindex.store.base import Store, TermStatistics
from mindex.values import replace


def with_piece_cosines(store: Store, model: Model, vector: VectorArray, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """The hits with the cosines of their stored pieces; one store call, none if no text has several pieces."""
    from mindex.embedding_text import PIECE_SIZE  # its patterns are compiled; a search by keyword does without

    long = [hit.record.id for hit in hits if not hit.weak and len(hit.record.text) > PIECE_SIZE // 2]
    found = store.vectors.stored(model, long) if long else {}

    def cosines(hit: Hit) -> tuple[float, ...]:
        if (pieces := found.get(hit.record.id)) is not None:
            return tuple((pieces @ vector).tolist())
        return () if hit.trace.cosine is None else (hit.trace.cosine,)

    return tuple(replace(hit, piece_cosines=cosines(hit)) for hit in hits)


def term_weights(statistics: TermStatistics | None) -> dict[str, float]:
    """The weight of each token of the query: the rarer it is, the larger; empty if tokens were not counted."""
    if statistics is None:
        return {}
    return {token: idf(count, statistics.records) for token, count in statistics.frequency.items()}
