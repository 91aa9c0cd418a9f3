"""A value of ours and one of the standard library's behave the same."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

import pytest

from mindex.datatypes import Filters, Record
from mindex.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class Place:
    """Somewhere."""

    name: str
    depth: int = 0
    notes: Mapping[str, str] = field(default_factory=dict)
    secret: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if self.depth < 0:
            raise ValueError("depth starts at 0")


@dataclasses.dataclass(frozen=True, slots=True)
class Standard:
    """The same, by the standard library."""

    name: str
    depth: int = 0
    notes: Mapping[str, str] = field(default_factory=dict)
    secret: str = field(default="", repr=False)


def test_a_value_says_what_it_holds_and_keeps_what_is_secret() -> None:
    ours, standard = Place("a", secret="s"), Standard("a", secret="s")
    assert repr(ours) == repr(standard).replace("Standard", "Place")
    assert "secret" not in repr(ours)


def test_values_are_equal_and_hash_by_their_fields_and_class() -> None:
    assert Place("a", 1) == Place(depth=1, name="a")
    assert Place("a", 1) != Place("a", 2)
    assert Place("a", 1) != Standard("a", 1)
    assert hash(Filters(agent="x")) == hash(Filters(agent="x"))
    assert len({Filters(agent="x"), Filters(agent="x"), Filters(agent="y")}) == 2


def test_every_value_has_its_own_default() -> None:
    first, second = Place("a"), Place("b")
    assert first.notes == {} and first.notes is not second.notes


def _set(place: Any) -> None:
    place.depth = 2


def _set_unknown(place: Any) -> None:
    place.width = 2


def _delete(place: Any) -> None:
    del place.depth


@pytest.mark.parametrize("change", [_set, _set_unknown, _delete])
def test_a_value_cannot_be_changed(change: Callable[[Any], None]) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        change(Place("a"))
    assert not hasattr(Place("a"), "__dict__")


@pytest.mark.parametrize("arguments", [{}, {"name": "a", "width": 1}])
def test_wrong_arguments_are_refused_by_name(arguments: dict[str, Any]) -> None:
    for _ in range(2):  # the first value of a class is made in another way than the next
        with pytest.raises(TypeError, match=r"Place\.__init__\(\) .*(name|width)"):
            Place(**arguments)


def test_what_a_class_checks_after_filling_is_checked() -> None:
    with pytest.raises(ValueError, match="depth"):
        Place("a", -1)


def test_the_tools_of_the_standard_library_work() -> None:
    place = Place("a", 1, {"k": "v"})
    assert dataclasses.replace(place, depth=2) == Place("a", 2, {"k": "v"})
    assert dataclasses.asdict(place) == {"name": "a", "depth": 1, "notes": {"k": "v"}, "secret": ""}
    assert [one.name for one in dataclasses.fields(Place)] == ["name", "depth", "notes", "secret"]
    match place:
        case Place(name, depth):
            assert (name, depth) == ("a", 1)


def test_our_replace_makes_what_the_standard_one_makes() -> None:
    place = Place("here", 3, {"a": "b"})
    record = Record("x", "memory", "text", tags=("a",), number=1)

    assert replace(place, depth=4) == dataclasses.replace(place, depth=4) == Place("here", 4, {"a": "b"})
    assert replace(record, number=2, text="other") == dataclasses.replace(record, number=2, text="other")
    with pytest.raises(ValueError, match="depth"):
        replace(place, depth=-1)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_values_can_be_copied_and_sent(again: Callable[[Any], Any]) -> None:
    record = Record(id="r1", kind="memory", text="words", fields={"mood": "calm"})
    assert again(record) == record
    assert again(Place("a", 3)) == Place("a", 3)


@pytest.mark.parametrize("told", [{"compare": False}, {"kw_only": True}, {"init": False, "default": 0}])
def test_what_it_cannot_do_is_refused(told: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="standard library"):

        @dataclass(frozen=True, slots=True)
        class Refused:
            name: str
            hidden: int = field(**told)


def test_others_may_inherit_from_it() -> None:
    @dataclasses.dataclass(frozen=True)
    class Mine(Filters):
        mine: str = ""

    @dataclass(frozen=True, slots=True)
    class Ours(Filters):
        ours: str = ""

    assert Mine(mine="x") == Mine(mine="x") != Mine()
    assert Ours(ours="x") == Ours(ours="x") != Ours()
    assert hash(Ours()) == hash(Ours())
    with pytest.raises(dataclasses.FrozenInstanceError):
        Ours().ours = "y"  # type: ignore[misc]
