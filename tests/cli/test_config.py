"""`mindex config`: every setting, and where its value comes from, also while mindex replaces another program."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindex.search.fuse import FUSIONS
from tests.cli.conftest import Mindex


def origins(mindex: Mindex, *arguments: str) -> dict[str, tuple[object, str]]:
    shown = mindex("config", *arguments, "--json").json["settings"]
    return {one["key"]: (one["value"], one["origin"]) for one in shown}


@pytest.fixture
def theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MINDEX_DB")
    monkeypatch.delenv("MINDEX_EMBEDDING_PROVIDER")
    for name, value in {
        "MEMORY_DB_PATH": "/data/memory.db",
        "MEMORY_EXPORT_PATH": "/data/export",
        "EMBEDDING_PROVIDER": "ollama",
        "OLLAMA_HOST": "0.0.0.0:11434",
        "OLLAMA_EMBEDDING_MODEL": "mxbai-embed-large",
        "LMSTUDIO_HOST": "http://127.0.0.1:1234",
        "EMBEDDING_VECTOR_WEIGHT": "0.8",
        "AI_PROVIDER": "lmstudio",
        "LMSTUDIO_BASE_URL": "http://127.0.0.1:4321/v1",
        "FACT_EXTRACTION_ENABLED": "false",
        "MUDPUPPY_HOME": "/home/ann/.mudpuppy",
        "MEMORYEXCHANGE_PROVIDER": "azure",
        "MEMORYEXCHANGE_MODELPATH": "/models/minilm/model.onnx",
        "MEMORYEXCHANGE_AZURE_OPENAI_ENDPOINT": "https://x.openai.azure.com",
        "MEMORYEXCHANGE_AZURE_OPENAI_APIKEY": "secret",
        "MEMORYEXCHANGE_AZURE_OPENAI_DEPLOYMENT": "ada",
    }.items():
        monkeypatch.setenv(name, value)


@pytest.mark.extension("mindex_compat")
@pytest.mark.usefixtures("theirs")
def test_the_variables_of_memorizer_are_shown_with_their_names(mindex: Mindex) -> None:
    found = origins(mindex, "--tools", "memorizer")
    assert {key: value for key, value in found.items() if value[1] != "default"} == {
        "db": ("/data/memory.db", "MEMORY_DB_PATH"),
        "export.path": ("/data/export", "MEMORY_EXPORT_PATH"),
        "embedding.provider": ("ollama", "EMBEDDING_PROVIDER"),
        "embedding.url": ("127.0.0.1:11434", "OLLAMA_HOST"),
        "embedding.model": ("mxbai-embed-large", "OLLAMA_EMBEDDING_MODEL"),
        "search.weights.minmax": (0.8, "EMBEDDING_VECTOR_WEIGHT"),
        "generation.provider": ("lmstudio", "AI_PROVIDER"),
        "generation.url": ("http://127.0.0.1:4321/v1", "LMSTUDIO_BASE_URL"),
        "generation.extract_facts": (False, "FACT_EXTRACTION_ENABLED"),
        "boost.memory": (0.0, "--tools memorizer"),
    }


@pytest.mark.extension("mindex_compat")
@pytest.mark.usefixtures("theirs")
@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        ("memory-mcp", {"db": ("/data/memory.db", "MEMORY_DB_PATH")}),
        (
            "mudpuppy",
            {
                "db": ("/home/ann/.mudpuppy/data/memory.db", "MUDPUPPY_HOME"),
                "workspace.path": ("/home/ann/.mudpuppy/workspace", "MUDPUPPY_HOME"),
            },
        ),
        (
            "memory-exchange",
            {
                "embedding.provider": ("azure", "MEMORYEXCHANGE_PROVIDER"),
                "embedding.url": ("https://x.openai.azure.com", "MEMORYEXCHANGE_AZURE_OPENAI_ENDPOINT"),
                "embedding.api_key": ("(set)", "MEMORYEXCHANGE_AZURE_OPENAI_APIKEY"),
                "embedding.model": ("ada", "MEMORYEXCHANGE_AZURE_OPENAI_DEPLOYMENT"),
            },
        ),
        ("native", {}),
    ],
)
def test_each_dialect_reads_the_variables_of_its_program(
    mindex: Mindex, tools: str, expected: dict[str, tuple[object, str]]
) -> None:
    found = origins(mindex, "--tools", tools)
    assert {key: value for key, value in found.items() if not value[1].startswith(("default", "--tools"))} == expected


@pytest.mark.extension("mindex_compat")
@pytest.mark.usefixtures("theirs")
@pytest.mark.parametrize(
    ("listens", "address"),
    [
        ("0.0.0.0", "127.0.0.1:11434"),
        ("gpu", "gpu:11434"),
        ("gpu:99", "gpu:99"),
        ("https://gpu/llm", "https://gpu/llm"),
    ],
)
def test_ollama_is_reached_where_it_listens(
    mindex: Mindex, monkeypatch: pytest.MonkeyPatch, listens: str, address: str
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", listens)
    assert origins(mindex, "--tools", "memorizer")["embedding.url"] == (address, "OLLAMA_HOST")


@pytest.mark.extension("mindex_compat")
@pytest.mark.usefixtures("theirs")
def test_our_own_variables_and_flags_win_over_those_of_another_program(
    mindex: Mindex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "none")
    found = origins(mindex, "--tools", "memorizer", "--db", "here.db")
    assert found["db"] == ("here.db", "flag")
    assert found["embedding.provider"] == ("none", "MINDEX_EMBEDDING_PROVIDER")
    assert found["embedding.url"] == ("", "default")  # that of Ollama, which does not serve


@pytest.mark.usefixtures("theirs")
def test_without_tools_no_variable_of_another_program_is_read(mindex: Mindex) -> None:
    assert {origin for _, origin in origins(mindex).values()} == {"default"}


def test_unknown_tools_are_an_error_that_names_the_known_ones(mindex: Mindex) -> None:
    ran = mindex("config", "--tools", "nope")
    assert ran.code == 2
    assert ran.err.startswith("error: unknown tools 'nope'; use one of native")


# ── config set and unset ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def user_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "mindex" / "config.toml"


def test_a_setting_is_written_and_removed(mindex: Mindex, user_file: Path) -> None:
    assert mindex("config", "set", "search.floor", "0.4").out == f"search.floor = 0.4 in {user_file}\n"
    assert origins(mindex)["search.floor"] == (0.4, str(user_file))
    assert mindex("config", "unset", "search.floor").out == f"search.floor removed from {user_file}\n"
    assert origins(mindex)["search.floor"][1] == "default"
    assert mindex("config", "unset", "search.floor").out == f"search.floor is not set in {user_file}\n"


def test_comments_order_mode_and_a_link_of_the_file_are_kept(mindex: Mindex, user_file: Path) -> None:
    real = user_file.parent.parent / "dotfiles.toml"
    user_file.parent.mkdir(parents=True)
    real.write_text("# mine\n[search]\nfloor = 0.2  # low\nweak = false\n", encoding="utf-8")
    real.chmod(0o640)
    user_file.symlink_to(real)
    assert mindex("config", "set", "search.floor", "0.4").code == 0
    assert real.read_text(encoding="utf-8") == "# mine\n[search]\nfloor = 0.4  # low\nweak = false\n"
    assert user_file.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("search.flor", "0.4", "unknown setting 'search.flor'; did you mean 'search.floor'?"),
        ("search.floor", "7", "invalid value for search.floor: a number from 0 to 1 is expected"),
        ("search.fusion", "rff", "one of judged, blend, rrf, minmax, weighted, signals is expected"),
        ("rerank.provider", "locl", "one of local, "),
        ("generation.provider", "locl", "one of openai, "),
        ("embedding.api_key", "x", "set the variable MINDEX_EMBEDDING_API_KEY"),
        ("embedding.url", "https://me:word@host/v1", "contains a secret"),
        ("generation.model", "sk-proj-abcdEFGH1234567890abcdEFGH1234567890", "contains a secret"),
        ("db", "postgresql://me:word@host/db", "password"),
    ],
)
def test_a_wrong_or_secret_value_is_not_written(
    mindex: Mindex, user_file: Path, key: str, value: str, reason: str
) -> None:
    refused = mindex("config", "set", key, value)
    assert refused.code != 0
    assert reason in refused.err
    assert not user_file.exists()


def test_every_fusion_method_can_be_written(mindex: Mindex) -> None:
    for name in FUSIONS:
        assert mindex("config", "set", "search.fusion", name).code == 0


def test_an_unknown_setting_names_its_file_and_can_be_removed(mindex: Mindex, user_file: Path) -> None:
    user_file.parent.mkdir(parents=True)
    user_file.write_text("search.flor = 0.3\n", encoding="utf-8")
    error = mindex("config").err
    assert f"unknown setting 'search.flor' in {user_file}; did you mean 'search.floor'?" in error
    assert mindex("config", "unset", "search.flor").code == 0
    assert mindex("config").code == 0


def test_a_variable_that_overrides_the_file_is_named(
    mindex: Mindex, user_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINDEX_SEARCH_FLOOR", "0.1")
    assert (
        "MINDEX_SEARCH_FLOOR is set in the environment and overrides the file"
        in mindex("config", "set", "search.floor", "0.4").err
    )


def test_a_file_that_is_not_toml_stays_as_it_is(mindex: Mindex, user_file: Path) -> None:
    user_file.parent.mkdir(parents=True)
    user_file.write_text("floor = = 3\n", encoding="utf-8")
    assert f"cannot change {user_file}" in mindex("config", "set", "search.floor", "0.4").err
    assert user_file.read_text(encoding="utf-8") == "floor = = 3\n"
