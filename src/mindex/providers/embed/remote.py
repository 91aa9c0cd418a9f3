"""Embedders on servers: Ollama and those that speak OpenAI's protocol; batches, limits, and a check of every vector."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from time import monotonic

from mindex.datatypes import Model, VectorArray
from mindex.errors import EmbeddingError
from mindex.providers.base import STAND_IN, ProviderSettings, clean_for_server
from mindex.providers.cache_files import dataclass_of, read_small, write_small
from mindex.providers.embed.base import Embedder
from mindex.providers.embed.model_cards import (
    MAX_DIMENSIONS,
    UNRELATED,
    Card,
    background_of,
    card_file,
    space,
)
from mindex.providers.known_servers import server_spec
from mindex.providers.server import DEFAULT_LIMITS, Limits, ModelServer, Rejected, Server
from mindex.values import dataclass

_TEXTS_PER_REQUEST = 32
# A request holds as much as is answered in a quarter of the time-out, so that slow servers stay within it.
_FIRST_CHARACTERS = 8_000
_MIN_CHARACTERS, _MAX_CHARACTERS = 1_000, 64_000
_SHARE_OF_TIME = 0.25
_QUERY_SECONDS = 8.0
# A text that the server calls too long is halved until it has no more characters than this.
_SHORTEST = 40
# Four characters make a token of English; denser text is cut again when the server refuses it.
_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class EmbeddingInterface:
    """How a kind of server is asked, and where in its answer the vectors are (ValueError: nowhere)."""

    path: str
    body: Callable[[Sequence[str]], dict[str, object]]
    vectors: Callable[[object], Sequence[object]]
    # Characters of a text that are sent; 0: four for each token that the model reads.
    max_characters: int = 0


_FOR_LOADING = Limits(insists=True)
# LM Studio's comes with it. Azure has none: there, a model is the name of a deployment.
_DEFAULT_MODELS = {
    "ollama": "nomic-embed-text",
    "openai": "text-embedding-3-small",
    "lmstudio": "text-embedding-nomic-embed-text-v1.5",
}


def create(settings: ProviderSettings) -> Embedder:
    model = settings.model or _DEFAULT_MODELS.get(settings.provider, "")
    # Versions of Ollama before September 2025 ignore it and answer in full length, which is noticed.
    options: dict[str, object] = {"dimensions": settings.dimensions} if settings.dimensions else {}
    if settings.provider == "ollama":
        options["truncate"] = False  # by default it cuts what is too long, silently

    def body(texts: Sequence[str]) -> dict[str, object]:
        return {"model": model, "input": list(texts), **options}

    if settings.provider == "ollama":
        interface = EmbeddingInterface("/api/embed", body, lambda answer: list_in(answer, "embeddings"))
    else:
        interface = EmbeddingInterface("/embeddings", body, vectors_of)
    return remote_embedder(settings, model, interface)


def remote_embedder(
    settings: ProviderSettings, model: str, interface: EmbeddingInterface, pooling: str = ""
) -> RemoteEmbedder:
    """Return the embedder for a model on the configured provider's server."""
    server = Server(server_spec("embedding", settings, model))
    return RemoteEmbedder(server, interface, space(settings.provider, model, pooling), settings.dimensions)


