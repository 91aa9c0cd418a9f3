"""Records that two machines made of the same, and circles of records that replaced each other.

What no machine alone would allow can come of two: two live memories of one text, two contacts of one address, two
memories that supersede each other. The rules choose by the time and id of the records, which never change, so that
every machine chooses the same.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from mindex.datatypes import Record
from mindex.entries.field_specs import FIELDS, UNIQUE, record_values
from mindex.errors import ConflictError
from mindex.store.base import Store

_BY = "sync"


@dataclass(frozen=True, slots=True)
class SameRecords:
    """A record that stays, one that was retired for it, and the fields in which they differ."""

    kept: Record
    retired: Record
    differing: tuple[str, ...] = ()


def unify(store: Store, ids: Iterable[str]) -> tuple[SameRecords, ...]:
    """Retire every record that says the same as an older one. What only the retired one had, the other one gets.

    `ids` are the records that were changed by other machines.
    """
    found: list[SameRecords] = []
    for id_ in sorted(ids):
        with store.entries.transaction():
            pairs, left = [], id_
            while (pair := _same(store, left)) is not None:
                pairs.append(pair)
                _retire(store, pair)
                left = pair.kept.id
            for pair in pairs:  # not before the last one is retired: no store changes one of two live equal memories
                _complete(store, pair)
            found += pairs
    return tuple(found)


def _same(store: Store, id_: str) -> SameRecords | None:
    record = store.retrieval.record(id_)
    if record is None or record.kind == "chunk":
        return None
    twin = store.sync.duplicate_of(id_, UNIQUE.get(record.kind, ""))
    other = store.retrieval.record(twin) if twin else None
    if other is None:
        return None
    kept, retired = sorted((record, other), key=_age)
    ours, theirs = kept.fields, retired.fields
    differing = tuple(name for name, value in theirs.items() if ours.get(name, value) != value)
    if kept.kind == "note" and kept.text != retired.text:
        differing = ("text",)
    return SameRecords(kept, retired, differing)


def _age(record: Record) -> tuple[int, str]:
    return record.created_at, record.id


def _retire(store: Store, pair: SameRecords) -> None:
    with store.entries.transaction() as now:
        store.entries.revise(
            pair.retired.id,
            lambda record: replace(record, retired_at=now, superseded_by=pair.kept.id),
            by=_BY,
            action="supersede",
            reason=f"the same as {pair.kept.id}, from another machine",
        )


def _complete(store: Store, pair: SameRecords) -> None:
    """Give the record that stays what only the other one has, which may be a record that was retired before it."""
    kept, retired = (store.retrieval.record(one.id) or one for one in (pair.kept, pair.retired))
    if (together := _together(kept, retired)) != kept:
        store.entries.revise(
            kept.id,
            lambda _: together,
            by=_BY,
            action="update",
            reason=f"with what only {retired.id} had, from another machine",
        )


def _together(kept: Record, retired: Record) -> Record:
    """The record that stays, with the tags and fields that only the other one has."""
    tags = tuple(dict.fromkeys((*kept.tags, *retired.tags)))
    fields = {**kept.fields, **{name: value for name, value in retired.fields.items() if name not in kept.fields}}
    if fields == kept.fields or kept.kind not in FIELDS:
        return replace(kept, tags=tags)
    made: dict[str, Any] = record_values(kept.kind, fields)
    return replace(kept, tags=tags, **made)


def restore_circles(store: Store, ids: Iterable[str]) -> tuple[str, ...]:
    """Bring back the oldest of records that superseded each other on different machines: none would be found.

    Returns the ids of the restored ones.
    """
    restored = []
    for id_ in sorted(ids):
        with store.entries.transaction():
            circle = _circle(store, id_)
            if not circle:
                continue
            oldest = min(circle, key=_age)
            try:
                store.entries.revise(
                    oldest.id,
                    lambda record: replace(record, retired_at=None, superseded_by=""),
                    by=_BY,
                    action="restore",
                    reason="it was superseded in a circle, on two machines",
                    unique=UNIQUE.get(oldest.kind, ""),
                )
            except ConflictError:
                continue  # another live record says the same
            restored.append(oldest.id)
    return tuple(restored)


def _circle(store: Store, id_: str) -> list[Record]:
    """The retired records that lead from one back to itself; none if they end."""
    circle: list[Record] = []
    following = id_
    while following and following not in (one.id for one in circle):
        record = store.retrieval.record(following)
        if record is None or record.retired_at is None:
            return []
        circle.append(record)
        following = record.superseded_by
    return circle if following == id_ else []
