"""Restoring exported entries: which rows come in, under which numbers, and which of their vectors serve.

Rows come in hundreds at a time: what the store knows of them is read once for all, then each is judged in order.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Protocol

from mindex.datatypes import Change, Record
from mindex.datatypes.program_numbers import LAST_NUMBER, Slot
from mindex.ids import content_hash
from mindex.nul import without_nul
from mindex.optional_packages import missing_packages
from mindex.store.export_rows import (
    Accesses,
    ExistingRecord,
    ExportedVectors,
    ExportRow,
    Extraction,
    ImportPreview,
    RestoreOptions,
    RestoreOutcome,
)
from mindex.store.rules.changes import implied_batch
from mindex.store.rules.entry_rules import EntryStatements, folded_value, unique_value
from mindex.store.rules.program_numbers import NumberStatements, claim, is_numbered, taken_slots
from mindex.store.rules.spaces import model_from_fingerprint

# An agent has one record of these kinds under each id: another agent's with the same id is not the same.
_PLACES = frozenset({"profile", "note"})


class RestoreStatements(EntryStatements, NumberStatements, Protocol):
    """What restoring needs of an engine, in addition to the statements for adding and for numbers."""

    def existing(self, ids: Sequence[str]) -> dict[str, ExistingRecord]:
        """What identifies each of these records that exists, live or retired."""

    def taken_numbers(self, agent: str, numbers: Sequence[int]) -> Iterable[int]:
        """Those of these numbers that an entry of this agent has."""

    def taken_changes(self, numbers: Sequence[int]) -> Iterable[int]:
        """Those of these change numbers that exist."""

    def put_fields(self, id_: str, fields: Mapping[str, object]) -> None:
        """Replace the fields of an entry, without a change in the history."""

    def put_accesses(self, id_: str, accesses: Accesses) -> None:
        """Store how often a new record was returned, and the single accesses, whichever record these name."""

    def put_extraction(self, id_: str, extraction: Extraction) -> None:
        """Store when facts were extracted from a turn, and how many."""

    def serving_space(self) -> str:
        """The fingerprint of the active space; '' while there is none."""

    def has_canary(self, fingerprint: str) -> bool:
        """Whether a model of this space was used here before."""

    def put_exported_vectors(self, id_: str, vectors: ExportedVectors) -> None:
        """Store vectors as they are, unless the space has other dimensions. No space becomes active by it."""


def restore(
    statements: RestoreStatements, rows: Sequence[ExportRow], options: RestoreOptions, preview: ImportPreview | None
) -> tuple[RestoreOutcome, ...]:
    """Store the rows that are new; with a preview, only say what would be stored. See `EntryStore.restore_rows`."""
    rows = [without_nul(row) for row in rows]
    if preview is None:
        for agent in sorted({row.record.agent for row in rows}):
            statements.lock_agent(agent)
    known = _known(statements, rows, options)
    if preview is not None:
        _extend(known, preview)
    taken = dict(known.program_numbers)
    outcomes, stored = [], []
    for row in rows:
        outcome = _outcome(row.record, known, options, statements.now)
        if outcome.outcome != "conflict":
            fresh = None if outcome.number == row.record.number else outcome.number
            renumbered = claim(statements, outcome.id, _slots(row, options), known, fresh)
            outcome = replace(outcome, renumbered=renumbered)
        outcomes.append(outcome)
        if outcome.outcome == "added":
            stored.append(_with_number(row, outcome.number))
    if preview is not None:
        _extend(preview, known)
        return tuple(outcomes)
    numbers = {slot: id_ for slot, id_ in known.program_numbers.items() if slot not in taken}
    if stored or numbers:
        _store(statements, stored, options)
        statements.put_program_numbers(numbers)
        statements.raise_number(known.last_number)
    for row, outcome in zip(rows, outcomes, strict=True):
        if outcome.outcome == "duplicate" and outcome.id != row.record.id:
            _keep_foreign_ids(statements, outcome.id, row.record)
    return tuple(outcomes)


def _slots(row: ExportRow, options: RestoreOptions) -> list[Slot]:
    """The numbers that a row's record has in other programs."""
    record, numbers = row.record, dict(row.numbers)
    if options.program and record.number is not None:
        numbers[options.program] = (record.number,)
    return [
        (program, record.kind, record.agent, number)
        for program, own in numbers.items()
        if is_numbered(program, record)
        for number in own
    ]


