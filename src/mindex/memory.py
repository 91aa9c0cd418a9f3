"""The front door: everything mindex can do, as a library. Wires the rooms together and holds no logic of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from mindex.asking import Asking, with_anchor_state
from mindex.choosing import Choosing
from mindex.clock import parse_time
from mindex.config import Settings, load_settings
from mindex.errors import UsageError
from mindex.knowing import Knowing
from mindex.model import Filters, GetResult, Record
from mindex.search.pipeline import MAX_LIMIT
from mindex.store.base import Page, Store
from mindex.store.sqlite.store import SqliteStore
from mindex.transferring import Transferring

if TYPE_CHECKING:
    from mindex.model import Check, Status


class Memory(Asking, Transferring, Knowing, Choosing):
    """One memory: a database, its settings and its models.

    `with Memory("memory.db") as m: m.index("docs"); m.search("how is data cached?")`. Safe to use from several
    threads. `query_wait` bounds how long a question waits for a model that is still loading (None: until it is there).
    """

    def __init__(
        self,
        db: str | Path | None = None,
        *,
        agent: str | None = None,
        settings: Settings | None = None,
        options: Mapping[str, object] | None = None,
        query_wait: float | None = None,
    ) -> None:
        super().__init__()
        flags = {**(options or {}), "db": str(db) if db is not None else None, "agent": agent}
        self.settings = settings or load_settings(flags)
        self._query_wait = query_wait
        self.store = self._open_store()

    def _open_store(self) -> Store:
        return SqliteStore(self.settings.database)

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.stop_embedding()
        if self._asking is not None and self._asking.embedder is not None:
            self._asking.embedder.close()
        self.store.close()

    def get(self, *references: str, as_of: str | None = None) -> GetResult:
        """Records by id, short id, path, `path:10-40`, glob or a comma-separated list of these.

        Also `profile[.path]`, `history:ID`, `timeline:FROM..TO`, `due`, and `ID±2` for an exchange with its neighbours.
        `as_of` brings what was told as it stood then; files come as they are now.
        """
        from mindex.reading import get
        from mindex.references import special

        moment = parse_time(as_of) if as_of else None
        found = get(self.store, references, self._boundary(reading=True), moment, lambda one: special(self, one, as_of))
        self._note_access(found.records, "get")
        return replace(found, records=tuple(map(with_anchor_state, found.records)))

    def read_file(self, path: str) -> Record:
        """One indexed file, whole, as it is on disk now."""
        from mindex.reading import read_file

        return read_file(self.store, path, self._boundary(reading=True))

    def list(self, filters: Filters | None = None, *, limit: int = 20, offset: int = 0) -> Page:
        """Records in scope, newest first."""
        if limit < 1 or offset < 0:
            raise UsageError("limit starts at 1 and offset at 0", f"use a limit of 1 to {MAX_LIMIT}")
        return self.store.retrieval.list(
            filters or self.filters(), limit=min(limit, MAX_LIMIT), offset=min(offset, 2**62)
        )

    # ── health ────────────────────────────────────────────────────────────────────────────────────────────────

    def status(self) -> Status:
        from mindex.model import CollectionStatus, Status

        store = self.store.maintenance.status()
        collections = tuple(
            CollectionStatus(
                collection.name,
                collection.root,
                store.collections[collection.name].documents,
                store.collections[collection.name].chunks,
                collection.indexed_at,
                missing=not Path(collection.root).is_dir(),
            )
            for collection in self.store.files.collections()
            if collection.name in store.collections  # else added since it was counted
        )
        tier, why = self.search_tier()
        return Status(
            db=store.location,
            schema=store.schema,
            records=store.records,
            collections=collections,
            embedding=self.embedding_status(),
            tier=tier,
            size_bytes=store.size_bytes,
            caches=store.caches,
            tier_reason=why,
        )

    def doctor(self) -> tuple[Check, ...]:
        """Everything that can be checked, each with what to do about it."""
        from mindex.model import Check

        checks = [*self.store.maintenance.check(), *self.model_checks()]
        for collection in self.store.files.collections():
            there = Path(collection.root).is_dir()
            message = f"{collection.root} is there" if there else f"{collection.root} is not there"
            checks.append(Check(f"collection {collection.name}", there, message, "bring the folder back, or remove it"))
        return tuple(checks)

    def optimize(self, *, caches: bool = False) -> dict[str, int]:
        """Remove what expired long ago, rebuild and merge the indexes, give unused space back.

        With `caches` they are emptied, too: answers how many values of each kind went.
        """
        self.purge_expired()
        cleared = self.store.caches.clear() if caches else {}
        self.store.vectors.drop_unused_spaces()
        self.store.maintenance.optimize()
        return cleared
