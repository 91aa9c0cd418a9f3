"""An edit: one change of one record as it travels between machines, and its line of JSON.

It names what it changed and nothing else, so that edits of different properties go together. Changes of JSON objects
are changes of places in them: two machines that change different places of one object both keep theirs. Lists and plain
values are changed whole. A line ends with a checksum; a reader ignores a line that was cut off or changed on its way.
Secrets are removed before an edit leaves a machine, and once more where it comes in.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, cast

from mindex.clock import FIRST_MS, LAST_MS
from mindex.datatypes import Kind, Record
from mindex.datatypes.record_properties import ENTRY_PROPERTIES
from mindex.nul import without_nul
from mindex.redaction.json_values import redact_value
from mindex.redaction.redactor import Redactor
from mindex.sync.stamps import is_stamp
from mindex.transfer.importers.source_files import MAX_VALUES
from mindex.transfer.jsonl_format import InvalidRow, decode_row, encode_value
from mindex.values import dataclass

MISSING = object()  # the value of a place that is not there


@dataclass(frozen=True, slots=True)
class FieldChange:
    """The new value at a path of names; MISSING removes it. An empty object only makes sure that there is one."""

    path: tuple[str, ...]
    value: object = MISSING


def field_changes(before: object, after: object, path: tuple[str, ...] = ()) -> Iterator[FieldChange]:
    """Yield what makes one object of another, in the order of its names."""
    if not isinstance(after, Mapping):
        if before is MISSING or type(before) is not type(after) or before != after:
            yield FieldChange(path, after)
        return
    if not isinstance(before, Mapping):
        before = {}
        if path and not after:
            yield FieldChange(path, {})
    for name in before:
        if name not in after:
            yield FieldChange((*path, name))
    for name, value in after.items():
        yield from field_changes(before.get(name, MISSING), value, (*path, name))


def value_at(fields: object, path: Sequence[str]) -> Any:
    """The value at a path; MISSING if there is none."""
    for name in path:
        if not isinstance(fields, Mapping) or name not in fields:
            return MISSING
        fields = fields[name]
    return fields


def with_changes(fields: Mapping[str, object], changes: Sequence[FieldChange]) -> dict[str, object]:
    """Return an object with changes applied in their order. Never fails: what is in the way of a path is replaced."""
    result = dict(fields)
    for change in changes:
        _apply(result, change)
    return result


def _apply(fields: dict[str, Any], change: FieldChange) -> None:
    *parents, name = change.path
    for parent in parents:
        below = fields.get(parent)
        if not isinstance(below, Mapping) and change.value is MISSING:
            return
        fields[parent] = dict(below) if isinstance(below, Mapping) else {}
        fields = fields[parent]
    if change.value is MISSING:
        fields.pop(name, None)
    elif change.value == {} and isinstance(change.value, Mapping):
        fields[name] = dict(fields[name]) if isinstance(fields.get(name), Mapping) else {}
    else:
        fields[name] = change.value


VERSION = 1
_ID = re.compile(r"[a-z0-9]{4,64}")
_SUM = re.compile(rb'(.*),"sum":"([0-9a-f]{16})"\}\r?\n', re.DOTALL)  # git may change line ends
_HEAD = re.compile(rb'\{"v":\d+,"stamp":"([a-z0-9.]{38})","record":"([a-z0-9]{4,64})"')
_DEEPEST = 50
_LONGEST_AGENT = 200
# The properties that an edit can set. The others are fixed when a record is made, or numbers of one machine.
SETTABLE = tuple(one for one in ENTRY_PROPERTIES if not one.fixed and one.name != "fields")
_SETTABLE_NAMES = {one.name: one for one in SETTABLE}
_TEXTS = ("by", "action", "reason", "batch", "undoes", "of", "parent")


@dataclass(frozen=True, slots=True)
class Origin:
    """What never changes of a record: the part of the edit that made it."""

    kind: Kind
    agent: str
    created_at: int


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of one record.

    `of` is the stamp of the edit that made the record, as far as the author knew; a purge removes all edits of what was
    made before it. `parent` is the digest of the state that the author changed, `over` has digests of the values that
    the edit replaced: where they differ from what is found, another machine changed the same at the same time.
    """

    stamp: str
    record: str
    purged: bool = False
    removed: tuple[str, ...] = ()  # by a purge: the stamps of the changes of its machine's database
    origin: Origin | None = None
    at: int = 0
    by: str = ""
    action: str = ""
    reason: str = ""
    batch: str = ""
    undoes: str = ""  # the stamp of the edit that it took back
    values: Mapping[str, object] = field(default_factory=dict)
    fields: tuple[FieldChange, ...] = ()
    of: str = ""
    parent: str = ""
    over: Mapping[str, str] = field(default_factory=dict)
    told_at: int | None = None  # when the text was added again before this edit, which is not a change


