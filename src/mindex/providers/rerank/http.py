"""Any server with a `/v1/rerank`: Jina, Cohere, llama.cpp, vLLM, Infinity."""

from __future__ import annotations

from collections.abc import Sequence

from mindex.providers import known_servers
from mindex.providers.base import ProviderSettings
from mindex.providers.rerank.base import Reranker
from mindex.providers.rerank.remote import RemoteReranker, listed
from mindex.providers.server import Server


def create(settings: ProviderSettings) -> Reranker:
    def body(query: str, texts: Sequence[str]) -> dict[str, object]:
        asked: dict[str, object] = {"query": query, "documents": list(texts), "top_n": len(texts)}
        return {"model": settings.model, **asked} if settings.model else asked

    return RemoteReranker(Server(known_servers.rerank_endpoint(settings)), "/rerank", body, _rows)


def _rows(answer: object) -> list[tuple[object, object]]:
    rows = answer.get("results") if isinstance(answer, dict) else answer
    return listed(rows, "index", ("relevance_score", "score"))
