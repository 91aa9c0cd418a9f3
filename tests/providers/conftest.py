"""What the tests of servers share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.providers.servers import ModelServer

_VARIABLES = ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "GROQ_API_KEY", "OLLAMA_API_KEY", "CLOUDFLARE_API_TOKEN",
              "CLOUDFLARE_ACCOUNT_ID", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")  # fmt: skip


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of one's own, and an environment that says nothing of keys and proxies."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("MINDEX_CACHE_DIR", str(folder))
    for variable in _VARIABLES:
        monkeypatch.delenv(variable, raising=False)
        monkeypatch.delenv(variable.lower(), raising=False)
    return folder


@pytest.fixture
def server(alone: Path) -> Iterator[ModelServer]:
    with ModelServer() as served:
        yield served
