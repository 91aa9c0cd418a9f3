"""Rerankers that are servers, over a real socket."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mindex.errors import RerankError
from mindex.providers.base import ProviderSettings
from mindex.providers.rerank.base import Reranker, create_reranker
from tests.providers.servers import ACCOUNT, ModelServer, changed, hang, html, late, status

EACH = pytest.mark.parametrize("provider", ["http", "cloudflare"])
QUERY = "where are rendered pages cached"
TEXTS = ["the on-call rota", "rendered pages are cached in memory", "", "pages of the handbook"]
KEY = "rk-0123456789abcdef"


@pytest.fixture(autouse=True)
def account(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDFLARE_ACCOUNT_ID", ACCOUNT)


def made(provider: str, server: ModelServer, url: str = "", timeout: float = 5.0) -> Reranker:
    reranker = create_reranker(ProviderSettings(provider, "", server.url + url, server.key, timeout))
    assert reranker is not None
    return reranker


@EACH
def test_every_text_has_its_own_score_in_the_order_of_the_texts(provider: str, server: ModelServer) -> None:
    scores = made(provider, server).score(QUERY, TEXTS)

    assert scores == pytest.approx([server.relevance(QUERY, text or ".") for text in TEXTS])
    assert max(scores) == scores[1]


@EACH
def test_without_texts_no_request_is_sent(provider: str, server: ModelServer) -> None:
    assert made(provider, server).score(QUERY, []) == []
    assert server.asked == []


@EACH
def test_many_texts_go_in_batches(provider: str, server: ModelServer) -> None:
    texts = [f"word{number}" for number in range(150)]

    assert len(made(provider, server).score("word7", texts)) == 150
    assert len(server.asked) == 3


def test_the_wire_format_is_the_documented_one(server: ModelServer) -> None:
    reranker = create_reranker(ProviderSettings("http", "jina-reranker-v2", server.url, KEY))
    assert reranker is not None

    reranker.score("q", ["a", "b"])
    made("cloudflare", server).score("q", ["a", "b"])

    one, other = server.asked
    assert one.body == {"model": "jina-reranker-v2", "query": "q", "documents": ["a", "b"], "top_n": 2}
    assert one.headers["authorization"] == f"Bearer {KEY}"
    assert other.path.endswith("/ai/run/@cf/baai/bge-reranker-base")
    assert other.body == {"query": "q", "contexts": [{"text": "a"}, {"text": "b"}], "top_k": 2}


@pytest.mark.parametrize("url", ["", "/v1", "/v1/", "/v1/rerank", "/v1/rerank/"])
def test_an_address_may_or_may_not_end_in_rerank(server: ModelServer, url: str) -> None:
    made("http", server, url).score(QUERY, TEXTS)

    assert [one.path for one in server.asked] == ["/v1/rerank"]


@pytest.mark.extension("mindex_providers")
def test_cloudflares_answer_may_come_without_its_envelope(server: ModelServer) -> None:
    server.always = changed(lambda body: body["result"])

    assert len(made("cloudflare", server).score(QUERY, TEXTS)) == 4


def test_names_say_provider_and_model(server: ModelServer) -> None:
    assert made("cloudflare", server).name == "cloudflare/@cf/baai/bge-reranker-base"
    assert made("http", server).name == f"http/{server.url}/v1"  # another server may score otherwise


def rows(change: Callable[[list[dict[str, Any]]], object]) -> Callable[[Any], object]:
    return lambda body: {**body, "results": change(body["results"])}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (rows(lambda found: found[:-1]), "3 scores for 4 texts"),
        (rows(lambda found: [*found[:-1], found[0]]), "invalid indexes"),
        (rows(lambda found: [{**found[0], "index": 4}, *found[1:]]), "invalid indexes"),
        (rows(lambda found: [{**found[0], "index": "0"}, *found[1:]]), "invalid indexes"),
        (rows(lambda found: [{**found[0], "relevance_score": None}, *found[1:]]), "a score that is not a number"),
        (rows(lambda found: [{**found[0], "relevance_score": "high"}, *found[1:]]), "a score that is not a number"),
        (rows(lambda found: [{**found[0], "relevance_score": float("nan")}, *found[1:]]), "answers with NaN"),
        (rows(lambda _: "none"), "answers without scores"),
        (lambda _: {"scores": [1, 2, 3, 4]}, "answers without scores"),
        (lambda _: 7, "answers without scores"),
    ],
)
def test_an_invalid_response_is_an_error(server: ModelServer, change: Callable[[Any], object], said: str) -> None:
    server.tricks.append(changed(change))
    reranker = made("http", server)

    with pytest.raises(RerankError, match=said):
        reranker.score(QUERY, TEXTS)

    assert len(reranker.score(QUERY, TEXTS)) == 4


def test_a_score_too_large_for_a_number_is_an_error(server: ModelServer) -> None:
    server.always = status(200, b'{"results": [{"index": 0, "relevance_score": 1e999}]}')

    with pytest.raises(RerankError, match="a score that is not a number"):
        made("http", server).score(QUERY, ["one"])


def test_texts_that_are_too_long_are_shortened_until_the_server_takes_them(server: ModelServer) -> None:
    server.context = 500
    reranker = made("http", server)

    assert len(reranker.score(QUERY, ["word " * 1000, "short"])) == 2
    server.asked.clear()
    reranker.score(QUERY, ["word " * 1000])

    assert len(server.asked) == 1  # it has learnt how much may be sent


def test_a_server_for_which_everything_is_too_long_is_an_error(server: ModelServer) -> None:
    server.always = status(413)

    with pytest.raises(RerankError, match="refuses the request"):
        made("http", server).score(QUERY, TEXTS)

    assert len(server.asked) < 10


@EACH
def test_a_slow_server_is_given_up_when_the_callers_time_is_over(provider: str, server: ModelServer) -> None:
    server.always = hang
    started = time.monotonic()

    with pytest.raises(RerankError, match="did not answer within"):
        made(provider, server, timeout=30).score(QUERY, TEXTS, seconds=0.4)

    assert time.monotonic() - started < 20  # it would hang for 30 s


def test_the_time_holds_for_all_batches_together(server: ModelServer) -> None:
    server.always = late(0.3)

    with pytest.raises(RerankError, match="did not answer within"):
        made("http", server).score(QUERY, ["word"] * 200, seconds=0.7)


@EACH
def test_failures_have_messages_and_recovery_is_automatic(provider: str, server: ModelServer) -> None:
    reranker = made(provider, server)
    assert not reranker.loaded
    reranker.load()
    assert reranker.loaded

    server.stop()
    with pytest.raises(RerankError, match=f"nothing answers at {server.url}"):
        reranker.score(QUERY, TEXTS)
    server.start()
    server.tricks.append(status(500))
    assert len(reranker.score(QUERY, TEXTS)) == 4
    server.tricks.append(html)
    with pytest.raises(RerankError, match="web page"):
        reranker.score(QUERY, TEXTS)
    assert len(reranker.score(QUERY, TEXTS)) == 4


def test_loading_says_what_is_wrong(server: ModelServer) -> None:
    server.models = ("another",)
    with pytest.raises(RerankError, match="has no model '@cf/baai/bge-reranker-base'"):
        made("cloudflare", server).load()
    server.always = status(403)
    with pytest.raises(RerankError, match="wants a key"):
        made("http", server).load()


def test_without_an_address_the_first_call_says_what_to_set() -> None:
    reranker = create_reranker(ProviderSettings("http"))
    assert reranker is not None

    with pytest.raises(RerankError, match="has no address") as failed:
        reranker.score(QUERY, TEXTS)

    assert "rerank.url" in failed.value.hint


def test_a_bare_list_of_scores_is_understood(server: ModelServer) -> None:
    server.always = status(200, json.dumps([{"index": 1, "score": 0.5}, {"index": 0, "score": 2}]).encode())

    assert made("http", server).score(QUERY, ["a", "b"]) == [2.0, 0.5]
