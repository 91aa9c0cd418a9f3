"""Models with a cache that evaluation runs share: every vector, score and answer is computed once."""

import hashlib
import json
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import count
from pathlib import Path

from mindex.datatypes import Model, VectorArray
from mindex.errors import StoreError
from mindex.evaluation_parts import (
    SENTENCE,
    Embedder,
    EmbedsWithCanary,
    Generator,
    Prompt,
    Reranker,
    is_same,
    open_store,
)
from mindex.store.base import Store
from mindex.user_folders import cache_folder

# A vector of the built-in model takes 1.5 kB: some hundred MB at the most.
_MAX_ROWS = 250_000
_TEXTS, _QUERIES, _RERANKED, _GENERATED = "eval-text", "eval-question", "eval-rerank", "eval-generated"
_CANARIES = "eval-canary"


def evaluation_folder() -> Path:
    return cache_folder() / "eval"


def open_cache() -> Store:
    """Open the cache that all runs on this machine share. Raises StoreError when it cannot be written."""
    try:
        store = open_store(evaluation_folder() / "models.db", cache_rows=_MAX_ROWS)
        if store.read_only:
            store.close()
            raise StoreError(f"{evaluation_folder()} is read-only")
    except StoreError as error:
        hint = "set MINDEX_CACHE_DIR to a folder that can be written"
        raise StoreError(f"cannot cache the output of models: {error.message}", hint) from error
    return store


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _cached(
    cache: Store, kind: str, texts: Sequence[tuple[str, str]], compute: Callable[[list[str]], Iterable[bytes]]
) -> list[bytes]:
    """The value of each text, which comes with its key. Those that are not in the cache are computed and stored."""
    known = cache.caches.get_many(kind, [key for key, _ in texts])
    missing = {key: text for key, text in texts if key not in known}
    if missing:
        new = dict(zip(missing, compute(list(missing.values())), strict=True))
        cache.caches.put_many(kind, new, now=True)
        known |= new
    return [known[key] for key, _ in texts]


class CachedEmbedder:
    """An embedder that embeds no text twice. While `fresh`, it embeds every query again."""

    def __init__(self, inner: Embedder, cache: Store) -> None:
        self._inner = inner
        self._cache = cache
        self.fresh = False
        self.load = inner.load
        self.fluency = inner.fluency

    @property
    def model(self) -> Model:
        return self._inner.model

    @property
    def loaded(self) -> bool:
        return self._inner.loaded

    def embed(self, texts: Sequence[str]) -> VectorArray:
        def vectors(missing: list[str]) -> list[bytes]:
            return [vector.tobytes() for vector in self._inner.embed(missing).astype("float32")]

        import numpy as np  # a lean installation has none, and measures keywords

        self.load()  # also when every text is cached: storing vectors needs the model's dimensions
        rows = _cached(self._cache, _TEXTS, [(self._key(text), text) for text in texts], vectors)
        if not rows:
            return np.empty((0, self.model.dimensions), np.float32)
        return np.stack([_vector(row) for row in rows])

    def embed_query(self, text: str) -> VectorArray:
        key = self._key(text)
        known = None if self.fresh else self._cache.caches.get(_QUERIES, key)
        if known is None:
            known = self._inner.embed_query(text).astype("float32").tobytes()
            self._cache.caches.put(_QUERIES, key, known)
        return _vector(known)

    @cached_property
    def name(self) -> str:
        """What the vectors are kept under. Raises EmbeddingError if it is a server that does not answer.

        The fingerprint, without the dimensions: a model on a server knows them only once it has answered. A server
        reports no hash of its weights, so the hash of its canary distinguishes the models that it has under one name.
        """
        fingerprint = replace(self.model, dimensions=0).fingerprint
        if not isinstance(self._inner, EmbedsWithCanary):
            return fingerprint
        found = self._inner.embed([SENTENCE])[0].astype("float32")
        return f"{fingerprint}@{hashlib.sha256(self._canary_like(fingerprint, found)).hexdigest()}"

    def _canary_like(self, fingerprint: str, found: VectorArray) -> bytes:
        """The canary that was kept of this model: a server may answer with a slightly different one each time."""
        keys = (_key(fingerprint, str(number)) for number in count())
        while (kept := self._cache.caches.get(_CANARIES, key := next(keys))) is not None:
            if is_same(_vector(kept), found):
                return kept
        self._cache.caches.put_many(_CANARIES, {key: found.tobytes()}, now=True)
        return found.tobytes()

    def _key(self, text: str) -> str:
        return _key(self.name, text)


def _vector(stored: bytes) -> VectorArray:
    import numpy as np  # as above

    return np.frombuffer(stored, np.float32)


class CachedReranker:
    """A reranker that scores no pair twice. `calls` counts the pairs the model itself scored."""

    def __init__(self, inner: Reranker, cache: Store) -> None:
        self._inner = inner
        self._cache = cache
        self.calls = 0
        self.name = inner.name
        self.doubt = inner.doubt
        self.weight = inner.weight
        self.load = inner.load

    @property
    def loaded(self) -> bool:
        return self._inner.loaded

    def score(self, query: str, texts: Sequence[str], *, seconds: float | None = None) -> list[float]:
        def scores(missing: list[str]) -> list[bytes]:
            self.calls += len(missing)
            return [struct.pack("<d", score) for score in self._inner.score(query, missing, seconds=seconds)]

        rows = _cached(self._cache, _RERANKED, [(_key(self.name, query, text), text) for text in texts], scores)
        return [struct.unpack("<d", row)[0] for row in rows]


class CachedGenerator:
    """A generator that answers no prompt twice. `calls` counts the prompts the model itself answered."""

    def __init__(self, inner: Generator, cache: Store) -> None:
        self._inner = inner
        self._cache = cache
        self.calls = 0
        self.name = inner.name
        self.load = inner.load

    def check(self) -> None:
        """Cached answers need no running model."""

    def generate(self, prompt: Prompt, *, seconds: float | None = None) -> str:
        schema = json.dumps(prompt.schema, sort_keys=True, default=str)
        key = _key(self.name, prompt.system, prompt.user, str(prompt.max_tokens), schema)
        known = self._cache.caches.get(_GENERATED, key)
        if known is None:
            self.calls += 1
            known = self._inner.generate(prompt, seconds=seconds).encode("utf-8", "surrogatepass")
            self._cache.caches.put(_GENERATED, key, known)
        return known.decode("utf-8", "surrogatepass")
