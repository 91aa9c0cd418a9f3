"""Databases that are built once for each test process; every test begins with them as they were built."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.databases import Databases
from tests.golden.chat import chat_server
from tests.golden.compare import Golden
from tests.golden.workspace import Workspace

# Paths, time zones and messages of the system are others there.
collect_ignore_glob = ["test_*.py"] if sys.platform == "win32" else []


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    on_server = request.config.getoption("store") == "postgres"
    return Golden(update=request.config.getoption("--update-golden"), on_server=on_server)


@pytest.fixture(scope="session")
def keyword_workspace(tmp_path_factory: pytest.TempPathFactory, databases: Databases) -> Workspace:
    """Without a model: the same on every machine."""
    settings = {"MINDEX_EMBEDDING_PROVIDER": "none"}
    workspace = Workspace(tmp_path_factory.mktemp("golden"), settings, ("handbook", "notes"), databases)
    workspace.build()
    return workspace


@pytest.fixture(scope="session")
def model_workspace(
    tmp_path_factory: pytest.TempPathFactory, shared_model_cache: None, databases: Databases
) -> Workspace:
    """With the built-in model. A smaller database: embedding takes time."""
    settings = {"MINDEX_CACHE_DIR": os.environ["MINDEX_CACHE_DIR"]}
    workspace = Workspace(tmp_path_factory.mktemp("golden"), settings, ("notes",), databases)
    workspace.build()
    return workspace


@pytest.fixture
def workspace(keyword_workspace: Workspace, private_home: None) -> Iterator[Workspace]:
    with keyword_workspace.entered() as entered:
        yield entered


@pytest.fixture
def workspace_with_model(model_workspace: Workspace, private_home: None) -> Iterator[Workspace]:
    with model_workspace.entered() as entered:
        yield entered


@pytest.fixture
def workspace_with_chat(keyword_workspace: Workspace, private_home: None) -> Iterator[Workspace]:
    with chat_server() as chat:
        settings = {**keyword_workspace.environment, **chat.environment}
        with replace(keyword_workspace, environment=settings, chat=chat).entered() as entered:
            yield entered
