"""Access tokens of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

from mindex.datatypes.access_tokens import Token
from mindex.errors import token_name_taken
from mindex.store.sql.dialect import S

if TYPE_CHECKING:
    from mindex.store.sql.engine import Engine

_COLUMNS = "name, hash, agent, rights, collections, created_at, expires_at"


class SqlTokens(Generic[S]):
    """Implements `mindex.store.base.TokenStore`."""

    def __init__(self, engine: Engine[S]) -> None:
        self._engine = engine

    def add(self, token: Token) -> None:
        row = (
            token.name, token.hash, token.agent, token.rights, self._engine.dialect.array(token.collections),
            token.created_at, token.expires_at,
        )  # fmt: skip

        def insert(statements: S) -> None:
            if statements.value("SELECT 1 FROM tokens WHERE name = ?", token.name):
                raise token_name_taken(token.name)
            statements.run(f"INSERT INTO tokens ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", *row)

        self._engine.write(insert, durable=True)

    def remove(self, name: str) -> bool:
        def delete(statements: S) -> bool:
            return statements.run("DELETE FROM tokens WHERE name = ?", name) > 0

        return self._engine.write(delete, durable=True)

    def all(self) -> tuple[Token, ...]:
        return self._select("ORDER BY name")

    def by_hash(self, hash_: str) -> Token | None:
        found = self._select("WHERE hash = ?", hash_)
        return found[0] if found else None

    def _select(self, which: str, *values: str) -> tuple[Token, ...]:
        """Tokens; a damaged one gives no rights."""
        with self._engine.read() as statements:
            rows = statements.rows(f"SELECT {_COLUMNS}$checksum FROM tokens {which}", *values)
            return tuple(statements.sound(rows, "token {}", self._token))

    def _token(self, row: Any) -> Token:
        name, hash_, agent, rights, collections, created_at, expires_at = row
        return Token(name, hash_, agent, rights, self._engine.dialect.texts(collections), created_at, expires_at)
