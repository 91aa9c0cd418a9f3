"""A second engine, in memory: the proof that the store interface is neutral, and an example for further engines.

It is complete and obeys every law, but it is slow: a search reads every record. The groups are in the modules beside
this one. The rules that all engines share are in `mindex.store.rules`; what is here are transactions and statements.

    register_engine("toy", Engine(open_memory_store))
    open_store("toy://NAME")
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from mindex.datatypes import Check, Report
from mindex.datatypes.access_tokens import Token
from mindex.errors import token_name_taken
from mindex.store.base import (
    GROUPS,
    CacheStore,
    CollectionCount,
    EntryStore,
    FileStore,
    Maintenance,
    OpenOptions,
    RetrievalStore,
    Store,
    StoreStatus,
    SyncStore,
    TokenStore,
    VectorStore,
    unsupported,
)
from tests.contract.memory_engine_entries import MemoryEntries
from tests.contract.memory_engine_files import MemoryFiles
from tests.contract.memory_engine_retrieval import MemoryRetrieval
from tests.contract.memory_engine_sync import MemorySync
from tests.contract.memory_engine_tables import Connection, Database
from tests.contract.memory_engine_vectors import MemoryVectors

# By URL, for the time of this process.
DATABASES: dict[str, Database] = {}
_opening = threading.Lock()


def open_memory_store(url: str, options: OpenOptions, capabilities: frozenset[str] = GROUPS) -> Store:
    """Open the database of a URL, and create it if missing. For an `Engine`."""
    with _opening:
        database = DATABASES.setdefault(url, Database(url))
    return MemoryStore(
        database, capabilities=capabilities, cache_rows=options.cache_rows, logs_access=options.logs_access
    )


class MemoryStore:
    """Implements `mindex.store.base.Store`. Groups that are not among its capabilities raise UnsupportedError."""

    files: FileStore
    entries: EntryStore
    retrieval: RetrievalStore
    vectors: VectorStore
    caches: CacheStore
    tokens: TokenStore
    maintenance: Maintenance
    sync: SyncStore

    read_only = False
    folder: Path | None = None

    def __init__(self, database: Database, *, capabilities: frozenset[str], cache_rows: int, logs_access: bool) -> None:
        self._connection = connection = Connection(database)
        self.capabilities = capabilities
        groups = {
            "files": MemoryFiles(connection),
            "entries": MemoryEntries(connection, logs_access=logs_access),
            "retrieval": MemoryRetrieval(connection),
            "vectors": MemoryVectors(connection),
            "caches": MemoryCaches(connection, cache_rows),
            "tokens": MemoryTokens(connection),
            "maintenance": MemoryMaintenance(connection),
            "sync": MemorySync(connection),
        }
        vars(self).update((name, group) for name, group in groups.items() if name in capabilities)

    def __getattr__(self, name: str) -> NoReturn:
        """Python calls this only for an attribute that does not exist."""
        if name in GROUPS:
            raise unsupported("this in-memory store", name)
        raise AttributeError(name)

    def settle(self) -> None:
        """Nothing: writes are found as soon as they return."""

    def close(self) -> None:
        self._connection.close()


class MemoryCaches:
    """Implements `mindex.store.base.CacheStore`."""

    def __init__(self, connection: Connection, rows: int) -> None:
        """`rows` bounds each kind; 0 stores nothing."""
        self._values = connection.database.cache
        self._rows = rows

    def get(self, kind: str, key: str) -> bytes | None:
        return self._values.get((kind, key))

    def put(self, kind: str, key: str, value: bytes) -> None:
        self.put_many(kind, {key: value})

    def get_many(self, kind: str, keys: Sequence[str]) -> dict[str, bytes]:
        found = {key: self._values.get((kind, key)) for key in keys}
        return {key: value for key, value in found.items() if value is not None}

    def put_many(self, kind: str, values: Mapping[str, bytes], *, now: bool = False) -> None:  # noqa: ARG002
        for key, value in values.items():
            self._values.pop((kind, key), None)  # so that it becomes the most recently written one
            self._values[kind, key] = value
        surplus = max(0, len(self._keys(kind)) - self._rows)
        for key in self._keys(kind)[:surplus]:
            self._values.pop((kind, key), None)

    def has_prefix(self, kind: str, start: str) -> bool:
        return any(key.startswith(start) for key in self._keys(kind))

    def items(self) -> Iterator[tuple[str, str, bytes]]:
        yield from ((kind, key, value) for (kind, key), value in sorted(self._values.items()))

    def clear(self, kinds: Sequence[str] = ()) -> dict[str, int]:
        removed = [(kind, key) for kind, key in list(self._values) if not kinds or kind in kinds]
        for place in removed:
            self._values.pop(place, None)
        return dict(Counter(kind for kind, _ in removed))

    def _keys(self, kind: str) -> list[str]:
        return [key for one, key in list(self._values) if one == kind]


class MemoryTokens:
    """Implements `mindex.store.base.TokenStore`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, token: Token) -> None:
        with self._connection.write() as tables:
            if token.name in tables.tokens:
                raise token_name_taken(token.name)
            tables.tokens[token.name] = token

    def remove(self, name: str) -> bool:
        with self._connection.write() as tables:
            return tables.tokens.pop(name, None) is not None

    def all(self) -> tuple[Token, ...]:
        return tuple(sorted(self._connection.read().tokens.values(), key=lambda token: token.name))

    def by_hash(self, hash_: str) -> Token | None:
        return next((one for one in self._connection.read().tokens.values() if one.hash == hash_), None)


class MemoryMaintenance:
    """Implements `mindex.store.base.Maintenance`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def status(self) -> StoreStatus:
        tables, database = self._connection.read(), self._connection.database
        chunks = Counter(record.collection for record in tables.records.values())
        documents = Counter(document.collection for document in tables.documents.values())
        return StoreStatus(
            location=database.url,
            schema=0,
            records=Counter(record.kind for record in tables.records.values() if record.retired_at is None),
            collections={name: CollectionCount(documents[name], chunks[name]) for name in tables.collections},
            size_bytes=None,
            caches=Counter(kind for kind, _ in list(database.cache)),
        )

    def check(self) -> tuple[Check, ...]:
        tables = self._connection.read()
        live = {record.id for record in tables.records.values() if record.retired_at is None}
        stray = sum(id_ not in live for _, id_ in tables.vectors)
        message = f"{stray} vectors lack a record" if stray else "every vector belongs to a record"
        return (Check("vectors", not stray, message),)

    def check_deep(self, report: Report | None = None) -> tuple[Check, ...]:  # noqa: ARG002
        """Nothing more: there is no file that could be damaged."""
        return ()

    def damaged(self) -> tuple[str, ...]:
        return ()

    def optimize(self) -> None:
        """Do nothing: every search derives everything again."""
