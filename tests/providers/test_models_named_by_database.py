"""A database may come from anyone: no file is read, and no port of this machine called, because it names them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mindex.datatypes import Model, RecordVectors
from mindex.datatypes.spaces import EmbedderSpec
from mindex.errors import EmbeddingError
from mindex.memory import Memory
from mindex.providers.packaged_models import packaged_models
from tests.providers.conftest import Again
from tests.providers.onnx_models import embedder
from tests.providers.servers import ModelServer
from tests.running import run

pytestmark = pytest.mark.model


@pytest.fixture
def opened(again: Again, alone: Path) -> Callable[..., Memory]:
    return lambda **given: again({f"embedding.{name}": value for name, value in given.items()})


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test when a model that is a file is opened."""
    for machinery in ("mindex.providers.onnx.folder.model_folder", "mindex_providers.embed.llama_cpp.describe"):
        monkeypatch.setattr(machinery, lambda *_: pytest.fail("a model's file was opened"))


def named_by_a_file(memory: Memory, embedder_spec: EmbedderSpec, name: str = "theirs") -> None:
    """Make the memory's database say that its vectors are of this model, as one of a stranger may."""
    added = memory.add("Parcels wait in the harbour", embed=False)
    model = Model(embedder_spec.provider, name, 4)
    memory.store.vectors.put(model, [RecordVectors(added.id, np.ones((1, 4), np.float32) / 2)], embedder_spec)


@pytest.mark.usefixtures("unread")
@pytest.mark.parametrize(
    "embedder_spec",
    [
        EmbedderSpec("local", "/tmp/evil"),
        EmbedderSpec("local", "~/evil/model.onnx"),
        EmbedderSpec("local", "..\\evil"),
        EmbedderSpec("llama-cpp", "/tmp/evil.gguf"),
        EmbedderSpec("llama-cpp", "evil.gguf"),
        EmbedderSpec("llama-cpp", ""),
    ],
)
@pytest.mark.parametrize("settings", [{}, {"provider": "ollama"}])
def test_a_model_that_only_the_database_names_by_its_path_is_not_read(
    opened: Callable[..., Memory], embedder_spec: EmbedderSpec, settings: dict[str, object]
) -> None:
    memory = opened(**settings)
    named_by_a_file(memory, embedder_spec)

    answer = memory.search("harbour parcels")

    assert (answer.tier, len(answer.hits)) == ("keyword", 1)
    said = f"this memory was embedded with the model {embedder_spec.model}, which the settings do not name"
    assert any(said in note for note in answer.notes)
    memory.add("The harbour master drinks tea")
    assert memory.status().embedding.pending == 1
    (check,) = [one for one in memory.doctor() if one.name == "embedding model"]
    assert not check.ok
    assert f"embedding.provider to {embedder_spec.provider} and embedding.model to {embedder_spec.model}" in check.fix
    if settings:  # without a name, the model would be the file's choice
        with pytest.raises(EmbeddingError, match="which the settings do not name"):
            memory.models.reembed(provider=embedder_spec.provider)
    else:
        with pytest.raises(EmbeddingError, match="which the settings do not name"):
            memory.models.reembed()


@pytest.mark.usefixtures("unread")
def test_a_half_done_change_to_a_path_is_not_taken_up_because_the_database_says_so(
    opened: Callable[..., Memory],
) -> None:
    memory = opened()
    memory.add("Parcels wait in the harbour")
    memory.store.vectors.begin_space(Model("llama-cpp", "evil@1", 4), EmbedderSpec("llama-cpp", "/tmp/evil.gguf"))
    with pytest.raises(EmbeddingError, match=r"/tmp/evil\.gguf, which the settings do not name"):
        memory.models.reembed()
    assert memory.search("harbour").tier == "hybrid"


