"""Cloudflare Workers AI's reranker, bge-reranker-base."""

from collections.abc import Sequence

from mindex.providers.base import ProviderSettings
from mindex.providers.known_servers import server_spec
from mindex.providers.rerank.base import Reranker
from mindex.providers.rerank.remote import RemoteReranker, pairs_of
from mindex.providers.server import Server

DEFAULT = "@cf/baai/bge-reranker-base"


def create(settings: ProviderSettings) -> Reranker:
    model = settings.model or DEFAULT
    return RemoteReranker(Server(server_spec("rerank", settings, model)), f"/{model}", _body, _rows)


def _body(query: str, texts: Sequence[str]) -> dict[str, object]:
    return {"query": query, "contexts": [{"text": text} for text in texts], "top_k": len(texts)}


def _rows(answer: object) -> list[tuple[object, object]]:
    """`{result: {response: […]}}`, or without the envelope."""
    found = answer.get("result", answer) if isinstance(answer, dict) else None
    return pairs_of(found.get("response") if isinstance(found, dict) else None, "id", ("score",))
