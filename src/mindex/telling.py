"""The half of the front door where words come in: told, corrected, forgotten, brought back, undone, erased."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from mindex.clock import parse_expiry
from mindex.errors import MindexError, SpaceChangedError, UsageError
from mindex.model import Change, Filters, Record
from mindex.modelling import Modelling
from mindex.providers.base import IN_PROCESS

if TYPE_CHECKING:  # the rules of this room are many patterns: a search does not wait for them to be compiled
    from logging import Logger

    from mindex.memories.daily_log import DailyLog
    from mindex.memories.lifecycle import Memories, NewMemory
    from mindex.model import AddResult, MemoryStatistics, PurgeResult, SecretFinding
    from mindex.redaction.redactor import Mode

_PAGE = 500
_LONGEST_AGENT = 200
# Who tells one thing waits no longer for the vector of it, however patient the settings are: a query's time.
_MOST_SECONDS = 8.0


class Telling(Modelling):
    """Mixed into Memory. Every change is durable when its method returns; vectors follow, and never fail a write."""

    def __init__(self) -> None:
        super().__init__()
        self._embedding = threading.Lock()
        self._unembedded: deque[tuple[str, ...]] = deque()
        self._leaving = threading.Event()

    @cached_property
    def _logger(self) -> Logger:
        from logging import getLogger

        return getLogger(__name__)

    @cached_property
    def _memories(self) -> Memories:
        from mindex.memories.lifecycle import Memories

        return Memories(self.store, secrets=self._secrets_mode, by=self.settings.text("agent"))

    @property
    def _secrets_mode(self) -> Mode:
        mode: Mode = self.settings.text("secrets.mode")  # type: ignore[assignment]  # the table parsed it
        return mode

    def _crosses(self, text: str) -> str:
        """The boundary, for texts that are parts of something larger."""
        from mindex.redaction.redactor import redact

        return redact(text, self._secrets_mode).text

    # ── telling ───────────────────────────────────────────────────────────────────────────────────────────────

    def add(
        self,
        text: str,
        *,
        type: str = "fact",  # noqa: A002 - what everybody calls it
        importance: int | None = None,
        confidence: float = 1.0,
        tags: Sequence[str] = (),
        entities: Sequence[str] | None = None,
        summary: str = "",
        context: str = "",
        source: str = "",
        expires: str | int | None = None,
        supersedes: str = "",
        anchor: str = "",
        fields: Mapping[str, object] | None = None,
        agent: str | None = None,
        embed: bool = True,
    ) -> AddResult:
        """Remember something. The same words again are the same memory; nearly the same are stored and named.

        `anchor` ties it to lines of a file (`src/app.py:10-40`): whoever recalls it is told whether they still stand.
        `fields` holds what only some client knows about it; it is kept, not searched.
        """
        from mindex.memories.lifecycle import NewMemory

        told = NewMemory(
            text=text,
            type=type,
            agent=self._agent(agent),
            importance=importance,
            confidence=confidence,
            tags=tuple(tags),
            entities=None if entities is None else tuple(entities),
            summary=summary,
            context=context,
            source=source,
            expires_at=parse_expiry(expires),
            supersedes=supersedes,
            anchor=anchor,
            fields=fields or {},
        )
        return self._followed(self._memories.add(told), embed=embed)

    def _followed(self, remembered: AddResult, *, embed: bool = True) -> AddResult:
        """What follows once something new is stored: its line in the daily log, and its vector."""
        if not remembered.created:
            return remembered
        notes = self._log(remembered.id)
        return replace(remembered, notes=(*notes, *(self._vectors_follow(remembered.id) if embed else ())))

    def add_many(self, told: Iterable[NewMemory], *, embed: bool = True) -> list[AddResult]:
        """Remember many things at once, 500 a transaction. The daily log leaves them out: an import is no day."""
        remembered = self._memories.add_many(told)
        if embed and (failure := self._embed_soon()):
            notes = (_follows(failure),)
            return [replace(one, notes=notes) if one.created else one for one in remembered]
        return remembered

    def _agent(self, agent: str | None) -> str:
        name = agent or self.settings.text("agent")
        if name == "*" or not name.strip():
            raise UsageError("'*' is everyone: nobody in particular can be told", "name one agent with --agent")
        if len(name) > _LONGEST_AGENT or self._crosses(name) != name:
            raise UsageError("that is not a name for an agent", f"use at most {_LONGEST_AGENT} plain characters")
        return name

    # ── changing ──────────────────────────────────────────────────────────────────────────────────────────────

    def update(self, id_: str, *, reason: str = "", **changes: object) -> Change:
        """Change the properties given (those of `add`), leave the rest. A new text is embedded anew."""
        if "expires" in changes:
            expires = changes.pop("expires")
            changes["expires_at"] = parse_expiry(expires if isinstance(expires, str | int) else None)
        return self._changed(self._memories.update(id_, changes, reason))

    def _changed(self, change: Change, *others: Change) -> Change:
        """A change that was just made, with what to say of the vectors that it and others call for."""
        ids = [one.record for one in (change, *others)]
        return replace(change, notes=(*change.notes, *self._vectors_follow(*ids)))

    def forget(self, id_: str, reason: str = "") -> Change:
        """Out of every search at once; `restore` brings it back whole."""
        return self._memories.forget(id_, reason)

    def restore(self, id_: str, reason: str = "") -> Change:
        return self._changed(self._memories.restore(id_, reason))

    def undo(self, reference: str) -> tuple[Change, int]:
        """Take back a change by its number, or a record's latest; answers the new change and the one undone.

        What was changed as one, by `consolidate` or by an undo, is taken back as one; the change's notes say so.
        """
        changes, undone = self._memories.undo(reference)
        return self._changed(*changes), undone

    def purge(self, *ids: str) -> PurgeResult:
        """Remove for good, from every table, index, history and the file itself."""
        if not ids:
            raise UsageError("nothing to purge", "name the ids of what is to be removed for good")
        # The log first: of what is gone from the memory nobody would know which lines to take out.
        self._proves_writable()
        lines, notes = self._unlog(self._as_told(map(self._memories.history, ids)))
        purged = self._memories.purge(ids)
        stay = (f"facts that were taken from it stay: {', '.join(purged.facts)}",) if purged.facts else ()
        return replace(purged, log_lines=lines, notes=(*notes, *stay))

    def purge_expired(self) -> int:
        """Remove what expired longer ago than `memory.grace_days`."""
        grace_days = self.settings.number("memory.grace_days")
        expired = self._memories.expired(grace_days)
        if expired:
            self._proves_writable()
            self._unlog(self._as_told(map(self.store.entries.history, expired)))
        return self._memories.purge_expired(grace_days)

    def _proves_writable(self) -> None:
        """Raise what a write would be refused with now, before anything is changed outside the memory for it."""
        with self.store.entries.transaction():
            pass

    # ── the daily log ─────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def _journal(self) -> DailyLog | None:
        if self.settings.workspace is None:
            return None
        from mindex.memories.daily_log import DailyLog

        return DailyLog(self.settings.workspace)

    def _log(self, id_: str) -> tuple[str, ...]:
        """Write a new memory into the daily log; answers what to say when that failed: the memory is there."""
        if self._journal is None or not self.settings.keeps_daily_log:
            return ()
        record = self.store.retrieval.record(id_)
        try:
            if record is not None:
                self._journal.append(record)
        except OSError as error:
            self._logger.debug("no line in the daily log for %s: %s", id_, error)
            return (f"it is not in the daily log: {error}",)
        return ()

    def _as_told(self, histories: Iterable[tuple[Change, ...]]) -> list[Record]:
        """Memories as they were when their lines were written; to be asked before their history goes."""
        if self._journal is None or self.store.read_only:
            return []
        return [changes[0].after for changes in histories if changes]

    def _unlog(self, told: Iterable[Record]) -> tuple[int, tuple[str, ...]]:
        """Take the lines of what was purged out of the daily log, also when it is no longer written."""
        removed, notes = 0, []
        for record in told:
            try:
                removed += self._journal is not None and self._journal.remove(record)
            except OSError as error:
                self._logger.debug("the line of %s stays in the daily log: %s", record.id, error)
                notes.append(f"the line of {record.id} could not be taken out of the daily log: {error}")
        return removed, tuple(notes)

    # ── looking back ──────────────────────────────────────────────────────────────────────────────────────────

    def history(self, id_: str) -> tuple[Change, ...]:
        return self._memories.history(id_)

    def statistics(self, agent: str | None = None) -> MemoryStatistics:
        return self.store.entries.statistics(agent or self.settings.text("agent"))

    def scan(self) -> tuple[SecretFinding, ...]:
        """Secrets that are stored already, in what was told and in indexed files, everybody's."""
        from mindex.model import SecretFinding
        from mindex.redaction.redactor import find_secrets

        found: list[SecretFinding] = []
        offset = 0
        while page := self.store.retrieval.list(
            Filters(agent="*", include_expired=True), limit=_PAGE, offset=offset
        ).records:
            offset += len(page)
            for record in page:
                found += [
                    SecretFinding(record.id, one.kind, _line(record, one.line), one.preview, record.path)
                    for one in find_secrets(record.text)
                ]
                beside = "\n".join((record.title, record.context, record.source, *record.tags, *record.entities))
                told = f"{beside}\n{json.dumps(dict(record.fields), ensure_ascii=False)}"
                found += [SecretFinding(record.id, one.kind, 0, one.preview, record.path) for one in find_secrets(told)]
        return tuple(found)

    # ── vectors follow ────────────────────────────────────────────────────────────────────────────────────────

    embeds_in_background = False
    _embedder_thread: threading.Thread | None = None
    _not_embedded = ""  # why the last attempt left something without a vector

    def embed_pending(self) -> None:
        """Give vectors to what was told and has none yet: by a process that was killed, or while there was no model."""
        self._embed_soon()

    def _vectors_follow(self, *ids: str) -> tuple[str, ...]:
        """Give what was just told its vectors; answers what to say of those that it did not get."""
        return self._lacking(ids, self._embed_soon(*ids)) if ids else ()

    def vector_notes(self, *ids: str) -> tuple[str, ...]:
        """What to say of records that were just told and have no vector yet: why the last attempt failed, if it did."""
        return self._lacking(ids, self._not_embedded)

    def _lacking(self, ids: Sequence[str], failure: str) -> tuple[str, ...]:
        if not failure or (embedder := self.embedder) is None:
            return ()
        if not self.store.vectors.pending_records(embedder.model, 1, ids=ids):  # these words have theirs already
            return ()
        return (_follows(failure, len(ids)),)

    def _embed_soon(self, *ids: str) -> str:
        """Give what was just told its vector: now, or, in a server, behind its back. A model that fails is no error.

        Without ids, everything that waits is meant. Answers what went wrong: in a server, the last time.
        """
        if self.embedder is None:
            return ""
        if not self.embeds_in_background:
            return self._embed_within(_MOST_SECONDS * len(ids), ids) if ids else self._embed_now(ids)
        with self._embedding:
            self._unembedded.append(ids)
            if self._embedder_thread is None and not self._leaving.is_set():
                self._embedder_thread = threading.Thread(target=self._keep_embedding, name="mindex-embed", daemon=True)
                self._embedder_thread.start()
        return self._not_embedded

    def _embed_within(self, seconds: float, ids: Sequence[str]) -> str:
        """Embed now; of a server that is slower than that, somebody else waits for the answer."""
        held = self.held()
        if held.embedder_spec is None or held.embedder_spec.provider in IN_PROCESS:
            return self._embed_now(ids)
        outcome: list[str] = []
        thread = threading.Thread(target=lambda: outcome.append(self._embed_now(ids)), name="mindex-embed", daemon=True)
        thread.start()
        thread.join(seconds)
        if not outcome:
            self._not_embedded = f"{held.embedder_spec.provider} has not answered for {seconds:g} s"
        return outcome[0] if outcome else self._not_embedded

    @property
    def embedding_stopped(self) -> bool:
        """Whether nothing is to be embedded behind anybody's back any more."""
        return self._leaving.is_set()

    def stop_embedding(self, seconds: float = 3.0) -> None:
        """Let the background finish the record it is at. What is left is pending, and the next process takes it up."""
        self._leaving.set()
        with self._embedding:
            thread = self._embedder_thread
        if thread is not None:
            thread.join(seconds)

    def _keep_embedding(self) -> None:
        while True:
            with self._embedding:  # under the lock: whoever tells next sees either this thread or none
                if not self._unembedded or self._leaving.is_set():
                    self._embedder_thread = None
                    return
                ids = self._unembedded.popleft()
            self._embed_now(ids)

    def _embed_now(self, ids: Sequence[str] = ()) -> str:
        """Answers what went wrong: the record is stored all the same, and `status` counts it as pending."""
        self._not_embedded = self._tried(ids)
        return self._not_embedded

    def _tried(self, ids: Sequence[str]) -> str:
        from mindex.embedding.entries import embed_entries

        try:
            held = self.held()
            if held.embedder is not None:
                embed_entries(
                    self.store, held.embedder, ids, stop=self._leaving.is_set, embedder_spec=held.embedder_spec
                )
        except SpaceChangedError as error:  # another process changed the model: these words are for the new one
            return str(error) if self.held() is held else self._tried(ids)
        except MindexError as error:
            return str(error)
        except Exception as error:  # a model's library may raise anything: nothing that was told is lost by it
            self._logger.warning("what was told has no vector yet: %s", error)
            return str(error) or type(error).__name__
        return ""


def _follows(failure: str, count: int = 1) -> str:
    return f"stored; {'its vector follows' if count == 1 else 'their vectors follow'}: {failure}"


def _line(record: Record, line: int) -> int:
    return record.first_line + line - 1 if record.first_line else line
