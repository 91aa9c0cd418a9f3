"""Contacts, projects and skills: records like any other, whose words are made of their fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import isfinite

from mindex.clock import now_ms
from mindex.errors import AmbiguousIdError, ConflictError, NotFoundError, UsageError
from mindex.ids import new_id
from mindex.memories.field_specs import UNIQUE, ThingKind, checked, described
from mindex.memories.find_entry import find_entry
from mindex.memories.skill_schedule import checked_trigger
from mindex.model import Change, Filters, Record
from mindex.store.base import Page, Store

Boundary = Callable[[str], str]

_INVOLVED = "contact"  # of a project: whoever is its primary contact or takes part
_DEEPEST = 50


class Things:
    """Creates, finds and changes them in one store."""

    def __init__(self, store: Store, redact: Boundary, by: str) -> None:
        self._store = store
        self._crosses = redact
        self._by = by

    def create(self, kind: ThingKind, values: Mapping[str, object], agent: str) -> Record:
        fields = checked(kind, self._cleaned(values))
        self._check(kind, fields)
        now = now_ms()
        bare = Record(id=new_id(), kind=kind, text="", agent=agent, created_at=now, updated_at=now)
        record = replace(bare, **described(kind, fields))  # type: ignore[arg-type]  # checked by name
        added = self._store.entries.add([record], by=self._by, unique=UNIQUE[kind])[0]
        if not added.created:
            raise _taken(kind, fields, added.id)
        return record

    def update(
        self, kind: ThingKind, id_: str, values: Mapping[str, object], reason: str = "", *, agent: str = "*"
    ) -> Change:
        if not values:
            raise UsageError("there is nothing to change", "give the fields that change")
        changes = checked(kind, self._cleaned(values), partial=True)
        existing = self.get(kind, id_, agent)

        def revised(record: Record) -> Record:
            fields = {**record.fields, **changes}
            self._check(kind, fields)
            return replace(record, **described(kind, fields))  # type: ignore[arg-type]  # checked by name

        return self._store.entries.revise(
            existing.id, revised, by=self._by, action="update", reason=self._crosses(reason), unique=UNIQUE[kind]
        )

    def get(self, kind: ThingKind, id_: str, agent: str = "*") -> Record:
        """By id, a unique start of it, or an agent's exact name for it."""
        ambiguous: AmbiguousIdError | None = None
        named = [one for one in self.all(kind, agent) if one.title.casefold() == id_.casefold()]
        if len(named) == 1:  # a name may happen to be the start of somebody else's id
            return named[0]
        try:
            record = find_entry(self._store, id_)
        except NotFoundError:
            pass
        except AmbiguousIdError as error:  # a short name may well be the start of ids
            ambiguous = error
        else:
            if record.kind == kind and record.retired_at is None:
                return record
        raise ambiguous or NotFoundError(f"there is no {kind} '{id_}'", f"`mindex {kind} list` shows them")

    def listed(self, kind: ThingKind, agent: str, wanted: Mapping[str, object], limit: int) -> Page:
        """Those whose fields equal what is wanted; of `name` a part is enough, whatever its case."""
        plain = {name: value for name, value in wanted.items() if name != _INVOLVED}
        involved = {name: value for name, value in wanted.items() if name == _INVOLVED and kind == "project"}
        if len(plain) + len(involved) < len(wanted):
            raise UsageError(f"a {kind} has no '{_INVOLVED}'", "only projects have people")
        sought = {**checked(kind, plain, partial=True), **involved}
        matching = [record for record in self.all(kind, agent) if _matches(record.fields, sought)]
        return Page(tuple(matching[:limit]), len(matching))

    def delete(self, kind: ThingKind, id_: str, reason: str = "", *, agent: str = "*") -> Change:
        """Forget it: out of lists and searches, and back with `restore` or `undo`."""
        now = now_ms()
        return self._store.entries.revise(
            self.get(kind, id_, agent).id,
            lambda record: replace(record, retired_at=now),
            by=self._by,
            action="forget",
            reason=self._crosses(reason),
        )

    def all(self, kind: ThingKind, agent: str) -> list[Record]:
        """Oldest first."""
        found: list[Record] = []
        while page := self._store.retrieval.list(
            Filters(kinds=(kind,), agent=agent), limit=500, offset=len(found)
        ).records:
            found += page
        return sorted(found, key=lambda record: (record.agent, record.number or 0))

    def _cleaned(self, fields: Mapping[str, object]) -> dict[str, object]:
        """Every text in them, however deep, crosses the boundary."""
        return {name: cleaned(value, self._crosses, name) for name, value in fields.items()}

    def _check(self, kind: ThingKind, fields: Mapping[str, object]) -> None:
        if kind == "skill":
            checked_trigger(str(fields["trigger_type"]), fields.get("trigger_config") or {})


def cleaned(value: object, redact: Boundary, name: str = "", depth: int = 0) -> object:
    """A value of JSON as it may be stored: each text crosses with its name in front, which may be what betrays it."""
    if depth > _DEEPEST:
        raise UsageError(f"a value is nested more than {_DEEPEST} deep", "store it flatter, or as a text")
    if isinstance(value, str):
        return _labelled(value, redact, name)
    if isinstance(value, list | tuple):
        return [cleaned(part, redact, name, depth + 1) for part in value]
    if isinstance(value, dict):
        return {redact(str(key)): cleaned(part, redact, redact(str(key)), depth + 1) for key, part in value.items()}
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) or (isinstance(value, float) and isfinite(value)):
        # A card or a PIN is a secret as a number, too; any other number stays one.
        told = _labelled(str(value), redact, name)
        return value if told == str(value) else told
    raise UsageError(f"{value!r} cannot be stored", "use texts, numbers, true, false, lists and objects")


def _labelled(text: str, redact: Boundary, name: str) -> str:
    label = f"{name}: " if name else ""
    crossed = redact(label + text)
    return crossed.removeprefix(label) if crossed.startswith(label) else redact(text)


def _taken(kind: ThingKind, fields: Mapping[str, object], id_: str) -> ConflictError:
    unique = UNIQUE[kind]
    return ConflictError(
        f"{kind} '{id_}' has the {unique} {fields[unique]} already", f"update it, or choose another {unique}"
    )


def _matches(fields: Mapping[str, object], wanted: Mapping[str, object]) -> bool:
    for name, value in wanted.items():
        held = fields.get(name)
        if name == "name":
            if str(value).casefold() not in str(held or "").casefold():
                return False
        elif name == _INVOLVED:
            participants = fields.get("participants")
            involved = [fields.get("primary_contact_id"), *(participants if isinstance(participants, list) else [])]
            if value not in involved:
                return False
        elif str(held if held is not None else "").casefold() != str(value).casefold():
            return False
    return True
