"""What a search answers when no hit is above the floor: records that hold the words literally, or a note."""

from mindex.model import Answer, Hit, Query, Record, Stage, Trace
from mindex.store.base import Store

_SUBSTRING_RELEVANCE = 0.5
_SUBSTRING_WORDS = 20


def substring_answer(store: Store, query: Query, text: str, notes: tuple[str, ...], limit: int) -> Answer | None:
    """The last tier: records that hold every word literally, parts of words included; None when there is none."""
    words = [word for word in text.split() if len(word) > 1] or text.split()
    ids = store.retrieval.substring(words[:_SUBSTRING_WORDS], query.filters, limit) if words else ()
    if not ids:
        return None
    shown = store.retrieval.records(ids[query.offset : query.offset + query.limit])
    stages = (Stage("substring", _SUBSTRING_RELEVANCE),)
    return Answer(
        query=query.text,
        tier="substring",
        fusion=query.fusion,
        total=len(ids),
        has_more=query.offset + len(shown) < len(ids),
        hits=tuple(Hit(record, _SUBSTRING_RELEVANCE, _SUBSTRING_RELEVANCE, Trace(stages)) for record in shown),
        notes=(*notes, "nothing is near enough by words or meaning; these hold the text literally"),
        total_capped=len(ids) == limit,
        offset=query.offset,
    )


def nothing_relevant_note(nearest: Record | None, relevance: float) -> str:
    """Says that nothing is relevant, and names the nearest record if there is one."""
    if nearest is None:
        return "nothing relevant"
    place = f"{nearest.path}:{nearest.first_line}" if nearest.path else nearest.id
    return f"nothing relevant; the nearest is {place} (relevance {relevance:.2f})"
