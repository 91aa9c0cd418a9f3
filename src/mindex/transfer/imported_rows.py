"""What every row must be to be imported, whichever importer read it: valid, without secrets, and of one agent."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from math import isfinite
from typing import Any, cast

from mindex.clock import FIRST_MS, LAST_MS
from mindex.datatypes import KINDS, Change, Collection, Document, Record
from mindex.datatypes.record_properties import ENTRY_PROPERTIES
from mindex.entries import validation
from mindex.entries.field_specs import FIELDS, validate_fields
from mindex.entries.profile import profile_id
from mindex.entries.skill_schedule import validate_trigger
from mindex.entries.validation import validate_fields_json
from mindex.errors import UsageError
from mindex.ids import short_hash
from mindex.redaction.json_values import redact_value, value_name
from mindex.redaction.redactor import Redactor
from mindex.store.export_rows import Accesses, ExportRow
from mindex.store.rules.changes import implied_batch
from mindex.transfer.jsonl_format import InvalidRow

_ID = re.compile(r"[a-z0-9]{4,64}")
_MAX_BYTES = 8 * 1024 * 1024
_TIMES = tuple(one for one in ENTRY_PROPERTIES if one.value == "time")
_NAMES = tuple(one.name for one in ENTRY_PROPERTIES if one.value == "text" and not one.redacted)
_TEXTS = tuple(one.name for one in ENTRY_PROPERTIES if one.redacted and one.value == "text")
_TEXT_LISTS = tuple(one.name for one in ENTRY_PROPERTIES if one.redacted and one.value == "texts")
_DEEPEST = 64


def rows_with_secrets(rows: Sequence[ExportRow], redactor: Redactor) -> list[ExportRow]:
    """Return the rows that may have a secret.

    Most have none, and searching many texts at once costs little more than searching one. A line break is to every
    pattern what the end of a text is, so none is missed; what is found only because two texts are joined is searched
    again.
    """
    together = "\n".join(chain.from_iterable(map(free_texts, rows)))
    if redactor.for_reading().redact_text(together) == together:
        return []
    if len(rows) == 1:
        return list(rows)
    half = len(rows) // 2
    return [*rows_with_secrets(rows[:half], redactor), *rows_with_secrets(rows[half:], redactor)]


def redact_row(row: ExportRow, redactor: Redactor) -> tuple[ExportRow, tuple[str, ...]]:
    """Return the row without its secrets, and their kinds. In strict mode, raises SecretError for a secret."""
    kinds: dict[str, None] = {}

    def redacted(text: str) -> str:
        result = redactor.redact(text)
        kinds.update(dict.fromkeys(result.redacted))
        return result.text

    def redacted_state(state: Record) -> Record:
        changes: dict[str, Any] = {name: redacted(getattr(state, name)) for name in _TEXTS}
        changes |= {name: tuple(filter(None, map(redacted, getattr(state, name)))) for name in _TEXT_LISTS}
        return replace(
            state,
            **changes,
            fields=cast("dict[str, object]", redact_value(validate_fields_json(dict(state.fields)), redacted)),
        )

    clean = row.with_states(redacted_state)
    history = tuple(replace(one, by=redacted(one.by), reason=redacted(one.reason)) for one in clean.history)
    same_text = (clean.record.title, clean.record.text) == (row.record.title, row.record.text)
    clean = replace(
        clean, history=history, vectors=row.vectors if same_text else (), accesses=_redacted_log(row, redacted)
    )
    return clean, tuple(kinds)


def _redacted_log(row: ExportRow, redacted: Callable[[str], str]) -> Accesses | None:
    if row.accesses is None:
        return None
    return replace(row.accesses, log=tuple(replace(one, query=redacted(one.query)) for one in row.accesses.log))


def redact_document(document: Document, redactor: Redactor) -> Document:
    """Return a document without secrets in what was read from its file."""
    redact = redactor.for_reading().redact_text

    def each(texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(map(redact, texts))

    changes: dict[str, Any] = {"tags": each(document.tags), "links": each(document.links)}
    return replace(document, title=redact(document.title), fields=each(document.fields), **changes)


def names_hold_secret(collection: Collection, document: Document, redactor: Redactor) -> bool:
    """Whether a name that is stored as it is holds a secret: of the collection, its folder, its patterns, the file."""
    names = (collection.name, collection.root, *collection.exclude, document.path)
    return any(map(redactor.kinds_in, names))


def free_texts(row: ExportRow) -> Iterator[str]:
    """Yield every text that may have a secret; one that does not change between two states is yielded once.

    Raises InvalidRow for fields that are nested too deeply or have a number that JSON has not.
    """
    seen: set[int] = set()
    for state in row.states():
        for name in _TEXTS:
            text = getattr(state, name)
            if text and id(text) not in seen:
                seen.add(id(text))
                yield text
        for name in _TEXT_LISTS:
            yield from getattr(state, name)
        if state.fields and id(state.fields) not in seen:
            seen.add(id(state.fields))
            yield from _texts_within(state.fields)
    for change in row.history:
        yield from filter(None, (change.by, change.reason))
    if row.accesses is not None:
        yield from (one.query for one in row.accesses.log if one.query)


def _texts_within(value: object, name: str = "", depth: int = 0) -> Iterator[str]:
    """Yield texts with their names in front, as they are redacted: `password: …`."""
    if depth > _DEEPEST:
        raise InvalidRow("its fields are nested too deeply")
    if isinstance(value, float) and not isfinite(value):
        raise InvalidRow("its fields hold a number that is none")
    if isinstance(value, str | int | float) and not isinstance(value, bool):  # a card or a PIN may be a number
        yield f"{name}: {value}" if name else str(value)
    elif isinstance(value, Mapping):
        named = value_name(value)
        for key, inner in value.items():
            yield str(key)
            yield from _texts_within(inner, named if named and key == "value" else str(key), depth + 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts_within(inner, name, depth + 1)


def check_row(row: ExportRow) -> None:
    """Raise InvalidRow or UsageError for a row that the store could not hold."""
    record = row.record
    if not _ID.fullmatch(record.id):
        raise InvalidRow(f"'{record.id:.40}' is not a mindex id: at least four letters and digits")
    if record.kind not in KINDS or (record.kind == "chunk") != bool(record.document):
        raise InvalidRow(f"'{record.kind:.40}' is not a kind of entry")
    if record.agent == "*" or (record.agent and not record.agent.strip()):
        raise InvalidRow("`agent` is blank or '*'; an imported row needs one agent")
    _check_kind(record)
    for state in row.states():
        _check_state(state)
    log = row.accesses.log if row.accesses else ()
    logged = (*((row.accesses.last_at,) if row.accesses else ()), *(one.at for one in log))
    for moment in (*(change.at for change in row.history), *(link.created_at for link in row.links), *logged):
        _check_time(moment)
    if not all(one.score is None or isfinite(one.score) for one in log):
        raise InvalidRow("an access has a score that is not a number")
    if not all(isfinite(link.weight) for link in row.links):
        raise InvalidRow("a link has a weight that is not a number")
    _check_texts(row)
    if not _is_plain_name(record.agent):
        raise InvalidRow("the name of its agent contains a secret or characters that cannot be shown")
    if record.kind != "chunk":
        validation.validate_record(record)


@lru_cache(maxsize=256)
def _is_plain_name(name: str) -> bool:
    return name.isprintable() and Redactor().redact_text(name) == name


def _check_kind(record: Record) -> None:
    if record.kind == "memory":
        validation.validate_text(record.text)
    elif record.kind == "profile" and not isinstance(record.fields.get("data"), Mapping):
        raise InvalidRow("a profile without data is none")
    elif record.kind in FIELDS and record.retired_at is None:
        own = {name: value for name, value in record.fields.items() if name != "foreign_ids"}
        validate_fields(record.kind, own, imported=True)
        if record.kind == "skill":
            validate_trigger(str(record.fields.get("trigger_type")), record.fields.get("trigger_config"))


def _check_state(state: Record) -> None:
    if state.kind == "memory":
        validation.validate_type(state.type)
    if state.importance is not None:
        validation.validate_importance(state.importance)
    if state.confidence is not None:
        validation.validate_confidence(state.confidence)
    for one in _TIMES:
        if (moment := getattr(state, one.name)) != one.default:
            _check_time(moment)


def _check_time(moment: object) -> None:
    if not isinstance(moment, int) or not FIRST_MS <= moment <= LAST_MS:
        raise InvalidRow("it has a time that no calendar holds")


def _check_texts(row: ExportRow) -> None:
    size = 0
    try:
        for text in chain(free_texts(row), _names(row)):
            size += len(text.encode())
    except UnicodeEncodeError:
        raise InvalidRow("it holds half a character (a lone surrogate)") from None
    if size > _MAX_BYTES * (1 + len(row.history)):
        raise InvalidRow(f"it is longer than {_MAX_BYTES // 2**20} MiB")


def _names(row: ExportRow) -> Iterator[str]:
    """Yield the other texts: names and ids, which cannot have a secret."""
    for state in row.states():
        yield from (getattr(state, name) for name in _NAMES)
    yield from (change.action for change in row.history)
    for link in row.links:
        yield from (link.target, link.kind)
    yield from (one.model for one in row.vectors)


@dataclass(frozen=True, slots=True)
class AgentMapping:
    """Everything goes to one agent, or the rows of one agent go to another; other rows keep theirs."""

    everything: str = ""
    each: Mapping[str, str] = field(default_factory=dict)
    default: str = "main"  # for rows without an agent

    def __post_init__(self) -> None:
        for name in (self.everything, self.default, *self.each.values()):
            if name == "*":
                raise UsageError("'*' means all agents, and an entry belongs to one", "name one agent")

    def target(self, agent: str) -> str:
        return self.everything or self.each.get(agent) or agent or self.default


@dataclass(slots=True)
class NewIds:
    """The ids of an import that records of other agents have in the store already, and the ids that replace them.

    It is complete before the first row is stored: from then on records of the import itself have ids there. A row may
    name records of other agents, above it and below, so one table serves all rows.
    """

    replaced: dict[str, str] = field(default_factory=dict)
    _taken: set[tuple[str, str]] = field(default_factory=set)  # (id, agent)

    def note_taken(self, id_: str, agent: str) -> None:
        """Note that a row for this agent needs a new id."""
        self._taken.add((id_, agent))
        self.replaced[id_] = short_hash(id_, agent)

    def assign(self, row: ExportRow, agent: str) -> ExportRow:
        """Return the row as one of this agent."""
        record = row.record
        id_ = short_hash(record.id, agent) if (record.id, agent) in self._taken else record.id
        if record.kind == "profile":
            id_ = profile_id(agent)
        if (id_, agent) == (record.id, record.agent) and not self.replaced:
            return row
        title = f"Profile of {record.agent}"

        def assigned(state: Record) -> Record:
            winner = self.replaced.get(state.superseded_by, state.superseded_by)
            changes: dict[str, Any] = {"id": id_, "agent": agent, "superseded_by": winner}
            if state.kind == "profile" and state.title == title:
                changes |= {"title": f"Profile of {agent}", "summary": f"Profile of {agent}"}
            return replace(state, **changes)

        def assigned_batch(change: Change) -> Change:  # a copy is not undone with what it is a copy of
            batch = change.batch or implied_batch(change.action, change.reason, change.by, change.at)
            return replace(change, batch=short_hash(batch, agent)) if batch and id_ != record.id else change

        links = tuple(replace(link, target=self.replaced.get(link.target, link.target)) for link in row.links)
        row = row.with_states(assigned)
        return replace(row, links=links, history=tuple(map(assigned_batch, row.history)))
