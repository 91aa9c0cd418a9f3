"""What a server answers, and what is sent to it: invalid vectors, texts that are too long."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from mindex.errors import EmbeddingError
from tests.providers.remote_embedders import loaded, on_server, same
from tests.providers.servers import ACCOUNT, ModelServer, Trick, changed, status, vectors

pytestmark = pytest.mark.usefixtures("alone")


# ── invalid responses ────────────────────────────────────────────────────────────────────────────────


def replaced(value: object) -> Trick:
    return vectors(lambda rows: [[value, *rows[0][1:]], *rows[1:]])


@pytest.mark.parametrize(
    ("trick", "said"),
    [
        (vectors(lambda rows: rows[:-1]), "2 vectors for 3 texts"),
        (vectors(lambda rows: [*rows, rows[0]]), "4 vectors for 3 texts"),
        (vectors(lambda _: []), "0 vectors for 3 texts"),
        (replaced(float("nan")), "answers with NaN"),
        (replaced(float("-inf")), "answers with -Infinity"),
        (status(200, b'{"embeddings": [[1e999, 1], [1, 2], [3, 4]]}'), "not finite"),
        (status(200, b'{"embeddings": [[1' + b"0" * 400 + b", 1], [1, 2], [3, 4]]}"), "not finite"),
        (replaced("0.5"), "something else than numbers"),
        (replaced(None), "something else than numbers"),
        (replaced(True), "something else than numbers"),
        (vectors(lambda rows: [{"0": 1.0}, *rows[1:]]), "something else than numbers"),
        (vectors(lambda rows: [[0.0] * len(rows[0]), *rows[1:]]), "a vector of zeros"),
        (vectors(lambda _: [[], [], []]), "0 dimensions"),
        (vectors(lambda rows: [rows[0][:-1], *rows[1:]]), "different lengths"),
    ],
)
def test_invalid_vectors_are_an_error_and_none_is_kept(server: ModelServer, trick: Trick, said: str) -> None:
    embedder = loaded(server)
    server.tricks.append(trick)

    with pytest.raises(EmbeddingError, match=said):
        embedder.embed(["one", "two", "three"])

    assert embedder.embed(["one", "two", "three"]).shape == (3, server.dimensions)


def test_very_large_and_very_small_numbers_are_vectors_like_any_other(server: ModelServer) -> None:
    embedder = loaded(server)
    server.tricks.append(vectors(lambda rows: [[value * 1e200 for value in rows[0]], [v * 1e-200 for v in rows[1]]]))

    found = embedder.embed(["one", "two"])

    assert same(found[0], server.vector("one"))
    assert same(found[1], server.vector("two"))


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: [{**row, "index": 0} for row in rows],
        lambda rows: [{**row, "index": row["index"] + 1} for row in rows],
        lambda rows: [{**row, "index": "0"} for row in rows],
        lambda rows: [{**row, "index": -1} for row in rows],
    ],
)
def test_invalid_indexes_are_an_error(server: ModelServer, change: Callable[[Any], object]) -> None:
    embedder = on_server("openai", server)
    embedder.load()
    server.tricks.append(changed(lambda body: {**body, "data": change(body["data"])}))

    with pytest.raises(EmbeddingError, match="invalid indexes"):
        embedder.embed(["one", "two"])


def test_rows_without_an_index_are_taken_in_order(server: ModelServer) -> None:
    embedder = on_server("openai", server)
    embedder.load()
    server.tricks.append(
        changed(lambda body: {"data": [{"embedding": row["embedding"]} for row in reversed(body["data"])]})
    )

    found = embedder.embed(["one", "two"])

    assert same(found[1], server.vector("two"))


def test_another_pooling_than_the_requested_one_is_an_error(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOUDFLARE_ACCOUNT_ID", ACCOUNT)
    server.always = changed(lambda body: {**body, "result": {**body["result"], "pooling": "mean"}})

    with pytest.raises(EmbeddingError, match="another pooling than cls"):
        on_server("cloudflare", server, "@cf/a/model").load()


# ── length ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_text_beyond_the_models_window_is_cut_before_it_is_sent(server: ModelServer) -> None:
    embedder = loaded(server)

    embedder.embed(["x" * 1_000_000, "short"])

    assert [len(text) for text in server.bodies[0]["input"]] == [4 * 512, 5]


def taking(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock by which every request takes so long: it is looked at before and after each."""
    ticks = itertools.count(step=seconds)
    monkeypatch.setattr("mindex.providers.embed.remote.monotonic", lambda: next(ticks))


def test_a_request_holds_a_bounded_number_of_characters_more_for_a_fast_server(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = loaded(server, model="bge-m3")
    taking(0.01, monkeypatch)

    embedder.embed(["x" * 4_000] * 60)

    sizes = [len(body["input"]) for body in server.bodies]
    assert sizes[0] == 2
    assert max(sizes) == 16  # 64,000 characters
    assert sum(sizes) == 60


def test_a_slow_server_is_sent_less_at_once(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = loaded(server, timeout=20.0)
    taking(10.0, monkeypatch)

    embedder.embed(["x" * 1_000] * 24)

    sizes = [len(body["input"]) for body in server.bodies]
    assert sizes[0] == 8
    assert max(sizes[1:]) <= 4


def test_a_server_for_which_everything_is_too_long_is_an_error(server: ModelServer) -> None:
    embedder = loaded(server)
    server.always = status(400, {"error": "the input length exceeds the context length"})

    with pytest.raises(EmbeddingError, match="refuses the request"):
        embedder.embed(["word " * 100])

    assert len(server.asked) < 12


def test_a_server_error_that_means_too_long_is_understood_as_such(server: ModelServer) -> None:
    """llama.cpp answers 500 where others answer 400."""
    embedder = loaded(server)
    server.tricks.append(status(500, {"error": {"code": 500, "message": "input is too large to process"}}))

    embedder.embed(["word " * 100])

    assert [len(body["input"][0]) for body in server.bodies] == [500, 250]


def test_texts_that_no_server_could_read_are_made_readable(server: ModelServer) -> None:
    loaded(server).embed(["a lone \ud800 half", "a \0 zero"])

    assert server.bodies[0]["input"] == ["a lone ? half", "a   zero"]


def test_a_refusal_of_everything_is_an_error_and_not_a_thousand_substitutes(server: ModelServer) -> None:
    embedder = loaded(server)
    server.always = status(400, {"error": "unknown option: truncate"})

    with pytest.raises(EmbeddingError, match="unknown option: truncate"):
        embedder.embed([f"text {number}" for number in range(32)])

    assert len(server.asked) < 10


def test_a_query_that_is_refused_is_an_error(server: ModelServer) -> None:
    server.poison = "forbidden"

    with pytest.raises(EmbeddingError, match="refuses the request"):
        loaded(server).embed_query("forbidden?")