# ── encode ────────────────────────────────────────────────────────────────────────────────────────────────────


def encode_edit(edit: Edit) -> str:
    """Return the edit as a line of JSON, without checksum and line end."""
    line: dict[str, Any] = {"v": VERSION, "stamp": edit.stamp, "record": edit.record}
    if edit.purged:
        return compact({**line, "purged": True, **({"removed": list(edit.removed)} if edit.removed else {})})
    if edit.origin is not None:
        line["new"] = {name: getattr(edit.origin, name) for name in ("kind", "agent", "created_at")}
    line["at"] = edit.at
    line |= {name: getattr(edit, name) for name in _TEXTS if getattr(edit, name)}
    if edit.values:
        line["set"] = {name: encode_value(_SETTABLE_NAMES[name].value, value) for name, value in edit.values.items()}
    if edit.fields:
        line["fields"] = [
            [list(one.path)] if one.value is MISSING else [list(one.path), one.value] for one in edit.fields
        ]
    if edit.over:
        line["over"] = dict(edit.over)
    if edit.told_at is not None:
        line["told_at"] = edit.told_at
    return compact(line)


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def file_line(line: str) -> bytes:
    """Return a line as files have it: with its checksum."""
    body = line.encode("utf-8", "surrogatepass")
    return body[:-1] + f',"sum":"{checksum(body[:-1])}"}}\n'.encode()


def checksum(body: bytes) -> str:
    from hashlib import sha256  # loads OpenSSL, which only what syncs needs

    return sha256(body).hexdigest()[:16]


# ── decode ────────────────────────────────────────────────────────────────────────────────────────────────────


def head_of(line: bytes) -> tuple[str, str] | None:
    """The stamp and the record of a line that this program wrote, without reading the rest of it."""
    match = _HEAD.match(line)
    return (match[1].decode(), match[2].decode()) if match else None


def checked_line(line: bytes) -> tuple[str, str]:
    """Return the JSON of a line of a file, and its checksum. Raises InvalidRow when it was changed on its way."""
    match = _SUM.fullmatch(line)
    if match is None or checksum(match[1]) != match[2].decode():
        raise InvalidRow("its checksum is wrong: it was cut off or changed")
    if sum(map(line.count, (b"[", b"{", b","))) > MAX_VALUES:
        raise InvalidRow("it holds too many values")
    try:
        return f"{match[1].decode()}}}", match[2].decode()
    except UnicodeDecodeError:
        raise InvalidRow("it is not UTF-8") from None


def decode_edit(line: str) -> Edit:
    """Return the edit of a line of JSON. Raises InvalidRow for anything that this version does not write."""
    try:
        parsed = without_nul(json.loads(line))
    except (ValueError, RecursionError):
        raise InvalidRow("it is not JSON") from None
    if not isinstance(parsed, dict):
        raise InvalidRow("it is not a JSON object")
    version = parsed.get("v")
    if version != VERSION or isinstance(version, bool):
        raise InvalidRow(f"it has version {version!r:.20}, this mindex reads {VERSION}: upgrade it")
    stamp, record = parsed.get("stamp"), parsed.get("record")
    if not isinstance(stamp, str) or not is_stamp(stamp):
        raise InvalidRow("it has no stamp")
    if not isinstance(record, str) or not _ID.fullmatch(record):
        raise InvalidRow(f"{record!r:.40} is not a record id")
    if "purged" in parsed:
        if parsed["purged"] is not True:
            raise InvalidRow("'purged' is not true")
        return Edit(stamp, record, purged=True, removed=_removed(parsed.get("removed", [])))
    texts: dict[str, Any] = {name: _text(parsed, name) for name in _TEXTS}
    if not texts["action"] or any(texts[name] and not is_stamp(texts[name]) for name in ("undoes", "of")):
        raise InvalidRow("it does not say what was done")
    edit = Edit(
        stamp,
        record,
        origin=_origin(parsed.get("new")),
        at=_time(parsed.get("at")),
        values=_values(record, parsed.get("set", {})),
        fields=_field_changes(parsed.get("fields", [])),
        over=_over(parsed.get("over", {})),
        told_at=_time(parsed["told_at"]) if "told_at" in parsed else None,
    )
    return replace(edit, **texts)


def _removed(stamps: object) -> tuple[str, ...]:
    if not isinstance(stamps, list) or not all(isinstance(one, str) and is_stamp(one) for one in stamps):
        raise InvalidRow("'removed' is not a list of stamps")
    return tuple(stamps)


def _text(parsed: Mapping[str, Any], name: str) -> str:
    value = parsed.get(name, "")
    if not isinstance(value, str):
        raise InvalidRow(f"'{name}' is not a text")
    return value


