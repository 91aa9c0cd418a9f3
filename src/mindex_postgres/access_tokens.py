"""Tokens of a server in PostgreSQL."""

from typing import Any

from mindex.datatypes import Token
from mindex.store.engine_parts import name_taken
from mindex_postgres.connection import Transaction, run_again
from mindex_postgres.engine import PostgresEngine

_COLUMNS = "name, hash, agent, rights, collections, created_at, expires_at"


@run_again
class PostgresTokens:
    """Implements `mindex.store.base.TokenStore`."""

    def __init__(self, engine: PostgresEngine) -> None:
        self._engine = engine
        self._database = engine.database

    def add(self, token: Token) -> None:
        row = (
            token.name,
            token.hash,
            token.agent,
            token.rights,
            list(token.collections),
            token.created_at,
            token.expires_at,
        )

        def insert(transaction: Transaction) -> None:
            if transaction.value("SELECT 1 FROM tokens WHERE name = %s", token.name):
                raise name_taken(token.name)
            transaction.execute(f"INSERT INTO tokens ({_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s)", *row)

        self._engine.write(insert)

    def remove(self, name: str) -> bool:
        query = "DELETE FROM tokens WHERE name = %s RETURNING 1"
        return bool(self._engine.write(lambda transaction: transaction.value(query, name)))

    def all(self) -> tuple[Token, ...]:
        with self._database.read() as transaction:
            return tuple(map(_token, transaction.rows(f"SELECT {_COLUMNS} FROM tokens ORDER BY name")))

    def by_hash(self, hash_: str) -> Token | None:
        with self._database.read() as transaction:
            row = transaction.row(f"SELECT {_COLUMNS} FROM tokens WHERE hash = %s", hash_)
        return _token(row) if row else None


def _token(row: Any) -> Token:
    name, hash_, agent, rights, collections, created_at, expires_at = row
    return Token(name, hash_, agent, rights, tuple(collections), created_at, expires_at)
