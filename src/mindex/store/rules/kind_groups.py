"""The three groups of kinds that are retrieved and judged apart: chunks of files, conversation turns, other entries."""

from collections.abc import Iterable
from typing import Literal, TypeAlias

from mindex.store.results import ScoredRecord

KindGroup: TypeAlias = Literal["file", "turn", "entry"]


def kind_group(kind: str) -> KindGroup:
    if kind == "chunk":
        return "file"
    return "turn" if kind == "turn" else "entry"


def first_of_each_group(hits: Iterable[ScoredRecord], count: int) -> list[ScoredRecord]:
    """The first `count` hits of each group, in their order."""
    groups: dict[str, KindGroup] = {}
    taken: dict[KindGroup, int] = {"file": 0, "turn": 0, "entry": 0}
    found = []
    for hit in hits:
        group = groups.get(hit.kind) or groups.setdefault(hit.kind, kind_group(hit.kind))
        if taken[group] < count:
            taken[group] += 1
            found.append(hit)
    return found
