from __future__ import annotations

from pathlib import Path

import platformdirs
import pytest

from mindex.config import SETTINGS, ForeignVariable, Settings, load_settings
from mindex.errors import ConfigError
from mindex.provider_table import EMBEDDING_PROVIDERS
from mindex.user_folders import cache_folder, default_database, user_config


def load(
    tmp_path: Path, user: str = "", project: str = "", flags: dict[str, object] | None = None, **env: str
) -> Settings:
    user_file, folder = tmp_path / "user.toml", tmp_path / "project" / "deep"
    user_file.write_text(user, encoding="utf-8")
    folder.mkdir(parents=True)
    (tmp_path / "project" / ".mindex.toml").write_text(project, encoding="utf-8")
    return load_settings(flags, environment=env, folder=folder, user_file=user_file)


def origin(settings: Settings, key: str) -> str:
    return next(one.origin for one in settings if one.setting.key == key)


def test_flags_beat_environment_beats_user_beats_default(tmp_path: Path) -> None:
    everywhere = load(tmp_path, "search.floor = 0.1", "", {"search.floor": 0.4}, MINDEX_SEARCH_FLOOR="0.3")
    assert (everywhere.number("search.floor"), origin(everywhere, "search.floor")) == (0.4, "flag")


@pytest.mark.parametrize(
    ("user", "project", "env", "expected"),
    [
        ("user", "project", {"MINDEX_INDEX_DOMAINS": "a=variable"}, "variable"),
        ("user", "project", {}, "project"),
        ("user", "", {}, "user"),
    ],
)
def test_each_source_wins_over_the_ones_below(
    tmp_path: Path, user: str, project: str, env: dict[str, str], expected: str
) -> None:
    toml = 'index.domains = {{ a = "{}" }}'
    settings = load(tmp_path, toml.format(user), toml.format(project) if project else "", None, **env)
    assert settings.pairs("index.domains") == {"a": expected}


def test_a_project_may_not_send_words_elsewhere(tmp_path: Path) -> None:
    settings = load(tmp_path, project='db = "/elsewhere.db"\nembedding.url = "http://evil.example"\nsearch.floor = 0.5')
    assert settings.text("db") == ""
    assert settings.text("embedding.url") == ""
    assert settings.number("search.floor") == 0.5
    assert len(settings.notes) == 3


def test_a_key_in_a_file_is_refused_with_a_warning(tmp_path: Path) -> None:
    settings = load(tmp_path, user='embedding.api_key = "abc"')
    assert settings.text("embedding.api_key") == ""
    assert "MINDEX_EMBEDDING_API_KEY" in settings.notes[0]
    assert "abc" not in settings.notes[0]


@pytest.mark.parametrize(
    ("toml", "complaint"),
    [
        ("serach.floor = 1", "unknown setting 'serach.floor'"),
        ("search.floor = 2", "from 0 to 1"),
        ('search.floor = "high"', "search.floor"),
        ("search.candidates = 0", "at least 1"),
        ("search.candidates = true", "whole number"),
        ("index.exclude = 3", "list of texts"),
        ("this is not toml", "cannot read"),
    ],
)
def test_a_wrong_setting_is_named_with_its_file(tmp_path: Path, toml: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        load(tmp_path, user=toml)


def test_lists_and_tables_can_come_from_the_environment(tmp_path: Path) -> None:
    settings = load(tmp_path, MINDEX_INDEX_EXCLUDE="a/, *.tmp.md", MINDEX_INDEX_DOMAINS="src/Auth=security")
    assert settings.texts("index.exclude") == ("a/", "*.tmp.md")
    assert settings.pairs("index.domains") == {"src/Auth": "security"}


def test_a_domain_map_is_a_table(tmp_path: Path) -> None:
    settings = load(tmp_path, project='[index.domains]\n"src/Auth" = "security"\n')
    assert settings.pairs("index.domains") == {"src/Auth": "security"}


def test_every_setting_says_what_it_means() -> None:
    assert all(setting.meaning for setting in SETTINGS)
    variables = [setting.variable for setting in SETTINGS if setting.variable]
    assert len(set(variables)) == len(variables)


@pytest.mark.parametrize(
    ("url", "kept", "noted"),
    [
        ("https://me:hunter22@example.org/v1?key=hunter22", "https://example.org/v1", True),
        (
            "https://example.org/openai?api-version=2024&api-key=hunter22",
            "https://example.org/openai?api-version=2024",
            True,
        ),
        ("https://example.org/openai?api-version=2024", "https://example.org/openai?api-version=2024", False),
        ("http://127.0.0.1:8080/v1/@cf/x", "http://127.0.0.1:8080/v1/@cf/x", False),
    ],
)
def test_an_address_in_a_file_may_hold_no_login_and_no_key(tmp_path: Path, url: str, kept: str, noted: bool) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f'embedding.url = "{url}"\n')
    settings = load_settings(environment={}, folder=tmp_path, user_file=file)
    assert settings.text("embedding.url") == kept
    assert [("MINDEX_EMBEDDING_URL" in note, "hunter22" in note) for note in settings.notes] == [(True, False)] * noted
    given = load_settings(environment={"MINDEX_EMBEDDING_URL": url}, folder=tmp_path, user_file=file)
    assert given.text("embedding.url") == url