def _keep_foreign_ids(statements: RestoreStatements, id_: str, merged: Record) -> None:
    """Let the record that equals a row be found also by the row's former ids. That does not change the record."""
    record = statements.entry(id_)
    if record is None:
        return
    own, ids = _foreign_ids(record), _foreign_ids(record)
    for name, values in _foreign_ids(merged).items():
        ids[name] = tuple(dict.fromkeys((*ids.get(name, ()), *values)))
    if ids != own:
        shown = {name: values[0] if len(values) == 1 else list(values) for name, values in ids.items()}
        statements.put_fields(id_, {**record.fields, "foreign_ids": shown})


def _foreign_ids(record: Record) -> dict[str, tuple[str, ...]]:
    stored = record.fields.get("foreign_ids")
    named = stored.items() if isinstance(stored, Mapping) else ()
    return {str(name): tuple(map(str, value)) if isinstance(value, list) else (str(value),) for name, value in named}


def _known(statements: RestoreStatements, rows: Sequence[ExportRow], options: RestoreOptions) -> ImportPreview:
    """What the store has that rows could be equal to, or in conflict with."""
    records = [row.record for row in rows]
    known = ImportPreview(last_number=max(statements.last_number(), *options.above.values(), 0))
    known.ids.update(statements.existing([record.id for record in records]))
    hashes = [content_hash(record.text) for record in records if record.kind == "memory"]
    known.contents.update(statements.same_content(hashes, statements.now))
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for record in records:
        if record.number is not None and 0 < record.number <= LAST_NUMBER:
            numbers[record.agent].append(record.number)
    for agent in {record.agent for record in records}:
        known.numbers.update((agent, number) for number in statements.taken_numbers(agent, numbers[agent]))
    for agent, kind in {(record.agent, record.kind) for record in records if record.kind in options.unique}:
        held = statements.unique_values(agent, kind, options.unique[kind])
        known.unique.update(((agent, kind, folded_value(value)), id_) for id_, value in held)
    slots = [slot for row in rows for slot in _slots(row, options)]
    known.program_numbers.update(taken_slots(statements, slots) if slots else {})
    return known


def _extend(known: ImportPreview, more: ImportPreview) -> None:
    known.ids.update(more.ids)
    known.contents.update(more.contents)
    known.unique.update(more.unique)
    known.numbers.update(more.numbers)
    known.program_numbers.update(more.program_numbers)
    known.numbers_given.update(more.numbers_given)
    known.last_number = max(known.last_number, more.last_number)


def _outcome(record: Record, known: ImportPreview, options: RestoreOptions, now: int) -> RestoreOutcome:
    """Whether a record comes in, and under which number; if it does, it is added to what is known."""
    content = content_hash(record.text)
    mine = ExistingRecord(record.kind, record.agent, record.created_at, content)
    if (there := known.ids.get(record.id)) is not None:
        same = (there.kind, there.agent) == (mine.kind, mine.agent) and (
            record.kind not in _PLACES or there.created_at == mine.created_at or there.content_hash == content
        )
        return RestoreOutcome("duplicate" if same else "conflict", record.id)
    live = record.retired_at is None and (record.expires_at is None or record.expires_at > now)
    if record.kind == "memory" and live:
        if (twin := known.contents.get((record.agent, content))) is not None:
            return RestoreOutcome("duplicate", twin)
        known.contents[record.agent, content] = record.id
    value = unique_value(record, options.unique.get(record.kind, ""))
    if value is not None:
        place = (record.agent, record.kind, value)
        if (holder := known.unique.get(place)) is not None:
            return RestoreOutcome("conflict", holder)
        known.unique[place] = record.id
    number = record.number
    if number is None or not 0 < number <= LAST_NUMBER or (record.agent, number) in known.numbers:
        number = known.last_number + 1
    known.numbers.add((record.agent, number))
    known.last_number = max(number, known.last_number)
    known.ids[record.id] = mine
    return RestoreOutcome("added", record.id, number)