@pytest.mark.usefixtures("unread")
def test_no_path_is_read_to_measure_it(opened: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mindex.providers.model_list.packaged_models", lambda _: ())
    monkeypatch.setattr("mindex.providers.model_list._ROUNDS", 1)
    memory = opened()
    named_by_a_file(memory, EmbedderSpec("local", "/tmp/evil"), name="/tmp/evil")
    listed = {one.name: one for one in memory.models.list(measure=True)}
    assert (dict(listed["/tmp/evil"].speed), listed["/tmp/evil"].trouble) == ({}, "")
    assert listed["mindex-minilm"].speed


def test_a_path_that_the_settings_name_too_is_read(
    opened: Callable[..., Memory], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = embedder(tmp_path / "models" / "mine")
    opened(model=str(folder)).add("the choir sings at night")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(folder)
    for way in (str(folder), "models/mine", "./link", "models/../models/mine/"):
        answer = opened(model=way).search("which choir sings?", floor=0)
        assert (answer.tier, answer.notes) == ("hybrid", ()), way
    answer = opened().search("which choir sings at night?", floor=0)
    assert answer.tier == "keyword"
    assert any(f"the model {folder}, which the settings do not name" in note for note in answer.notes)
    assert opened(model=str(tmp_path / "models")).search("what does the choir do?", floor=0).tier == "keyword"


def test_a_change_to_a_path_says_what_the_settings_have_to_name_from_then_on(
    opened: Callable[..., Memory], tmp_path: Path
) -> None:
    folder = embedder(tmp_path / "mine")
    memory = opened()
    memory.add("the choir sings at night", embed=False)
    done = memory.models.reembed(provider="local", model=str(folder))
    assert done.embedded == 1
    assert any(f"set embedding.provider to local and embedding.model to {folder}" in note for note in done.notes)


def test_a_packaged_model_is_loaded_even_if_only_the_database_names_it(
    opened: Callable[..., Memory], tmp_path: Path
) -> None:
    env = {
        "MINDEX_DB": str(tmp_path / "memory.db"),
        "MINDEX_EMBEDDING_MODEL": packaged_models("embedding")[1].model.name,
    }
    assert run("add", "the choir sings at night", env=env).code == 0
    answer = opened().search("which choir sings?", floor=0)
    assert (answer.tier, answer.notes) == ("hybrid", ())


# ── ports of this machine ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", ["", "/v1", "/forward/https://example.org/v1"])
@pytest.mark.parametrize("settings", [{}, {"provider": "ollama"}])
def test_a_port_of_this_machine_that_only_the_database_names_is_not_called(
    opened: Callable[..., Memory], server: ModelServer, path: str, settings: dict[str, object]
) -> None:
    memory = opened(**settings)
    where = f"{server.url}{path}"
    named_by_a_file(memory, EmbedderSpec("openai", "theirs", where))
    answer = memory.search("harbour parcels")
    memory.add("The harbour master drinks tea")
    assert (answer.tier, server.asked) == ("keyword", [])
    assert any(f"a server at {where}, which the settings do not name" in note for note in answer.notes)
    assert memory.status().tier_reason.endswith(f"embedding.url to {where} if it may be asked")
    memory.doctor()
    memory.models.list(measure=False)
    assert server.asked == []


def test_a_port_that_was_named_on_this_machine_before_is_used_and_no_other_path_below_it(
    opened: Callable[..., Memory], server: ModelServer
) -> None:
    opened().add("Parcels wait in the harbour")
    opened().models.reembed(provider="openai", model="theirs", url=server.url)  # a person said so
    assert opened().search("where do parcels wait?").tier == "hybrid"
    memory = opened()
    for other in (
        f"{server.url}/forward",
        f"{server.url}?to=example.org",
        server.url.replace("http://", "http://a:b@"),
    ):
        with pytest.raises(EmbeddingError, match="which the settings do not name"):
            memory.embedding.permitted(EmbedderSpec("openai", "theirs", other))
    assert memory.embedding.permitted(EmbedderSpec("openai", "theirs", server.url)).keyed is False


@pytest.mark.parametrize(
    ("provider", "url"),
    [("ollama", ""), ("ollama", "http://127.0.0.1:11434"), ("lmstudio", ""), ("lmstudio", "http://127.0.0.1:1234/v1")],
)
def test_ollama_and_lm_studio_are_called_at_their_default_addresses(
    opened: Callable[..., Memory], provider: str, url: str
) -> None:
    asked = opened().embedding.permitted(EmbedderSpec(provider, "m", url))
    assert (asked.provider, asked.url, asked.keyed) == (provider, url, False)


@pytest.mark.parametrize(
    "said",
    [
        {"dimensions": "384"},
        {"background_mean": "x"},
        {"background_std": None},
        {"query_prefix": 7},
        {"name": ["mindex-minilm"]},
        {"edition": {}},
    ],
)
def test_search_works_with_a_database_that_names_an_impossible_model(
    opened: Callable[..., Memory], tmp_path: Path, said: dict[str, object]
) -> None:
    opened().add("Parcels wait in the harbour")
    with sqlite3.connect(tmp_path / "memory.db") as connection:
        (settings,) = connection.execute("SELECT settings FROM models").fetchone()
        kept = json.loads(settings)
        kept["space"] |= said
        connection.execute("UPDATE models SET settings = ?", (json.dumps(kept),))
    connection.close()
    memory = opened()
    (space,) = memory.store.vectors.spaces()
    assert isinstance(space.model.dimensions, int)
    assert isinstance(space.model.background_mean, float)
    assert memory.search("harbour parcels").tier == "hybrid"
    assert memory.status().embedding.dimensions == 384
    assert all(check.ok for check in memory.doctor())


def test_a_fingerprint_of_endless_numbers_does_not_fail(opened: Callable[..., Memory], tmp_path: Path) -> None:
    memory = opened()
    memory.add("Parcels wait in the harbour")
    endless = f"local/x/{'9' * 5000}/mean/256/|"
    with sqlite3.connect(tmp_path / "memory.db") as connection:
        connection.execute("UPDATE models SET fingerprint = ?, settings = '{}'", (endless,))
        connection.execute("UPDATE meta SET value = ? WHERE key = 'space'", (endless,))
    connection.close()
    memory = opened()
    assert memory.search("harbour parcels").tier == "keyword"
    assert memory.status().embedding.dimensions == 0
    assert not all(check.ok for check in memory.doctor())
