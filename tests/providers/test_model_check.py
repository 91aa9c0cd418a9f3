"""What `doctor` says of each configured provider: what is wrong, what to do, and within a short time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from mindex.datatypes import Check, Model, RecordVectors
from mindex.datatypes.spaces import EmbedderSpec
from mindex.memory import Memory
from mindex.providers.model_check import ModelCheck, run_checks
from tests.providers.servers import Handler, ModelServer, Trick, hang, html, status

NAMES = {"embedding": "embedding model", "rerank": "reranker", "generation": "language model"}


def options(role: str, provider: str, url: str, model: str = "some-model", timeout: float = 20.0) -> dict[str, object]:
    settings: dict[str, object] = {"embedding.provider": "none"}
    return settings | {
        f"{role}.provider": provider,
        f"{role}.url": url,
        f"{role}.model": model,
        f"{role}.timeout": timeout,
    }


def checked(tmp_path: Path, role: str, timeout: float = 20.0, **given: str) -> Check:
    with Memory(tmp_path / "memory.db", options=options(role, timeout=timeout, **given)) as memory:
        return next(one for one in memory.doctor() if one.name == NAMES[role])


@pytest.mark.parametrize(
    ("role", "provider"),
    [
        ("embedding", "ollama"),
        ("embedding", "openai"),
        ("rerank", "http"),
        ("generation", "openai"),
        ("generation", "ollama"),
    ],
)
def test_a_provider_that_answers_is_called_well(server: ModelServer, tmp_path: Path, role: str, provider: str) -> None:
    check = checked(tmp_path, role, provider=provider, url=server.url)
    assert check.ok, check
    assert "answers" in check.message


@pytest.mark.parametrize(("role", "provider"), [("embedding", "openai"), ("rerank", "http"), ("generation", "openai")])
@pytest.mark.parametrize(
    ("trick", "message", "fix"),
    [
        (status(401, {"error": {"message": "bad key"}}), "key", "_API_KEY"),
        (html, "JSON", "url"),
        (status(404, {"error": {"message": "The model `some-model` does not exist"}}), "some-model", "model"),
        (hang, "1 s", ""),
    ],
)
def test_a_check_says_what_is_wrong_with_a_server_and_what_to_do(
    server: ModelServer, tmp_path: Path, role: str, provider: str, trick: Trick, message: str, fix: str
) -> None:
    server.always = trick
    check = checked(tmp_path, role, timeout=1.0 if trick is hang else 20.0, provider=provider, url=server.url)
    assert not check.ok
    assert message in check.message, check
    assert fix in check.fix, check


@pytest.mark.parametrize(
    ("role", "command"), [("embedding", "ollama pull some-model"), ("generation", "ollama pull some-model")]
)
def test_a_missing_model_comes_with_the_command_that_gets_it(
    server: ModelServer, tmp_path: Path, role: str, command: str
) -> None:
    server.models = ("another",)
    check = checked(tmp_path, role, provider="ollama", url=server.url)
    assert not check.ok
    assert command in check.fix


@pytest.mark.parametrize("role", ["embedding", "generation"])
def test_a_check_says_that_nothing_answers_at_the_address(server: ModelServer, tmp_path: Path, role: str) -> None:
    server.stop()
    check = checked(tmp_path, role, provider="ollama", url=server.url)
    assert f"nothing answers at {server.url}" in check.message
    assert "ollama serve" in check.fix


@pytest.mark.parametrize("role", ["rerank", "generation"])
def test_an_unknown_provider_is_one_failed_check_among_the_others(tmp_path: Path, role: str) -> None:
    check = checked(tmp_path, role, provider="magic", url="")
    assert (check.ok, "'magic'" in check.message) == (False, True)


def test_a_weights_package_that_is_missing_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from importlib.metadata import PackageNotFoundError

    def missing(name: str) -> object:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", missing)
    check = checked(tmp_path, "embedding", provider="local", url="", model="bge-small-en-v1.5")
    assert (check.ok, check.fix) == (False, "run: pip install 'mindex[rerank]'")
    check = checked(tmp_path, "rerank", provider="local", url="", model="")
    assert (check.ok, check.fix) == (False, "run: pip install 'mindex[rerank]'")


def test_dimensions_that_do_not_fit_this_memory_are_named(server: ModelServer, tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", options=options("embedding", "openai", server.url)) as memory:
        added = memory.add("Parcels wait in the harbour")
        assert memory.status().embedding.pending == 0
    server.dimensions = 20
    for file in (tmp_path / "cache" / "cards").glob("*"):
        file.unlink()  # another machine: nothing is known of the model but what this memory says
    with Memory(tmp_path / "memory.db", options=options("embedding", "openai", server.url)) as memory:
        (check,) = [one for one in memory.doctor() if one.name == "embedding model"]
        answer = memory.search("harbour parcels")
    assert check.message == "some-model answers with 20 dimensions, this memory's vectors have 48"
    assert check.fix == "run `mindex reembed`"
    assert (answer.tier, answer.hits[0].record.id) == ("keyword", added.id)
    assert "48 dimensions of openai/some-model now, not with 20" in answer.notes[-1]


def test_three_servers_that_hang_are_waited_for_once(server: ModelServer, tmp_path: Path) -> None:
    waiting: set[str] = set()

    def hang_until_all_are_there(handler: Handler) -> None:
        waiting.add(handler.asked.path)
        if len(waiting) == len(NAMES):
            server.released.set()
        hang(handler)

    server.always = hang_until_all_are_there
    settings = options("embedding", "openai", server.url) | options("rerank", "http", server.url)
    settings |= options("generation", "openai", server.url) | {"embedding.provider": "openai"}
    with Memory(tmp_path / "memory.db", options=settings) as memory:
        checks = {one.name: one for one in memory.doctor()}
    assert not any(checks[name].ok for name in NAMES.values())
    # In sequence, the first would have waited alone until its time was over.
    assert all("broke its answer off" in checks[name].message for name in NAMES.values()), checks


def test_the_model_that_the_settings_name_is_checked_beside_the_one_in_use(server: ModelServer, tmp_path: Path) -> None:
    def check(model: str) -> Check:
        settings = options("embedding", "ollama", server.url, model)
        with Memory(tmp_path / "memory.db", options=settings) as memory:
            return next(one for one in memory.doctor() if one.name == "configured model")

    with Memory(tmp_path / "memory.db", options=options("embedding", "ollama", server.url, "first")) as memory:
        memory.add("Parcels wait in the harbour")
    server.models = ("first", "second")
    said = "the settings name ollama/{}, this memory was embedded with ollama/first"
    there, missing = check("second"), check("third")
    assert (there.message, there.fix) == (said.format("second"), "run `mindex reembed`, or change the settings")
    assert missing.message.startswith(said.format("third") + "; and it cannot be had: ")
    assert missing.fix == "run: ollama pull third"


def test_vectors_of_an_unused_space_are_reported_and_optimize_removes_them(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", options={"embedding.provider": "none"}) as memory:
        added = memory.add("Parcels wait in the harbour")
        old, new = Model("test", "old", 4), Model("test", "new", 4)
        for model in (old, new):
            memory.store.vectors.begin_space(model, EmbedderSpec("test", model.name))
            memory.store.vectors.put(model, [RecordVectors(added.id, [[0.5] * 4])])
            assert memory.store.vectors.switch_space(model)

        def left() -> list[str]:
            return [one.message for one in memory.doctor() if one.name == "unused vectors" and not one.ok]

        assert left() == ["vectors of test/old are left that no search uses"]
        memory.maintenance.optimize()
        assert left() == []
        assert [space.name for space in memory.store.vectors.spaces()] == ["test/new"]


def test_checks_come_in_the_given_order_however_long_they_take() -> None:
    def slow(name: str, seconds: float) -> ModelCheck:
        return ModelCheck("embedding", name, lambda: time.sleep(seconds), seconds=5)

    assert [one.name for one in run_checks([slow("a", 0.1), slow("b", 0), slow("c", 0.05)])] == ["a", "b", "c"]
