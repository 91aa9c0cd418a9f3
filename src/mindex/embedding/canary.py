"""The canary: notices a model that was replaced by another one behind its name, and stores no more of its vectors.

A server may serve another model under the same name, with vectors of the same length: only bad results would show. So
each space keeps the vector of one fixed sentence, its canary. It is sent with every batch to a server's model, and with
the first query of a process, and compared. A model on this machine is named by the checksum of its file: there the
canary is compared once by each process that writes.

With some servers a vector depends on what else is in the request. So the kept vector was requested alone, and before an
alarm the sentence is sent alone once more.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

from mindex.datatypes import Model, VectorArray
from mindex.datatypes.spaces import space_name
from mindex.errors import EmbeddingError, MindexError
from mindex.providers.cache_files import drop_small, read_small, small_file, write_small
from mindex.providers.embed.base import Embedder, EmbedsWithCanary, ReportsTrouble
from mindex.store.base import Store
from mindex.store.cache_kinds import QUERY_CACHE

# Never change it: stored canaries are vectors of this very text. It mixes kinds of text, so that tokenizers differ.
SENTENCE = "Two ferries (No. 7 and 8) leave at 21:30; `def total(prices): return sum(prices)` is no Käse."
# The same model has 1.0 with all threads and batches (MiniLM, bge and arctic in ONNX; bge and SmolLM2 in GGUF), and
# .996 between two runtimes and quantizations of bge; other processors round in their own ways. Between different models
# of one length it is below .3.
_SAME = 0.95
# A query is sent with the canary when the last comparison is so long ago.
_TRUSTED_SECONDS = 600.0
# For a space without a canary: one of this number of records must get the vector that is stored for it.
_SAMPLE = 3
# A search waits no longer than this for the query cache to be cleared, which may hold vectors of the wrong model.
_CLEARING_SECONDS = 1.0


@dataclass(slots=True)
class _Trust:
    """What the comparisons of one embedder showed."""

    until: float = 0.0  # no query is sent with the canary before, and the store is not asked for it
    kept: VectorArray | None = None  # the canary that the last comparison was with
    cleared: bool = False  # the query cache, since the model was found to be another one


class CanaryEmbedder:
    """The embedder of one space of a store. Safe to use from several threads. `writes`: whether vectors are stored."""

    def __init__(
        self,
        inner: Embedder,
        store: Store,
        edition: int = 0,
        *,
        named: bool = True,
        writes: bool = True,
        trust: _Trust | None = None,
    ) -> None:
        """`named`: whether the space's fingerprint contains the hash of the weights."""
        self.inner = inner
        self._store = store
        self._edition = edition
        self._named = named
        self._writes = writes and not store.read_only
        self._trust = trust or _Trust()

    def of(self, edition: int, *, named: bool) -> CanaryEmbedder:
        """The same embedder for another edition of its space."""
        if (edition, named) == (self._edition, self._named):
            return self
        return CanaryEmbedder(self.inner, self._store, edition, named=named)

    def for_queries(self) -> CanaryEmbedder:
        """The same embedder for queries: it writes nothing and waits for no lock."""
        named, trust = self._named, self._trust
        return CanaryEmbedder(self.inner, self._store, self._edition, named=named, writes=False, trust=trust)

    @property
    def model(self) -> Model:
        model = self.inner.model
        if self._named and not self._edition:
            return model
        return replace(model, edition=self._edition, sha256=model.sha256 if self._named else "")

    @property
    def loaded(self) -> bool:
        return self.inner.loaded

    def load(self) -> None:
        self.inner.load()

    def fluency(self, texts: Sequence[str]) -> list[float]:
        return self.inner.fluency(texts)

    def embed(self, texts: Sequence[str]) -> VectorArray:
        """Vectors that may be stored. Raises EmbeddingError when the model is not the one of the space."""
        inner = self.inner
        if isinstance(inner, EmbedsWithCanary) and texts:
            vectors, found = inner.embed_beside(texts, SENTENCE)
        elif self._trust.until or not texts:
            return inner.embed(texts)
        else:
            both = inner.embed([*texts, SENTENCE])
            vectors, found = both[:-1], both[-1]
        kept = self._kept()
        if kept is None and self._writes:
            self._compare_sample()
            alone = self._alone() if isinstance(inner, EmbedsWithCanary) else found
            kept = self._store.vectors.put_canary(self.model, alone)
        self._compare(kept, found, writes=self._writes)
        return vectors

    def embed_query(self, text: str) -> VectorArray:
        inner = self.inner
        if not isinstance(inner, EmbedsWithCanary) or monotonic() < self._trust.until:
            return inner.embed_query(text)
        vector, found = inner.embed_query_beside(text, SENTENCE)
        self._compare(self._kept(), found, writes=False)
        return vector

    def prove(self) -> None:
        """Raise EmbeddingError when it is not the model of the stored vectors. Writes nothing."""
        found = self._alone()
        kept = self._store.vectors.canary(self.model)
        if kept is None:
            self._compare_sample()
        self._compare(kept, found, writes=False)

    # ── comparing ─────────────────────────────────────────────────────────────────────────────────────────────

    def _kept(self) -> VectorArray | None:
        trust = self._trust
        known = trust.kept if monotonic() < trust.until else None
        return self._store.vectors.canary(self.model) if known is None else known

    def _alone(self) -> VectorArray:
        found: VectorArray = self.inner.embed([SENTENCE])[0]
        return found

    def _compare(self, kept: VectorArray | None, found: VectorArray, *, writes: bool) -> None:
        if kept is not None and not is_same(kept, found):
            kept = self._store.vectors.canary(self.model)  # another process may have stored another one
        if kept is not None and not is_same(kept, found):
            found = self._alone()
            if not is_same(kept, found) and writes and not self._store.vectors.embedded_records(self.model, 1):
                kept = self._store.vectors.put_canary(self.model, found)  # left by a process that stored no vectors
            if not is_same(kept, found):
                error = self._model_changed(likeness(kept, found))
                write_small(self._verdict(kept), {"said": str(error)})
                raise error
        if kept is not None:
            drop_small(self._verdict(kept))
        self._trust.kept = kept
        self._trust.until = monotonic() + _TRUSTED_SECONDS
        self._trust.cleared = False

    def trouble(self) -> str:
        """Why a search would be answered without it now, as far as that is known without a request."""
        inner = self.inner
        if trouble := inner.trouble() if isinstance(inner, ReportsTrouble) else "":
            return trouble
        kept = self._store.vectors.canary(self.model) if isinstance(inner, EmbedsWithCanary) else None
        verdict = read_small(self._verdict(kept)) if kept is not None else None
        return str((verdict or {}).get("said", ""))

    def _verdict(self, kept: VectorArray) -> Path:
        """The file that notes that the model is no longer the one of this canary; other processes read it."""
        return small_file("canaries", self.model.fingerprint, kept.tobytes().hex())

    def _compare_sample(self) -> None:
        """Embed a few records again that have vectors. Raises EmbeddingError when these are of another model."""
        from mindex.embedding_text import embedding_pieces  # only for a space without a canary

        model = self.model
        records = self._store.vectors.embedded_records(model, _SAMPLE)
        if not records:
            return
        stored = self._store.vectors.stored(model, [record.id for record in records])
        pairs = [(stored[record.id][0], embedding_pieces(record)[0]) for record in records if record.id in stored]
        if not pairs:
            return
        again = self.inner.embed([piece for _, piece in pairs])
        # The best one: a long record may have been cut into other pieces when it was embedded.
        both = [(kept, now) for (kept, _), now in zip(pairs, again, strict=True)]
        if not any(is_same(kept, now) for kept, now in both):
            raise self._model_changed(max(likeness(kept, now) for kept, now in both))

    def _clear_query_cache(self) -> None:
        with suppress(MindexError):
            self._store.caches.clear((QUERY_CACHE,))

    def _model_changed(self, cosine: float) -> EmbeddingError:
        if not self._trust.cleared:
            self._trust.cleared = True
            clearing = threading.Thread(target=self._clear_query_cache, name="mindex-clear", daemon=True)
            clearing.start()
            clearing.join(_CLEARING_SECONDS)
        self._trust.until = 0.0
        return EmbeddingError(
            f"{space_name(self.model)} has become another model than the one that this memory was embedded with"
            f" (a text that it read before has a cosine of {cosine:.2f} with itself)",
            "put the old one back, or run `mindex reembed --force`",
        )


def is_same(one: VectorArray, other: VectorArray) -> bool:
    """Whether two vectors of one text are of the same model."""
    return likeness(one, other) >= _SAME


def likeness(one: VectorArray, other: VectorArray) -> float:
    """The cosine of two vectors; -1 where they cannot be compared."""
    import numpy as np  # not before vectors are compared

    if one.shape != other.shape:
        return -1.0
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    cosine = float(np.dot(one, other)) / lengths if lengths else -1.0
    return cosine if np.isfinite(cosine) else -1.0
