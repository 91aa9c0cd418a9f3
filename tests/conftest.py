"""Shared ground: every test has its own settings, database and cache; none reads the user's."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from mindex.memory import Memory

HANDBOOK = Path(__file__).parent.parent / "examples" / "handbook"

# A law that holds is not broken by a machine that is busy while it is checked.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options must be known before the tests are collected, so the one of `tests/golden` is here."""
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden/expected")


@pytest.fixture(autouse=True)
def private_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("MINDEX_") and name != "MINDEX_CACHE_DIR"]:
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    for variable in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "LOCALAPPDATA", "APPDATA", "USERPROFILE"):
        monkeypatch.setenv(variable, str(home))


@pytest.fixture(scope="session", autouse=True)
def shared_model_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The optimised model is built once per run, not once per test."""
    if "MINDEX_CACHE_DIR" not in os.environ:
        os.environ["MINDEX_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    yield


@pytest.fixture(autouse=True)
def nobody_is_known(shared_model_cache: None) -> None:
    """What one test's server was like, or how it failed, says nothing of the next one that is given its port."""
    for kind in ("breakers", "cards", "canaries", "addresses"):
        shutil.rmtree(Path(os.environ["MINDEX_CACHE_DIR"]) / kind, ignore_errors=True)


@pytest.fixture
def handbook(tmp_path: Path) -> Path:
    """A copy of the example handbook that a test may change."""
    return Path(shutil.copytree(HANDBOOK, tmp_path / "handbook"))


@pytest.fixture
def keyword_memory(tmp_path: Path) -> Iterator[Memory]:
    """A memory without a model: fast, and the same everywhere."""
    with Memory(tmp_path / "memory.db", options={"embedding.provider": "none"}) as memory:
        yield memory


@pytest.fixture(scope="session")
def handbook_memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """The handbook, indexed with the real model. Shared: tests must not write to it."""
    folder = tmp_path_factory.mktemp("shared")
    root = shutil.copytree(HANDBOOK, folder / "handbook")
    with Memory(folder / "memory.db") as memory:
        memory.index(root)
        yield memory


def write(root: Path, files: dict[str, str]) -> Path:
    """Make files below a folder."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root
