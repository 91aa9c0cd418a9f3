"""Embedding models in GGUF files, run by llama.cpp."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mindex.errors import EmbeddingError, ProviderError
from mindex.model import Model
from mindex.providers.base import ProviderSettings, clean, failing_as
from mindex.providers.embed.base import Embedder, Unavailable
from mindex.providers.embed.fluency import SAMPLE, fluency_of_pieces
from mindex.providers.embed.known_models import space
from mindex.providers.llama_cpp import (
    MOST_TOKENS,
    GgufModel,
    LlamaServer,
    Rejected,
    describe,
    missing_package,
    server_for,
)
from mindex.providers.model_files import keep, recall

if TYPE_CHECKING:
    from mindex.model import VectorArray

_NOTE = "llama-cpp"
_TEXTS_PER_REQUEST = 8
_OTHER_FILE = "use another GGUF file"
# `nomic-embed-text-v1.5.Q8_0` is `nomic-embed-text-v1.5`, however its numbers are stored.
_STORED_AS = re.compile(r"[.\-_](i?q\d\w*|bf16|fp?(16|32))$", re.IGNORECASE)
_STAND_IN = "."  # for a text without any


def create(settings: ProviderSettings) -> Embedder:
    """The embedder for the GGUF file that `settings.model` names; llama.cpp is started when it is first needed."""
    try:
        file = describe(settings.model, "embedding.model")
        if file.judges:
            raise ProviderError(f"{file.path} is a reranker and gives no vectors", "let rerank.model name it")
        if not file.dimensions:
            raise ProviderError(f"{file.path} does not say how long its vectors are", _OTHER_FILE)
    except ProviderError as error:
        missing = Model(provider="llama-cpp", name=Path(settings.model).stem, dimensions=0)
        return Unavailable(missing, error.message, error.hint)
    return LlamaEmbedder(file, server_for(file, "embed"), settings.timeout)


class LlamaEmbedder:
    """One GGUF model. Safe to use from several threads. `cut` counts the texts of which it saw only the beginning."""

    def __init__(self, file: GgufModel, server: LlamaServer, timeout: float) -> None:
        self._file = file
        self._server = server
        self._timeout = timeout
        self._lock = threading.Lock()
        self._measuring = threading.Lock()
        self._closing: list[int] | None = None
        self._model = replace(
            space("llama-cpp", _STORED_AS.sub("", file.title)),
            name=file.name,
            dimensions=file.dimensions,
            pooling=file.pooling_name,
            max_tokens=min(file.tokens, MOST_TOKENS),
        )
        self._measured = self._learn(recall(_NOTE, [Path(file.path)]))
        self.cut = 0

    @property
    def model(self) -> Model:
        return self._model

    @property
    def loaded(self) -> bool:
        return self._server.loaded and self._measured

    def load(self) -> None:
        with failing_as(EmbeddingError):
            self._server.load()
        with self._measuring:
            if not self._measured:
                self._measure()

    def trouble(self) -> str:
        return str(missing_package() or "")

    def embed(self, texts: Sequence[str]) -> VectorArray:
        import numpy as np

        if not texts:
            return np.empty((0, self._model.dimensions), np.float32)
        self.load()
        return self._embed(texts, self._model.text_prefix)

    def embed_query(self, text: str) -> VectorArray:
        self.load()
        vector: VectorArray = self._embed([text], self._model.query_prefix)[0]
        return vector

    def fluency(self, texts: Sequence[str]) -> list[float]:
        self.load()
        return [fluency_of_pieces(self._pieces(text[:SAMPLE])) for text in texts]

    # ── asking ────────────────────────────────────────────────────────────────────────────────────────────────

    def _embed(self, texts: Sequence[str], prefix: str) -> VectorArray:
        import numpy as np

        tokens = [self._tokens(prefix + (text if text.strip() else _STAND_IN)) for text in texts]
        starts = range(0, len(tokens), _TEXTS_PER_REQUEST)
        return np.concatenate([self._vectors(tokens[start : start + _TEXTS_PER_REQUEST]) for start in starts])

    def _vectors(self, tokens: Sequence[Sequence[int]]) -> VectorArray:
        """One row of length 1 per text."""
        import numpy as np

        rows = self._ask("/v1/embeddings", {"input": tokens}).get("data")
        try:
            placed = {row["index"]: row["embedding"] for row in rows} if isinstance(rows, list) else {}
            vectors = np.array([placed[index] for index in range(len(tokens))], dtype=np.float32)
        except (KeyError, TypeError, ValueError):
            raise EmbeddingError(f"{self._file.title} answers with something else than vectors", _OTHER_FILE) from None
        if vectors.shape != (len(tokens), self._model.dimensions):
            found, said = vectors.shape[-1], self._model.dimensions
            raise EmbeddingError(
                f"{self._file.title} answers with {found} dimensions, its file says {said}", _OTHER_FILE
            )
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not (np.isfinite(lengths).all() and lengths.all()):
            raise EmbeddingError(f"{self._file.title} answers with a vector that is none", _OTHER_FILE)
        unit: VectorArray = vectors / lengths
        return unit

    def _tokens(self, text: str) -> list[int]:
        """The text as the model reads it, cut to what it can hold. Control tokens that it speaks of are only words."""
        tokens = self._tokenized(text)
        most = self._model.max_tokens
        if len(tokens) <= most:
            return tokens
        with self._lock:
            self.cut += 1
        if self._closing is None:  # what the model puts behind a text, if anything
            around = self._tokenized("")
            self._closing = around[-1:] if around[-1:] == tokens[-1:] else []
        return [*tokens[: most - len(self._closing)], *self._closing]

    def _tokenized(self, text: str) -> list[int]:
        answer = self._ask("/tokenize", {"content": clean(text), "add_special": True, "parse_special": False})
        tokens = answer.get("tokens")
        return [token for token in tokens if isinstance(token, int)] if isinstance(tokens, list) else []

    def _pieces(self, text: str) -> list[str | None]:
        answer = self._ask("/tokenize", {"content": clean(text), "parse_special": False, "with_pieces": True})
        tokens = answer.get("tokens")
        pieces = [token.get("piece") for token in tokens] if isinstance(tokens, list) else []
        return [piece if isinstance(piece, str) else None for piece in pieces]

    def _ask(self, path: str, body: Mapping[str, object]) -> Mapping[str, object]:
        with failing_as(EmbeddingError):
            try:
                return self._server.ask(path, body, self._timeout)
            except Rejected as error:
                raise ProviderError(f"llama.cpp cannot embed with {self._file.title} ({error})", _OTHER_FILE) from None

    # ── what is only known once it has run ────────────────────────────────────────────────────────────────────

    def _measure(self) -> None:
        from mindex.providers.embed.cosine_background import background_of

        prefixes = (self._model.query_prefix, self._model.text_prefix)
        as_questions, as_texts = (lambda texts, prefix=prefix: self._embed(texts, prefix) for prefix in prefixes)
        mean, std = background_of(as_questions, as_texts)
        kept = {"mean": mean, "std": std}
        keep(_NOTE, [Path(self._file.path)], kept)
        self._measured = self._learn(kept)

    def _learn(self, kept: Mapping[str, object] | None) -> bool:
        mean, std = (kept or {}).get("mean"), (kept or {}).get("std")
        if not isinstance(mean, float) or not isinstance(std, float):
            return False
        self._model = replace(self._model, background_mean=mean, background_std=std)
        return True
