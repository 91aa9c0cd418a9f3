"""A conversation turn as a record."""

from datetime import UTC, datetime

from mindex.datatypes import Record
from mindex.entries.summary import summarize
from mindex.ids import new_id


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
