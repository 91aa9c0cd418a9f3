"""Reranking: a cross-encoder scores query and text together for the first candidates, blended with the score so far.

The order among the first forty may change; none of them leaves the span of their scores, so all others stay below them.
"""

import hashlib
import struct
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import overload

from mindex.analyzer import analyze, analyze_query, is_segmented
from mindex.datatypes import Record
from mindex.errors import ProviderError
from mindex.providers.rerank.base import Reranker
from mindex.search.fuse import stretched
from mindex.search.judgement import Scores
from mindex.store.base import Store
from mindex.store.cache_kinds import RERANK_CACHE
from mindex.values import dataclass

# This number of characters of a text shows its script.
_GLANCE = 800
_SCORE = struct.Struct("<d")
# Raise it whenever another passage is chosen of a text: what is kept are the scores of what was read.
_PASSAGES = "2"
# Among turns its score is multiplied by this: each is short, and words and vectors say little about the speaker.
_AMONG_TURNS = 1.75
# What its reading is worth in log-odds, up or down.
READING = 1.5


@dataclass(frozen=True, slots=True)
class Reranked:
    """Raw scores by record, and how far they are to be trusted (0…1); empty, with a note, when there are none."""

    scores: Mapping[str, float]
    note: str = ""
    trust: float = 1.0
    answers: Mapping[str, float] = field(default_factory=dict)  # how sure it is of each (0…1), where its scale is known


class RerankStage:
    """Scores the first candidates of a query and caches the scores."""

    def __init__(self, reranker: Reranker, store: Store, seconds: float) -> None:
        self._reranker = reranker
        self._store = store
        self._seconds = seconds

    def refused(self, query: str) -> str:
        """A note when reranking is impossible: the reranker fails, and no score of the query is cached. Else ''."""
        if self._store.caches.has_prefix(RERANK_CACHE, self._start(query)):
            return ""
        try:
            self._reranker.score(query, (), seconds=self._seconds)
        except Exception as error:
            return _failure_note(error)
        return ""

    def scores(self, query: str, records: Sequence[Record]) -> Reranked:
        keys = {record.id: self._key(query, record) for record in records}
        kept = self._store.caches.get_many(RERANK_CACHE, list(keys.values()))
        known = {id_: _SCORE.unpack(kept[key])[0] for id_, key in keys.items() if key in kept}
        missing = [record for record in records if record.id not in known]
        if missing:
            try:
                made = self._reranker.score(query, _Passages(query, missing), seconds=self._seconds)
                fresh = {record.id: score for record, score in zip(missing, made, strict=True)}
            except Exception as error:  # after any failure of the model, the order so far is kept
                return Reranked({}, _failure_note(error))
            self._store.caches.put_many(RERANK_CACHE, {keys[id_]: _SCORE.pack(score) for id_, score in fresh.items()})
            known |= fresh
        if self._reranker.doubt is None:
            return Reranked(known)
        least, most = self._reranker.doubt
        answers = {id_: min(1.0, max(0.0, (score - least) / (most - least))) for id_, score in known.items()}
        # One that sees no answer in the texts orders them by chance.
        return Reranked(known, trust=max(answers.values()), answers=answers)

    def add_to(
        self, scores: Scores, query: str, records: Sequence[Record], weight: float | None, fluency: float, *, odds: bool
    ) -> str:
        """Add what brings the records into the order that the cross-encoder and the scores agree on; a note if nothing.

        `weight`: None for that of the reranker. `odds`: the scores are log-odds, to which its reading adds.
        """
        # An English one would only spoil Chinese: it reads no script that its vocabulary lacks, and no language better
        # than the embedder does.
        weight = (self._reranker.weight if weight is None else weight) * min(fluency, legible(records))
        if not weight:
            return "not reranked: the models hardly read the language of these texts"
        done = self.scores(query, records)
        if done.note:
            return done.note
        weight = share(weight * done.trust, records)
        new = blended({record.id: scores.total[record.id] for record in records}, done.scores, weight)
        readings = {id_: READING * (2 * sure - 1) for id_, sure in done.answers.items()} if odds else {}
        for id_, score in new.items():
            scores.add(id_, "rerank", score - scores.total[id_] + readings.get(id_, 0.0))
            scores.readings[id_] = done.scores[id_]
        if readings:  # those below, which it did not read, stay below
            for id_ in scores.total.keys() - new.keys():
                scores.add(id_, "rerank", min(readings.values()))
        return ""

    def _key(self, query: str, record: Record) -> str:
        return self._start(query) + _digest(record.title, record.text)

    def _start(self, query: str) -> str:
        """The start of the cache keys of a query."""
        return _digest(self._reranker.name, _PASSAGES, query)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:32]


def _failure_note(error: Exception) -> str:
    if isinstance(error, ProviderError):
        return f"not reranked: {error}"
    return f"not reranked: the reranker failed ({type(error).__name__}: {error})"


class _Passages(Sequence[str]):
    """The passage of each record, chosen when it is read: a reranker that is down reads none."""

    def __init__(self, query: str, records: Sequence[Record]) -> None:
        self._query = query
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [passage(self._query, record) for record in self._records[place]]
        return passage(self._query, self._records[place])


def passage(query: str, record: Record) -> str:
    """What the cross-encoder is given of a record: its title, once, and the piece that holds most of the query."""
    # Its patterns take time to compile, and only a reranker needs them.
    from mindex.embedding_text import embedding_title, split

    title = embedding_title(record)
    pieces = split(_without_heading(record.text, title))
    best = pieces[0]
    if len(pieces) > 1:
        wanted = set(analyze(query).words)  # with the small ones, which did better on scientific claims
        best = max(pieces, key=lambda piece: len(wanted.intersection(analyze(piece).words)))
    return f"{title}\n{best}" if title else best


def _without_heading(text: str, title: str) -> str:
    """A section's text begins with its heading, which its title ends with."""
    first, _, rest = text.lstrip().partition("\n")
    heading = first.lstrip("#").strip()
    return rest if rest.strip() and heading and f" > {title}".endswith(f" > {heading}") else text


def share(weight: float, records: Collection[Record]) -> float:
    """The share of the cross-encoder in the order of these records."""
    turns = sum(record.kind == "turn" for record in records) / len(records)
    return min(1.0, weight * (1 + (_AMONG_TURNS - 1) * turns))


def legible(records: Iterable[Record]) -> float:
    """How much of these texts a cross-encoder is likely to read, 0…1: of scripts without spaces most read nothing.

    0 where these are half of it, as with the models whose word pieces can be seen.
    """
    texts = [record.text[:_GLANCE] for record in records]
    if all(map(is_segmented, texts)):
        return 1.0
    words = [word for text in texts for word in analyze_query(text)]
    tokens = sum(len(word.words) for word in words)
    unread = sum(len(word.words) for word in words if word.unsegmented)
    return max(0.0, 1 - 2 * unread / tokens) if tokens else 1.0


def blended(scores: Mapping[str, float], reranked: Mapping[str, float], weight: float) -> dict[str, float]:
    """New scores: both stretched to 0…1, mixed by weight, put back into the span the scores had.

    The cross-encoder's are squared: what it takes for an answer counts, how wrong it finds the others hardly does.
    """
    least, most = min(scores.values()), max(scores.values())
    before, after = stretched(scores), stretched({id_: reranked[id_] for id_ in scores})
    return {id_: least + (most - least) * ((1 - weight) * before[id_] + weight * after[id_] ** 2) for id_ in scores}
