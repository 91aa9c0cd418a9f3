"""Turns that hooks capture: stored once, redacted, with the facts that the user stated, as one batch.

No model is called: vectors, and facts by a language model where one is configured, follow with the next server or
`mindex backfill`.
"""

from collections.abc import Sequence
from dataclasses import replace

from mindex.clock import DAY_MS, now_ms
from mindex.datatypes import AddResult, Filters, Record
from mindex.datatypes.consolidation import FROM
from mindex.datatypes.records import CAPTURED, PROJECT_TAG
from mindex.entries.conversations import make_turn
from mindex.entries.entries import Entries
from mindex.entries.fact_extraction import FactExtraction
from mindex.entries.new_memory import NewMemory
from mindex.entries.stated_facts import stated_facts
from mindex.errors import SecretError, UsageError
from mindex.limits import MAX_NAME, MAX_TAG
from mindex.store.transactions import in_transaction
from mindex.values import dataclass

_SPEAKER = "assistant"
# Facts are extracted from at most this number of turns at once, and only from recent ones: each may cost a model call.
_MAX_EXTRACTED, _EXTRACTED_DAYS = 10, 7


@dataclass(frozen=True, slots=True)
class CapturedTurn:
    """A turn as a transcript has it. The same turn always has the same `id`."""

    id: str
    session_id: str
    at: int
    message: str
    answer: str
    origin: str  # the program, and what it calls the turn
    cwd: str = ""
    project: str = ""
    replaces: str = ""  # the id of the record of this turn when it was shorter


@dataclass(frozen=True, slots=True)
class CaptureResult:
    """The ids of what was stored."""

    turns: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()


class Capture:
    """`memory.capture`: store the turns of clients, for hooks."""

    def __init__(self, entries: Entries, extraction: FactExtraction) -> None:
        self._entries = entries
        self._store = entries.store
        self._extraction = extraction
        self._failed: set[str] = set()  # turns that the language model failed on: the next process tries them again

    @property
    def has_model(self) -> bool:
        """Whether a language model is configured that extracts facts; without one, rules do."""
        return self._extraction.is_on

    def add(self, turns: Sequence[CapturedTurn]) -> CaptureResult:
        """Store new turns, and the facts that they state, in one batch.

        A turn that was forgotten stays so. In strict mode a turn with a secret is left out.
        """
        records = [(turn, record) for turn in turns if (record := self._record(turn)) is not None]
        if not records:
            return CaptureResult()
        by_rules = not self.has_model

        def store(_: int) -> CaptureResult:
            stored: list[str] = []
            facts: list[str] = []
            known = self._store.entries.owners([record.id for _, record in records])
            for turn, record in records:
                if record.id in known:
                    continue
                self._store.entries.add([record], by=self._entries.agent, reason="captured by a hook", once=True)
                stored.append(record.id)
                self._retire(turn.replaces, record.id)
                if by_rules:
                    facts += (one.id for one in self._add_facts(turn, record) if one.created)
            return CaptureResult(tuple(stored), tuple(facts))

        return in_transaction(self._store.entries, store, batch=True)

    def extract_facts(self) -> int:
        """Extract facts from captured turns that the language model has not read. Returns their number.

        It ends with the first failure.
        """
        if not self.has_model:
            return 0
        scope = Filters(kinds=("turn",), agent="*", after=now_ms() - _EXTRACTED_DAYS * DAY_MS)
        waiting = [
            turn
            for turn in self._store.retrieval.list(scope, limit=50).records
            if turn.source.startswith(f"{CAPTURED}:")
            and turn.id not in self._failed
            and self._store.entries.is_unextracted(turn.id)
        ]
        done = 0
        for turn in waiting[:_MAX_EXTRACTED]:
            if not self._extraction.extract_one(turn).processed:
                self._failed.add(turn.id)
                break
            done += 1
        return done

    def _record(self, turn: CapturedTurn) -> Record | None:
        redactor = self._entries.redactor
        try:
            user, answer = redactor.redact_pair(turn.message, turn.answer)
            session_id, source, cwd, *tags = map(
                redactor.redact_text, (turn.session_id[:MAX_NAME], f"{CAPTURED}:{turn.origin}", turn.cwd, *_tags(turn))
            )
        except SecretError:
            return None
        if not user.text.strip():  # nothing was asked, or all of it is private
            return None
        record = make_turn(
            user.text.strip(),
            answer.text.strip(),
            agent=_SPEAKER,
            session_id=session_id,
            tags=tuple(tags),
            at=turn.at,
            id_=turn.id,
            source=source,
        )
        fields = {**record.fields, "cwd": cwd} if cwd else record.fields
        return replace(record, agent=self._entries.owner(None), fields=fields)

    def _retire(self, old: str, new: str) -> None:
        if not old or (record := self._store.retrieval.record(old)) is None or record.retired_at is not None:
            return
        self._entries.supersede(record, new, "the turn went on")

    def _add_facts(self, turn: CapturedTurn, record: Record) -> list[AddResult]:
        """Add what the user states in a turn; the memory is linked to the turn."""
        added = []
        for fact in stated_facts(str(record.fields["user_message"])):
            memory = NewMemory(
                fact.text,
                type=fact.type,
                confidence=fact.confidence,
                source=f"{CAPTURED}:{record.id}",
                context="stated by the user, found by a rule",
                # What a user is or likes holds everywhere, a decision in its project.
                tags=_tags(turn) if fact.type == "decision" else (),
                agent=record.agent,
            )
            try:
                result, _ = self._entries.insert(memory)
            except (SecretError, UsageError):  # a secret, in strict mode; or nothing is left of it
                continue
            self._store.entries.link([(result.id, record.id, FROM, fact.confidence)])
            added.append(result)
        return added


def _tags(turn: CapturedTurn) -> tuple[str, ...]:
    return (f"{PROJECT_TAG}{turn.project}"[:MAX_TAG],) if turn.project else ()
