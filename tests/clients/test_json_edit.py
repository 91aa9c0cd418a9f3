"""One member of a JSON text is set or removed; everything else stays, character by character."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.clients.json_edit import parse, remove_member, set_member

PATH = ("servers", "mindex")
ENTRY = {"command": "/bin/mindex", "args": ["serve"]}

# ── texts as people and programs write them ───────────────────────────────────────────────────────────────────

names = st.text(st.characters(codec="utf-8"), max_size=6)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-99, 99)
    | st.text(max_size=8)
    | st.sampled_from(["// no", "/* no */", ",}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
comments = st.sampled_from(["", "", " ", "/* a, { */", "/* b\n */", '// c: "d"\n', "\n\n", "\t"])


@st.composite
def written(draw: st.DrawFn, value: object) -> str:
    """The value as JSON, with comments, blanks and trailing commas anywhere."""
    if not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=draw(st.booleans()))
    parts = []
    for key, held in value.items() if isinstance(value, dict) else enumerate(value):
        name = f"{json.dumps(key)}{draw(comments)}:" if isinstance(value, dict) else ""
        parts.append(draw(comments) + name + draw(comments) + draw(written(held)) + draw(comments))
    trailing = f",{draw(comments)}" if parts and draw(st.booleans()) else ""
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return opening + (",".join(parts) or draw(comments)) + trailing + closing


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, dict[str, object]]:
    """A text and what it holds; some have servers already."""
    value: dict[str, object] = draw(st.dictionaries(names.filter(lambda name: name != PATH[0]), values, max_size=3))
    if draw(st.booleans()):
        value[PATH[0]] = draw(st.dictionaries(names.filter(lambda name: name != PATH[1]), values, max_size=3))
    if draw(st.booleans()):
        text = json.dumps(value, indent=draw(st.sampled_from([None, 2, 4, "\t"])), ensure_ascii=False)
    else:
        text = draw(comments) + draw(written(value)) + draw(comments)
    return draw(st.sampled_from([text, text.replace("\n", "\r\n"), text + "\n"])), value


def with_entry(value: dict[str, object]) -> dict[str, object]:
    servers = value.get(PATH[0], {})
    assert isinstance(servers, dict)
    return {**value, PATH[0]: {**servers, PATH[1]: ENTRY}}


def comments_of(text: str) -> list[str]:
    found = re.findall(r'"(?:[^"\\]|\\.)*"|(//[^\r\n]*|/\*.*?\*/)', text, re.DOTALL)
    return [comment for comment in found if comment]


@given(documents())
def test_setting_a_member_changes_nothing_else(document: tuple[str, dict[str, object]]) -> None:
    text, value = document
    assert parse(text) == value
    new = set_member(text, PATH, ENTRY)
    assert parse(new) == with_entry(value)
    assert comments_of(new) == comments_of(text)
    assert list(parse(new)) == list(with_entry(value))  # the order
    kept = iter(new)
    assert all(character in kept for character in text)  # nothing of the text was lost or moved


@given(documents())
def test_setting_a_member_twice_is_setting_it_once(document: tuple[str, dict[str, object]]) -> None:
    once = set_member(document[0], PATH, ENTRY)
    assert set_member(once, PATH, ENTRY) == once


@given(documents())
def test_a_removed_member_leaves_what_was_there(document: tuple[str, dict[str, object]]) -> None:
    text, value = document
    back = remove_member(set_member(text, PATH, ENTRY), PATH)
    assert parse(back) == {**value, PATH[0]: value.get(PATH[0], {})}
    assert comments_of(back) == comments_of(text)


@given(documents())
def test_a_text_without_the_member_is_not_changed_by_its_removal(document: tuple[str, dict[str, object]]) -> None:
    assert remove_member(document[0], PATH) == document[0]


@given(documents(), st.data())
def test_any_member_can_be_removed(document: tuple[str, dict[str, object]], data: st.DataObject) -> None:
    text, value = document
    if value:
        name = data.draw(st.sampled_from(sorted(value)))
        gone = remove_member(text, [name])
        assert parse(gone) == {key: held for key, held in value.items() if key != name}


# ── how it looks ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_new_entry_has_the_indentation_of_its_neighbours() -> None:
    text = '{\n\t// mine\n\t"servers": {\n\t\t"other": {} // the first\n\t},\n}\n'
    assert set_member(text, PATH, {"command": "x"}) == (
        '{\n\t// mine\n\t"servers": {\n\t\t"other": {}, // the first\n'
        '\t\t"mindex": {\n\t\t\t"command": "x"\n\t\t}\n\t},\n}\n'
    )


def test_a_text_in_one_line_stays_in_one_line() -> None:
    text = '{"servers": {"other": {}}}'
    assert set_member(text, PATH, {"command": "x"}) == '{"servers": {"other": {}, "mindex": {"command": "x"}}}'


def test_line_ends_are_those_of_the_text() -> None:
    new = set_member('{\r\n  "a": 1\r\n}\r\n', PATH, ENTRY)
    assert new.count("\n") == new.count("\r\n")


def test_an_empty_text_becomes_a_document() -> None:
    assert set_member("", ["a"], 1) == '{\n  "a": 1\n}\n'
    assert set_member("// nothing yet", ["a"], 1) == '// nothing yet\n{\n  "a": 1\n}\n'


def test_only_what_differs_is_written_into_an_entry_that_is_there() -> None:
    text = '{"servers": {"mindex": {"args": [ "serve" ], /* mine */ "env": {"A": "1"}, "command": "old"}}}'
    assert set_member(text, PATH, ENTRY) == text.replace("old", "/bin/mindex")


def test_a_removed_member_takes_its_line_with_it() -> None:
    text = '{\n  "a": 1, // one\n  "b": [\n    2\n  ],\n  "c": 3\n}'
    assert remove_member(text, ["b"]) == '{\n  "a": 1, // one\n  "c": 3\n}'
    assert remove_member(text, ["c"]) == '{\n  "a": 1, // one\n  "b": [\n    2\n  ]\n}'
    assert remove_member('{"a": 1, "b": 2, "c": 3}', ["b"]) == '{"a": 1, "c": 3}'


# ── invalid JSON ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1',
        '{"a": }',
        "{,}",
        '{"a": 1,,}',
        "[]",
        '"text"',
        '{"a": NaN}',
        '{"a": 1} {"b": 2}',
        "{'a': 1}",
        '{"a": 1 /* open }',
        "<<<<<<< HEAD\n{}\n",
        '{"a":' + "[" * 100_000 + "]" * 100_000 + "}",
    ],
)
def test_a_broken_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        set_member(text, PATH, ENTRY)
    with pytest.raises(ValueError):
        remove_member(text, PATH)


@pytest.mark.parametrize(
    "text", ['{"servers": null}', '{"servers": []}', '{"servers": {"mindex": 1}}', '{"servers": {}, "servers": {}}']
)
def test_a_place_that_is_not_an_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r'"(servers|mindex)"'):
        set_member(text, PATH, ENTRY)
