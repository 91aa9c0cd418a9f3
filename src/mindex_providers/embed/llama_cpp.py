"""Embedding models in GGUF files, run by llama.cpp. It is sent tokens, so that texts are cut where the model ends."""

import re
from collections.abc import Sequence
from dataclasses import replace

from mindex.datatypes import Model, VectorArray
from mindex.errors import ProviderError
from mindex.providers.base import MAX_CHARACTERS, ProviderSettings, clean
from mindex.providers.embed.base import Embedder
from mindex.providers.embed.fluency import SAMPLE, fluency_of_pieces
from mindex.providers.embed.model_cards import space
from mindex.providers.embed.remote import EmbeddingInterface, RemoteEmbedder, vectors_of
from mindex_providers.gguf import GgufModel, describe
from mindex_providers.llama_cpp import MAX_TOKENS, LlamaServer

# `nomic-embed-text-v1.5.Q8_0` is `nomic-embed-text-v1.5`, however its numbers are stored.
_STORED_AS = re.compile(r"[.\-_](i?q\d\w*|bf16|fp?(16|32))$", re.IGNORECASE)


def create(settings: ProviderSettings) -> Embedder:
    """Return the embedder for the GGUF file that `settings.model` names; llama.cpp is started at first use.

    Raises ProviderError for a file that is not an embedding model.
    """
    file = describe(settings.model, "embedding.model")
    if file.judges:
        raise ProviderError(f"{file.path} is a reranker and gives no vectors", "let rerank.model name it")
    if not file.dimensions:
        raise ProviderError(f"{file.path} does not say how long its vectors are", "use another GGUF file")
    return LlamaEmbedder(file, settings.timeout)


class LlamaEmbedder:
    """One GGUF model. Safe to use from several threads.

    Without the canary of a RemoteEmbedder: the model is named by its file's checksum.
    """

    def __init__(self, file: GgufModel, timeout: float) -> None:
        self._dimensions = file.dimensions
        self._max_tokens = min(file.tokens, MAX_TOKENS)
        self._server = LlamaServer("embedding", file, timeout)
        self._embedder = RemoteEmbedder(
            self._server,
            EmbeddingInterface("/v1/embeddings", self._body, self._vectors, MAX_CHARACTERS),
            replace(
                space("llama-cpp", _STORED_AS.sub("", file.title)),
                name=file.name,
                dimensions=file.dimensions,
                pooling=file.pooling_name,
                max_tokens=self._max_tokens,
                sha256=file.sha256,
            ),
            query_seconds=timeout,
        )
        self._closing: list[int] | None = None
        self.trouble = self._server.trouble

    @property
    def model(self) -> Model:
        return self._embedder.model

    @property
    def loaded(self) -> bool:
        return not self._server.is_down and self._embedder.loaded

    def load(self) -> None:
        self._server.load()
        self._embedder.load()

    def embed(self, texts: Sequence[str]) -> VectorArray:
        if texts:
            self.load()
        return self._embedder.embed(texts)

    def embed_query(self, text: str) -> VectorArray:
        self.load()
        return self._embedder.embed_query(text)

    def fluency(self, texts: Sequence[str]) -> list[float]:
        self.load()
        return [fluency_of_pieces(self._pieces(text)) for text in texts]

    def _body(self, texts: Sequence[str]) -> dict[str, object]:
        return {"input": [self._tokens(text) for text in texts]}

    def _vectors(self, answer: object) -> Sequence[object]:
        rows = vectors_of(answer)
        for row in rows:
            if isinstance(row, list) and len(row) != self._dimensions:
                raise ValueError(f"answers with {len(row)} dimensions, its file says {self._dimensions}")
        return rows

    def _tokens(self, text: str) -> list[int]:
        """Return the text's tokens, cut to what the model reads. A control token in the text is only characters."""
        tokens = self._tokenize(text)
        if len(tokens) <= self._max_tokens:
            return tokens
        if self._closing is None:  # what the model puts after a text, if anything
            empty = self._tokenize("")
            self._closing = empty[-1:] if empty[-1:] == tokens[-1:] else []
        return [*tokens[: self._max_tokens - len(self._closing)], *self._closing]

    def _tokenize(self, text: str) -> list[int]:
        tokens = self._server.tokenize(text, add_special=True, parse_special=False)
        return [token for token in tokens if isinstance(token, int)]

    def _pieces(self, text: str) -> list[str | None]:
        tokens = self._server.tokenize(clean(text, SAMPLE), parse_special=False, with_pieces=True)
        pieces = [token.get("piece") for token in tokens if isinstance(token, dict)]
        return [piece if isinstance(piece, str) else None for piece in pieces]
