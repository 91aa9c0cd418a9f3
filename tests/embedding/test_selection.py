"""Which embedder serves: that of the store, even when the settings name another."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from mindex.embedding.permission import embedder_spec_of
from mindex.errors import ConfigError
from mindex.memory import Memory
from mindex.model.spaces import EmbedderSpec
from mindex.providers.base import ProviderSettings
from mindex.providers.packaged_models import MINILM

pytestmark = pytest.mark.model


@pytest.fixture
def embedded(tmp_path: Path) -> Path:
    with Memory(tmp_path / "memory.db") as memory:
        memory.add("Parcels wait in the harbour")
        assert memory.store.vectors.spaces()[0].embedder_spec == EmbedderSpec("local")
    return tmp_path / "memory.db"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"embedding.provider": "local"},
        {"embedding.model": "mindex-minilm"},
        {"embedding.provider": "local", "embedding.model": "mindex-minilm"},
    ],
)
def test_there_is_no_note_when_the_settings_name_the_same_model_differently(
    embedded: Path, options: dict[str, object]
) -> None:
    with Memory(embedded, options=options) as memory:
        assert memory.search("harbour").notes == ()
        assert memory.status().embedding.note == ""


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"embedding.model": "bge-small-en-v1.5"}, "local/bge-small-en-v1.5"),
        ({"embedding.provider": "ollama"}, "ollama"),
        ({"embedding.provider": "ollama", "embedding.model": "nomic-embed-text"}, "ollama/nomic-embed-text"),
    ],
)
def test_settings_that_name_another_model_cause_a_note_and_the_old_one_serves(
    embedded: Path, options: dict[str, object], named: str
) -> None:
    with Memory(embedded, options=options) as memory:
        answer = memory.search("harbour")
        assert answer.tier == "hybrid"
        assert answer.notes == (
            f"the settings name {named}, this memory was embedded with local/mindex-minilm; run `mindex reembed`",
        )


# ── a database of the model that was built in before ──────────────────────────────────────────────────────────


@pytest.fixture
def of_all_minilm(tmp_path: Path) -> Path:
    """Embedded with all-MiniLM-L6-v2 as the default, so that nothing names the model but the vectors' space."""
    with Memory(tmp_path / "memory.db", options={"embedding.model": "all-MiniLM-L6-v2"}) as memory:
        memory.add("Parcels wait in the harbour")
        memory.store.vectors.begin_space(MINILM, EmbedderSpec("local"))
        assert memory.store.vectors.spaces()[0].embedder_spec == EmbedderSpec("local")
    return tmp_path / "memory.db"


def test_a_database_whose_settings_name_no_model_is_searched_with_the_model_of_its_vectors(of_all_minilm: Path) -> None:
    with Memory(of_all_minilm) as memory:
        answer = memory.search("harbour")
        added = memory.add("The choir sings on Thursdays")
        assert (answer.tier, answer.notes, added.notes) == ("hybrid", (), ())
        assert memory.status().embedding.model == "all-MiniLM-L6-v2"
        assert memory.status().embedding.sha256 == MINILM.sha256
        assert [space.model.name for space in memory.store.vectors.spaces()] == ["all-MiniLM-L6-v2"]


def test_without_the_package_of_its_model_a_database_is_searched_by_keyword_and_keeps_its_vectors(
    of_all_minilm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> object:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", missing)
    with Memory(of_all_minilm) as memory:
        answer = memory.search("harbour")
        assert (answer.tier, answer.total) == ("keyword", 1)
        assert any("pip install 'mindex[minilm]'" in note for note in answer.notes)
        memory.add("The choir sings on Thursdays")
        (space,) = memory.store.vectors.spaces()
        assert (space.model.name, space.vectors, memory.status().embedding.pending) == ("all-MiniLM-L6-v2", 1, 1)

        done = memory.models.reembed()
        assert (done.target, done.embedded, done.remaining) == ("local/mindex-minilm", 2, 0)
        answer = memory.search("harbour")
        assert (answer.tier, answer.notes) == ("hybrid", ())


def test_an_unknown_provider_is_an_error_for_any_database(embedded: Path) -> None:
    with pytest.raises(ConfigError, match="magic"):
        Memory(embedded, options={"embedding.provider": "magic"})


def test_a_keyword_search_uses_no_model(embedded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory(embedded) as memory:
        monkeypatch.setattr(memory.store.vectors, "active_space", lambda: pytest.fail("asked which space is searched"))
        assert memory.search("harbour", mode="keyword").total == 1


def test_a_model_that_is_a_folder_is_found_from_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "models" / "mine"
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert embedder_spec_of(ProviderSettings("local", "models/mine")) == EmbedderSpec("local", str(folder))
    (tmp_path / "a.gguf").touch()
    assert embedder_spec_of(ProviderSettings("llama-cpp", "a.gguf")) == EmbedderSpec(
        "llama-cpp", str(tmp_path / "a.gguf")
    )
    assert embedder_spec_of(ProviderSettings("ollama", "models/mine")) == EmbedderSpec("ollama", "models/mine")
    assert embedder_spec_of(ProviderSettings("llama-cpp")) == EmbedderSpec("llama-cpp")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert embedder_spec_of(ProviderSettings("local", "~/models/mine")) == EmbedderSpec("local", str(folder))


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("http://user:secret@127.0.0.1:8080/v1?key=secret", "http://127.0.0.1:8080/v1"),
        ("https://example.com/openai/v1/", "https://example.com/openai/v1"),
        ("no address at all", ""),
    ],
)
def test_an_address_is_stored_without_its_secrets(url: str, kept: str) -> None:
    assert embedder_spec_of(ProviderSettings("openai", "m", url)).url == kept