def _with_number(row: ExportRow, number: int | None) -> ExportRow:
    """The row under another number, also in its history."""
    return row if row.record.number == number else row.with_states(lambda state: replace(state, number=number))


def _store(statements: RestoreStatements, rows: Sequence[ExportRow], options: RestoreOptions) -> None:
    for row in rows:
        statements.insert(row.record)
        if row.accesses is not None:
            statements.put_accesses(row.record.id, row.accesses)
        if row.extraction is not None and row.record.kind == "turn":
            statements.put_extraction(row.record.id, row.extraction)
        if row.vectors and row.record.retired_at is None:
            for exported in row.vectors:
                vectors = _named_as_here(statements, exported)
                if _serves(statements, vectors):
                    statements.put_exported_vectors(row.record.id, vectors)
    statements.append_changes(_changes(statements, rows, options))


def _changes(statements: RestoreStatements, rows: Sequence[ExportRow], options: RestoreOptions) -> list[Change]:
    """The history of the rows. Changes keep their numbers where all of a record's are free, for these are their order.

    Those with numbers come first: the engine's own numbers are above them.
    """
    free = {change.change for row in rows for change in row.history if 0 < change.change <= LAST_NUMBER}
    free.difference_update(statements.taken_changes(list(free)))
    kept: list[Change] = []
    renumbered: list[Change] = []
    for row in rows:
        record = row.record
        numbers = [change.change for change in row.history]
        keep = bool(numbers) and free.issuperset(numbers) and numbers == sorted(set(numbers))
        free.difference_update(numbers)
        changes = row.history or (
            Change(0, record.id, record.created_at, options.by, "import", options.reason, None, record),
        )
        (kept if keep else renumbered).extend(
            replace(
                change,
                change=change.change if keep else 0,
                record=record.id,
                batch=change.batch or implied_batch(change.action, change.reason, change.by, change.at),
            )
            for change in changes
        )
    return [*kept, *renumbered]


def _named_as_here(statements: RestoreStatements, vectors: ExportedVectors) -> ExportedVectors:
    """Vectors of a model on the machine under the fingerprint of the active space, if only a hash makes them differ."""
    active = statements.serving_space()
    if not (active and vectors.model.startswith("local/")) or vectors.model == active:
        return vectors
    named_alike = model_from_fingerprint(vectors.model).may_be(model_from_fingerprint(active))
    return replace(vectors, model=active) if named_alike else vectors


def _serves(statements: RestoreStatements, vectors: ExportedVectors) -> bool:
    """Whether exported vectors can be what they say they are; the others are made again, like any that are missing."""
    if missing_packages():
        return False
    import numpy as np  # only for rows with vectors: it costs more than a whole import without them

    active = statements.serving_space()
    if active and vectors.model != active:  # no search would ever read them
        return False
    # A model that runs on the machine itself is named by its checksum. Another one may have changed under its name,
    # unless none was used here yet: then the first vector it makes is compared with what came in.
    if not vectors.model.startswith("local/") and statements.has_canary(vectors.model):
        return False
    size = vectors.dimensions
    if size < 1 or not vectors.data or len(vectors.data) % (4 * size) or not isfinite(vectors.fluency):
        return False
    return bool(np.isfinite(np.frombuffer(vectors.data, "<f4")).all())
