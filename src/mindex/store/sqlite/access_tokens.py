"""Tokens of a server in a SQLite file."""

import json
from typing import Any

from mindex.datatypes.access_tokens import Token
from mindex.store.rules.access_tokens import name_taken
from mindex.store.sqlite.engine import SqliteEngine
from mindex.store.sqlite.row_checksums import CHECKED, sound_rows

_COLUMNS = ", ".join(CHECKED["tokens"])


class SqliteTokens:
    """Implements `mindex.store.base.TokenStore`."""

    def __init__(self, engine: SqliteEngine) -> None:
        self._engine = engine

    def add(self, token: Token) -> None:
        row = (
            token.name,
            token.hash,
            token.agent,
            token.rights,
            json.dumps(token.collections),
            token.created_at,
            token.expires_at,
        )
        with self._engine.write(durable=True) as connection:
            if connection.execute("SELECT 1 FROM tokens WHERE name = ?", (token.name,)).fetchone():
                raise name_taken(token.name)
            connection.execute(f"INSERT INTO tokens ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def remove(self, name: str) -> bool:
        with self._engine.write(durable=True) as connection:
            return connection.execute("DELETE FROM tokens WHERE name = ?", (name,)).rowcount > 0

    def all(self) -> tuple[Token, ...]:
        return self._select("ORDER BY name")

    def by_hash(self, hash_: str) -> Token | None:
        found = self._select("WHERE hash = ?", hash_)
        return found[0] if found else None

    def _select(self, which: str, *values: str) -> tuple[Token, ...]:
        """Tokens; a damaged one gives no rights."""
        with self._engine.database.read() as connection:
            rows = connection.execute(f"SELECT {_COLUMNS}, checksum FROM tokens {which}", values)
            return tuple(map(_token, sound_rows(connection, rows, "token {}")))


def _token(row: Any) -> Token:
    name, hash_, agent, rights, collections, created_at, expires_at = row
    return Token(name, hash_, agent, rights, tuple(json.loads(collections)), created_at, expires_at)
