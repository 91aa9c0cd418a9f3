"""Conversations: each exchange is one record, found by its words with speaker and date in front."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from mindex.clock import now_ms
from mindex.errors import UsageError
from mindex.ids import new_id
from mindex.memories.summary import summarize
from mindex.memories.validation import validate_text
from mindex.model import Record
from mindex.redaction.redactor import Mode, redact
from mindex.store.base import Store

_LONGEST_NAME = 100


class Conversations:
    """Keeps exchanges in one store. Nothing is cut in storage, however long; retrieval reads it in pieces."""

    def __init__(self, store: Store, secrets: Mode, by: str) -> None:
        self._store = store
        self._secrets = secrets
        self._by = by

    def add(
        self,
        user_message: str,
        agent_response: str,
        *,
        agent: str,
        session_id: str = "",
        tags: Sequence[str] = (),
        speaker: str = "",
        at: int | None = None,
    ) -> tuple[Record, tuple[str, ...]]:
        """Keep one exchange; answers the record and which kinds of secrets were left out."""
        if not user_message.strip() and not agent_response.strip():
            raise UsageError("both sides of the exchange are empty", "give what was said")
        validate_text(user_message + agent_response)
        asked, answered = redact(user_message, self._secrets), redact(agent_response, self._secrets)
        moment = at or now_ms()
        record = turn(
            asked.text.strip(),
            answered.text.strip(),
            agent=agent,
            session_id=redact(session_id, self._secrets).text.strip() or new_id(),
            tags=tuple(redact(tag, self._secrets).text for tag in tags),
            speaker=" ".join(redact(speaker, self._secrets).text.split())[:_LONGEST_NAME],
            at=moment,
        )
        self._store.entries.add([record], by=self._by)
        return record, tuple(dict.fromkeys((*asked.redacted, *answered.redacted)))


def turn(
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
    """An exchange as a record. The date in words beats an ISO date for the model, and the speakers' names help most."""
    day = datetime.fromtimestamp(at / 1000, UTC)
    date = f"{day.day} {day.strftime('%B %Y')}"
    sides = ((speaker or "user", user_message), (agent, agent_response))
    parts = [f"{name} ({date}): {said}" for name, said in sides if said]
    fields = {"session_id": session_id, "user_message": user_message, "agent_response": agent_response}
    return Record(
        id=id_ or new_id(),
        kind="turn",
        text="\n\n".join(parts),
        title=f"Conversation of {date}",
        tags=tags,
        agent=agent,
        created_at=at,
        updated_at=at,
        source=source,
        summary=summarize(user_message or agent_response),
        fields=fields | ({"speaker": speaker} if speaker else {}),
    )
