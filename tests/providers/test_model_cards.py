"""What is known of a server's model: its card, the table of known models, and how long a query waits for it."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from mindex.errors import EmbeddingError
from mindex.providers.embed.model_cards import UNRELATED, space
from tests.providers.remote_embedders import loaded, ollama
from tests.providers.servers import ModelServer, changed, hang, late, status
from tests.running import wait_until

pytestmark = pytest.mark.usefixtures("alone")


# ── the card ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_unknown_model_has_no_dimensions_until_it_has_answered(server: ModelServer) -> None:
    embedder = ollama(server)
    assert (embedder.model.dimensions, embedder.loaded) == (0, False)

    embedder.load()

    assert (embedder.model.dimensions, embedder.loaded) == (server.dimensions, True)
    assert server.bodies == [{"model": "a-model", "input": list(UNRELATED), "truncate": False}]


def test_the_card_says_where_unrelated_texts_lie(server: ModelServer) -> None:
    embedder = loaded(server)
    rows = np.array([server.vector(text) for text in UNRELATED])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = [rows[i] @ rows[j] for i in range(len(rows)) for j in range(i)]

    assert embedder.model.background_mean == pytest.approx(np.mean(cosines), abs=1e-3)
    assert embedder.model.background_std == pytest.approx(np.std(cosines), abs=1e-3)


def test_the_card_of_a_model_with_prefixes_compares_queries_with_texts(server: ModelServer) -> None:
    ollama(server, "nomic-embed-text").load()

    assert [body["input"] for body in server.bodies] == [
        [f"search_document: {text}" for text in UNRELATED],
        [f"search_query: {text}" for text in UNRELATED],
    ]


def test_a_model_whose_cosines_all_coincide_has_some_deviation_all_the_same(server: ModelServer) -> None:
    server.always = changed(lambda body: {"embeddings": [[1.0, 2.0]] * len(body["embeddings"])})

    assert loaded(server).model.background_std == 0.02


def test_another_process_knows_the_card_without_a_request(server: ModelServer) -> None:
    first = loaded(server)

    second = ollama(server)

    assert second.loaded
    assert second.model == first.model
    assert server.asked == []


def test_loading_has_the_model_answer_unless_it_just_did(server: ModelServer) -> None:
    loaded(server).load()
    assert server.asked == []

    second = ollama(server)  # it knows the card, and has heard nothing yet
    second.load()
    second.load()
    assert [body["input"] for body in server.bodies] == [["."]]

    server.stop()
    for job in (lambda: second.embed(["words"]), second.load):
        with pytest.raises(EmbeddingError, match="nothing answers"):
            job()


def test_a_known_model_is_described_without_a_request(server: ModelServer) -> None:
    model = ollama(server, "").model

    assert (model.name, model.dimensions, model.max_tokens) == ("nomic-embed-text", 768, 2048)
    assert (model.query_prefix, model.text_prefix) == ("search_query: ", "search_document: ")
    assert server.asked == []


def test_prefixes_of_a_known_model_are_sent(server: ModelServer) -> None:
    embedder = loaded(server, model="nomic-embed-text:latest")

    embedder.embed(["words", ""])
    embedder.embed_query("a question")

    assert [body["input"] for body in server.bodies] == [
        ["search_document: words", "search_document: ."],
        ["search_query: a question"],
    ]


def test_the_servers_answer_wins_over_the_table_of_known_models(server: ModelServer) -> None:
    embedder = ollama(server, "nomic-embed-text")

    embedder.embed(["words"])

    assert embedder.model.dimensions == server.dimensions


def test_dimensions_that_change_on_the_server_are_an_error_that_names_the_fix(server: ModelServer) -> None:
    embedder = loaded(server)
    before = embedder.model
    server.dimensions = 64

    for job in (lambda: embedder.embed(["words"]), lambda: embedder.embed_query("words")):
        with pytest.raises(EmbeddingError, match="now answers with 64 dimensions, it was 48") as failed:
            job()
        assert failed.value.hint == "run `mindex reembed`"

    assert embedder.model == before


def test_a_forgotten_card_is_made_again(server: ModelServer) -> None:
    embedder = loaded(server)
    server.dimensions = 64
    embedder.forget_card()
    assert not embedder.loaded

    embedder.load()

    assert embedder.model.dimensions == 64
    assert ollama(server).model.dimensions == 64


def test_a_card_that_another_process_replaced_is_followed(server: ModelServer) -> None:
    running, other = loaded(server), ollama(server)
    server.dimensions = 64
    other.forget_card()
    other.load()

    assert running.embed(["words"]).shape == (1, 64)
    assert running.model == other.model


def test_a_card_forgotten_while_the_server_is_down_is_not_lost_to_others(server: ModelServer) -> None:
    embedder = loaded(server)
    server.stop()
    embedder.forget_card()
    with pytest.raises(EmbeddingError):
        embedder.load()

    assert not embedder.loaded
    assert ollama(server).model.dimensions == server.dimensions


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"dimensions": 0, "mean": 0, "std": 0.1}', b'{"dimensions": 4, "mean": "x", "std": 0.1}']
)
def test_a_damaged_card_is_made_again(server: ModelServer, alone: Path, content: bytes) -> None:
    loaded(server)
    (file,) = (alone / "cards").iterdir()
    file.write_bytes(content)

    embedder = ollama(server)
    assert not embedder.loaded
    embedder.load()

    assert json.loads(file.read_bytes())["dimensions"] == server.dimensions


def test_if_no_card_can_be_kept_the_process_remembers_it(server: ModelServer, alone: Path) -> None:
    alone.write_text("not a folder")
    embedder = loaded(server)

    embedder.embed(["words"])

    assert embedder.loaded
    assert len(server.asked) == 1


def test_cards_of_different_servers_and_models_are_kept_apart(server: ModelServer) -> None:
    loaded(server)

    with ModelServer(dimensions=16) as other:
        assert not ollama(other).loaded
    assert not ollama(server, "b-model").loaded


def test_threads_that_come_at_once_make_one_card(server: ModelServer) -> None:
    server.always = late(0.2)
    embedder = ollama(server)
    threads = [threading.Thread(target=embedder.load) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(server.asked) == 1


# ── questions ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_query_is_not_retried(server: ModelServer) -> None:
    embedder = loaded(server)
    server.always = status(503)

    with pytest.raises(EmbeddingError, match="503"):
        embedder.embed_query("words")

    assert len(server.asked) == 1


def test_a_query_waits_no_longer_than_its_time_including_the_card(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mindex.providers.embed.remote._QUERY_SECONDS", 0.6)
    server.always = late(0.4)  # the card and the question would take 0.8 s together
    started = time.monotonic()

    with pytest.raises(EmbeddingError, match="did not answer within"):
        ollama(server, timeout=30).embed_query("words")

    assert time.monotonic() - started < 20


def test_a_query_does_not_wait_as_long_as_another_thread(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mindex.providers.embed.remote._QUERY_SECONDS", 0.3)
    server.always = hang
    embedder = ollama(server, timeout=30)

    def load() -> None:
        with pytest.raises(EmbeddingError):
            embedder.load()

    patient = threading.Thread(target=load)
    patient.start()
    wait_until(lambda: bool(server.asked), what="the patient one's question")
    with pytest.raises(EmbeddingError):
        embedder.embed_query("words")

    assert patient.is_alive()
    server.released.set()
    patient.join()


def test_no_texts_need_no_request(server: ModelServer) -> None:
    embedder = loaded(server)

    assert embedder.embed([]).shape == (0, server.dimensions)
    assert server.asked == []


def test_where_the_tokenizer_cannot_be_seen_every_text_reads_well(server: ModelServer) -> None:
    assert ollama(server).fluency(["words", "缓存"]) == [1.0, 1.0]


@pytest.mark.parametrize(
    ("name", "dimensions"),
    [
        ("text-embedding-3-large", 3072),
        ("text-embedding-nomic-embed-text-v1.5", 768),
        ("nomic-embed-text:v1.5", 768),
        ("@cf/baai/bge-m3", 1024),
        ("BAAI/bge-small-en-v1.5", 384),
        ("something-of-ones-own", 0),
    ],
)
def test_names_are_known_however_a_server_spells_them(name: str, dimensions: int) -> None:
    model = space("openai", name)

    assert (model.provider, model.name, model.dimensions) == ("openai", name, dimensions)
