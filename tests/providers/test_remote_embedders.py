"""Embedders that are servers, each over a real socket: what is sent, what comes back, failure and recovery."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mindex.errors import EmbeddingError
from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import create_embedder
from mindex.providers.embed.remote import RemoteEmbedder
from tests.providers.remote_embedders import on_server, same
from tests.providers.servers import ACCOUNT, ModelServer, html, status

KEY = "sk-0123456789abcdef"


@dataclass(frozen=True)
class Provider:
    """How a provider is set up, and what its requests look like."""

    name: str
    model: str
    path: str
    texts: Callable[[Any], list[str]]
    url: str = ""
    key_header: str = "authorization"
    missing: str = ""


PROVIDERS = [
    Provider("ollama", "a-model", "/api/embed", lambda body: body["input"], missing="run: ollama pull a-model"),
    Provider("openai", "a-model", "/v1/embeddings", lambda body: body["input"], missing="embedding.model"),
    Provider("lmstudio", "a-model", "/v1/embeddings", lambda body: body["input"], missing="run: lms get a-model"),
    Provider(
        "azure", "a-deployment", "/openai/v1/embeddings", lambda body: body["input"],
        key_header="api-key", missing="deploy it in the Azure portal",
    ),
    Provider(
        "azure", "a-deployment", "/openai/deployments/a-deployment/embeddings", lambda body: body["input"],
        url="?api-version=2024-10-21", key_header="api-key", missing="deploy it in the Azure portal",
    ),
    Provider(
        "cloudflare", "@cf/a/model", f"/client/v4/accounts/{ACCOUNT}/ai/run/@cf/a/model", lambda body: body["text"],
        missing="one that Workers AI lists",
    ),
]  # fmt: skip
EACH = pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: f"{provider.name}{provider.url[:5]}")


@pytest.fixture(autouse=True)
def account(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUDFLARE_ACCOUNT_ID", ACCOUNT)


def made(provider: Provider, server: ModelServer, timeout: float = 10.0) -> RemoteEmbedder:
    settings = ProviderSettings(provider.name, provider.model, server.url + provider.url, server.key, timeout)
    embedder = create_embedder(settings)
    assert isinstance(embedder, RemoteEmbedder)
    return embedder


# ── every provider ────────────────────────────────────────────────────────────────────────────────────────────


@EACH
def test_each_text_gets_its_own_vector_of_length_one(provider: Provider, server: ModelServer) -> None:
    texts = ["caching of rendered pages", "on-call rota for the weekend", "how to file an expense"]

    found = made(provider, server).embed(texts)

    assert found.dtype == np.float32
    assert found.shape == (3, server.dimensions)
    assert np.linalg.norm(found, axis=1) == pytest.approx([1, 1, 1], abs=1e-5)
    assert all(same(row, server.vector(text)) for row, text in zip(found, texts, strict=True))
    assert {one.path for one in server.asked} == {provider.path}


@EACH
def test_a_question_is_one_vector(provider: Provider, server: ModelServer) -> None:
    vector = made(provider, server).embed_query("where are pages cached?")

    assert vector.shape == (server.dimensions,)
    assert same(vector, server.vector("where are pages cached?"))


@EACH
def test_many_texts_go_in_batches_and_come_back_in_order(provider: Provider, server: ModelServer) -> None:
    texts = [f"word{number} number {number}" for number in range(70)]
    embedder = made(provider, server)
    embedder.load()
    server.asked.clear()

    found = embedder.embed(texts)

    sizes = [len(provider.texts(body)) for body in server.bodies]
    assert sizes == [32, 32, 6]
    assert all(same(row, server.vector(text)) for row, text in zip(found, texts, strict=True))


@EACH
def test_empty_texts_are_never_sent_and_have_a_vector(provider: Provider, server: ModelServer) -> None:
    found = made(provider, server).embed(["", "words", " \n\t"])

    assert found.shape == (3, server.dimensions)
    assert np.linalg.norm(found, axis=1) == pytest.approx([1, 1, 1], abs=1e-5)
    assert (found[0] == found[2]).all()
    assert all(text.strip() for body in server.bodies for text in provider.texts(body))


@EACH
def test_what_is_too_long_is_shortened_until_the_server_takes_it(provider: Provider, server: ModelServer) -> None:
    server.context = 300
    long = " ".join(f"word{number}" for number in range(120))  # about 900 characters: below our own bound
    embedder = made(provider, server)

    found = embedder.embed(["short", long, "short too"])

    assert same(found[0], server.vector("short"))
    assert same(found[1], server.vector(long[: len(long) // 4]))
    assert same(found[2], server.vector("short too"))


@EACH
def test_one_text_that_is_refused_costs_the_others_nothing(
    provider: Provider, server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.poison = "forbidden"
    texts = [f"text{number}" for number in range(9)]
    texts[4] = "a forbidden text"
    embedder = made(provider, server)

    with caplog.at_level(logging.WARNING):
        found = embedder.embed(texts)

    assert all(same(found[number], server.vector(text)) for number, text in enumerate(texts) if number != 4)
    assert same(found[4], server.vector("."))
    assert "refused a text" in caplog.text


@EACH
def test_a_key_goes_where_the_provider_wants_it(provider: Provider, server: ModelServer) -> None:
    server.key = KEY

    made(provider, server).embed(["words"])

    assert server.asked[0].headers[provider.key_header].removeprefix("Bearer ") == KEY


@EACH
def test_a_missing_model_is_an_error_that_says_how_to_get_it(provider: Provider, server: ModelServer) -> None:
    server.models = ("another",)

    with pytest.raises(EmbeddingError, match=f"has no model '{provider.model}'") as failed:
        made(provider, server).load()

    assert provider.missing in failed.value.hint


@EACH
def test_a_refused_key_is_an_error_that_does_not_show_it(provider: Provider, server: ModelServer) -> None:
    embedder = made(provider, server)
    server.key = KEY
    if provider.name == "ollama":
        server.always = status(401, {"error": "unauthorized"})

    with pytest.raises(EmbeddingError, match=r"wants a key \(401\)|refuses the key"):
        embedder.load()


@EACH
def test_failures_have_messages_and_recovery_is_automatic(provider: Provider, server: ModelServer) -> None:
    embedder = made(provider, server)
    embedder.load()

    server.stop()
    with pytest.raises(EmbeddingError, match=f"nothing answers at {server.url}"):
        embedder.embed(["words"])
    server.start()
    assert embedder.embed(["words"]).shape == (1, server.dimensions)

    server.tricks.extend([status(500, {"error": "boom"}), status(429, {"error": "later"}, retry_after="0")])
    assert embedder.embed(["words"]).shape == (1, server.dimensions)

    server.tricks.append(html)
    with pytest.raises(EmbeddingError, match="web page"):
        embedder.embed(["words"])
    assert embedder.embed_query("words").shape == (server.dimensions,)


@EACH
def test_an_answer_without_vectors_is_an_error(provider: Provider, server: ModelServer) -> None:
    for answer in ({}, [], "words", None, 7, {"data": {}, "embeddings": {}, "result": {"data": {}}}):
        server.tricks.append(status(200, json.dumps(answer).encode()))

        with pytest.raises(EmbeddingError, match="answers without embeddings"):
            made(provider, server).load()


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_groq_says_that_it_only_chats() -> None:
    embedder = create_embedder(ProviderSettings("groq"))
    assert embedder is not None

    for job in (embedder.load, lambda: embedder.embed(["x"]), lambda: embedder.embed_query("x")):
        with pytest.raises(EmbeddingError, match="it only chats") as failed:
            job()
        assert "embedding.provider" in failed.value.hint


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (ProviderSettings("azure", "d"), "azure has no default URL"),
        (ProviderSettings("azure", "", "https://n.openai.azure.com"), "name of a deployment"),
        (ProviderSettings("openai", "m", "ftp://host"), "does not start with http"),
        (ProviderSettings("openai", "m", "http://"), "names no host"),
        (ProviderSettings("ollama", "m", "http://a b"), "a blank or a control character"),
        (ProviderSettings("ollama", "m", "http://user:hunter22@host:99999"), "host or port is malformed"),
    ],
)
def test_settings_that_do_not_suffice_are_an_error_at_the_first_call(settings: ProviderSettings, said: str) -> None:
    embedder = create_embedder(settings)  # making it is never an error: words are found without it
    assert embedder is not None

    with pytest.raises(EmbeddingError, match=said) as failed:
        embedder.load()

    assert failed.value.hint
    assert "hunter22" not in str(failed.value)


@pytest.mark.extension("mindex_providers")
def test_cloudflare_without_an_account_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLOUDFLARE_ACCOUNT_ID")
    embedder = create_embedder(ProviderSettings("cloudflare", api_key=KEY))
    assert embedder is not None

    with pytest.raises(EmbeddingError, match="account's id") as failed:
        embedder.load()

    assert "CLOUDFLARE_ACCOUNT_ID" in failed.value.hint


@pytest.mark.extension("mindex_providers")
def test_cloudflare_can_be_reached_through_a_gateway(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLOUDFLARE_ACCOUNT_ID")
    url = f"{server.url}/v1/account/gateway/workers-ai"
    embedder = create_embedder(ProviderSettings("cloudflare", "", url, KEY))
    assert embedder is not None

    embedder.embed(["words"])

    assert server.asked[0].path == "/v1/account/gateway/workers-ai/@cf/baai/bge-base-en-v1.5"
    assert server.asked[0].body["pooling"] == "cls"
    assert embedder.model.pooling == "cls"


@pytest.mark.parametrize(
    ("provider", "written", "path"),
    [
        ("ollama", "", "/api/embed"),
        ("ollama", "/", "/api/embed"),
        ("ollama", "/api", "/api/embed"),
        ("ollama", "/api/embed", "/api/embed"),
        ("ollama", "/v1", "/api/embed"),
        ("openai", "", "/v1/embeddings"),
        ("openai", "/v1/", "/v1/embeddings"),
        ("openai", "/v1/embeddings", "/v1/embeddings"),
        ("lmstudio", "/v1", "/v1/embeddings"),
        ("azure", "", "/openai/v1/embeddings"),
        ("azure", "/openai", "/openai/v1/embeddings"),
        ("azure", "/openai/v1/", "/openai/v1/embeddings"),
        ("azure", "/openai/deployments/other/embeddings?api-version=1", "/openai/deployments/m/embeddings"),
    ],
)
def test_an_address_may_be_written_as_people_write_it(
    server: ModelServer, provider: str, written: str, path: str
) -> None:
    embedder = create_embedder(ProviderSettings(provider, "m", server.url + written))
    assert embedder is not None

    embedder.load()

    assert [one.path for one in server.asked] == [path]


def test_an_address_may_do_without_its_scheme(server: ModelServer) -> None:
    embedder = create_embedder(ProviderSettings("ollama", "m", server.url.removeprefix("http://")))
    assert embedder is not None

    embedder.load()

    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "name", ["../../../../user/tokens", "@cf/../x", "@cf/x?a=b", "@cf/x#y", "@cf/x y", "/x", "@cf//x", "a%2e", "a\\b"]
)
@pytest.mark.parametrize("provider", ["cloudflare", "azure"])
def test_a_models_name_does_not_lead_to_another_path(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, provider: str, name: str
) -> None:
    monkeypatch.setenv("CLOUDFLARE_ACCOUNT_ID", ACCOUNT)
    with pytest.raises(EmbeddingError, match=r"embedding\.model is not a"):
        on_server(provider, server, name).load()
    assert server.asked == []
