"""Any server with a `/v1/rerank`: Jina, Cohere, llama.cpp, vLLM, Infinity."""

from collections.abc import Sequence

from mindex.providers.base import ProviderSettings
from mindex.providers.known_servers import server_spec
from mindex.providers.rerank.base import Reranker
from mindex.providers.rerank.remote import RemoteReranker, pairs_of
from mindex.providers.server import ModelServer, Server


def create(settings: ProviderSettings) -> Reranker:
    return endpoint(Server(server_spec("rerank", settings, settings.model)), "/rerank", settings.model)


def endpoint(server: ModelServer, path: str, model: str = "") -> RemoteReranker:
    """Return the reranker at a path of a server; `model` is named in requests where it is given."""
    named = {"model": model} if model else {}

    def body(query: str, texts: Sequence[str]) -> dict[str, object]:
        return {**named, "query": query, "documents": list(texts), "top_n": len(texts)}

    return RemoteReranker(server, path, body, _rows)


def _rows(answer: object) -> list[tuple[object, object]]:
    rows = answer.get("results") if isinstance(answer, dict) else answer
    return pairs_of(rows, "index", ("relevance_score", "score"))
