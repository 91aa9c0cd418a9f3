"""Entries by id or number, for programs that know them by another number or want pages of any size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mindex.memories.find_entry import find_entry
from mindex.model import Change, Filters, Record
from mindex.store.base import Page, RankingSignals, Store


class Entries:
    """Reached as `memory.entries`. Reads only; writes go through `Memory` and its groups."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, id_: str) -> Record | None:
        """An entry, live or retired, by its whole id."""
        return self._store.retrieval.record(id_)

    def get_many(self, ids: Sequence[str]) -> tuple[Record, ...]:
        """Live entries in the order of the ids; unknown ids are left out."""
        return self._store.retrieval.records(ids)

    def find(self, reference: str) -> Record:
        """An entry, live or retired, by its id or a unique prefix. Raises NotFoundError and AmbiguousIdError."""
        return find_entry(self._store, reference)

    def by_number(self, agent: str, number: int) -> Record | None:
        """An entry, live or retired, by the number that dialects with integer ids know it by."""
        id_ = self._store.entries.by_number(agent, number)
        return None if id_ is None else self.get(id_)

    def agents(self) -> tuple[str, ...]:
        """Every agent that has an entry, live or retired."""
        return self._store.entries.agents()

    def page(self, filters: Filters, *, limit: int, offset: int = 0) -> Page:
        """A page of records in scope, newest first, of any size."""
        return self._store.retrieval.list(filters, limit=limit, offset=offset)

    def usage(self, ids: Sequence[str]) -> dict[str, RankingSignals]:
        """How often each entry was returned and when last."""
        return self._store.retrieval.ranking_signals(ids)

    def changes(self, after: int, before: int) -> Iterator[Change]:
        """Every change between two moments, in order of time."""
        return self._store.entries.changes_between(after, before)
