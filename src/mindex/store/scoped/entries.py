"""Entries as one principal sees them: those of its agent, their history, links and export."""

from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from mindex.datatypes import Change, Filters, MemoryStatistics, PurgeResult, Record, SessionPage
from mindex.store.base import Access, AddOutcome, NewLink, RetryPolicy, Revision
from mindex.store.export_rows import ExportRow, ExportSnapshot, ImportPreview, Link, RestoreOptions, RestoreOutcome
from mindex.store.rules.entry_rules import no_entry
from mindex.store.rules.link_targets import targets_by_source
from mindex.store.scoped.rules import AccessRules
from mindex.store.usage_counts import UsageCounts


class ScopedEntries:
    """Implements `mindex.store.base.EntryStore`."""

    def __init__(self, rules: AccessRules) -> None:
        self._rules = rules
        self._entries = rules.store.entries

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────

    def transaction(self, *, batch: bool = False) -> AbstractContextManager[int]:
        self._rules.require_write()
        return self._entries.transaction(batch=batch)

    def add(
        self,
        records: Sequence[Record],
        *,
        by: str,
        reason: str = "",
        unique: str = "",
        once: bool = False,
        links: Sequence[NewLink] = (),
    ) -> tuple[AddOutcome, ...]:
        self._rules.require_own(records)
        own = self._visible_links(links, {record.id for record in records})
        return self._entries.add(records, by=by, reason=reason, unique=unique, once=once, links=own)

    def revise(self, id_: str, change: Revision, *, by: str, action: str, reason: str = "", unique: str = "") -> Change:
        self._rules.require_write()

        def checked(before: Record) -> Record:
            if not self._rules.sees(before):
                raise no_entry(id_)
            after = change(before)
            self._rules.require_own([after])
            return after

        return self._entries.revise(id_, checked, by=by, action=action, reason=reason, unique=unique)

    def purge(self, ids: Sequence[str]) -> PurgeResult:
        self._rules.require_write()
        return self._entries.purge(self._rules.visible(ids))

    def link(self, links: Sequence[NewLink]) -> None:
        self._rules.require_write()
        self._entries.link(self._visible_links(links))

    def _visible_links(self, links: Sequence[NewLink], new: Set[str] = frozenset()) -> list[NewLink]:
        """Those between records that the principal sees, or adds now."""
        visible = {*new, *self._rules.visible({id_ for link in links for id_ in link[:2]} - new)}
        return [link for link in links if visible.issuperset(link[:2])]

    def restore_rows(
        self, rows: Sequence[ExportRow], restore_options: RestoreOptions, preview: ImportPreview | None = None
    ) -> tuple[RestoreOutcome, ...]:
        self._rules.require_own([state for row in rows for state in row.states()])
        return self._entries.restore_rows(rows, restore_options, preview)

    def restore_links(self, links: Sequence[tuple[str, Link]]) -> int:
        self._rules.require_write()
        visible = set(self._rules.visible([id_ for source, link in links for id_ in (source, link.target)]))
        return self._entries.restore_links([one for one in links if {one[0], one[1].target} <= visible])

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────

    def by_number(self, agent: str, number: int, *, program: str = "", kind: str = "") -> str | None:
        return self._entries.by_number(self._rules.agent(agent), number, program=program, kind=kind)

    def numbers(self, program: str, ids: Sequence[str]) -> dict[str, int]:
        return self._entries.numbers(program, self._rules.visible(ids))

    def give_numbers(self, program: str, records: Sequence[Record]) -> dict[str, int]:
        """Give them even if the principal may only read: it is the server that counts."""
        return self._entries.give_numbers(program, [record for record in records if self._rules.sees(record)])

    def agents(self) -> tuple[str, ...]:
        agents = self._entries.agents()
        return (
            agents
            if self._rules.sees_all_agents
            else tuple(one for one in agents if one == self._rules.principal.agent)
        )

    def history(self, id_: str) -> tuple[Change, ...]:
        if not self._rules.is_visible(id_):
            return ()
        return tuple(filter(self._rules.sees_change, self._entries.history(id_)))

    def change(self, number: int) -> Change | None:
        change = self._entries.change(number)
        return change if change is not None and self._rules.sees_change(change) else None

    def batch(self, batch: str) -> tuple[Change, ...]:
        return tuple(filter(self._rules.sees_change, self._entries.batch(batch)))

    def superseded(self, id_: str) -> tuple[str, ...]:
        return tuple(self._rules.visible(self._entries.superseded(id_))) if self._rules.is_visible(id_) else ()

    def changes_between(self, after: int, before: int, *, newest_first: bool = False) -> Iterator[Change]:
        return filter(self._rules.sees_change, self._entries.changes_between(after, before, newest_first=newest_first))

    def states_at(self, moment: int) -> tuple[Record, ...]:
        return tuple(filter(self._rules.sees, self._entries.states_at(moment)))

    def linked(self, id_: str, kind: str) -> tuple[str, ...]:
        return self.links_of([id_], kind).get(id_, ())

    def links_of(self, ids: Sequence[str], kind: str) -> dict[str, tuple[str, ...]]:
        found = self._entries.links_of(ids, kind)
        seen = set(self._rules.visible({*found, *(target for targets in found.values() for target in targets)}))
        pairs = ((one, other) for one, others in found.items() if one in seen for other in others if other in seen)
        return targets_by_source(pairs)

    def linked_pairs(self, kind: str, agent: str) -> tuple[tuple[str, str], ...]:
        return self._entries.linked_pairs(kind, self._rules.agent(agent))

    def surrounding_turns(self, id_: str, before: int, after: int) -> tuple[Record, ...]:
        if not self._rules.is_visible(id_):
            return ()
        return tuple(filter(self._rules.sees, self._entries.surrounding_turns(id_, before, after)))

    def sessions(self, agent: str, *, limit: int, offset: int = 0) -> SessionPage:
        return self._entries.sessions(self._rules.agent(agent), limit=limit, offset=offset)

    def expired(self, before: int) -> tuple[str, ...]:
        return tuple(self._rules.visible(self._entries.expired(before)))

    def statistics(self, agent: str) -> MemoryStatistics:
        return self._entries.statistics(self._rules.agent(agent))

    def usage(self, filters: Filters, *, limit: int) -> UsageCounts:
        return self._entries.usage(self._rules.filters(filters), limit=limit)

    @contextmanager
    def export_snapshot(
        self, agent: str = "*", *, vectors: bool = False, log: bool = False
    ) -> Iterator[ExportSnapshot]:
        with self._entries.export_snapshot(self._rules.agent(agent), vectors=vectors, log=log) as snapshot:
            if self._rules.sees_all_agents:
                yield snapshot
                return
            # The last number of the store would say how much others have written.
            yield replace(snapshot, last_numbers={}, rows=map(self._without_foreign_links, snapshot.rows))

    def _without_foreign_links(self, row: ExportRow) -> ExportRow:
        visible = set(self._rules.visible(link.target for link in row.links))
        return replace(row, links=tuple(link for link in row.links if link.target in visible))

    def owners(self, ids: Iterable[str]) -> dict[str, str]:
        return self._entries.owners(self._rules.visible(ids))

    # ── accesses ──────────────────────────────────────────────────────────────────────────────────────────────

    def log_access(self, accesses: Sequence[Access], *, oldest: int, rows: int) -> None:
        """Log them even if the principal may only read: it is the server that counts."""
        self._entries.log_access(accesses, oldest=oldest, rows=rows)

    def prune_access_log(self, *, oldest: int, rows: int) -> None:
        self._rules.require_everything()
        self._entries.prune_access_log(oldest=oldest, rows=rows)

    def prune_access_log_later(self, *, oldest: int, rows: int) -> None:
        self._rules.require_everything()
        self._entries.prune_access_log_later(oldest=oldest, rows=rows)

    def logged_queries(self) -> tuple[str, ...]:
        self._rules.require_everything()
        return self._entries.logged_queries()

    def forget_queries(self, queries: Sequence[str]) -> int:
        self._rules.require_everything()
        return self._entries.forget_queries(queries)

    # ── the extraction of facts ───────────────────────────────────────────────────────────────────────────────

    def unextracted(self, agent: str, limit: int, retry_policy: RetryPolicy | None = None) -> tuple[Record, ...]:
        return self._entries.unextracted(self._rules.agent(agent), limit, retry_policy)

    def count_unextracted(self, agent: str, retry_policy: RetryPolicy | None = None) -> int:
        return self._entries.count_unextracted(self._rules.agent(agent), retry_policy)

    def is_unextracted(self, id_: str) -> bool:
        return self._rules.is_visible(id_) and self._entries.is_unextracted(id_)

    def mark_extracted(self, id_: str, facts: int) -> None:
        self._rules.require_write()
        if self._rules.is_visible(id_):
            self._entries.mark_extracted(id_, facts)

    def record_extraction_failure(self, id_: str) -> None:
        self._rules.require_write()
        if self._rules.is_visible(id_):
            self._entries.record_extraction_failure(id_)
