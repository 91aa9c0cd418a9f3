"""An embedder that is a server: batches, bounds, and no vector that has not been looked at."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

from mindex.errors import EmbeddingError
from mindex.model import Model
from mindex.providers.embed.cosine_background import background_of
from mindex.providers.embed.server_model_cards import MOST_DIMENSIONS, UNRELATED, Card, CardFile
from mindex.providers.server import ATTEMPTS, Rejected, Server
from mindex.values import dataclass

if TYPE_CHECKING:
    from mindex.model import VectorArray

_TEXTS_PER_REQUEST = 32
# A request holds as much as is answered in a quarter of the time allowed: slow servers must not run into it.
_CHARACTERS_AT_FIRST = 8_000
_FEWEST_CHARACTERS, _MOST_CHARACTERS = 1_000, 64_000
_SHARE_OF_TIME = 0.25
_QUERY_SECONDS = 8.0
# Of a text that is too long for the model whatever its length, so much is tried at the least.
_SHORTEST = 40
# Four characters make a token of English; what is denser is cut again when the server says so.
_CHARACTERS_PER_TOKEN = 4
# Sent for a text without any: Ollama answers nothing to it, OpenAI refuses it.
STAND_IN = "."


@dataclass(frozen=True, slots=True)
class Wire:
    """How a kind of server wants to be asked, and where in its answer the vectors are (ValueError: nowhere)."""

    path: str
    body: Callable[[Sequence[str]], dict[str, object]]
    vectors: Callable[[object], Sequence[object]]


@dataclass(slots=True)
class _Text:
    """A text as it is sent, and whether anything of it was left out."""

    words: str
    cut: bool = False


@dataclass(frozen=True, slots=True)
class _Patience:
    """How long, in all or per request, and how often a server is asked."""

    seconds: float | None = None
    deadline: float | None = None
    attempts: int = ATTEMPTS
    insists: bool = False

    def left(self) -> float | None:
        return self.seconds if self.deadline is None else max(0.05, self.deadline - monotonic())


_PATIENT = _Patience()
_INSISTENT = _Patience(insists=True)


class RemoteEmbedder:
    """One model on one server. Safe to use from several threads.

    `cut` counts the texts of which the model saw only the beginning, `refused` those that the server would not take
    at all: they have the vector of a full stop, are like nothing else, and are found by their words.
    """

    def __init__(self, server: Server, wire: Wire, model: Model, dimensions: int = 0) -> None:
        """`dimensions` is what the wire asks for; 0 where it leaves the length to the model."""
        self._server = server
        self._wire = wire
        self._presumed = replace(model, dimensions=dimensions or model.dimensions)
        self._wanted = dimensions
        self._most = model.max_tokens * _CHARACTERS_PER_TOKEN
        self._cards = CardFile(model.provider, str(server.service.address), model.name, dimensions)
        self._known: tuple[Card, Model] | None = None
        self._heeds_file = True
        self._answering = False
        self._asking = threading.Lock()
        self._counting = threading.Lock()
        self._per_request = _CHARACTERS_AT_FIRST
        self.cut = 0
        self.refused = 0

    @property
    def model(self) -> Model:
        known = self._learnt()
        return known[1] if known else self._presumed

    @property
    def loaded(self) -> bool:
        return self._learnt() is not None

    def load(self) -> None:
        """Have it answer, unless it did so when it was last asked; also when everybody else leaves it alone."""
        self._ready(_INSISTENT)
        if not self._answering or self._server.left_alone:
            self._embed([STAND_IN], self._presumed.text_prefix, _INSISTENT, strict=True)

    def trouble(self) -> str:
        return self._server.trouble()

    def forget_card(self) -> None:
        """Forget what the model was like: the next answer tells anew. Until then others keep to the old card."""
        with self._asking:
            self._known = None
            self._heeds_file = False

    def embed(self, texts: Sequence[str]) -> VectorArray:
        if not texts:
            import numpy as np

            return np.empty((0, self.model.dimensions), np.float32)
        self._ready(_PATIENT)
        return self._embed(texts, self._presumed.text_prefix, _PATIENT)

    def embed_query(self, text: str) -> VectorArray:
        vector: VectorArray = self._query(text)[0]
        return vector

    def embed_beside(self, texts: Sequence[str], other: str) -> tuple[VectorArray, VectorArray]:
        self._ready(_PATIENT)
        vectors = self._embed(texts, self._presumed.text_prefix, _PATIENT, beside=other)
        return vectors[:-1], vectors[-1]

    def embed_query_beside(self, text: str, other: str) -> tuple[VectorArray, VectorArray]:
        vectors = self._query(text, beside=other)
        return vectors[0], vectors[1]

    def _query(self, text: str, beside: str = "") -> VectorArray:
        seconds = min(self._server.service.timeout, _QUERY_SECONDS)
        patience = _Patience(deadline=monotonic() + seconds, attempts=1)  # somebody is waiting
        self._ready(patience)
        return self._embed([text], self._presumed.query_prefix, patience, strict=True, beside=beside)

    def fluency(self, texts: Sequence[str]) -> list[float]:
        return [1.0 for _ in texts]

    # ── the card ──────────────────────────────────────────────────────────────────────────────────────────────

    def _learnt(self) -> tuple[Card, Model] | None:
        if self._known is None and self._heeds_file:
            card = self._cards.read()
            if card is not None:
                return self._learn(card)
        return self._known

    def _learn(self, card: Card) -> tuple[Card, Model]:
        model = replace(self._presumed, dimensions=card.dimensions, background_mean=card.mean, background_std=card.std)
        self._known = (card, model)
        return self._known

    def _ready(self, patience: _Patience) -> None:
        """Know what the model is like, before anything of it is stored or compared."""
        if self._learnt():
            return
        if not self._asking.acquire(timeout=patience.left() or -1):
            raise self._error("is still being asked what it is like", "try again in a moment")
        try:
            if self._learnt() is None:
                card = self._ask_for_card(patience)
                self._learn(card)
                self._cards.write(card)
        finally:
            self._asking.release()

    def _ask_for_card(self, patience: _Patience) -> Card:
        model = self._presumed
        texts = questions = self._embed(UNRELATED, model.text_prefix, patience, strict=True)
        if model.query_prefix != model.text_prefix:
            questions = self._embed(UNRELATED, model.query_prefix, patience, strict=True)
        if questions.shape != texts.shape:
            raise self._server.nonsense("answers with vectors of different lengths")
        return Card(texts.shape[1], *background_of(lambda _: questions, lambda _: texts))

    def _fits(self, dimensions: int) -> None:
        """Raise when the vectors have not the length that was asked for, or another one than the card tells of."""
        if self._wanted and dimensions != self._wanted:
            raise self._error(
                f"answers with {dimensions} dimensions, {self._wanted} were asked for",
                "set embedding.dimensions to 0, or name a model and a server that can shorten vectors",
            )
        known = self._known
        if known is None or known[0].dimensions == dimensions:
            return
        fresh = self._cards.read()  # another process may have re-embedded everything meanwhile
        if fresh is not None and fresh.dimensions == dimensions:
            self._learn(fresh)
            return
        raise self._error(
            f"now answers with {dimensions} dimensions, it was {known[0].dimensions}", "run `mindex reembed`"
        )

    # ── asking ────────────────────────────────────────────────────────────────────────────────────────────────

    def _embed(
        self, texts: Sequence[str], prefix: str, patience: _Patience, *, strict: bool = False, beside: str = ""
    ) -> VectorArray:
        """One row per text. With `strict`, a text that the server refuses is an error, not a stand-in.

        `beside` is the last row: it goes with the last request, however full that is.
        """
        prepared = [self._prepared(text, prefix) for text in texts]
        riding = [self._prepared(beside, self._presumed.text_prefix)] if beside else []
        vectors = self._joined([self._batch(batch, patience, strict) for batch in self._batches(prepared, riding)])
        with self._counting:
            self.cut += sum(text.cut for text in prepared)
        return vectors

    def _batches(self, texts: Sequence[_Text], riding: Sequence[_Text]) -> Iterator[list[_Text]]:
        batch: list[_Text] = []
        size = 0
        for text in texts:
            if batch and (len(batch) == _TEXTS_PER_REQUEST or size + len(text.words) > self._per_request):
                yield batch
                batch, size = [], 0
            batch.append(text)
            size += len(text.words)
        if batch and len(batch) + len(riding) > _TEXTS_PER_REQUEST:  # some servers take no more
            yield batch
            batch = []
        if texts:
            yield [*batch, *riding]

    def _prepared(self, text: str, prefix: str) -> _Text:
        words = text[: self._most].encode("utf-8", "replace").decode().replace("\0", " ")
        return _Text(prefix + (words if words.strip() else STAND_IN), cut=len(text) > self._most)

    def _batch(self, batch: Sequence[_Text], patience: _Patience, strict: bool) -> VectorArray:
        """The batch's vectors. One text that the server does not take is found by halving, and costs no other."""
        try:
            return self._request([text.words for text in batch], patience)
        except Rejected as rejected:
            if len(batch) > 1:
                middle = len(batch) // 2
                halves = (batch[:middle], batch[middle:])
                return self._joined([self._batch(half, patience, strict) for half in halves])
            if rejected.too_long and len(batch[0].words) > _SHORTEST:
                batch[0].words = batch[0].words[: len(batch[0].words) // 2]
                batch[0].cut = True
                return self._batch(batch, patience, strict)
            if strict:
                raise self._server.refusal(rejected) from None
            return self._in_its_stead(rejected, patience)

    def _in_its_stead(self, rejected: Rejected, patience: _Patience) -> VectorArray:
        try:
            vectors = self._request([self._presumed.text_prefix + STAND_IN], patience)
        except Rejected:  # it refuses even that: it was not the text's fault
            raise self._server.refusal(rejected) from None
        with self._counting:
            self.refused += 1
        import logging

        warn = logging.getLogger(__name__).warning
        warn("%s refused a text (%s); it is found by its words only", self._server.service, rejected.said)
        return vectors

    def _request(self, texts: Sequence[str], patience: _Patience) -> VectorArray:
        answering, self._answering = self._answering, False
        started = monotonic()
        try:
            answer = self._server.post(
                self._wire.path,
                self._wire.body(texts),
                seconds=patience.left(),
                attempts=patience.attempts,
                insists=patience.insists,
            )
        except Rejected:
            self._answering = answering
            raise
        try:
            vectors = _checked(self._wire.vectors(answer), len(texts))
        except ValueError as error:
            raise self._server.nonsense(str(error)) from None
        self._fits(vectors.shape[1])
        self._answering = True
        self._pace(sum(map(len, texts)), monotonic() - started)
        return vectors

    def _pace(self, characters: int, seconds: float) -> None:
        """Learn from an answer how much to send at once; in steps, since one answer may be a lucky one."""
        allowed = self._server.service.timeout * _SHARE_OF_TIME
        if seconds <= allowed and characters <= self._per_request // 2:
            return  # a short text says nothing of how long a long one takes
        bound = min(characters / max(seconds, 1e-3) * allowed, 4 * self._per_request, _MOST_CHARACTERS)
        self._per_request = max(int(bound), _FEWEST_CHARACTERS)

    def _joined(self, parts: Sequence[VectorArray]) -> VectorArray:
        import numpy as np

        if len({part.shape[1] for part in parts}) > 1:
            raise self._server.nonsense("answers with vectors of different lengths")
        return np.concatenate(parts)

    def _error(self, what: str, hint: str) -> EmbeddingError:
        return EmbeddingError(f"{self._presumed.name} of {self._server.service} {what}", hint)


def by_index(rows: Sequence[object]) -> list[object]:
    """The rows `{index, embedding}` in the order of what was asked; where no index is given, as they come."""
    placed: dict[int, object] = {}
    for position, row in enumerate(rows):
        if not isinstance(row, dict) or "embedding" not in row:
            raise ValueError("answers without an embedding")
        index = row.get("index", position)
        if not isinstance(index, int) or not 0 <= index < len(rows) or index in placed:
            raise ValueError("answers with indexes that make no sense")
        placed[index] = row["embedding"]
    return [placed[index] for index in range(len(rows))]


def _checked(rows: Sequence[object], expected: int) -> VectorArray:
    """The rows as float32 of length 1. Raises ValueError, which says what is wrong with them."""
    import numpy as np

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
    if not 0 < vectors.shape[1] <= MOST_DIMENSIONS:
        raise ValueError(f"answers with vectors of {vectors.shape[1]} dimensions")
    if not np.isfinite(vectors).all():
        raise ValueError("answers with a vector that is not finite")
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    if not largest.all():
        raise ValueError("answers with a vector of zeros")
    vectors /= largest  # so that no square leaves the range of numbers
    normalised: VectorArray = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return normalised
