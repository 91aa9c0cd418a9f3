"""Secrets are removed from every row before it is stored, from all of its states."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import isfinite
from typing import Any, cast

from mindex.datatypes import Collection, Document, Record
from mindex.datatypes.record_properties import ENTRY_PROPERTIES
from mindex.entries.validation import validate_fields_json, validate_text
from mindex.redaction.json_values import redact_value, value_name
from mindex.redaction.redactor import Redactor
from mindex.store.export_rows import Accesses, ExportRow
from mindex.transfer.jsonl_rows import InvalidRow

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
    """Return the row without its secrets, and their kinds. In strict mode, raises SecretError for a secret.

    Raises UsageError for a memory of which nothing is left.
    """
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
    if clean.record.kind == "memory":
        validate_text(clean.record.text)
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
    if isinstance(value, str):
        yield f"{name}: {value}" if name else value
    elif isinstance(value, Mapping):
        named = value_name(value)
        for key, inner in value.items():
            yield str(key)
            yield from _texts_within(inner, named if named and key == "value" else str(key), depth + 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts_within(inner, name, depth + 1)
    elif isinstance(value, float) and not isfinite(value):
        raise InvalidRow("its fields hold a number that is none")
