"""Which embedder serves: that of the store, even when the settings name another."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest

from mindex.datatypes import Model
from mindex.datatypes.reports import UpgradeOffer
from mindex.datatypes.spaces import EmbedderSpec
from mindex.embedding.permission import embedder_spec_of
from mindex.errors import ConfigError, EmbeddingError
from mindex.memory import Memory
from mindex.present.reports import status_text
from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import Embedder, create_embedder
from mindex.providers.embed.local import LocalEmbedder
from mindex.providers.packaged_models import BUILT_IN, MINILM
from mindex.store.open import open_store
from mindex.store.rules.spaces import encode_canary
from tests.providers.onnx_models import embedder as onnx_embedder
from tests.providers.onnx_models import rows

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


def test_former_vectors_are_searched_with_the_built_in_model_and_not_changed_by_searches(of_all_minilm: Path) -> None:
    with Memory(of_all_minilm) as memory:
        answer = memory.search("harbour")
        assert (answer.tier, answer.notes) == ("hybrid", ())
        assert [space.model for space in memory.store.vectors.spaces()] == [MINILM]
        status = memory.status().embedding
        assert (status.model, status.pending, status.upgrade) == ("all-MiniLM-L6-v2", 0, UpgradeOffer(1, 1))
        assert status.sha256 == MINILM.sha256
        assert "run `mindex reembed` (about 1 minute)" in status_text(memory.status())


@pytest.mark.parametrize("name", ["", "mindex-minilm"])
def test_a_record_that_is_added_to_former_vectors_gets_a_vector_of_the_built_in_model(
    of_all_minilm: Path, name: str
) -> None:
    with Memory(of_all_minilm, options={"embedding.model": name} if name else {}) as memory:
        added = memory.add("The choir sings on Thursdays")
        (space,) = memory.store.vectors.spaces()
        assert (space.model, space.vectors, added.notes) == (BUILT_IN, 2, ())
        new = memory.store.vectors.stored(BUILT_IN, [added.id])[added.id]
        assert np.allclose(new, LocalEmbedder().embed(["The choir sings on Thursdays"]), atol=1e-3)
        assert memory.store.vectors.count_former() == 1
        assert {hit.record.text for hit in memory.search("choir harbour").hits} == {
            "The choir sings on Thursdays",
            "Parcels wait in the harbour",
        }

        assert memory.models.reembed(dry_run=True).remaining == 1
        done = memory.models.reembed()
        assert (done.target, done.embedded, done.remaining) == ("local/mindex-minilm", 1, 0)
        assert (memory.store.vectors.count_former(), memory.status().embedding.upgrade) == (0, None)
        old = next(hit.record.id for hit in memory.search("harbour").hits if "harbour" in hit.record.text)
        replaced = memory.store.vectors.stored(BUILT_IN, [old])[old]
        assert np.allclose(replaced, LocalEmbedder().embed(["Parcels wait in the harbour"]), atol=1e-3)


def test_a_name_of_the_former_model_keeps_it_while_its_package_is_installed(of_all_minilm: Path) -> None:
    with Memory(of_all_minilm, options={"embedding.model": "all-MiniLM-L6-v2"}) as memory:
        assert memory.add("The choir sings on Thursdays").notes == ()
        assert [(space.model, space.vectors) for space in memory.store.vectors.spaces()] == [(MINILM, 2)]
        assert memory.status().embedding.upgrade is None
        assert memory.models.reembed().target == "local/all-MiniLM-L6-v2"
        assert [(space.model, space.vectors) for space in memory.store.vectors.spaces()] == [(MINILM, 2)]


@pytest.fixture
def without_packages(of_all_minilm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", missing)


@pytest.mark.usefixtures("without_packages")
def test_a_name_of_the_former_model_whose_package_is_missing_is_answered_by_the_built_in_one_with_a_note(
    of_all_minilm: Path,
) -> None:
    with Memory(of_all_minilm, options={"embedding.model": "all-MiniLM-L6-v2"}) as memory:
        answer = memory.search("harbour")
        assert (answer.tier, answer.total) == ("hybrid", 1)
        assert any("pip install 'mindex[minilm]'" in note for note in answer.notes)
        assert "pip install 'mindex[minilm]'" in memory.status().embedding.note
        added = memory.add("The choir sings on Thursdays")  # its vector waits for the package: the setting names it
        assert "pip install 'mindex[minilm]'" in added.notes[0]
        with pytest.raises(EmbeddingError, match="all-MiniLM-L6-v2 is not installed"):
            memory.models.reembed()
        assert [(space.model, space.vectors) for space in memory.store.vectors.spaces()] == [(MINILM, 1)]
        assert memory.models.reembed(model="mindex-minilm").embedded == 2


@pytest.mark.usefixtures("without_packages")
def test_without_the_former_package_everything_is_searched_and_embedded(of_all_minilm: Path) -> None:
    with Memory(of_all_minilm) as memory:
        assert memory.search("harbour").tier == "hybrid"
        assert memory.add("The choir sings on Thursdays").notes == ()
        (check,) = (check for check in memory.doctor() if check.name == "embedding model")
        assert check.ok
        assert check.message == f"mindex-minilm answers with 384 dimensions, weights sha256:{BUILT_IN.sha256}"


def test_vectors_that_only_bear_the_former_name_are_not_mixed_with_new_ones(of_all_minilm: Path) -> None:
    with Memory(of_all_minilm) as memory:
        memory.store.vectors.drop_unused_spaces()
        _put_canary(of_all_minilm, MINILM, np.eye(1, 384, dtype=np.float32)[0])
        added = memory.add("The choir sings on Thursdays")
        assert "are not those of local/all-MiniLM-L6-v2" in added.notes[0]
        assert [(space.model, space.vectors) for space in memory.store.vectors.spaces()] == [(MINILM, 1)]


def _put_canary(db: Path, model: Model, vector: np.ndarray) -> None:
    with closing(sqlite3.connect(db)) as connection, connection:
        connection.execute(
            "UPDATE meta SET value = ?, checksum = NULL WHERE key = ?",
            (encode_canary(vector), f"canary {model.fingerprint}"),
        )


# ── hashes of weights ─────────────────────────────────────────────────────────────────────────────────────────


def _without_hash(db: Path) -> None:
    """As a version made it that knew no hashes."""
    with closing(sqlite3.connect(db)) as connection, connection:
        hashed = f"@{BUILT_IN.sha256}"
        connection.execute(
            "UPDATE models SET fingerprint = replace(fingerprint, ?, ''), settings = '{}', checksum = NULL", (hashed,)
        )
        connection.execute(
            "UPDATE meta SET value = replace(value, ?, ''), checksum = NULL WHERE key = 'space'", (hashed,)
        )
        connection.execute(
            "UPDATE meta SET key = replace(key, ?, ''), checksum = NULL WHERE key LIKE 'canary %'", (hashed,)
        )


def test_a_fingerprint_without_a_hash_gets_that_of_the_model_and_nothing_is_embedded_again(embedded: Path) -> None:
    _without_hash(embedded)
    with Memory(embedded) as memory:
        assert memory.search("harbour").tier == "hybrid"
        (space,) = memory.store.vectors.spaces()
        assert (space.model.sha256, memory.status().embedding.sha256) == ("", BUILT_IN.sha256)
        memory.add("The choir sings on Thursdays")
        (space,) = memory.store.vectors.spaces()
        assert (space.model, space.vectors, memory.store.vectors.count_former()) == (BUILT_IN, 2, 0)
        assert memory.models.reembed().embedded == 0


def test_a_fingerprint_without_a_hash_keeps_it_if_the_canary_disagrees(embedded: Path) -> None:
    _without_hash(embedded)
    _put_canary(embedded, replace(BUILT_IN, sha256=""), np.eye(1, 384, dtype=np.float32)[0])
    with Memory(embedded) as memory:
        assert "has become another model" in memory.add("The choir sings on Thursdays").notes[0]
        (space,) = memory.store.vectors.spaces()
        assert (space.model.sha256, space.vectors) == ("", 1)


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


def test_weights_that_are_swapped_under_one_name_size_and_time_are_noticed(tmp_path: Path) -> None:
    folder = onnx_embedder(tmp_path / "mine", rows(seed=1))
    options: dict[str, object] = {"embedding.provider": "local", "embedding.model": str(folder)}
    with Memory(tmp_path / "memory.db", options=options) as memory:
        memory.add("redis cache")
        first = memory.status().embedding.sha256
        assert memory.store.vectors.active_space().endswith(f"@{first}")
    _swap(folder, tmp_path / "other")
    with Memory(tmp_path / "memory.db", options=options) as memory:
        added = memory.add("choir sings")
        assert "is no longer the model that this memory was embedded with" in added.notes[0]
        assert memory.search("cache").tier == "keyword"
        (space,) = memory.store.vectors.spaces()
        assert (space.model.sha256, space.vectors) == (first, 1)
        assert memory.models.reembed().embedded == 2
        assert memory.status().embedding.sha256 != first


@pytest.mark.extension("mindex_eval")
def test_an_evaluation_embeds_again_with_swapped_weights(tmp_path: Path) -> None:
    from mindex_eval.cached_models import CachedEmbedder  # `scripts/core` deletes it

    folder = onnx_embedder(tmp_path / "mine", rows(seed=1))
    settings = ProviderSettings("local", str(folder))
    with closing(open_store(tmp_path / "cache.db")) as cache:
        before = CachedEmbedder(_made(settings), cache).embed_query("redis cache")
        _swap(folder, tmp_path / "other")
        after = CachedEmbedder(_made(settings), cache).embed_query("redis cache")
        assert not np.allclose(before, after)


def _made(settings: ProviderSettings) -> Embedder:
    embedder = create_embedder(settings)
    assert embedder is not None
    return embedder


def _swap(folder: Path, other: Path) -> None:
    """Put other weights of the same size and time into the place of a folder's own."""
    weights = folder / "model.onnx"
    replacement = onnx_embedder(other, rows(seed=2)) / "model.onnx"
    stat = weights.stat()
    assert replacement.stat().st_size == stat.st_size
    os.utime(replacement, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    replacement.replace(weights)