def test_the_settings_know_every_embedding_provider() -> None:
    for provider in (*EMBEDDING_PROVIDERS, "none"):
        assert load_settings({"embedding.provider": provider}).text("embedding.provider") == provider
    with pytest.raises(ConfigError):
        load_settings({"embedding.provider": "magic"})


@pytest.mark.parametrize("named", ["", "relative/folder", "{home}/elsewhere"])
@pytest.mark.parametrize("home", ["{home}", "not/absolute"])
def test_the_folders_are_where_platformdirs_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, home: str
) -> None:
    monkeypatch.delenv("MINDEX_CACHE_DIR", raising=False)
    monkeypatch.setenv("HOME", home.format(home=tmp_path))
    for kind in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", named.format(home=tmp_path))
    assert user_config() == platformdirs.user_config_path("mindex", appauthor=False) / "config.toml"
    assert default_database() == platformdirs.user_data_path("mindex", appauthor=False) / "memory.db"
    assert cache_folder() == platformdirs.user_cache_path("mindex", appauthor=False)


# ── variables of other programs ───────────────────────────────────────────────────────────────────────────────

THEIRS = (
    ForeignVariable("THEIR_PROVIDER", "embedding.provider", value=str.lower),
    ForeignVariable("THEIR_OLLAMA", "embedding.url", "ollama"),
    ForeignVariable("THEIR_FLOOR", "search.floor"),
)


def inherited(tmp_path: Path, flags: dict[str, object] | None = None, **env: str) -> Settings:
    (tmp_path / "user.toml").write_text("search.floor = 0.1")
    return load_settings(flags, foreign=THEIRS, environment=env, folder=tmp_path, user_file=tmp_path / "user.toml")


@pytest.mark.parametrize(
    ("flags", "env", "value", "comes_from"),
    [
        ({}, {}, 0.1, "user.toml"),
        ({}, {"THEIR_FLOOR": "0.2"}, 0.2, "THEIR_FLOOR"),
        ({}, {"THEIR_FLOOR": " "}, 0.1, "user.toml"),
        ({}, {"THEIR_FLOOR": "0.2", "MINDEX_SEARCH_FLOOR": "0.3"}, 0.3, "MINDEX_SEARCH_FLOOR"),
        ({"search.floor": 0.4}, {"THEIR_FLOOR": "0.2"}, 0.4, "flag"),
    ],
)
def test_a_variable_of_another_program_counts_between_files_and_our_own(
    tmp_path: Path, flags: dict[str, object], env: dict[str, str], value: float, comes_from: str
) -> None:
    settings = inherited(tmp_path, flags, **env)
    assert settings.number("search.floor") == value
    assert settings.origin("search.floor").endswith(comes_from)


@pytest.mark.parametrize(
    ("flags", "env", "url"),
    [
        ({}, {"THEIR_PROVIDER": "Ollama"}, "http://there:1"),
        ({}, {}, ""),
        ({}, {"THEIR_PROVIDER": "lmstudio"}, ""),
        ({}, {"MINDEX_EMBEDDING_PROVIDER": "ollama"}, "http://there:1"),
        ({}, {"THEIR_PROVIDER": "ollama", "MINDEX_EMBEDDING_PROVIDER": "none"}, ""),
        ({"embedding.provider": "ollama"}, {"THEIR_PROVIDER": "none"}, "http://there:1"),
    ],
)
def test_an_address_of_another_program_counts_only_for_its_provider(
    tmp_path: Path, flags: dict[str, object], env: dict[str, str], url: str
) -> None:
    assert inherited(tmp_path, flags, THEIR_OLLAMA="http://there:1", **env).text("embedding.url") == url


def test_a_wrong_value_of_another_program_is_an_error_that_names_its_variable(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"invalid value for embedding\.provider in THEIR_PROVIDER: one of"):
        inherited(tmp_path, THEIR_PROVIDER="huggingface")


def test_no_variable_of_another_program_is_read_unless_mindex_replaces_it(tmp_path: Path) -> None:
    settings = load(tmp_path, THEIR_FLOOR="0.2", MEMORY_DB_PATH="/nowhere/memory.db", OLLAMA_HOST="http://there:1")
    assert (settings.text("db"), settings.text("embedding.url"), settings.number("search.floor")) == ("", "", 0.5)
