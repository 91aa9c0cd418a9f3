"""A bare full-text index in RAM: the baseline that `mindex eval` compares answers with."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from types import TracebackType

_CREATE = "CREATE VIRTUAL TABLE pieces USING fts5(text, tokenize = 'porter')"
_INSERT = "INSERT INTO pieces (text) VALUES (?)"
_BEST_FIRST = "SELECT text FROM pieces WHERE pieces MATCH ? ORDER BY bm25(pieces), rowid LIMIT ?"


class PlainFts5:
    """Pieces of text that are found by any of a query's words, best BM25 first."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self._connection = sqlite3.connect(":memory:")
        self._connection.execute(_CREATE)
        self._connection.executemany(_INSERT, ((piece,) for piece in pieces))

    def __enter__(self) -> PlainFts5:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._connection.close()

    def search(self, words: Sequence[str], limit: int) -> list[str]:
        """The best pieces that contain any of these words."""
        if not words:
            return []
        query = " OR ".join(f'"{word}"' for word in words)
        return [text for (text,) in self._connection.execute(_BEST_FIRST, (query, limit))]
