"""Links between records, and the keys by which tables name a record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mindex.clock import now_ms
from mindex.store.results import NewLink

if TYPE_CHECKING:
    from mindex.store.export_rows import Link
    from mindex.store.sql.engine import Statements

_KEYS = "SELECT id, $key FROM records WHERE id $among"
_PUT = """
INSERT INTO links (source, target, kind, weight, created_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (source, kind, target) DO {otherwise}
"""
# The time stays the first one: what embeds an imported record finds its links again.
_SET = _PUT.format(otherwise="UPDATE SET weight = excluded.weight")
_ADD = _PUT.format(otherwise="NOTHING")
# Links are stored in both directions, so every end is the source of one.
_PAIRS = """
WITH live AS MATERIALIZED (
    SELECT DISTINCT r.id, r.$key AS record FROM links l JOIN records r ON r.$key = l.source
    WHERE l.kind = ? AND r.retired_at IS NULL AND ? IN ('*', r.agent)
)
SELECT a.id, b.id FROM links l JOIN live a ON a.record = l.source JOIN live b ON b.record = l.target
WHERE l.kind = ? AND a.id < b.id ORDER BY a.id, b.id
"""


def read_keys(statements: Statements, ids: Iterable[str]) -> dict[str, object]:
    """The key of each of these records that exists."""
    return dict(statements.among(_KEYS, ids))


def set_links(statements: Statements, links: Sequence[NewLink]) -> None:
    """See `EntryStore.link`."""
    if not links:
        return
    keys, now = read_keys(statements, {id_ for link in links for id_ in link[:2]}), now_ms()
    both = [(ends, kind, weight) for one, other, kind, weight in links for ends in ((one, other), (other, one))]
    statements.defer_many(
        _SET,
        [
            (keys[source], keys[target], kind, weight, now)
            for (source, target), kind, weight in sorted(both)  # in order: two writers never wait for each other
            if source in keys and target in keys
        ],
    )


def restore_links(statements: Statements, links: Sequence[tuple[str, Link]]) -> int:
    """See `EntryStore.restore_links`."""
    keys = read_keys(statements, {id_ for source, link in links for id_ in (source, link.target)})
    rows = [
        (keys[source], keys[link.target], link.kind, link.weight, link.created_at)
        for source, link in links
        if source in keys and link.target in keys
    ]
    return statements.run_many(_ADD, rows)


def read_linked_pairs(statements: Statements, kind: str, agent: str) -> tuple[tuple[str, str], ...]:
    """See `EntryStore.linked_pairs`."""
    return tuple((first, second) for first, second in statements.rows(_PAIRS, kind, agent, kind))
