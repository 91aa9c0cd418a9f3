from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from mindex.config import DEFAULT_EXCLUDE, SETTINGS
from mindex.memory import Memory
from mindex.providers.packaged_models import BUILT_IN
from mindex.providers.rerank.base import BUILT_IN_WEIGHT, CHOSEN_WEIGHT
from mindex.user_folders import user_config
from tests.cli.conftest import Mindex
from tests.running import is_one_error


def test_the_memory_of_these_tests_is_where_the_option_says(mindex: Mindex, request: pytest.FixtureRequest) -> None:
    on_postgres = request.config.getoption("store") == "postgres"
    assert mindex("status", "--json").json["db"].startswith("postgresql://") is on_postgres


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
    assert set(status["embedding"]) == {"provider", "model", "dimensions", "pending", "sha256"}
    assert (status["embedding"]["dimensions"], status["tier"]) == (384, "hybrid")
    assert status["embedding"]["sha256"] == BUILT_IN.sha256
    (check,) = [one for one in mindex("doctor", "--json").json["checks"] if one["name"] == "embedding model"]
    assert check["message"] == f"mindex-minilm answers with 384 dimensions, weights sha256:{BUILT_IN.sha256}"


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


@pytest.mark.sqlite_only  # damage done by statements of SQLite; tests of PostgreSQL have those of that engine
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


@pytest.mark.sqlite_only  # as above
@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE vectors SET data = substr(data, 1, 100) WHERE key = (SELECT min(key) FROM vectors)",
        "UPDATE vectors SET data = x'' WHERE key = (SELECT min(key) FROM vectors)",
    ],
)
def test_doctor_finds_vectors_that_optimize_drops_and_backfill_makes_again(
    mindex: Mindex, own_copy: str, harm: str
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
    (tmp_path / ".mindex.toml").write_text('index.exclude = ["drafts/"]\ndb = "/elsewhere.db"\n')
    monkeypatch.setenv("MINDEX_BOOST_DOMAIN", "1.5")
    monkeypatch.setenv("MINDEX_EMBEDDING_API_KEY", "not-to-be-seen")
    ran = mindex("config", "--agent", "bob", "--json")
    settings = {row["key"]: row for row in ran.json["settings"]}
    assert set(settings) == {setting.key for setting in SETTINGS}
    assert all(set(row) == {"key", "value", "origin", "variable", "meaning"} for row in settings.values())
    assert settings["index.exclude"]["value"] == [*DEFAULT_EXCLUDE, "drafts/"]
    assert settings["index.exclude"]["origin"].endswith(".mindex.toml")
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


def test_a_wrong_setting_of_the_user_stops_every_command_with_one_line(mindex: Mindex) -> None:
    user_config().parent.mkdir(parents=True, exist_ok=True)
    user_config().write_text("serach.floor = 0.5\n")
    for command in (["config"], ["paths"], ["status"], ["search", "x"], ["doctor"]):
        is_one_error(mindex(*command), "serach.floor", "config.toml")
    user_config().write_text("this is not toml")
    is_one_error(mindex("status"), "cannot read")


@pytest.mark.parametrize("toml", ["serach.floor = 0.5\n", "this is not toml", "search.fusion = 3"])
def test_a_wrong_project_file_is_named_and_stops_no_command(mindex: Mindex, tmp_path: Path, toml: str) -> None:
    (tmp_path / ".mindex.toml").write_text(toml)
    mindex("add", "Backups run at noon")
    for command in (["config"], ["status"], ["search", "backups"], ["doctor"], ["add", "Deploys run at night"]):
        ran = mindex(*command)
        assert ran.code == 0
        assert ran.err.count(".mindex.toml is ignored") == 1


def test_a_wrong_value_in_the_environment_is_named(mindex: Mindex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDEX_SEARCH_FLOOR", "high")
    is_one_error(mindex("status"), "MINDEX_SEARCH_FLOOR")


def test_paths_prints_every_folder(mindex: Mindex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MINDEX_DB")
    paths = mindex("paths", "--json").json
    assert set(paths) == {"db", "config", "data", "cache"}
    assert paths["db"].startswith(str(tmp_path))
    assert mindex("paths", "--db", "/x/y.db", "--json").json["db"] == "/x/y.db"
    assert str(paths["config"]) in mindex("paths").out
    assert not Path(paths["db"]).exists()


@pytest.mark.extension("mindex_postgres")
def test_an_engine_that_is_not_there_is_refused_and_no_folder_is_made(mindex: Mindex, tmp_path: Path) -> None:
    is_one_error(mindex("--db", "postgresql://host/memory", "status"), "postgresql://")
    assert list(tmp_path.glob("postgresql*")) == []


def test_stats_plots_with_blocks_or_ascii_and_has_the_same_numbers_as_json(
    mindex: Mindex, indexed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mindex("add", "Anna prefers tea.")
    plotted = mindex("stats", "--plot").out
    assert "█" in plotted
    assert "never recalled: 1 of 1 memory" in plotted
    growth = mindex("stats", "--plot", "--json").json["growth"]
    assert growth["periods"][-1]["entries_total"] == 1
    assert f" {growth['periods'][-1]['chunks_total']:,} " in plotted.split("never recalled")[0].replace("(", " ")
    assert "growth" not in mindex("stats", "--json").json
    monkeypatch.setattr("locale.getencoding", lambda: "iso-8859-1")
    plain = mindex("stats", "--plot").out
    assert plain.isascii()
    assert "####" in plain
