"""The differences between two JSON values."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mindex.entries import json_paths
from mindex.errors import NotFoundError
from mindex.present.history import differences

NAMES = st.text("abcd", min_size=1, max_size=2)
LEAVES = st.none() | st.booleans() | st.integers(0, 3) | st.text("xy", max_size=2)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)


def there(data: Any, path: str) -> str | None:
    try:
        return json.dumps(json_paths.value_at(data, path))
    except NotFoundError:
        return None


@given(OBJECTS, OBJECTS)
def test_every_difference_is_true_on_both_sides(before: Any, after: Any) -> None:
    for one in differences(before, after):
        assert one.before != one.after
        assert (there(before, one.path), there(after, one.path)) == (one.before, one.after)


@given(OBJECTS, OBJECTS)
def test_all_differences_together_lead_from_one_to_the_other(before: Any, after: Any) -> None:
    made = before
    for one in reversed(differences(before, after)):  # what is longer loses its end first
        if one.after is None:
            made = json_paths.without_value(made, one.path)
    for one in differences(before, after):
        if one.after is not None:
            made = json_paths.with_value(made, one.path, json.loads(one.after))
    assert json.dumps(made, sort_keys=True) == json.dumps(after, sort_keys=True)


@given(OBJECTS)
def test_equal_values_do_not_differ(value: Any) -> None:
    assert differences(value, json.loads(json.dumps(value))) == []


def test_values_of_different_types_differ() -> None:
    assert [*map(str, differences({"n": "5", "t": 1}, {"n": 5, "t": True}))] == ['n: "5" → 5', "t: 1 → true"]


def test_differences_read_like_a_diff() -> None:
    before = {"user": {"name": "Anna", "nick": "An"}, "langs": ["py"]}
    after = {"user": {"name": "Bea", "age": 40}, "langs": ["py", "go"]}
    assert [*map(str, differences(before, after))] == [
        'user.name: "Anna" → "Bea"',
        '- user.nick: "An"',
        "+ user.age: 40",
        '+ langs[1]: "go"',
    ]
