"""Maintenance as a service: backfill, optimize, scan for secrets, consolidate, statistics, purge what expired."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from mindex.access_log import AccessLog
from mindex.clock import now_ms
from mindex.datatypes import (
    Consolidation,
    Filters,
    MemoryStatistics,
    Proposal,
    Record,
    Report,
    SecretFinding,
    SecretsRemoved,
)
from mindex.embedding.selection import EmbedderSelection
from mindex.entries.conflicts import count_open_conflicts
from mindex.entries.consolidation import Consolidator
from mindex.entries.entries import Entries
from mindex.entries.growth import read_growth
from mindex.entries.merge import apply_merge
from mindex.entries.references import list_all
from mindex.entries.validation import validate_limit, validate_type
from mindex.errors import AccessDeniedError, EmbeddingError, MindexError, UsageError
from mindex.providers.factory import Providers
from mindex.providers.generate.base import Generator
from mindex.redaction.stored_secrets import StoredSecrets
from mindex.times.typed import parse_time
from mindex.values import dataclass

_MAX_PROPOSALS = 200
_MAX_BATCH = 200


@dataclass(frozen=True, slots=True)
class Maintenance:
    """`memory.maintenance`: embedding, indexes, statistics, secrets and consolidation."""

    _entries: Entries
    _selection: EmbedderSelection
    _providers: Providers
    _access_log: AccessLog
    _sees_everything: bool = True  # not a principal that sees a part of the store

    # ── vectors ───────────────────────────────────────────────────────────────────────────────────────────────

    def backfill(self, *, batch: int = 50, limit: int | None = None, report: Report | None = None) -> tuple[int, int]:
        """Embed all records without a vector. Returns the numbers of embedded and of remaining records.

        Raises EmbeddingError if the model is not available or embedded nothing, and AccessDeniedError for a principal
        that sees only a part of the store, because the numbers would be those of all agents.
        """
        if not self._sees_everything:
            raise AccessDeniedError(
                "vectors are made for all agents at once",
                "this server makes them automatically; search again in a moment",
            )
        if self._selection.embedder is None:
            if reason := self._selection.lean_reason:
                raise EmbeddingError(reason)
            raise EmbeddingError("no embedder is configured", "set embedding.provider to `local`")
        if batch < 1:
            raise UsageError(f"a batch of {batch} is too small", f"use 1 to {_MAX_BATCH}")
        self._selection.load()
        done = self._entries.queue.backfill(batch=min(batch, _MAX_BATCH), limit=limit, report=report)
        if done.failure is not None and not done.embedded:
            raise done.failure
        return done.embedded, done.remaining

    # ── the database ──────────────────────────────────────────────────────────────────────────────────────────

    def optimize(self, *, caches: bool = False) -> dict[str, int]:
        """Purge long expired entries, prune the access log, rebuild and merge the indexes, and free unused space.

        With `caches`, they are also emptied. Returns how many values of each kind were removed from them.
        """
        self.purge_expired()
        cleared = self._entries.store.caches.clear() if caches else {}
        self._entries.store.vectors.drop_unused_spaces()
        self._access_log.prune()
        self._entries.store.maintenance.optimize()
        return cleared

    def purge_expired(self) -> int:
        """Purge entries that expired more than `memory.grace_days` ago. Returns their number."""
        return self._entries.purge_expired()

    def statistics(self, agent: str | None = None, *, growth: bool = False) -> MemoryStatistics:
        """Return statistics of an agent's memories, with the number of conflicts.

        With `growth`, also the growth over time, the most recalled memories and those never recalled.
        """
        store, name = self._entries.store, agent or self._entries.agent
        return replace(
            store.entries.statistics(name),
            conflicts=count_open_conflicts(store, name),
            growth=read_growth(store, name, now_ms()) if growth else None,
        )

    def scan(self) -> tuple[SecretFinding, ...]:
        """Find secrets in all versions of all entries, in files, names, logged queries and caches."""
        return StoredSecrets(self._entries.store, self._entries.redactor).find()

    def remove_secrets(self) -> SecretsRemoved:
        """Purge the entries that hold a secret, in any version, and clean the rest; see `StoredSecrets.remove`."""
        return StoredSecrets(self._entries.store, self._entries.redactor).remove(self._entries.purge)

    # ── consolidation ─────────────────────────────────────────────────────────────────────────────────────────

    def consolidate(
        self,
        *,
        older_than: str | None = "30d",
        types: Sequence[str] = (),
        apply: bool = False,
        limit: int = 20,
        most: int | None = None,
        agent: str | None = None,
    ) -> Consolidation:
        """Propose merges of old memories: near-duplicates, and groups of unimportant ones.

        Nothing changes without `apply`. With it, the merged memory supersedes the originals, which stay in the history.
        Each proposal is applied completely or not at all, and one `undo` reverts it. Memories newer than `older_than`
        are left out (None: no limit); `most` considers only this number of the oldest memories.
        """
        for type_ in types:
            validate_type(type_)
        most_proposals = validate_limit(limit, _MAX_PROPOSALS)
        scope = Filters(kinds=("memory",), types=tuple(types), agent=agent or self._entries.agent)
        newest = None if older_than is None else parse_time(older_than)
        memories = self._oldest_memories(replace(scope, before=newest), most)
        younger = (
            0 if newest is None else self._entries.store.retrieval.list(replace(scope, after=newest), limit=1).total
        )
        notes = [f"limit cut to {_MAX_PROPOSALS}, the maximum"] if limit > _MAX_PROPOSALS else []
        embedder = self._selection.embedder
        model = embedder.model if embedder is not None else None
        consolidator = Consolidator(self._entries.store, model, self._generator(notes), self._entries.redactor)
        done: list[Proposal] = []
        for proposal in islice(consolidator.proposals(memories), most_proposals):
            if not apply:
                done.append(proposal)
                continue
            try:
                done.append(apply_merge(self._entries, proposal))
            except MindexError as error:  # the other proposals are applied, and this one is reported
                notes.append(f"left as it was: {error}")
                done.append(proposal)
        if apply and (new := [one.applied for one in done if one.applied]):
            notes += self._entries.queue.embed(*new)
        return Consolidation(tuple(done), len(memories), (*notes, *consolidator.notes), younger, older_than or "")

    def _generator(self, notes: list[str]) -> Generator | None:
        try:
            return self._providers.generator
        except MindexError as error:
            notes.append(f"merged by rule: {error}")
            return None

    def _oldest_memories(self, scope: Filters, most: int | None) -> list[Record]:
        """Live memories in scope, oldest first."""
        total = self._entries.store.retrieval.list(scope, limit=1).total
        offset = 0 if most is None else max(0, total - most)
        return [*list_all(self._entries.store, scope, offset=offset)][::-1]
