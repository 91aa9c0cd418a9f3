"""Dot paths into JSON, and the laws they obey."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.entries import json_paths
from mindex.errors import NotFoundError, UsageError

NAMES = st.text(st.characters(exclude_characters=".[]", exclude_categories=["Cs"]), min_size=1, max_size=8)
WAYS = st.lists(NAMES, min_size=1, max_size=5)
LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=10)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)


@given(OBJECTS, WAYS, VALUES)
def test_a_value_that_was_set_is_read_back(data: dict[str, Any], way: list[str], value: Any) -> None:
    before = copy.deepcopy(data)
    try:
        after = json_paths.with_value(data, ".".join(way), value)
    except UsageError as error:
        assert "cannot be resolved: a part of it is not an object" in str(error)
        return
    assert json_paths.value_at(after, ".".join(way)) == value
    assert data == before


@given(OBJECTS, WAYS, VALUES)
def test_a_removed_value_is_gone_and_the_others_stay(data: dict[str, Any], way: list[str], value: Any) -> None:
    path = ".".join(["only_here", *way])
    written = json_paths.with_value(data, path, value)
    removed = json_paths.without_value(written, path)
    with pytest.raises(NotFoundError):
        json_paths.value_at(removed, path)
    assert {name: removed[name] for name in data} == data
    assert json_paths.value_at(written, path) == value


@given(st.lists(LEAVES, min_size=1, max_size=5), st.data(), LEAVES)
def test_items_of_lists_are_set_read_and_removed(items: list[Any], data: st.DataObject, value: Any) -> None:
    at = data.draw(st.integers(-len(items), len(items) - 1))
    whole = {"list": items}
    written = json_paths.with_value(whole, f"list[{at}]", value)
    assert json_paths.value_at(written, f"list[{at}]") == value
    assert len(written["list"]) == len(items)
    assert len(json_paths.without_value(whole, f"list[{at}]")["list"]) == len(items) - 1
    assert json_paths.with_value(whole, f"list[{len(items)}]", value)["list"] == [*items, value]


def test_missing_objects_and_lists_are_made() -> None:
    assert json_paths.with_value({}, "user.languages[0].name", "Python") == {
        "user": {"languages": [{"name": "Python"}]}
    }


@pytest.mark.parametrize("path", ["", ".", "a..b", "a[", "a[x]", "a]", "[", ".a", "a.", "a" + ".b" * 60])
def test_a_malformed_path_is_an_error(path: str) -> None:
    if path == "a.":  # a dot at the end says nothing more
        with pytest.raises(UsageError):
            json_paths.value_at({"a": {}}, path)
        return
    with pytest.raises(UsageError, match="path"):
        json_paths.parse_path(path)


@pytest.mark.parametrize("path", ["b", "a.x", "list[3]", "list[-4]", "a.b.c", "list.a", "a[0]"])
def test_a_path_to_nothing_is_not_found(path: str) -> None:
    with pytest.raises(NotFoundError, match="there is no value at"):
        json_paths.value_at({"a": {"b": 1}, "list": [1, 2, 3]}, path)


@pytest.mark.parametrize(
    ("path", "complaint"),
    [("a.b.c", "not an object"), ("a[0]", "not a list"), ("list[5]", "beyond the end"), ("list.x", "not an object")],
)
def test_a_path_through_something_else_than_objects_and_lists_is_refused(path: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        json_paths.with_value({"a": {"b": 1}, "list": [1]}, path, 2)


def test_every_leaf_is_returned_with_its_path() -> None:
    data = {"user": {"name": "Anna", "langs": ["py", "go"]}, "n": 0, "empty": "", "none": None}
    assert json_paths.leaves(data) == [
        ("user.name", "Anna"),
        ("user.langs[0]", "py"),
        ("user.langs[1]", "go"),
        ("n", "0"),
    ]
