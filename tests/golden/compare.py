"""Compares a recorded text with the golden file of its case, byte for byte."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.golden.record import OF_THE_STORE, masked

EXPECTED = Path(__file__).parent / "expected"
HOW_TO_UPDATE = "if the change is intended: python -m pytest tests/golden --update-golden"


@dataclass(frozen=True)
class Golden:
    """Golden files, read or rewritten. They show a SQLite file; `on_server`, what differs by the store is masked."""

    update: bool
    on_server: bool = False

    def check(self, case: str, text: str) -> None:
        """Fail with a unified diff when the text differs from `expected/CASE.txt`."""
        path = EXPECTED / f"{case}.txt"
        if self.update:
            assert not self.on_server, "golden files are written with SQLite"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
            return
        if not path.is_file():
            pytest.fail(f"there is no golden file {case}.txt; {HOW_TO_UPDATE}", pytrace=False)
        expected = path.read_bytes().decode()
        if self.on_server:
            expected, text = masked(expected, OF_THE_STORE), masked(text, OF_THE_STORE)
        if text != expected:
            lines = difflib.unified_diff(
                expected.splitlines(keepends=True), text.splitlines(keepends=True), f"expected/{case}.txt", "now"
            )
            pytest.fail(f"{''.join(_shown(line) for line in lines)}{HOW_TO_UPDATE}", pytrace=False)


def _shown(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ no newline at the end\n"
