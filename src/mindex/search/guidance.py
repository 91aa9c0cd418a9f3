"""Notes of a search that say what the caller can do next, with the commands of the caller's interface."""

from collections.abc import Mapping

from mindex.datatypes import Answer, Filters, Record
from mindex.datatypes.guidance import Guidance
from mindex.store.base import Store
from mindex.values import replace

# Characters of a filter that a note repeats.
_MAX_NAMED = 100


def with_notes(answer: Answer, *notes: str) -> Answer:
    """The answer with further notes; empty ones are left out."""
    said = tuple(filter(None, notes))
    return replace(answer, notes=(*answer.notes, *said)) if said else answer


def expired_note(count: int, guidance: Guidance) -> str:
    """Say how many expired entries match, and how to show them."""
    what = "it" if count == 1 else "them"
    shown = f"{guidance.include_expired} shows {what}" if guidance.include_expired else f"no search shows {what}"
    return f"{count} expired; {shown}"


def conflict_note(newer: str, older: str, guidance: Guidance, *, more: bool) -> str:
    """Say how to resolve a conflict, and with `more` how to list all; '' if the caller can do nothing."""
    if not guidance.settle:
        return ""
    ended = guidance.settle.format(newer=newer, older=older)
    shows_all = f"; {guidance.all_conflicts} shows all conflicts" if more else ""
    return f"if {newer} is right: {ended} supersedes the other one{shows_all}"


def replaced_note(word: str, older: Record, guidance: Guidance) -> str:
    """Name a superseded memory, for a query with a word that asks for the past."""
    note = f"'{word}' asks for the past: {older.id} ({older.summary}) was superseded by {older.superseded_by}"
    return f"{note}; {guidance.history.format(id=older.id)} shows when" if guidance.history else note


def no_vectors_note(guidance: Guidance) -> str:
    return f"no record in scope has a vector yet; answered by keyword; {guidance.vectors}"


def unembedded_note(count: int, guidance: Guidance) -> str:
    hits = "1 hit has" if count == 1 else f"{count} hits have"
    return f"{hits} no vector yet; judged by keywords only; {guidance.vectors}"


def unfinished_note(store: Store, guidance: Guidance) -> str:
    """Name the folders whose first indexing is not complete; '' if there are none."""
    names = [collection.name for collection in store.files.collections() if collection.indexed_at is None]
    if not names:
        return ""
    return f"{', '.join(names)[:_MAX_NAMED]}: the first indexing is not complete; {guidance.wait}"


def vacancy_note(store: Store, filters: Filters, guidance: Guidance) -> str:
    """Say that no query can find anything; '' if one can."""
    if not store.retrieval.term_statistics(()).records:
        return (
            _limits_note(store, filters.agent)
            or unfinished_note(store, guidance)
            or f"the memory is empty; {guidance.fill}"
        )
    if store.retrieval.list(replace(filters, without=None), limit=1).total:
        return ""
    everything = Filters(agent=filters.agent, without=filters.without)
    if filters in (everything, replace(everything, kinds=("memory",))) and (
        limits := _limits_note(store, filters.agent)
    ):
        return limits
    if filters == everything:
        return f"agent {filters.agent} has no entries, and no folder is indexed; {guidance.fill}"
    if filters == replace(everything, kinds=("memory",)):
        return f"agent {filters.agent} has no memories yet; {guidance.add}"
    filtered: Mapping[str, tuple[str, ...]] = {
        "kind": filters.kinds,
        "type": filters.types,
        "collection": filters.collections,
        "path": (filters.path,) if filters.path else (),
        "tag": filters.tags,
        "entity": filters.entities,
    }
    named = [f"{name} {' or '.join(values)}" for name, values in filtered.items() if values]
    named += [f"tag {' and '.join(filters.all_tags)}"] if filters.all_tags else []
    return f"nothing in scope matches the filter{': ' if named else ''}{', '.join(named)[:_MAX_NAMED]}"


def _limits_note(store: Store, agent: str) -> str:
    """Say what a login may see if it was not granted the agent; otherwise ''."""
    granted = store.maintenance.status().granted if "maintenance" in store.capabilities else None
    if granted is None or any((one.scope, one.name) == ("agent", agent) for one in granted):
        return ""
    seen = ", ".join(map(str, granted))[:_MAX_NAMED] or "nothing"
    return f"this login cannot see entries of agent {agent}; it was granted {seen}"
