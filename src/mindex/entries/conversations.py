"""Conversations: each turn is one record, found by its text with speaker and date in front."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from mindex.clock import now_ms
from mindex.datatypes import ExtractionReport, Filters, Record, Report, SessionPage
from mindex.entries.references import find_entry, list_all
from mindex.entries.summary import summarize
from mindex.entries.validation import validate_length, validate_limit, validate_tags, validate_text
from mindex.errors import UsageError
from mindex.ids import new_id
from mindex.limits import MAX_NAME
from mindex.times.typed import parse_time
from mindex.values import dataclass

if TYPE_CHECKING:  # importers make turns, and need no services
    from mindex.entries.entries import Entries
    from mindex.entries.fact_extraction import FactExtraction

MAX_SESSIONS = 200  # that are listed at once


@dataclass(frozen=True, slots=True)
class Conversations:
    """`memory.conversations`: turns and sessions.

    A turn of any length is stored whole; retrieval reads it in pieces.
    """

    _entries: Entries
    _extraction: FactExtraction

    def add(
        self,
        user_message: str,
        agent_response: str,
        *,
        session_id: str = "",
        tags: Sequence[str] = (),
        speaker: str = "",
        at: str | None = None,
        agent: str | None = None,
        extract: bool = True,
    ) -> tuple[Record, tuple[str, ...]]:
        """Add one turn. Returns its record and the kinds of secrets that were redacted.

        `speaker` names the author of `user_message`: people are searched for by name. With a language model
        configured, facts are extracted afterwards (`generation.extract_facts`); a caller that wants the report passes
        `extract=False` and calls `extract_facts_of`. `queue.notes` returns why it has no vector yet.
        """
        if not user_message.strip() and not agent_response.strip():
            raise UsageError("both messages of the turn are empty", "pass at least one")
        validate_text(user_message + agent_response)
        validate_length("session id", session_id, MAX_NAME)
        validate_length("name of the speaker", speaker, MAX_NAME)
        validate_tags(tags)
        agent = self._entries.owner(agent)
        moment = parse_time(at) if at else now_ms()
        redact_text = self._entries.redactor.redact_text
        user, response = self._entries.redactor.redact_pair(user_message, agent_response)
        record = make_turn(
            user.text.strip(),
            response.text.strip(),
            agent=agent,
            session_id=redact_text(session_id).strip() or new_id(),
            tags=tuple(map(redact_text, tags)),
            speaker=" ".join(redact_text(speaker).split()),
            at=moment,
        )
        self._entries.store.entries.add([record], by=self._entries.agent)
        self._entries.queue.embed(record.id)
        if extract:
            self._extraction.extract_later(record)
        return record, tuple(dict.fromkeys((*user.redacted, *response.redacted)))

    def around(self, id_: str, before: int = 2, after: int = 2) -> tuple[Record, ...]:
        """Return a turn with its neighbours in the same session, in order."""
        store = self._entries.store
        return store.entries.surrounding_turns(find_entry(store, id_).id, before, after)

    def session(self, session_id: str, *, agent: str | None = None) -> tuple[Record, ...]:
        """Return all turns of a session, in order; none if there is no such session."""
        if not session_id:
            return ()
        scope = Filters(kinds=("turn",), session=session_id, agent=agent or self._entries.agent)
        found = list_all(self._entries.store, scope)
        return tuple(sorted(found, key=lambda turn: (turn.created_at, turn.number or 0)))

    def list(self, *, limit: int = 20, offset: int = 0, agent: str | None = None) -> SessionPage:
        """Return the sessions of an agent (`*`: of all), the one with the latest turn first."""
        if offset < 0:
            raise UsageError(f"offset {offset} is too small", "use 0 or more")
        most = validate_limit(limit, MAX_SESSIONS)
        return self._entries.store.entries.sessions(agent or self._entries.agent, limit=most, offset=offset)

    def extract_facts(
        self, *, limit: int = 10, agent: str | None = None, again: bool = False, report: Report | None = None
    ) -> ExtractionReport:
        """Have a language model extract facts from turns that were not read yet; see `FactExtraction.extract`."""
        return self._extraction.extract(limit=limit, agent=agent or self._entries.agent, again=again, report=report)

    def extract_facts_of(self, turn: Record) -> ExtractionReport:
        """Extract the facts of one turn now, if the settings say so. A failure is a note."""
        return self._extraction.extract_one(turn)


def make_turn(
    user_message: str,
    agent_response: str,
    *,
    agent: str,
    session_id: str,
    tags: tuple[str, ...] = (),
    speaker: str = "",
    at: int,
    id_: str = "",
    source: str = "",
) -> Record:
    """A turn as a record. A date in words beats an ISO date for the model, and the speakers' names help most."""
    day = datetime.fromtimestamp(at / 1000, UTC)
    date = f"{day.day} {day.strftime('%B %Y')}"
    sides = ((speaker or "user", user_message), (agent, agent_response))
    fields = {"session_id": session_id, "user_message": user_message, "agent_response": agent_response}
    return Record(
        id=id_ or new_id(),
        kind="turn",
        text="\n\n".join(f"{name} ({date}): {text}" for name, text in sides if text),
        title=f"Conversation of {date}",
        tags=tags,
        agent=agent,
        created_at=at,
        updated_at=at,
        source=source,
        summary=summarize(user_message or agent_response),
        fields=fields | ({"speaker": speaker} if speaker else {}),
    )
