"""What the tests of servers share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import pytest

from mindex.memory import Memory
from tests.conftest import write
from tests.providers.servers import ModelServer

_VARIABLES = ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "GROQ_API_KEY", "OLLAMA_API_KEY", "CLOUDFLARE_API_TOKEN",
              "CLOUDFLARE_ACCOUNT_ID", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")  # fmt: skip


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder for this test alone, and an environment without keys and proxies."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("MINDEX_CACHE_DIR", str(folder))
    for variable in _VARIABLES:
        monkeypatch.delenv(variable, raising=False)
        monkeypatch.delenv(variable.lower(), raising=False)
    return folder


# One memory, opened again and again, as further processes would.
Again: TypeAlias = Callable[[Mapping[str, object]], Memory]


@pytest.fixture
def again(tmp_path: Path) -> Iterator[Again]:
    memories: list[Memory] = []

    def open_memory(options: Mapping[str, object]) -> Memory:
        memories.append(Memory(tmp_path / "memory.db", options=options))
        return memories[-1]

    yield open_memory
    for memory in memories:
        memory.close()


@pytest.fixture
def docs(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The FILES of the test module."""
    return write(tmp_path / "docs", request.module.FILES)


@pytest.fixture
def other(alone: Path) -> Iterator[ModelServer]:
    """A second server, with another model."""
    with ModelServer(dimensions=64) as served:
        yield served


@pytest.fixture
def server(alone: Path) -> Iterator[ModelServer]:
    with ModelServer() as served:
        yield served