def _time(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not FIRST_MS <= value <= LAST_MS:
        raise InvalidRow("it has a time that no calendar holds")
    return value


def _origin(new: object) -> Origin | None:
    if new is None:
        return None
    if not isinstance(new, dict) or not isinstance(new.get("kind"), str) or not isinstance(new.get("agent"), str):
        raise InvalidRow("a new record needs a kind and an agent")
    if not new["agent"].strip() or new["agent"] == "*" or len(new["agent"]) > _LONGEST_AGENT:
        raise InvalidRow("it belongs to no agent")
    return Origin(cast("Kind", new["kind"]), new["agent"], _time(new.get("created_at")))


def _values(record: str, values: object) -> dict[str, object]:
    if not isinstance(values, dict):
        raise InvalidRow("'set' is not an object")
    if unknown := sorted(values.keys() - _SETTABLE_NAMES.keys()):
        raise InvalidRow(f"it sets '{unknown[0]:.40}', which no edit can set")
    made = decode_row({"text": "", **values, "id": record, "kind": "memory"}).record
    decoded = {name: getattr(made, name) for name in values}
    for name, value in decoded.items():
        if value is None and _SETTABLE_NAMES[name].default is not None:
            raise InvalidRow(f"the {name} is not there")
    return decoded


def _field_changes(changes: object) -> tuple[FieldChange, ...]:
    if not isinstance(changes, list):
        raise InvalidRow("'fields' is not a list")
    return tuple(map(_field_change, changes))


def _field_change(change: object) -> FieldChange:
    if not isinstance(change, list) or not 1 <= len(change) <= 2:
        raise InvalidRow("a change of a field is a path and a value")
    path = change[0]
    if not isinstance(path, list) or not 1 <= len(path) <= _DEEPEST or not all(isinstance(one, str) for one in path):
        raise InvalidRow("the path of a field is a list of names")
    return FieldChange(tuple(path), *change[1:])


def _over(over: object) -> dict[str, str]:
    if not isinstance(over, dict) or not all(isinstance(one, str) for one in over.values()):
        raise InvalidRow("'over' is not an object of texts")
    return over


def encoded_value(record: Record, name: str) -> object:
    """A property of a record as JSON has it."""
    return encode_value(_SETTABLE_NAMES[name].value, getattr(record, name))


_REDACTED = frozenset(one.name for one in ENTRY_PROPERTIES if one.redacted)


def redact_edit(edit: Edit, redactor: Redactor) -> tuple[Edit, tuple[str, ...]]:
    """Return the edit without its secrets, and their kinds. The redactor must not be strict."""
    together = "\n".join(_texts(edit))
    # A line break is to every pattern what the end of a text is: searching all texts at once misses none.
    if redactor.redact_text(together) == together:
        return edit, ()
    kinds: dict[str, None] = {}

    def redacted(text: str) -> str:
        result = redactor.redact(text)
        kinds.update(dict.fromkeys(result.redacted))
        return result.text

    values = {name: _value(name, value, redacted) for name, value in edit.values.items()}
    clean = replace(
        edit,
        by=redacted(edit.by),
        reason=redacted(edit.reason),
        values=_without_parts(edit.values.get("text"), values),
        fields=tuple(_field(one, redacted) for one in edit.fields),
    )
    return clean, tuple(kinds)


def _without_parts(text: object, clean: dict[str, object]) -> dict[str, object]:
    """The values without names that occurred only in the removed text: a secret may be taken for one."""
    left = clean.get("text")
    if not isinstance(text, str) or not isinstance(left, str) or text == left:
        return clean
    return {
        name: tuple(one for one in value if one not in text or one in left) if isinstance(value, tuple) else value
        for name, value in clean.items()
    }


def _value(name: str, value: object, redacted: Callable[[str], str]) -> object:
    if name not in _REDACTED:
        return value
    if isinstance(value, tuple):
        return tuple(filter(None, map(redacted, value)))
    return redacted(value) if isinstance(value, str) else value


def _field(change: FieldChange, redacted: Callable[[str], str]) -> FieldChange:
    path = tuple(map(redacted, change.path))
    if change.value is MISSING:
        return FieldChange(path)
    return FieldChange(path, redact_value(change.value, redacted, path[-1]))


def _texts(edit: Edit) -> Iterator[str]:
    """Every text of an edit that may hold a secret, with its name in front, as it is redacted."""
    yield from (edit.by, edit.reason)
    for name, value in edit.values.items():
        if name in _REDACTED:
            yield from (value,) if isinstance(value, str) else map(str, value) if isinstance(value, tuple) else ()
    for change in edit.fields:
        yield from change.path
        if change.value is not MISSING:
            yield from _within(change.path[-1], change.value)


def _within(name: str, value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _within(str(key), inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _within(name, inner)
    elif value is not None:
        yield f"{name}: {value}"
