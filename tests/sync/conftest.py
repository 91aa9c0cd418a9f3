"""Fixtures of the tests of sync."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sync.machines import Machine, machines


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[list[Machine]]:
    """Two machines that share one folder, with SQLite files."""
    with machines(tmp_path, "laptop", "desktop") as made:
        made[1].folder = made[0].folder
        yield made


@pytest.fixture
def laptop(pair: list[Machine]) -> Machine:
    return pair[0]


@pytest.fixture
def desktop(pair: list[Machine]) -> Machine:
    return pair[1]
