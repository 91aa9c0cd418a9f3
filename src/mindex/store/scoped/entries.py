"""Entries as one principal sees them: those of its agent, their history, links and export."""

from collections.abc import Iterator, Sequence, Set
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from mindex.datatypes import Change, PurgeResult, Record
from mindex.store.base import AddOutcome, EntryStore, NewLink, Revision
from mindex.store.export_rows import ExportRow, ExportSnapshot, ImportPreview, Link, RestoreOptions, RestoreOutcome
from mindex.store.rules.entry_rules import no_entry, targets_by_source
from mindex.store.scoped.rules import ScopedGroup, filtered, for_all, narrowed


class ScopedEntries(ScopedGroup[EntryStore]):
    """Implements `mindex.store.base.EntryStore`."""

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────

    def transaction(self, *, batch: bool = False) -> AbstractContextManager[int]:
        self._rules.require_write()
        return self._group.transaction(batch=batch)

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
        return self._group.add(records, by=by, reason=reason, unique=unique, once=once, links=own)

    def revise(self, id_: str, change: Revision, *, by: str, action: str, reason: str = "", unique: str = "") -> Change:
        self._rules.require_write()

        def checked(before: Record) -> Record:
            if not self._rules.sees(before):
                raise no_entry(id_)
            after = change(before)
            self._rules.require_own([after])
            return after

        return self._group.revise(id_, checked, by=by, action=action, reason=reason, unique=unique)

    def purge(self, ids: Sequence[str]) -> PurgeResult:
        self._rules.require_write()
        return self._group.purge(self._rules.visible(ids))

    def link(self, links: Sequence[NewLink]) -> None:
        self._rules.require_write()
        self._group.link(self._visible_links(links))

    def _visible_links(self, links: Sequence[NewLink], new: Set[str] = frozenset()) -> list[NewLink]:
        """Those between records that the principal sees, or adds now."""
        visible = {*new, *self._rules.visible({id_ for link in links for id_ in link[:2]} - new)}
        return [link for link in links if visible.issuperset(link[:2])]

    def restore_rows(
        self, rows: Sequence[ExportRow], restore_options: RestoreOptions, preview: ImportPreview | None = None
    ) -> tuple[RestoreOutcome, ...]:
        self._rules.require_own([state for row in rows for state in row.states()])
        return self._group.restore_rows(rows, restore_options, preview)

    def restore_links(self, links: Sequence[tuple[str, Link]]) -> int:
        self._rules.require_write()
        visible = set(self._rules.visible([id_ for source, link in links for id_ in (source, link.target)]))
        return self._group.restore_links([one for one in links if {one[0], one[1].target} <= visible])

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────

    by_number = narrowed(EntryStore.by_number)
    numbers = narrowed(EntryStore.numbers)

    def give_numbers(self, program: str, records: Sequence[Record]) -> dict[str, int]:
        """Give them also if the principal may only read: the server counts."""
        return self._group.give_numbers(program, [record for record in records if self._rules.sees(record)])

    def agents(self) -> tuple[str, ...]:
        everyone = self._rules.sees_all_agents
        return tuple(one for one in self._group.agents() if everyone or one == self._rules.principal.agent)

    history = filtered(EntryStore.history)
    change = filtered(EntryStore.change)
    batch = filtered(EntryStore.batch)

    def superseded(self, id_: str) -> tuple[str, ...]:
        return tuple(self._rules.visible(self._group.superseded(id_))) if self._rules.is_visible(id_) else ()

    changes_between = filtered(EntryStore.changes_between)
    states_at = filtered(EntryStore.states_at)

    def linked(self, id_: str, kind: str) -> tuple[str, ...]:
        return self.links_of([id_], kind).get(id_, ())

    def links_of(self, ids: Sequence[str], kind: str) -> dict[str, tuple[str, ...]]:
        found = self._group.links_of(ids, kind)
        seen = set(self._rules.visible({*found, *(target for targets in found.values() for target in targets)}))
        pairs = ((one, other) for one, others in found.items() if one in seen for other in others if other in seen)
        return targets_by_source(pairs)

    linked_pairs = narrowed(EntryStore.linked_pairs)

    def surrounding_turns(self, id_: str, before: int, after: int) -> tuple[Record, ...]:
        if not self._rules.is_visible(id_):
            return ()
        return tuple(filter(self._rules.sees, self._group.surrounding_turns(id_, before, after)))

    sessions = narrowed(EntryStore.sessions)
    expired = filtered(EntryStore.expired)
    statistics = narrowed(EntryStore.statistics)
    usage = narrowed(EntryStore.usage)

    @contextmanager
    def export_snapshot(
        self, agent: str = "*", *, vectors: bool = False, log: bool = False
    ) -> Iterator[ExportSnapshot]:
        with self._group.export_snapshot(self._rules.agent(agent), vectors=vectors, log=log) as snapshot:
            if self._rules.sees_all_agents:
                yield snapshot
                return
            # The last number of the store would say how much others have written.
            yield replace(snapshot, last_numbers={}, rows=map(self._without_foreign_links, snapshot.rows))

    def _without_foreign_links(self, row: ExportRow) -> ExportRow:
        visible = set(self._rules.visible(link.target for link in row.links))
        return replace(row, links=tuple(link for link in row.links if link.target in visible))

    owners = narrowed(EntryStore.owners)

    # ── accesses ──────────────────────────────────────────────────────────────────────────────────────────────

    log_access = narrowed(EntryStore.log_access)  # also if the principal may only read: the server counts
    prune_access_log = for_all(EntryStore.prune_access_log)
    prune_access_log_later = for_all(EntryStore.prune_access_log_later)
    logged_queries = for_all(EntryStore.logged_queries)
    forget_queries = for_all(EntryStore.forget_queries)

    # ── the extraction of facts ───────────────────────────────────────────────────────────────────────────────

    unextracted = narrowed(EntryStore.unextracted)
    count_unextracted = narrowed(EntryStore.count_unextracted)

    def is_unextracted(self, id_: str) -> bool:
        return self._rules.is_visible(id_) and self._group.is_unextracted(id_)

    def mark_extracted(self, id_: str, facts: int) -> None:
        self._rules.require_write()
        if self._rules.is_visible(id_):
            self._group.mark_extracted(id_, facts)

    def record_extraction_failure(self, id_: str) -> None:
        self._rules.require_write()
        if self._rules.is_visible(id_):
            self._group.record_extraction_failure(id_)