class RemoteEmbedder:
    """One model on one server. Safe to use from several threads.

    A text that the server does not take at all gets the vector of a full stop, which is like nothing else, and is found
    by keyword.
    """

    def __init__(
        self,
        server: ModelServer,
        interface: EmbeddingInterface,
        model: Model,
        dimensions: int = 0,
        *,
        query_seconds: float = 0.0,
    ) -> None:
        """`dimensions` is the length that requests name; 0 where they leave it to the model.

        `query_seconds` replaces the default of 8 seconds.
        """
        self._server = server
        self._interface = interface
        self._expected = replace(model, dimensions=dimensions or model.dimensions)
        self._dimensions = dimensions
        self._max_characters = interface.max_characters or model.max_tokens * _CHARACTERS_PER_TOKEN
        self._query_seconds = query_seconds
        self._card_file = card_file(model.provider, str(server.spec.address), model.name, dimensions)
        self._card: Card | None = None
        self._reads_card_file = True
        self._is_answering = False
        self._measuring = threading.Lock()
        self._per_request = _FIRST_CHARACTERS

    @property
    def model(self) -> Model:
        card = self._known_card()
        if card is None:
            return self._expected
        return replace(self._expected, dimensions=card.dimensions, background_mean=card.mean, background_std=card.std)

    @property
    def loaded(self) -> bool:
        return self._known_card() is not None

    def load(self) -> None:
        """Have it answer, unless its last answer was good; also when its breaker is open."""
        self._ensure_card(_FOR_LOADING)
        if not self._is_answering or self._server.is_down:
            self._embed([STAND_IN], self._expected.text_prefix, _FOR_LOADING, strict=True)

    def trouble(self) -> str:
        return self._server.trouble()

    def forget_card(self) -> None:
        """Measure the model again with the next request. Until then other processes keep to the old card."""
        with self._measuring:
            self._card = None
            self._reads_card_file = False

    def embed(self, texts: Sequence[str]) -> VectorArray:
        if not texts:
            import numpy as np  # 100 ms to import, as below: only for vectors that have arrived

            return np.empty((0, self.model.dimensions), np.float32)
        self._ensure_card(DEFAULT_LIMITS)
        return self._embed(texts, self._expected.text_prefix, DEFAULT_LIMITS)

    def embed_query(self, text: str) -> VectorArray:
        vector: VectorArray = self._query(text)[0]
        return vector

    def embed_beside(self, texts: Sequence[str], other: str) -> tuple[VectorArray, VectorArray]:
        self._ensure_card(DEFAULT_LIMITS)
        vectors = self._embed(texts, self._expected.text_prefix, DEFAULT_LIMITS, beside=other)
        return vectors[:-1], vectors[-1]

    def embed_query_beside(self, text: str, other: str) -> tuple[VectorArray, VectorArray]:
        vectors = self._query(text, beside=other)
        return vectors[0], vectors[1]

    def _query(self, text: str, beside: str = "") -> VectorArray:
        seconds = min(self._server.spec.timeout, self._query_seconds or _QUERY_SECONDS)
        limits = Limits(monotonic() + seconds, attempts=1)  # a person is waiting
        self._ensure_card(limits)
        return self._embed([text], self._expected.query_prefix, limits, strict=True, beside=beside)

    def fluency(self, texts: Sequence[str]) -> list[float]:
        return [1.0 for _ in texts]

    # ── the card ──────────────────────────────────────────────────────────────────────────────────────────────

    def _known_card(self) -> Card | None:
        if self._card is None and self._reads_card_file:
            self._card = dataclass_of(read_small(self._card_file), Card)
        return self._card

    def _ensure_card(self, limits: Limits) -> None:
        """Have the model's card, before any of its vectors is stored or compared."""
        if self._known_card():
            return
        if not self._measuring.acquire(timeout=-1 if limits.deadline is None else limits.seconds(math.inf)):
            raise self._error("is still being asked what it is like", "try again in a moment")
        try:
            if self._known_card() is None:
                self._card = card = self._measure_card(limits)
                write_small(self._card_file, asdict(card))
        finally:
            self._measuring.release()

    def _measure_card(self, limits: Limits) -> Card:
        model = self._expected
        texts = queries = self._embed(UNRELATED, model.text_prefix, limits, strict=True)
        if model.query_prefix != model.text_prefix:
            queries = self._embed(UNRELATED, model.query_prefix, limits, strict=True)
        if queries.shape != texts.shape:
            raise self._server.invalid_answer("answers with vectors of different lengths")
        return Card(texts.shape[1], *background_of(queries, texts))

    def _check_length(self, dimensions: int) -> None:
        """Raise EmbeddingError when the vectors' length is not the requested one, or not that of the card."""
        if self._dimensions and dimensions != self._dimensions:
            raise self._error(
                f"answers with {dimensions} dimensions, {self._dimensions} were asked for",
                "set embedding.dimensions to 0, or name a model and a server that can shorten vectors",
            )
        card = self._card
        if card is None or card.dimensions == dimensions:
            return
        fresh = dataclass_of(
            read_small(self._card_file), Card
        )  # another process may have re-embedded everything in the meantime
        if fresh is None or fresh.dimensions != dimensions:
            message = f"now answers with {dimensions} dimensions, it was {card.dimensions}"
            raise self._error(message, "run `mindex reembed`")
        self._card = fresh

    # ── requests ────────────────────────────────────────────────────────────────────────────────────────────────

    def _embed(
        self, texts: Sequence[str], prefix: str, limits: Limits, *, strict: bool = False, beside: str = ""
    ) -> VectorArray:
        """Return one row per text. With `strict`, a text that the server refuses is an error, not a stand-in.

        `beside` is the last row: it is part of the last request, however full that is.
        """
        prepared = [prefix + clean_for_server(text, self._max_characters) for text in texts]
        last = [self._expected.text_prefix + clean_for_server(beside, self._max_characters)] if beside else []
        return self._concatenated([self._batch(batch, limits, strict) for batch in self._batches(prepared, last)])

    def _batches(self, texts: Sequence[str], last: Sequence[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        size = 0
        for text in texts:
            if batch and (len(batch) == _TEXTS_PER_REQUEST or size + len(text) > self._per_request):
                yield batch
                batch, size = [], 0
            batch.append(text)
            size += len(text)
        if batch and len(batch) + len(last) > _TEXTS_PER_REQUEST:  # some servers take no more
            yield batch
            batch = []
        if texts:
            yield [*batch, *last]

    def _batch(self, batch: Sequence[str], limits: Limits, strict: bool) -> VectorArray:
        """Return the batch's vectors. One text that the server refuses is found by halving, and costs no other."""
        try:
            return self._request(batch, limits)
        except Rejected as rejected:
            if len(batch) > 1:
                middle = len(batch) // 2
                halves = (batch[:middle], batch[middle:])
                return self._concatenated([self._batch(half, limits, strict) for half in halves])
            (text,) = batch
            if rejected.too_long and len(text) > _SHORTEST:
                return self._batch([text[: len(text) // 2]], limits, strict)
            if strict:
                raise self._server.refusal(rejected) from None
            return self._embed_stand_in(rejected, limits)

    def _embed_stand_in(self, rejected: Rejected, limits: Limits) -> VectorArray:
        try:
            vectors = self._request([self._expected.text_prefix + STAND_IN], limits)
        except Rejected:  # it refuses even that: the text was not the reason
            raise self._server.refusal(rejected) from None
        import logging  # 25 ms to import, and only a refusal needs it

        warn = logging.getLogger(__name__).warning
        warn("%s refused a text (%s); it is found by its words only", self._server.spec, rejected.reason)
        return vectors

    def _request(self, texts: Sequence[str], limits: Limits) -> VectorArray:
        answering, self._is_answering = self._is_answering, False
        started = monotonic()
        try:
            answer = self._server.post(self._interface.path, self._interface.body(texts), limits)
        except Rejected:
            self._is_answering = answering
            raise
        try:
            vectors = _unit_vectors(self._interface.vectors(answer), len(texts))
        except ValueError as error:
            raise self._server.invalid_answer(str(error)) from None
        self._check_length(vectors.shape[1])
        self._is_answering = True
        self._adjust_size(sum(map(len, texts)), monotonic() - started)
        return vectors

    def _adjust_size(self, characters: int, seconds: float) -> None:
        """Set how much is sent at once by how fast this answer came; in steps, since one answer may be an outlier."""
        allowed = self._server.spec.timeout * _SHARE_OF_TIME
        if seconds <= allowed and characters <= self._per_request // 2:
            return  # a short text says nothing of how long a long one takes
        bound = min(characters / max(seconds, 1e-3) * allowed, 4 * self._per_request, _MAX_CHARACTERS)
        self._per_request = max(int(bound), _MIN_CHARACTERS)

    def _concatenated(self, parts: Sequence[VectorArray]) -> VectorArray:
        import numpy as np  # 100 ms to import, only for vectors that have arrived

        if len({part.shape[1] for part in parts}) > 1:
            raise self._server.invalid_answer("answers with vectors of different lengths")
        return np.concatenate(parts)

    def _error(self, what: str, hint: str) -> EmbeddingError:
        return EmbeddingError(f"{self._server.spec.model_title} {what}", hint)


def list_in(answer: object, *names: str) -> list[object]:
    """Return the list below these names of an answer. Raises ValueError if there is none."""
    for name in names:
        answer = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(answer, list):
        raise ValueError("answers without embeddings")
    return answer


def vectors_of(answer: object) -> Sequence[object]:
    """Return the vectors of an OpenAI answer in the order of the texts. Raises ValueError if there are none.

    Its rows `{index, embedding}` may come in any order; without indexes, their order counts.
    """
    rows = list_in(answer, "data")
    placed: dict[int, object] = {}
    for position, row in enumerate(rows):
        if not isinstance(row, dict) or "embedding" not in row:
            raise ValueError("answers without an embedding")
        index = row.get("index", position)
        if not isinstance(index, int) or not 0 <= index < len(rows) or index in placed:
            raise ValueError("answers with invalid indexes")
        placed[index] = row["embedding"]
    return [placed[index] for index in range(len(rows))]


def _unit_vectors(rows: Sequence[object], expected: int) -> VectorArray:
    """Return the rows as float32 vectors of length 1. Raises ValueError that says what is wrong with them."""
    import numpy as np  # 100 ms to import, only for vectors that have arrived

    if len(rows) != expected:
        raise ValueError(f"answers with {len(rows)} vectors for {expected} texts")
    for row in rows:
        if not isinstance(row, list) or not all(type(value) in (float, int) for value in row):
            raise ValueError("answers with a vector that holds something else than numbers")
    if len({len(row) for row in rows if isinstance(row, list)}) != 1:
        raise ValueError("answers with vectors of different lengths")
    try:
        vectors = np.array(rows, dtype=np.float64)
    except OverflowError:
        raise ValueError("answers with a vector that is not finite") from None
    if not 0 < vectors.shape[1] <= MAX_DIMENSIONS:
        raise ValueError(f"answers with vectors of {vectors.shape[1]} dimensions")
    if not np.isfinite(vectors).all():
        raise ValueError("answers with a vector that is not finite")
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    if not largest.all():
        raise ValueError("answers with a vector of zeros")
    vectors /= largest  # so that no square leaves the range of numbers
    normalised: VectorArray = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return normalised
