"""Models with a cache that evaluation runs share: every vector, score and answer is computed once."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mindex.config import cache_folder
from mindex.errors import StoreError
from mindex.model import Model
from mindex.providers.embed.base import Embedder
from mindex.providers.generate.base import Generator, Prompt
from mindex.providers.rerank.base import Reranker
from mindex.store.base import Store
from mindex.store.open import open_store

if TYPE_CHECKING:
    from mindex.model import VectorArray

# A vector of the built-in model takes 1.5 kB: some hundred MB at the most.
_MOST_ROWS = 250_000
_TEXTS, _QUERIES, _RERANKED, _GENERATED = "eval-text", "eval-question", "eval-rerank", "eval-generated"


def evaluation_folder() -> Path:
    return cache_folder() / "eval"


def open_cache() -> Store:
    """Open the cache that all runs on this machine share. Raises StoreError when it cannot be written."""
    hint = "set MINDEX_CACHE_DIR to a folder that can be written"
    try:
        store = open_store(evaluation_folder() / "models.db", cache_rows=_MOST_ROWS)
    except StoreError as error:
        raise StoreError(f"what models say cannot be kept: {error.message}", hint) from error
    if store.read_only:
        store.close()
        raise StoreError(f"what models say cannot be kept: {evaluation_folder()} is read-only", hint)
    return store


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


class CachedEmbedder:
    """An embedder that embeds no text twice. While `fresh`, it embeds every query anew."""

    def __init__(self, inner: Embedder, cache: Store) -> None:
        self._inner = inner
        self._cache = cache
        self.fresh = False

    @property
    def model(self) -> Model:
        return self._inner.model

    @property
    def loaded(self) -> bool:
        return self._inner.loaded

    def load(self) -> None:
        self._inner.load()

    def embed(self, texts: Sequence[str]) -> VectorArray:
        import numpy as np

        self.load()  # also when every text is cached: storing vectors needs the model's dimensions
        keys = [self._key(text) for text in texts]
        known = self._cache.caches.get_many(_TEXTS, keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            populated = self._inner.embed(list(missing.values())).astype(np.float32)
            new = {key: vector.tobytes() for key, vector in zip(missing, populated, strict=True)}
            self._cache.caches.put_many(_TEXTS, new, now=True)
            known |= new
        if not keys:
            return np.empty((0, self.model.dimensions), np.float32)
        return np.stack([np.frombuffer(known[key], np.float32) for key in keys])

    def embed_query(self, text: str) -> VectorArray:
        import numpy as np

        key = self._key(text)
        known = None if self.fresh else self._cache.caches.get(_QUERIES, key)
        if known is not None:
            return np.frombuffer(known, np.float32)
        vector = self._inner.embed_query(text).astype(np.float32)
        self._cache.caches.put(_QUERIES, key, vector.tobytes())
        return vector

    def fluency(self, texts: Sequence[str]) -> list[float]:
        return self._inner.fluency(texts)

    def _key(self, text: str) -> str:
        """Without the dimensions: a model on a server knows them only once it has answered."""
        return _key(replace(self.model, dimensions=0).fingerprint, text)


class CachedReranker:
    """A reranker that scores no pair twice. `calls` counts the pairs the model itself scored."""

    def __init__(self, inner: Reranker, cache: Store) -> None:
        self._inner = inner
        self._cache = cache
        self.calls = 0

    @property
    def doubt(self) -> tuple[float, float] | None:
        return self._inner.doubt

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def loaded(self) -> bool:
        return self._inner.loaded

    def load(self) -> None:
        self._inner.load()

    def score(self, query: str, texts: Sequence[str], *, seconds: float | None = None) -> list[float]:
        keys = [_key(self.name, query, text) for text in texts]
        known = self._cache.caches.get_many(_RERANKED, keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            self.calls += len(missing)
            populated = self._inner.score(query, list(missing.values()), seconds=seconds)
            new = {key: struct.pack("<d", score) for key, score in zip(missing, populated, strict=True)}
            self._cache.caches.put_many(_RERANKED, new, now=True)
            known |= new
        return [struct.unpack("<d", known[key])[0] for key in keys]


class CachedGenerator:
    """A generator that answers no prompt twice. `calls` counts the prompts the model itself answered."""

    def __init__(self, inner: Generator, cache: Store) -> None:
        self._inner = inner
        self._cache = cache
        self.calls = 0

    @property
    def name(self) -> str:
        return self._inner.name

    def load(self) -> None:
        self._inner.load()

    def check(self) -> None:
        """Cached answers need no running model."""

    def generate(self, prompt: Prompt, *, seconds: float | None = None) -> str:
        schema = json.dumps(prompt.schema, sort_keys=True, default=str)
        key = _key(self.name, prompt.system, prompt.user, str(prompt.max_tokens), schema)
        known = self._cache.caches.get(_GENERATED, key)
        if known is not None:
            return known.decode("utf-8", "surrogatepass")
        self.calls += 1
        answer = self._inner.generate(prompt, seconds=seconds)
        self._cache.caches.put(_GENERATED, key, answer.encode("utf-8", "surrogatepass"))
        return answer
