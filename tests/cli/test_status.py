from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from mindex.config import SETTINGS
from mindex.memory import Memory
from mindex.providers.rerank.base import BUILT_IN_WEIGHT, CHOSEN_WEIGHT
from tests.cli.conftest import Mindex
from tests.running import is_one_error


def test_status_as_json(mindex: Mindex, indexed: Path) -> None:
    status = mindex("status", "--json").json
    assert set(status) == {"db", "schema", "records", "collections", "embedding", "tier", "size_bytes"}
    assert status["db"] == os.environ["MINDEX_DB"]
    assert status["records"]["chunk"] > 50
    (collection,) = status["collections"]
    assert set(collection) == {"name", "root", "documents", "chunks", "indexed_at"}
    assert status["embedding"] == {"provider": "none", "pending": 0}
    assert status["tier"] == "keyword"
    assert status["size_bytes"] > 10_000


def test_status_names_the_model(mindex: Mindex, with_model: Memory) -> None:
    status = mindex("status", "--json").json
    assert set(status["embedding"]) == {"provider", "model", "dimensions", "pending"}
    assert (status["embedding"]["dimensions"], status["tier"]) == (384, "hybrid")


def test_status_and_doctor_name_a_folder_that_is_gone(mindex: Mindex, indexed: Path) -> None:
    shutil.rmtree(indexed)
    assert mindex("status", "--json").json["collections"][0]["missing"] is True
    assert "FOLDER MISSING" in mindex("status").out
    ran = mindex("doctor", "--json")
    assert ran.code == 1
    (sick,) = [check for check in ran.json["checks"] if not check["ok"]]
    assert sick["name"] == "collection handbook"
    assert sick["fix"]


def test_every_check_of_a_sound_memory_is_ok(mindex: Mindex, indexed: Path) -> None:
    ran = mindex("doctor", "--json")
    assert ran.code == 0
    assert set(ran.json) == {"ok", "checks"}
    assert ran.json["ok"] is True
    assert all(set(check) == {"name", "ok", "message"} for check in ran.json["checks"])
    text = mindex("doctor")
    assert text.code == 0
    assert all(line.startswith("ok ") for line in text.out.splitlines())


def test_doctor_checks_the_vectors_with_a_model(mindex: Mindex, with_model: Memory) -> None:
    names = {check["name"]: check["message"] for check in mindex("doctor", "--json").json["checks"]}
    assert "384" in names["embedding model"]
    assert names["pending vectors"] == "every record has its vector"


def test_config_says_what_holds_while_nothing_is_set(mindex: Mindex, monkeypatch: pytest.MonkeyPatch) -> None:
    def shown() -> dict[str, object]:
        return {one["key"]: one["value"] for one in mindex("config", "--json").json["settings"]}

    unset = shown()
    assert unset["search.weights.rerank"] == f"the model's own ({BUILT_IN_WEIGHT} or {CHOSEN_WEIGHT})"
    assert unset["daily_log.enabled"] == "on with a workspace"
    monkeypatch.setenv("MINDEX_SEARCH_WEIGHTS_RERANK", "0.4")
    assert shown()["search.weights.rerank"] == 0.4


def test_stats_of_every_agent_count_all_memories(mindex: Mindex) -> None:
    mindex("add", "Anna drinks tea", "--type", "preference")
    mindex("add", "Anna drinks coffee", "--type", "fact", "--agent", "scout")
    assert mindex("stats", "--json").json["total"] == 1
    assert mindex("--agent", "*", "stats").out.startswith("2 memories (1 fact, 1 preference)\n")


@pytest.mark.parametrize(
    ("harm", "check"),
    [
        ("DELETE FROM records_fts WHERE rowid = (SELECT min(key) FROM records)", "keyword index"),
        ("INSERT INTO records_fts (rowid, text) VALUES (999999, 'ghost')", "keyword index"),
        ("UPDATE records SET text = text || ' changed behind its back'", "words of a sample"),
    ],
)
def test_doctor_finds_what_optimize_repairs(mindex: Mindex, indexed: Path, harm: str, check: str) -> None:
    with Memory(os.environ["MINDEX_DB"]) as memory, memory.store._engine.database.write() as connection:
        connection.execute(harm)
    ran = mindex("doctor", "--json")
    assert ran.code == 1
    sick = {one["name"]: one["fix"] for one in ran.json["checks"] if not one["ok"]}
    assert "mindex optimize" in sick[check]
    assert mindex("optimize").code == 0
    assert mindex("doctor").code == 0


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE vectors SET data = substr(data, 1, 100) WHERE key = (SELECT min(key) FROM vectors)",
        "UPDATE vectors SET data = x'' WHERE key = (SELECT min(key) FROM vectors)",
    ],
)
def test_doctor_finds_vectors_that_optimize_drops_and_backfill_makes_again(
    mindex: Mindex, own_copy: Path, harm: str
) -> None:
    with Memory(own_copy) as memory, memory.store._engine.database.write() as connection:
        connection.execute(harm)
    ran = mindex("doctor", "--json")
    (sick,) = [check for check in ran.json["checks"] if not check["ok"]]
    assert (sick["name"], sick["fix"]) == ("vectors", "run `mindex optimize`, then `mindex backfill`")
    assert mindex("optimize").code == 0
    assert mindex("backfill", "--json").json == {"embedded": 1, "remaining": 0}
    assert mindex("doctor").code == 0


