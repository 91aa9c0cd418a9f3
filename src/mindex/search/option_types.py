"""The options of `Memory.search`: written by scripts/reference from `mindex.search.options`."""

from collections.abc import Sequence
from typing import TypedDict

from mindex.datatypes import Mode
from mindex.datatypes.guidance import Guidance


class Scope(TypedDict, total=False):
    """What `Memory.search` and `Memory.filters` take to narrow what is seen. Without any: one agent, everything."""

    kinds: Sequence[str]  # Only records of this kind
    types: Sequence[str]  # Only this type: decision, how-to, problem …
    collections: Sequence[str]  # Only this collection
    path: str  # Only files that match, or in this folder
    tags: Sequence[str]  # Only records with any of these tags
    all_tags: Sequence[str]  # Only records with all of these tags
    entities: Sequence[str]  # Only memories about this name
    min_importance: int | None  # Minimum importance, 1 to 10
    min_confidence: float | None  # Minimum confidence, 0 to 1
    after: str | None  # Not before this time: 2h, 7d, yesterday, last week, march, 2026-03-01
    before: str | None  # Before this time
    as_of: str | None  # Entries as of this time
    include_expired: bool  # Include expired memories
    session: str  # Only turns of this session
    agent: str | None  # Agent whose entries are searched, `*` for all (default: setting)


class SearchOptions(Scope, total=False):
    """The options of `Memory.search`: how to search, and in which scope."""

    limit: int  # Number of results, at most 50
    offset: int  # Number of results to skip
    mode: Mode  # Retrieval mode
    fusion: str  # Fusion method (default: setting)
    current_file: str  # File being edited; boosts its domain
    rerank: bool | None  # Rerank the first 40 with a cross-encoder (default: if configured)
    floor: float | None  # Minimum relevance of a hit, 0 to 1 (default: setting)
    around: int  # Number of turns before and after each turn
    expand: bool  # Also search LLM-written rewordings
    inside_words: bool  # Find each word of the query also inside other words
    logged: bool  # Count the hits as accessed; off while a query is being typed
    vector_weight: float | None  # Weight of vectors in a hybrid score, 0 to 1 (default: that of the fusion)
    keyword_weight: float | None  # Weight of keywords in a hybrid score, 0 to 1 (default: that of the fusion)
    guidance: Guidance | None  # Words of the notes that say what to do next
    passages: bool  # Add the cosines by which passages are chosen
    now: str | None  # Time at which the question is asked (default: now)
    weak: bool | None  # Also show weak hits, unless a floor is given (default: yes)
