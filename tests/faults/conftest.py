"""Fixtures for tests that need a user with fewer permissions."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def public_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that every user can reach and write, unlike pytest's own; it also contains the home."""
    folder = Path(tempfile.mkdtemp(prefix="mindex-test-"))
    folder.chmod(0o777)
    for variable in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(variable, str(folder / "home"))
    yield folder
    for below in folder.rglob("*"):
        if below.is_dir():
            below.chmod(0o755)
    shutil.rmtree(folder)
