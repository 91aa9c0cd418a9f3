"""The options of a memory: written by scripts/reference from `mindex.entries.options`."""

from collections.abc import Mapping, Sequence
from typing import TypedDict


class Properties(TypedDict, total=False):
    """The properties of a memory that `Memory.add` and `Memory.update` take."""

    # One of fact, preference, decision, event, insight, task, relationship, entity, self, background, pattern, project,
    # contact, reference, how-to, problem
    type: str
    importance: int | None  # Importance, 1 to 10 (default: estimated)
    confidence: float  # 0 to 1
    tags: Sequence[str]  # Tag
    entities: Sequence[str] | None  # Entity name; default: detected
    summary: str  # Summary, at most 20 words (default: first sentence)
    context: str  # Context, for example a project
    source: str  # Source
    supersedes: str  # Id of the memory that this one replaces
    anchor: str  # File lines that the memory is about
    fields: Mapping[str, object] | None  # Fields that are stored with it and not searched


class AddOptions(Properties, total=False):
    """The options of `Memory.add`. Rules fill in the importance, the entities and the summary when not given."""

    expires: str | int | None  # Expiry: 30d, 2h, friday, next week, 2027-01-31
    agent: str | None  # Agent that the memory belongs to (default: setting)
    embed: bool  # Make its vector now, before the call returns


class Changes(Properties, total=False):
    """The properties that `Memory.update` replaces."""

    text: str  # Text of the memory
    expires: str | int | None  # Expiry: 30d, 2h, friday, next week, 2027-01-31
