"""How records came and were returned, as an engine counts it."""

from collections.abc import Mapping

from mindex.values import dataclass


@dataclass(frozen=True, slots=True)
class UsageCounts:
    """Live records of a scope, by the day on which they were created, and what was returned of them.

    A day is the number of days since 1970, in UTC.
    """

    entries: Mapping[int, int]  # day → how many
    chunks: Mapping[int, int]
    recalls: Mapping[int, int]  # day → how often an entry was returned, as far as the access log goes back
    most_recalled: tuple[tuple[str, int, int], ...]  # id, how often, when last; the most often returned first
    memories: int
    never_recalled: int  # of the memories
    unused: tuple[str, ...]  # ids of those, the most important first, then the oldest
