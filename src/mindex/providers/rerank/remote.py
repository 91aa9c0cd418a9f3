"""Rerankers on servers: any with a `/v1/rerank`, like Jina, Cohere, llama.cpp, vLLM and Infinity."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from time import monotonic

from mindex.providers.base import ProviderSettings, clean_for_server
from mindex.providers.http import MEGABYTE
from mindex.providers.known_servers import server_spec
from mindex.providers.rerank.base import CHOSEN_WEIGHT, Reranker
from mindex.providers.server import Limits, ModelServer, Rejected, Server

# Cross-encoders read 512 tokens, query and text together; servers that read more get no more than this.
_MAX_CHARACTERS = 6_000
_MIN_CHARACTERS = 100
_TEXTS_PER_REQUEST = 64
_MAX_BYTES = 4 * MEGABYTE
_ATTEMPTS = 2

Body = Callable[[str, Sequence[str]], dict[str, object]]
Rows = Callable[[object], Sequence[tuple[object, object]]]


def create(settings: ProviderSettings) -> Reranker:
    return endpoint(Server(server_spec("rerank", settings, settings.model)), "/rerank", settings.model)


def endpoint(server: ModelServer, path: str, model: str = "") -> RemoteReranker:
    """Return the reranker at a path of a server; `model` is named in requests where it is given."""
    named = {"model": model} if model else {}

    def body(query: str, texts: Sequence[str]) -> dict[str, object]:
        return {**named, "query": query, "documents": list(texts), "top_n": len(texts)}

    return RemoteReranker(server, path, body, _rows)


def _rows(answer: object) -> list[tuple[object, object]]:
    rows = answer.get("results") if isinstance(answer, dict) else answer
    return pairs_of(rows, "index", ("relevance_score", "score"))


class RemoteReranker:
    """One reranker on one server. Safe to use from several threads."""

    doubt = None
    weight = CHOSEN_WEIGHT

    def __init__(self, server: ModelServer, path: str, body: Body, rows: Rows) -> None:
        """`rows` returns the pairs of index and score in an answer, or raises ValueError."""
        self._server = server
        self._path = path
        self._body = body
        self._rows = rows
        self._max_characters = _MAX_CHARACTERS
        self._has_answered = False
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self._server.spec.name

    @property
    def loaded(self) -> bool:
        return self._has_answered

    def load(self) -> None:
        """Have it answer, unless it did; also when its breaker is open."""
        if not self._has_answered or self._server.is_down:
            limits = Limits(None, _ATTEMPTS, _MAX_BYTES, insists=True)
            self._batch("a question to see whether it answers", ["a text"], limits)

    def score(self, query: str, texts: Sequence[str], *, seconds: float | None = None) -> list[float]:
        self._server.check()
        timeout = self._server.spec.timeout
        deadline = monotonic() + min(timeout if seconds is None else seconds, timeout)
        limits = Limits(deadline, _ATTEMPTS, _MAX_BYTES)
        scores: list[float] = []
        for start in range(0, len(texts), _TEXTS_PER_REQUEST):
            scores += self._batch(query, texts[start : start + _TEXTS_PER_REQUEST], limits)
        return scores

    def _batch(self, query: str, texts: Sequence[str], limits: Limits) -> list[float]:
        while True:
            most = self._max_characters
            sent = [clean_for_server(text, most) for text in texts]
            try:
                answer = self._server.post(self._path, self._body(clean_for_server(query, most), sent), limits)
            except Rejected as rejected:
                if not rejected.too_long or most <= _MIN_CHARACTERS:
                    raise self._server.refusal(rejected) from None
                self._shorten(most, max(map(len, sent)))
                continue
            try:
                scores = _scores(self._rows(answer), len(texts))
            except ValueError as error:
                raise self._server.invalid_answer(str(error)) from None
            self._has_answered = True
            return scores

    def _shorten(self, most: int, longest: int) -> None:
        with self._lock:  # several threads may get the same refusal: the limit is halved once
            if self._max_characters == most:
                self._max_characters = min(most, longest) // 2


def _scores(rows: Sequence[tuple[object, object]], expected: int) -> list[float]:
    found: dict[int, float] = {}
    for index, score in rows:
        if type(index) is not int or not 0 <= index < expected or index in found:
            raise ValueError("answers with invalid indexes")
        if type(score) not in (int, float) or not math.isfinite(float(str(score))):
            raise ValueError("answers with a score that is not a number")
        found[index] = float(str(score))
    if len(found) != expected:
        raise ValueError(f"answers with {len(found)} scores for {expected} texts")
    return [found[index] for index in range(expected)]


def pairs_of(rows: object, index: str, scores: Sequence[str]) -> list[tuple[object, object]]:
    """Return the pairs of index and score in a list of objects; the score has one of several names."""
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise ValueError("answers without scores")
    return [(row.get(index), next((row[name] for name in scores if name in row), None)) for row in rows]
