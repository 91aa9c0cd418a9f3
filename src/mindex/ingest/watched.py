"""An embedder that is watched: a model that became another one behind its name gives this memory no more vectors.

A server may be given another model under the same name, with vectors of the same length: nothing but bad answers would
tell. So each space keeps what its model made of one fixed sentence, its canary. It rides along with the texts that are
embedded for a server's model each time, and with a question now and then. What runs on this machine is named by its
file's checksum: there it is looked at once by each process that writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

from mindex.errors import EmbeddingError, MindexError
from mindex.model import Model
from mindex.model.spaces import space_name
from mindex.providers.embed.base import Accompanied, Embedder

if TYPE_CHECKING:
    from mindex.model import Vectors
    from mindex.store.base import Store

# Never to be changed: what is kept was made of these very words. They are of several kinds: a tokenizer shows itself.
SENTENCE = "Two ferries (No. 7 and 8) leave at 21:30; `def total(prices): return sum(prices)` is no Käse."
# The same model has 1.0 whatever the threads and batches (MiniLM, bge and arctic in ONNX; bge and SmolLM2 in GGUF), and
# .996 between two runtimes and quantizations of bge. Between different models of one length it is below .3.
_SAME = 0.99
# What is named by its file's checksum is another one only when something beside the file has changed. Processors round
# whole numbers in their own ways, and a memory may be carried from one machine to the next.
_SAME_FILE = 0.95
# A question is sent with the canary when nobody looked for so long.
_TRUSTED_SECONDS = 600.0
# A space from before there were canaries: one of so many records must have the vector that is stored for it.
_SAMPLE = 3
_QUESTIONS = "query-embedding"


class Watched:
    """The embedder of one space of a store. Safe to use from several threads."""

    def __init__(self, inner: Embedder, store: Store, edition: int = 0) -> None:
        self.inner = inner
        self._store = store
        self._edition = edition
        self._trusted_until = 0.0
        self._forgot = False

    def of(self, edition: int) -> Watched:
        """The same embedder for another edition of its space."""
        return self if edition == self._edition else Watched(self.inner, self._store, edition)

    @property
    def model(self) -> Model:
        model = self.inner.model
        return replace(model, edition=self._edition) if self._edition else model

    @property
    def loaded(self) -> bool:
        return self.inner.loaded

    def load(self) -> None:
        self.inner.load()

    def fluency(self, texts: Sequence[str]) -> list[float]:
        return self.inner.fluency(texts)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors that are fit to be stored: those of another model than the space's are an EmbeddingError."""
        inner = self.inner
        if isinstance(inner, Accompanied) and texts:
            vectors, found = inner.embed_beside(texts, SENTENCE)
        elif self._trusted_until or not texts:
            return inner.embed(texts)
        else:
            both = inner.embed([*texts, SENTENCE])
            vectors, found = both[:-1], both[-1]
        self._look(found, keeps=True)
        return vectors

    def embed_query(self, text: str) -> Vectors:
        inner = self.inner
        if not isinstance(inner, Accompanied) or monotonic() < self._trusted_until:
            return inner.embed_query(text)
        vector, found = inner.embed_query_beside(text, SENTENCE)
        kept = self._store.canary(self.model)
        if kept is not None and not is_same(self.model, kept, found):
            raise self._another(likeness(kept, found))
        self._trusted_until = monotonic() + _TRUSTED_SECONDS
        return vector

    def prove(self) -> None:
        """Raise EmbeddingError when it is not the model that the stored vectors are of. Keeps nothing."""
        self._look(self.inner.embed([SENTENCE])[0], keeps=False)

    # ── comparing ─────────────────────────────────────────────────────────────────────────────────────────────

    def _look(self, found: Vectors, *, keeps: bool) -> None:
        kept = self._store.canary(self.model)
        if kept is None:
            self._compare_sample()
            kept = self._store.keep_canary(self.model, found) if keeps and not self._store.read_only else found
        if not is_same(self.model, kept, found):
            raise self._another(likeness(kept, found))
        self._trusted_until = monotonic() + _TRUSTED_SECONDS

    def _compare_sample(self) -> None:
        """Embed a few records again that have their vectors: these must be of the same model."""
        from mindex.pieces import pieces_of

        model = self.model
        records = self._store.embedded_records(model, _SAMPLE)
        if not records:
            return
        stored = self._store.stored_vectors(model, [record.id for record in records])
        pairs = [(stored[record.id][0], pieces_of(record)[0]) for record in records if record.id in stored]
        if not pairs:
            return
        again = self.inner.embed([piece for _, piece in pairs])
        # The best one: how a long record is cut may have been another way when it was embedded.
        both = [(kept, now) for (kept, _), now in zip(pairs, again, strict=True)]
        if not any(is_same(model, kept, now) for kept, now in both):
            raise self._another(max(likeness(kept, now) for kept, now in both))

    def _another(self, cosine: float) -> EmbeddingError:
        if not self._forgot:  # some of the questions that are kept may be of the wrong model already
            with suppress(MindexError):
                self._store.clear_caches((_QUESTIONS,))
            self._forgot = True
        self._trusted_until = 0.0
        return EmbeddingError(
            f"{space_name(self.model)} has become another model than the one that this memory was embedded with"
            f" (a text that it read before has a cosine of {cosine:.2f} with itself)",
            "put the old one back, or run `mindex reembed --force`",
        )


def is_same(model: Model, one: Vectors, other: Vectors) -> bool:
    """Whether two vectors of one text are of the same model."""
    return likeness(one, other) >= (_SAME_FILE if model.provider == "local" else _SAME)


def likeness(one: Vectors, other: Vectors) -> float:
    """The cosine of two vectors; -1 where they cannot be compared."""
    import numpy as np

    if one.shape != other.shape:
        return -1.0
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    cosine = float(np.dot(one, other)) / lengths if lengths else -1.0
    return cosine if np.isfinite(cosine) else -1.0
