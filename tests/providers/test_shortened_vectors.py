"""Vectors that are shorter than the model's own: `embedding.dimensions`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from mindex.config import load_settings
from mindex.datatypes.spaces import EmbedderSpec
from mindex.errors import ConfigError, EmbeddingError
from mindex.memory import Memory
from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import create_embedder
from mindex.providers.server import Server
from tests.conftest import write
from tests.providers.servers import ModelServer
from tests.running import is_one_error, run, run_here

FILES = {f"{number:02}.md": f"# Pier {number}\n\nParcels of ship {number} wait." for number in range(5)}
QUESTION = "where do parcels of a ship wait?"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return write(tmp_path / "docs", FILES)


@pytest.fixture
def opened(tmp_path: Path, server: ModelServer) -> Iterator[Callable[..., Memory]]:
    memories: list[Memory] = []

    def open_memory(**given: object) -> Memory:
        options = {"embedding.provider": "openai", "embedding.url": server.url, "embedding.model": "m"}
        more = {f"embedding.{name}": value for name, value in given.items()}
        memories.append(Memory(tmp_path / "memory.db", options={**options, **more}))
        return memories[-1]

    yield open_memory
    for memory in memories:
        memory.close()


@pytest.mark.parametrize("provider", ["openai", "azure", "ollama"])
def test_the_request_names_the_dimensions(server: ModelServer, provider: str) -> None:
    embedder = create_embedder(ProviderSettings(provider, "text-embedding-3-small", server.url, dimensions=16))
    assert embedder is not None
    assert embedder.model.dimensions == 16  # known before any request
    vectors = embedder.embed(["parcels wait", "doors open"])
    assert vectors.shape == (2, 16)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert len(embedder.embed_query("parcels")) == 16
    assert all(body["dimensions"] == 16 for body in server.bodies)


@pytest.mark.parametrize("provider", ["openai", "azure", "ollama", "lmstudio"])
def test_by_default_the_request_does_not_name_dimensions(server: ModelServer, provider: str) -> None:
    embedder = create_embedder(ProviderSettings(provider, "m", server.url))
    assert embedder is not None
    embedder.load()
    assert not any("dimensions" in body for body in server.bodies)


@pytest.mark.parametrize("provider", ["local", "lmstudio", "cloudflare", "llama-cpp", "groq"])
def test_a_provider_that_cannot_shorten_says_so(provider: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"{provider} cannot shorten vectors to 16 dimensions") as failed:
        create_embedder(ProviderSettings(provider, "m", dimensions=16))
    assert "embedding.dimensions to 0" in failed.value.hint
    options = {"embedding.provider": provider, "embedding.dimensions": 16}
    with pytest.raises(ConfigError, match=f"{provider} cannot shorten vectors to 16 dimensions"):
        Memory(tmp_path / "memory.db", options=options)
    assert not (tmp_path / "memory.db").exists()


@pytest.mark.parametrize(
    "write_command",
    [
        ["add", "Parcels wait in the harbour"],
        ["conversation", "add", "Where do parcels wait?", "In the harbour."],
        ["index", "docs"],
        ["contact", "add", "Anna Lindqvist"],
        ["profile", "set", "user.name", "Anna"],
        ["import", "brought.jsonl"],
    ],
)
def test_a_length_that_the_provider_cannot_make_is_refused_before_anything_is_stored(
    tmp_path: Path, docs: Path, monkeypatch: pytest.MonkeyPatch, write_command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINDEX_DB", str(tmp_path / "memory.db"))
    with Memory(tmp_path / "other.db", options={"embedding.provider": "none"}) as other:
        other.add("Ferries leave at noon")
        other.transfer.export(tmp_path / "brought.jsonl")
    monkeypatch.setenv("MINDEX_EMBEDDING_DIMENSIONS", "128")
    is_one_error(run_here(*write_command), "the provider local cannot shorten vectors to 128 dimensions")
    monkeypatch.delenv("MINDEX_EMBEDDING_DIMENSIONS")
    with Memory(tmp_path / "memory.db", options={"embedding.provider": "none"}) as memory:
        assert memory.status().records == {}


@pytest.mark.model
@pytest.mark.parametrize(
    "provider", ["local", "ollama", "lmstudio", "openai", "azure", "cloudflare", "groq", "llama-cpp"]
)
@pytest.mark.parametrize(
    "wrong", [{}, {"model": "../no/such"}, {"url": "http://[nowhere"}, {"url": "http://127.0.0.1:9", "model": "m?x=1"}]
)
def test_a_memory_is_stored_and_has_its_id_with_any_other_error_in_the_embedders_settings(
    tmp_path: Path, alone: Path, monkeypatch: pytest.MonkeyPatch, provider: str, wrong: dict[str, str]
) -> None:
    monkeypatch.setattr("mindex.providers.server.Server.post", _no_server)
    options = {"embedding.provider": provider, **{f"embedding.{name}": value for name, value in wrong.items()}}
    with Memory(tmp_path / "memory.db", options=options) as memory:
        added = memory.add("Parcels wait in the harbour")
        turn, _ = memory.conversations.add("Where do parcels wait?", "In the harbour.")
        contact = memory.contacts.add(name="Anna Lindqvist")
        assert memory.status().records == {"memory": 1, "turn": 1, "contact": 1}
        assert [record.id for record in memory.get(added.id, turn.id, contact.id).records] == [
            added.id, turn.id, contact.id,
        ]  # fmt: skip


def _no_server(server: Server, *_: object, **__: object) -> object:
    raise server.spec.error("this test sends nothing", "")


def test_without_an_embedder_no_request_is_sent(tmp_path: Path) -> None:
    options = {"embedding.provider": "none", "embedding.dimensions": 16}
    with Memory(tmp_path / "memory.db", options=options) as memory:
        assert memory.search("anything").hits == ()


@pytest.mark.parametrize("wrong", [-1, 2.5, "many", True])
def test_a_length_is_a_whole_number(wrong: object) -> None:
    with pytest.raises(ConfigError, match=r"embedding\.dimensions"):
        load_settings({"embedding.dimensions": wrong})


@pytest.mark.parametrize("provider", ["openai", "ollama"])
def test_a_server_that_ignores_the_dimensions_is_an_error(server: ModelServer, provider: str) -> None:
    server.shortens = False
    embedder = create_embedder(ProviderSettings(provider, "m", server.url, dimensions=16))
    assert embedder is not None
    with pytest.raises(EmbeddingError, match="answers with 48 dimensions, 16 were asked for"):
        embedder.load()
    server.shortens = True
    embedder.load()
    server.shortens = False
    with pytest.raises(EmbeddingError, match="16 were asked for"):
        embedder.embed(["parcels"])


def test_the_length_is_part_of_the_spaces_identity(
    server: ModelServer, docs: Path, opened: Callable[..., Memory]
) -> None:
    whole = opened()
    assert whole.index(docs).embedded == 5

    short = opened(dimensions=16)
    note = "the settings name openai/m with 16 dimensions, this memory was embedded with openai/m with 48"
    answer = short.search(QUESTION)
    assert (answer.tier, answer.notes) == ("hybrid", (f"{note}; run `mindex reembed`",))
    (check,) = [one for one in short.doctor() if one.name == "configured model"]
    assert (check.ok, check.message) == (False, note)

    done = short.models.reembed()
    assert (done.source, done.target, done.embedded, done.notes) == ("openai/m", "openai/m", 5, ())
    (space,) = short.store.vectors.spaces()
    assert (space.model.dimensions, space.embedder_spec) == (16, EmbedderSpec("openai", "m", server.url, 16))
    assert short.search(QUESTION).notes == ()
    (check,) = [one for one in short.doctor() if one.name == "embedding model"]
    assert (check.ok, check.message) == (True, "m answers with 16 dimensions")


def test_a_process_without_the_setting_uses_the_length_of_the_space(
    server: ModelServer, docs: Path, opened: Callable[..., Memory]
) -> None:
    short = opened(dimensions=16)
    short.index(docs)
    server.asked.clear()
    other = opened()
    answer = other.search(QUESTION)
    assert (answer.tier, answer.notes) == ("hybrid", ())
    assert server.bodies[0]["dimensions"] == 16
    assert opened(dimensions=0).search(f"{QUESTION} tell", floor=0).notes == (
        "the settings name openai/m with all its dimensions, this memory was embedded with openai/m with 16; "
        "run `mindex reembed`",
    )


def test_the_models_own_length_by_number_is_the_same_space(docs: Path, opened: Callable[..., Memory]) -> None:
    opened().index(docs)
    assert opened(dimensions=48).search(QUESTION).notes == ()


def test_both_lengths_of_a_model_are_listed(docs: Path, opened: Callable[..., Memory]) -> None:
    opened().index(docs)
    listed = [one for one in opened(dimensions=16).models.list() if one.name == "m"]
    assert [(one.dimensions, one.active, one.configured) for one in listed] == [(48, True, False), (16, False, True)]
    assert [one.configured for one in opened(dimensions=48).models.list() if one.name == "m"] == [True]


def test_a_change_to_another_provider_leaves_the_length_behind(
    server: ModelServer, docs: Path, opened: Callable[..., Memory]
) -> None:
    memory = opened(dimensions=16)
    memory.index(docs)
    done = memory.models.reembed(provider="ollama", model="m", url=server.url)
    assert (done.target, memory.store.vectors.spaces()[0].model.dimensions) == ("ollama/m", 48)


def test_the_command_has_an_option_for_the_length(server: ModelServer, docs: Path, tmp_path: Path) -> None:
    env = {
        "MINDEX_DB": str(tmp_path / "memory.db"),
        "MINDEX_EMBEDDING_PROVIDER": "openai",
        "MINDEX_EMBEDDING_URL": server.url,
        "MINDEX_EMBEDDING_MODEL": "m",
    }
    assert run("index", docs, env=env).code == 0
    assert run("reembed", "--dimensions", "16", "--json", env=env).json["embedded"] == 5
    with Memory(tmp_path / "memory.db") as memory:
        assert [space.model.dimensions for space in memory.store.vectors.spaces()] == [16]
    assert run("search", QUESTION, "--json", env=env).json["tier"] == "hybrid"
    assert run("reembed", "--dimensions", "0", "--json", env=env).json["embedded"] == 5
    with Memory(tmp_path / "memory.db") as memory:
        assert [space.model.dimensions for space in memory.store.vectors.spaces()] == [48]