def test_config_shows_every_setting_and_where_it_comes_from(
    mindex: Mindex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".mindex.toml").write_text('search.floor = 0.5\ndb = "/elsewhere.db"\n')
    monkeypatch.setenv("MINDEX_BOOST_DOMAIN", "1.5")
    monkeypatch.setenv("MINDEX_EMBEDDING_API_KEY", "not-to-be-seen")
    ran = mindex("config", "--agent", "bob", "--json")
    settings = {row["key"]: row for row in ran.json["settings"]}
    assert set(settings) == {setting.key for setting in SETTINGS}
    assert all(set(row) == {"key", "value", "origin", "variable", "meaning"} for row in settings.values())
    assert settings["search.floor"]["value"] == 0.5
    assert settings["search.floor"]["origin"].endswith(".mindex.toml")
    assert (settings["boost.domain"]["value"], settings["boost.domain"]["origin"]) == (1.5, "MINDEX_BOOST_DOMAIN")
    assert (settings["agent"]["value"], settings["agent"]["origin"]) == ("bob", "flag")
    assert "not-to-be-seen" not in ran.out + ran.err
    assert "db in" in ran.err
    assert "ignored" in ran.err
    assert "search.floor" in mindex("config").out


def test_one_long_value_does_not_move_the_other_settings_apart(mindex: Mindex, tmp_path: Path) -> None:
    lines = mindex("config", "--db", tmp_path / ("long" * 30) / "memory.db").out.splitlines()
    assert max(len(line) for line in lines if line.startswith("db ")) > 120
    assert not any(" " * 60 in line for line in lines)


def test_config_shows_an_address_without_its_login_and_its_key(mindex: Mindex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDEX_EMBEDDING_URL", "https://me:hunter22@example.org:8443/v1?key=hunter22")
    monkeypatch.setenv("MINDEX_RERANK_URL", "me:hunter22@example.org/v1/@cf/rerank")
    monkeypatch.setenv("MINDEX_GENERATION_URL", "http://me:hunter/22@example.org")
    for ran in (mindex("config", "--json"), mindex("config")):
        assert "hunter" not in ran.out + ran.err
    shown = {row["key"]: row["value"] for row in mindex("config", "--json").json["settings"]}
    assert shown["embedding.url"] == "https://example.org:8443/v1"
    assert shown["rerank.url"] == "example.org/v1/@cf/rerank"
    assert shown["generation.url"] == "(malformed)"


def test_a_wrong_setting_stops_every_command_with_one_line(mindex: Mindex, tmp_path: Path) -> None:
    (tmp_path / ".mindex.toml").write_text("serach.floor = 0.5\n")
    for command in (["config"], ["paths"], ["status"], ["search", "x"], ["doctor"]):
        is_one_error(mindex(*command), "serach.floor", ".mindex.toml")
    (tmp_path / ".mindex.toml").write_text("this is not toml")
    is_one_error(mindex("status"), "cannot read")


def test_a_wrong_value_in_the_environment_is_named(mindex: Mindex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDEX_SEARCH_FLOOR", "high")
    is_one_error(mindex("status"), "MINDEX_SEARCH_FLOOR")


def test_paths_prints_every_folder(mindex: Mindex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MINDEX_DB")
    paths = mindex("paths", "--json").json
    assert set(paths) == {"db", "config", "cache"}
    assert paths["db"].startswith(str(tmp_path))
    assert mindex("paths", "--db", "/x/y.db", "--json").json["db"] == "/x/y.db"
    assert str(paths["config"]) in mindex("paths").out
    assert not Path(paths["db"]).exists()


def test_an_engine_that_is_not_there_is_refused_and_no_folder_is_made(mindex: Mindex, tmp_path: Path) -> None:
    is_one_error(mindex("--db", "postgresql://host/memory", "status"), "postgresql://")
    assert list(tmp_path.glob("postgresql*")) == []
