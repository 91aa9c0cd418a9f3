"""An embedder that is watched: a model that became another one behind its name gives this memory no more vectors.

A server may be given another model under the same name, with vectors of the same length: nothing but bad answers would
tell. So each space keeps what its model made of one fixed sentence, its canary. It rides along with the texts that are
embedded for a server's model each time, and with a process's first question. What runs on this machine is named by its
file's checksum: there it is looked at once by each process that writes.

With some servers a vector depends on what else is in the request. So what is kept was sent alone, and nobody is alarmed
before the sentence was sent alone once more.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

from mindex.errors import EmbeddingError, MindexError
from mindex.model import Model
from mindex.model.spaces import space_name
from mindex.providers.cache_files import drop_small, read_small, small_file, write_small
from mindex.providers.embed.base import Embedder, EmbedsWithCanary, ReportsTrouble

if TYPE_CHECKING:
    from pathlib import Path

    from mindex.model import VectorArray
    from mindex.store.base import Store

# Never to be changed: what is kept was made of these very words. They are of several kinds: a tokenizer shows itself.
SENTENCE = "Two ferries (No. 7 and 8) leave at 21:30; `def total(prices): return sum(prices)` is no Käse."
# The same model has 1.0 whatever the threads and batches (MiniLM, bge and arctic in ONNX; bge and SmolLM2 in GGUF), and
# .996 between two runtimes and quantizations of bge; other processors round in their own ways. Between different models
# of one length it is below .3.
_SAME = 0.95
# A question is sent with the canary when nobody looked for so long.
_TRUSTED_SECONDS = 600.0
# A space from before there were canaries: one of so many records must have the vector that is stored for it.
_SAMPLE = 3
_QUESTIONS = "query-embedding"
# Nobody who asks waits longer for a lock, though some of the questions that are kept may be of the wrong model.
_FORGETTING_SECONDS = 1.0


class CanaryEmbedder:
    """The embedder of one space of a store. Safe to use from several threads."""

    def __init__(self, inner: Embedder, store: Store, edition: int = 0) -> None:
        self.inner = inner
        self._store = store
        self._edition = edition
        self._trusted_until = 0.0
        self._forgot = False

    def of(self, edition: int) -> CanaryEmbedder:
        """The same embedder for another edition of its space."""
        return self if edition == self._edition else CanaryEmbedder(self.inner, self._store, edition)

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

    def embed(self, texts: Sequence[str]) -> VectorArray:
        """Vectors that are fit to be stored: those of another model than the space's are an EmbeddingError."""
        return self._embed(texts, keeps=not self._store.read_only)

    def for_queries(self) -> Embedder:
        """The same for whoever only asks: nothing is written, and no lock is waited for."""
        return _QueryEmbedder(self)

    def embed_to_compare(self, texts: Sequence[str]) -> VectorArray:
        """As `embed`, for vectors that nobody stores."""
        return self._embed(texts, keeps=False)

    def _embed(self, texts: Sequence[str], *, keeps: bool) -> VectorArray:
        inner = self.inner
        if isinstance(inner, EmbedsWithCanary) and texts:
            vectors, found = inner.embed_beside(texts, SENTENCE)
        elif self._trusted_until or not texts:
            return inner.embed(texts)
        else:
            both = inner.embed([*texts, SENTENCE])
            vectors, found = both[:-1], both[-1]
        kept = self._store.vectors.canary(self.model)
        if kept is None and keeps:
            self._compare_sample()
            alone = self._alone() if isinstance(inner, EmbedsWithCanary) else found
            kept = self._store.vectors.put_canary(self.model, alone)
        self._compare(kept, found, keeps=keeps)
        return vectors

    def embed_query(self, text: str) -> VectorArray:
        inner = self.inner
        if not isinstance(inner, EmbedsWithCanary) or monotonic() < self._trusted_until:
            return inner.embed_query(text)
        vector, found = inner.embed_query_beside(text, SENTENCE)
        self._compare(self._store.vectors.canary(self.model), found, keeps=False)
        return vector

    def prove(self) -> None:
        """Raise EmbeddingError when it is not the model that the stored vectors are of. Keeps nothing."""
        found = self._alone()
        kept = self._store.vectors.canary(self.model)
        if kept is None:
            self._compare_sample()
        self._compare(kept, found, keeps=False)

    # ── comparing ─────────────────────────────────────────────────────────────────────────────────────────────

    def _alone(self) -> VectorArray:
        found: VectorArray = self.inner.embed([SENTENCE])[0]
        return found

    def _compare(self, kept: VectorArray | None, found: VectorArray, *, keeps: bool) -> None:
        if kept is not None and not is_same(kept, found):
            found = self._alone()
            if not is_same(kept, found) and keeps and not self._store.vectors.embedded_records(self.model, 1):
                kept = self._store.vectors.put_canary(self.model, found)  # left by somebody who came no further
            if not is_same(kept, found):
                another = self._another(likeness(kept, found))
                write_small(self._verdict(kept), {"said": str(another)})
                raise another
        if kept is not None:
            drop_small(self._verdict(kept))
        self._trusted_until = monotonic() + _TRUSTED_SECONDS
        self._forgot = False

    def trouble(self) -> str:
        """Why questions would be answered without it now, as far as that is known; nobody is asked for it."""
        inner = self.inner
        if said := inner.trouble() if isinstance(inner, ReportsTrouble) else "":
            return said
        kept = self._store.vectors.canary(self.model) if isinstance(inner, EmbedsWithCanary) else None
        if kept is None:
            return ""
        with suppress(OSError):
            return str((read_small(self._verdict(kept)) or {}).get("said", ""))
        return ""

    def _verdict(self, kept: VectorArray) -> Path:
        """Where it stands that a model is no longer the one of this canary: other processes say so without asking."""
        return small_file("canaries", self.model.fingerprint, kept.tobytes().hex())

    def _compare_sample(self) -> None:
        """Embed a few records again that have their vectors: these must be of the same model."""
        from mindex.embedding_text import embedding_pieces

        model = self.model
        records = self._store.vectors.embedded_records(model, _SAMPLE)
        if not records:
            return
        stored = self._store.vectors.stored(model, [record.id for record in records])
        pairs = [(stored[record.id][0], embedding_pieces(record)[0]) for record in records if record.id in stored]
        if not pairs:
            return
        again = self.inner.embed([piece for _, piece in pairs])
        # The best one: how a long record is cut may have been another way when it was embedded.
        both = [(kept, now) for (kept, _), now in zip(pairs, again, strict=True)]
        if not any(is_same(kept, now) for kept, now in both):
            raise self._another(max(likeness(kept, now) for kept, now in both))

    def _forget_questions(self) -> None:
        with suppress(MindexError):
            self._store.caches.clear((_QUESTIONS,))

    def _another(self, cosine: float) -> EmbeddingError:
        if not self._forgot:
            self._forgot = True
            forgetting = threading.Thread(target=self._forget_questions, name="mindex-forget", daemon=True)
            forgetting.start()
            forgetting.join(_FORGETTING_SECONDS)
        self._trusted_until = 0.0
        return EmbeddingError(
            f"{space_name(self.model)} has become another model than the one that this memory was embedded with"
            f" (a text that it read before has a cosine of {cosine:.2f} with itself)",
            "put the old one back, or run `mindex reembed --force`",
        )


class _QueryEmbedder:
    """A watched embedder whose vectors are compared and thrown away."""

    def __init__(self, watched: CanaryEmbedder) -> None:
        self._watched = watched
        self.load = watched.load
        self.fluency = watched.fluency
        self.embed = watched.embed_to_compare
        self.embed_query = watched.embed_query

    @property
    def model(self) -> Model:
        return self._watched.model

    @property
    def loaded(self) -> bool:
        return self._watched.loaded


def is_same(one: VectorArray, other: VectorArray) -> bool:
    """Whether two vectors of one text are of the same model."""
    return likeness(one, other) >= _SAME


def likeness(one: VectorArray, other: VectorArray) -> float:
    """The cosine of two vectors; -1 where they cannot be compared."""
    import numpy as np

    if one.shape != other.shape:
        return -1.0
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    cosine = float(np.dot(one, other)) / lengths if lengths else -1.0
    return cosine if np.isfinite(cosine) else -1.0
