"""`mindex config`: every setting, and where its value comes from, also while mindex stands in for another program."""

from __future__ import annotations

import pytest

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
def test_each_dialect_reads_the_variables_of_its_own_program(
    mindex: Mindex, tools: str, expected: dict[str, tuple[object, str]]
) -> None:
    found = origins(mindex, "--tools", tools)
    assert {key: value for key, value in found.items() if not value[1].startswith(("default", "--tools"))} == expected


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
    assert ran.err.startswith("error: unknown tools 'nope'; use one of native,")
