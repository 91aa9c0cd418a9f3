"""Which embedder serves: that of the store, even when the settings name another."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindex.embedding.permission import embedder_spec_of
from mindex.errors import ConfigError
from mindex.memory import Memory
from mindex.model.spaces import EmbedderSpec
from mindex.providers.base import ProviderSettings

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
        {"embedding.model": "all-MiniLM-L6-v2"},
        {"embedding.provider": "local", "embedding.model": "all-MiniLM-L6-v2"},
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
            f"the settings name {named}, this memory was embedded with local/all-MiniLM-L6-v2; run `mindex reembed`",
        )


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
