"""Embedders of test servers."""

from __future__ import annotations

from typing import Any

import numpy as np

from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import create_embedder
from mindex.providers.embed.remote import RemoteEmbedder
from tests.providers.servers import ModelServer


def ollama(server: ModelServer, model: str = "a-model", timeout: float = 10.0) -> RemoteEmbedder:
    embedder = create_embedder(ProviderSettings("ollama", model, server.url, timeout=timeout))
    assert isinstance(embedder, RemoteEmbedder)
    return embedder


def loaded(server: ModelServer, **options: Any) -> RemoteEmbedder:
    """An embedder of Ollama whose card is known; the server's list of requests is empty."""
    embedder = ollama(server, **options)
    embedder.load()
    server.asked.clear()
    return embedder


def same(one: np.ndarray, other: list[float]) -> bool:
    return bool(np.allclose(one, np.array(other) / np.linalg.norm(other), atol=1e-6))


def on_server(provider: str, server: ModelServer, model: str = "a-model") -> RemoteEmbedder:
    """Another provider than Ollama at this server."""
    embedder = create_embedder(ProviderSettings(provider, model, server.url))
    assert isinstance(embedder, RemoteEmbedder)
    return embedder
