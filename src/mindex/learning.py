"""The part of the front door for what language models make of what was told: facts out of exchanges, fewer memories.

Everything works without such a model, and nothing that was told waits for one.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING

from mindex.clock import parse_time
from mindex.errors import ConfigError, GenerationError, MindexError, UsageError
from mindex.model import TYPES, Filters, Progress, Record
from mindex.telling import Telling

if TYPE_CHECKING:
    from mindex.memories.fact_extraction import ExtractionRun, FactExtractor
    from mindex.model import Consolidation, ExtractionReport, Proposal
    from mindex.providers.generate.base import Generator

_PAGE = 10
_LISTED = 500
_MOST_PROPOSALS = 200


class Learning(Telling):
    """Mixed into Memory."""

    def __init__(self) -> None:
        super().__init__()
        self._extracting = threading.Lock()
        self._unasked: deque[str] = deque()
        self._facts_thread: threading.Thread | None = None

    # ── facts out of exchanges ────────────────────────────────────────────────────────────────────────────────

    def extract_facts(
        self,
        *,
        most: int = 10,
        agent: str | None = None,
        again: bool = False,
        report: Callable[[Progress], None] | None = None,
    ) -> ExtractionReport:
        """Ask exchanges that were not asked yet, oldest first, for their facts; agent `*` means everyone's.

        A model that fails ends it with a note: what is left is asked the next time. An exchange that went unanswered
        is asked after all others, and rests for a day once that happened three times; `again` asks it all the same.
        """
        from mindex.memories.fact_extraction import ExtractionRun, retry_policy
        from mindex.providers.generate.answer_parsing import wake

        if most < 1:
            raise UsageError(f"{most} exchanges are too few", "use 1 or more")
        generator = self.generator
        if generator is None:
            raise ConfigError(
                "facts cannot be extracted: no language model is configured",
                "set generation.provider, or tell them yourself",
            )
        scope = agent or self.settings.text("agent")
        extractor, run, going = self._extractor(generator), ExtractionRun(), True
        left_alone = None if again else retry_policy()
        total = min(most, self.store.entries.count_unextracted(scope, left_alone))
        if total:
            try:
                wake(generator)
            except GenerationError as error:
                return replace(self._extracted(run, scope, f"no exchange was asked: {error}"), in_vain=True)
        while going and run.asked < total:
            wanted = min(_PAGE, total - run.asked)
            line = self.store.entries.unextracted(scope, wanted + len(run.failed), left_alone)
            page = [turn for turn in line if turn.id not in run.failed][:wanted]  # each is asked once
            if not page:
                break
            going = run.over(extractor, page, self._leaving.is_set)
            if report is not None:
                report(Progress("facts", run.asked, total))
        return self._extracted(run, scope, *run.notes, *extractor.notes)

    def _extracted(self, run: ExtractionRun, scope: str, *notes: str) -> ExtractionReport:
        from mindex.memories.fact_extraction import MOST_TRIES, retry_policy
        from mindex.model import ExtractionReport

        remaining = self.store.entries.count_unextracted(scope, retry_policy())
        unanswered = self.store.entries.count_unextracted(scope) - remaining
        if unanswered:
            many = "1 exchange" if unanswered == 1 else f"{unanswered} exchanges"
            rest = f"{many} went unanswered {MOST_TRIES} times or more: left alone for a day"
            notes = (*notes, f"{rest}; `mindex conversation extract --again` asks all the same")
        in_vain = bool(run.failed) and not run.processed
        return ExtractionReport(run.processed, run.facts, remaining, notes, unanswered, in_vain)

    def extract_facts_of(self, turn: Record) -> ExtractionReport:
        """Ask one exchange for its facts now, if there is a model and the settings say so; a failure is a note."""
        from mindex.model import ExtractionReport

        if not self.settings.flag("generation.extract_facts"):
            return ExtractionReport()
        try:
            generator = self.generator
            if generator is None:
                return ExtractionReport()
            extractor = self._extractor(generator)
            facts = extractor.take(turn)
            return ExtractionReport(1, facts, notes=extractor.notes, new=self.store.retrieval.records(extractor.new))
        except MindexError as error:
            return ExtractionReport(notes=(f"no facts were extracted: {error}",))

    def _extractor(self, generator: Generator) -> FactExtractor:
        from mindex.memories.fact_extraction import FactExtractor

        return FactExtractor(self.store, generator, self._memories, self._followed)

    def _extract_soon(self, turn: Record) -> None:
        """Ask an exchange that was just told: now or, in a server, behind its back."""
        if not self.settings.flag("generation.extract_facts") or self.settings.text("generation.provider") == "none":
            return
        if not self.embeds_in_background:
            for note in self.extract_facts_of(turn).notes:
                self._logger.info(note)
            return
        with self._extracting:
            self._unasked.append(turn.id)
            if self._facts_thread is None and not self._leaving.is_set():
                self._facts_thread = threading.Thread(target=self._keep_extracting, name="mindex-facts", daemon=True)
                self._facts_thread.start()

    def _keep_extracting(self) -> None:
        while True:
            with self._extracting:  # under the lock: whoever tells next sees either this thread or none
                if not self._unasked or self._leaving.is_set():
                    self._facts_thread = None
                    return
                id_ = self._unasked.popleft()
            try:
                turn = self.store.retrieval.record(id_)
                if turn is not None and turn.retired_at is None:
                    for note in self.extract_facts_of(turn).notes:
                        self._logger.info(note)
            except Exception as error:  # the exchange is stored and not marked: `conversation extract` asks it again
                self._logger.debug("no facts out of %s: %s", id_, error)

    def stop_embedding(self, seconds: float = 3.0) -> None:
        """Let the background finish what it is at, facts as well as vectors, and begin nothing new."""
        until = monotonic() + seconds
        super().stop_embedding(seconds)
        with self._extracting:
            thread = self._facts_thread
        if thread is not None:
            thread.join(max(0.0, until - monotonic()))

    # ── fewer memories that say as much ───────────────────────────────────────────────────────────────────────

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
        """Which old memories one could stand for: near-duplicates, and long tails of trifles.

        Nothing is changed without `apply`; with it the originals are retired for the one that stands for them, and
        stay in the history: each proposal is carried out whole or not at all, and one `undo` takes it back.
        `older_than` spares what was told since (None: nothing is spared); `most` looks at the oldest so many only.
        """
        from mindex.memories.consolidation import Consolidator
        from mindex.memories.merge import apply_merge
        from mindex.model import Consolidation

        if unknown := [type_ for type_ in types if type_ not in TYPES]:
            raise UsageError(f"unknown type '{unknown[0]}'", f"use one of {', '.join(TYPES)}")
        if limit < 1:
            raise UsageError(f"limit {limit} is too small", f"use 1 to {_MOST_PROPOSALS}")
        scope = Filters(kinds=("memory",), types=tuple(types), agent=agent or self.settings.text("agent"))
        spared = None if older_than is None else parse_time(older_than)
        memories = self._old(replace(scope, before=spared), most)
        younger = 0 if spared is None else self.store.retrieval.list(replace(scope, after=spared), limit=1).total
        notes = [f"limit cut to {_MOST_PROPOSALS}"] if limit > _MOST_PROPOSALS else []
        model = self.embedder.model if self.embedder is not None else None
        consolidator = Consolidator(self.store, model, self._writer(notes), self._crosses)
        done: list[Proposal] = []
        for proposal in islice(consolidator.proposals(memories), min(limit, _MOST_PROPOSALS)):
            if not apply:
                done.append(proposal)
                continue
            try:
                done.append(apply_merge(self.store, self._memories, proposal))
            except MindexError as error:  # the others are carried out, and this one is named
                notes.append(f"left as it was: {error}")
                done.append(proposal)
        if apply and (new := [one.applied for one in done if one.applied]):
            notes += self._vectors_follow(*new)
        return Consolidation(tuple(done), len(memories), (*notes, *consolidator.notes), younger, older_than or "")

    def _writer(self, notes: list[str]) -> Generator | None:
        try:
            return self.generator
        except MindexError as error:
            notes.append(f"merged by rule: {error}")
            return None

    def _old(self, scope: Filters, most: int | None) -> list[Record]:
        """Live memories, oldest first."""
        total = self.store.retrieval.list(scope, limit=1).total
        found: list[Record] = []
        offset = 0 if most is None else max(0, total - most)
        while page := self.store.retrieval.list(scope, limit=_LISTED, offset=offset + len(found)).records:
            found += page
        return found[::-1]
