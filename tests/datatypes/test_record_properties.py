"""The table of record properties agrees with `Record`, and with the outputs that do not read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from inspect import signature
from typing import Literal, get_type_hints

import pytest

from mindex.cli.memories import add_command, update_command
from mindex.datatypes import Kind, Record
from mindex.datatypes.record_properties import ENTRY_PROPERTIES, PROPERTIES, ValueKind, in_order
from mindex.entries.new_memory import NewMemory
from mindex.mcp.native.write_tools import WriteTools

EDITABLE = {one.name for one in PROPERTIES if one.editable}
TYPES: Mapping[ValueKind, tuple[object, ...]] = {
    "text": (str, Kind),
    "texts": (tuple[str, ...],),
    "time": (int, int | None),
    "integer": (int, int | None),
    "number": (float | None,),
    "flag": (bool,),
    "object": (Mapping[str, object],),
}


def test_the_table_has_the_fields_of_a_record_in_their_order() -> None:
    assert [one.name for one in PROPERTIES] == [one.name for one in fields(Record)]


def test_the_table_says_what_each_field_holds_and_its_default() -> None:
    types = get_type_hints(Record)
    empty = Record(id="", kind="memory", text="")
    for one, field in zip(PROPERTIES, fields(Record), strict=True):
        assert types[one.name] in TYPES[one.value], one.name
        assert one.required == (field.default is MISSING and field.default_factory is MISSING), one.name
        assert one.required or one.default == getattr(empty, one.name), one.name


@pytest.mark.parametrize("output", ["jsonl", "history", "markdown"])
def test_no_two_properties_have_the_same_place_in_an_output(output: Literal["jsonl", "history", "markdown"]) -> None:
    assert [getattr(one, output) for one in in_order(output)] == list(range(1, len(in_order(output)) + 1))


def test_every_property_of_an_entry_is_exported() -> None:
    assert {one.name for one in in_order("jsonl")} == {one.name for one in ENTRY_PROPERTIES} - {"id"}


def test_the_editable_properties_are_those_that_a_new_memory_takes() -> None:
    not_properties = {"supersedes", "anchor"}  # they say what becomes of another memory, and which lines it is about
    given_once = {"agent", "kind"}
    taken = {one.name for one in fields(NewMemory)} - not_properties - given_once
    assert taken == EDITABLE


def test_commands_and_tools_take_the_editable_properties() -> None:
    renamed = {"expires_at": "expires"}
    library_only = {"title", "fields"}  # of notes and of dialects
    arguments = {renamed.get(name, name) for name in EDITABLE - library_only}
    others = {"reason", "supersedes", "anchor", "ttl", "id", "id_", "kind", "fields", "restore", "undo", "self"}
    for command in (add_command, update_command):
        assert {str(one.name) for one in command.params} - others == arguments, command.name
    for tool in (WriteTools.remember, WriteTools.update):
        assert set(signature(tool).parameters) - others == arguments, tool.__name__
