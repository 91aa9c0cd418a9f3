"""Question and text read together, for the first of a ranking: a cross-encoder's word, blended with the score so far.

The order among the first forty may change; none of them leaves the span of their scores, so whatever stands below
them stays below.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mindex.analyzer import analyze
from mindex.errors import ProviderError
from mindex.model import Record
from mindex.pieces import split
from mindex.providers.rerank.base import Reranker
from mindex.store.base import Store

CACHE = "rerank"
# A cross-encoder reads 256 tokens of a pair: of a longer text, the piece that speaks most of the question's words.
_PIECE = 800
_SCORE = struct.Struct("<d")


@dataclass(frozen=True, slots=True)
class Reranked:
    """Raw scores by record; empty, with a note, when there are none."""

    scores: Mapping[str, float]
    note: str = ""


class Reranking:
    """Scores the first candidates of a question. What was scored once is kept."""

    def __init__(self, reranker: Reranker, store: Store, seconds: float) -> None:
        self._reranker = reranker
        self._store = store
        self._seconds = seconds

    def scores(self, query: str, records: Sequence[Record]) -> Reranked:
        texts = {record.id: passage(query, record) for record in records}
        keys = {id_: self._key(query, text) for id_, text in texts.items()}
        kept = self._store.cached_many(CACHE, list(keys.values()))
        known = {id_: _SCORE.unpack(kept[key])[0] for id_, key in keys.items() if key in kept}
        missing = [id_ for id_ in texts if id_ not in known]
        if missing:
            try:
                made = self._reranker.score(query, [texts[id_] for id_ in missing], seconds=self._seconds)
            except ProviderError as error:
                return Reranked({}, f"not reranked: {error}")
            except Exception as error:  # whatever a model fails with, the order so far stands
                return Reranked({}, f"not reranked: the reranker failed ({type(error).__name__}: {error})")
            fresh = dict(zip(missing, made, strict=True))
            self._store.remember_cached_many(CACHE, {keys[id_]: _SCORE.pack(score) for id_, score in fresh.items()})
            known |= fresh
        return Reranked(known)

    def _key(self, query: str, text: str) -> str:
        return hashlib.sha256("\0".join((self._reranker.name, query, text)).encode("utf-8", "replace")).hexdigest()


def passage(query: str, record: Record) -> str:
    """What the cross-encoder is given of a record: its title, and the piece that holds most of the question."""
    pieces = split(record.text, _PIECE)
    best = pieces[0]
    if len(pieces) > 1:
        wanted = set(analyze(query).words)
        best = max(pieces, key=lambda piece: len(wanted.intersection(analyze(piece).words)))
    return f"{record.title}\n{best}" if record.title else best


def blended(scores: Mapping[str, float], reranked: Mapping[str, float], weight: float) -> dict[str, float]:
    """New scores: both stretched to 0…1, mixed by weight, put back into the span the scores had."""
    least, most = min(scores.values()), max(scores.values())
    before, after = _stretched(scores), _stretched({id_: reranked[id_] for id_ in scores})
    return {id_: least + (most - least) * ((1 - weight) * before[id_] + weight * after[id_]) for id_ in scores}


def _stretched(scores: Mapping[str, float]) -> dict[str, float]:
    least, most = min(scores.values()), max(scores.values())
    span = most - least
    return {id_: (score - least) / span if span > 0 else 1.0 for id_, score in scores.items()}
