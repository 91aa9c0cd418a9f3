"""The profile of an agent: changed by paths, by several processes, with all its versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindex.errors import ConflictError, NotFoundError, UsageError
from mindex.memory import Memory
from tests.running import finish, start

_CHANGES = """
import sys
from mindex.memory import Memory
db, place, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with Memory(db, options={"embedding.provider": "none"}) as memory:
    for n in range(count):
        memory.profile.set({f"{place}.n{n}": n}, "counting")
"""


@pytest.fixture
def memory(keyword_memory: Memory) -> Memory:
    return keyword_memory


def test_a_profile_is_empty_before_anything_was_set(memory: Memory) -> None:
    assert memory.profile.get() == {}
    assert memory.profile.record() is None
    assert memory.profile.history() == ()
    with pytest.raises(NotFoundError):
        memory.profile.get("user.name")


def test_values_are_set_read_and_removed_by_path(memory: Memory) -> None:
    memory.profile.set({"user.name": "Anna", "user.langs": ["py"], "projects[0].title": "Atlas"}, "she said so")
    assert memory.profile.get() == {"user": {"name": "Anna", "langs": ["py"]}, "projects": [{"title": "Atlas"}]}
    assert memory.profile.get("user.langs[0]") == "py"
    assert memory.profile.get("projects[0].title") == "Atlas"
    memory.profile.set({"user.langs": None})
    assert memory.profile.get("user") == {"name": "Anna"}


def test_several_values_are_set_in_one_change_or_not_at_all(memory: Memory) -> None:
    memory.profile.set({"a": 1})
    with pytest.raises(NotFoundError):
        memory.profile.set({"a": 2, "nowhere.at.all": None})
    assert memory.profile.get() == {"a": 1}


def test_a_change_without_changes_is_an_error(memory: Memory) -> None:
    with pytest.raises(UsageError, match="nothing to change"):
        memory.profile.set({})


def test_a_rollback_to_any_version_is_a_change_too(memory: Memory) -> None:
    versions = [memory.profile.set({"n": n, f"only{n}": True}, f"step {n}").change for n in range(4)]
    for n, version in enumerate(versions):
        change = memory.profile.rollback(version)
        assert memory.profile.get("n") == n
        assert (f"only{n + 1}" in memory.profile.get()) is False
        assert (change.action, change.reason) == ("rollback", f"rollback to version {version}")
    history = memory.profile.history()
    assert [change.reason for change in history[1:5]] == [f"step {n}" for n in range(4)]
    assert len(history) == 1 + 4 + 4
    memory.undo(str(history[-1].change))
    assert memory.profile.get("n") == 2


def test_an_unknown_version_is_an_error(memory: Memory) -> None:
    other = memory.add("Something else, with a change of its own")
    number = memory.history(other.id)[0].change
    memory.profile.set({"a": 1})
    for version in (number, 0, -1, 10**18):
        with pytest.raises(NotFoundError, match=f"has no version {version}"):
            memory.profile.rollback(version)


def test_more_than_256_kilobytes_are_refused_and_nothing_changes(memory: Memory) -> None:
    memory.profile.set({"a": ["x" * 10_000] * 20})
    with pytest.raises(UsageError, match="262,144 are allowed"):
        memory.profile.set({"b": ["y" * 10_000] * 10})
    assert list(memory.profile.get()) == ["a"]
    memory.profile.set({"a": ["x" * 10_000] * 26})


def test_values_that_are_not_json_or_too_deep_are_refused(memory: Memory) -> None:
    deep: object = 1
    for _ in range(200):
        deep = [deep]
    for value in (deep, float("nan"), object(), {1, 2}):
        with pytest.raises(UsageError):
            memory.profile.set({"a": value})
    assert memory.profile.get() == {}


def test_agents_have_their_own_profiles(memory: Memory) -> None:
    memory.profile.set({"name": "Anna"})
    memory.profile.set({"name": "Bo"}, agent="other")
    assert (memory.profile.get("name"), memory.profile.get("name", agent="other")) == ("Anna", "Bo")
    assert memory.profile.get(agent="third") == {}
    assert [hit.record.agent for hit in memory.search("name", kinds=["profile"]).hits] == ["main"]
    with pytest.raises(UsageError):
        memory.profile.set({"a": 1}, agent="*")


def test_a_profile_is_found_by_its_text(memory: Memory) -> None:
    memory.profile.set({"user.city": "Reykjavik"})
    (hit,) = memory.search("Reykjavik").hits
    assert (hit.record.kind, hit.record.text) == ("profile", "user.city: Reykjavik")
    memory.profile.set({"user.city": "Oslo"})
    assert memory.search("Reykjavik").hits == ()


def test_secrets_are_left_out_by_their_shape_or_their_name(memory: Memory) -> None:
    key = "sk-ant-api03-" + "a1B2" * 10
    memory.profile.set({"login": {"password": "hunter2hunter2", "note": f"uses {key}"}, "api_key": "abcd1234efgh5678"})
    kept = str(memory.profile.get()) + str(memory.profile.record())
    assert "hunter2" not in kept and key not in kept and "abcd1234" not in kept
    assert memory.profile.get("login.password") == "[redacted:password]"
    memory.profile.set({"plain": "tea"}, f"because of {key}")
    assert key not in memory.profile.history()[-1].reason


def test_a_forgotten_profile_is_empty_and_comes_back_when_it_is_set_again(memory: Memory) -> None:
    memory.profile.set({"a": 1})
    record = memory.profile.record()
    assert record is not None
    memory.forget(record.id)
    assert memory.profile.get() == {}
    memory.profile.set({"b": 2})
    assert memory.profile.get("b") == 2


@pytest.mark.slow
def test_two_processes_do_not_lose_each_others_changes(memory: Memory, tmp_path: Path) -> None:
    running = [start(tmp_path / "memory.db", place, 25, program=_CHANGES) for place in ("left", "right")]
    for process in running:
        assert finish(process).code == 0
    whole = {f"n{n}": n for n in range(25)}
    assert memory.profile.get() == {"left": whole, "right": whole}
    assert len(memory.profile.history()) == 51


def test_undoing_an_older_change_keeps_what_was_changed_since(keyword_memory: Memory) -> None:
    keyword_memory.profile.set({"user.name": "Ada"})
    second = keyword_memory.profile.set({"user.city": "London"})
    keyword_memory.profile.set({"user.tea": "green"})
    keyword_memory.undo(str(second.change))
    assert keyword_memory.profile.get() == {"user": {"name": "Ada", "tea": "green"}}


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("user", "oops", "'user' is an object that holds user.name, user.address"),
        ("user.address", 5, "'user.address' is an object that holds user.address.city"),
        ("langs", "py", r"'langs' is a list that holds langs\[0\], langs\[1\]"),
        ("user", ["Ada"], "'user' is an object"),
        ("langs", {"first": "py"}, "'langs' is a list"),
    ],
)
def test_a_value_does_not_take_the_place_of_an_object_or_a_list_unless_asked_to(
    memory: Memory, path: str, value: object, named: str
) -> None:
    before = {"user": {"name": "Ada", "address": {"city": "London"}}, "langs": ["py", "go"]}
    memory.profile.set(before)
    with pytest.raises(ConflictError, match=named) as raised:
        memory.profile.set({"tea": "green", path: value})
    assert "set one of its places, such as" in raised.value.hint and "--replace" in raised.value.hint
    assert memory.profile.get() == before
    memory.profile.set({path: value}, replace=True)
    assert memory.profile.get(path) == value


def test_an_object_keeps_the_names_that_another_one_does_not_give(memory: Memory) -> None:
    memory.profile.set({"user": {"name": "Ada", "home": {"city": "Oslo", "floor": 2}}})
    memory.profile.set({"user": {"age": 36, "home": {"city": "London"}}})
    assert memory.profile.get("user") == {"name": "Ada", "home": {"city": "London", "floor": 2}, "age": 36}
    with pytest.raises(ConflictError, match=r"'user\.home' is an object that holds user\.home\.city, "):
        memory.profile.set({"user": {"home": "London"}})
    memory.profile.set({"user": {"age": 37}}, replace=True)
    assert memory.profile.get() == {"user": {"age": 37}}


def test_a_list_is_replaced_by_another_one_and_what_is_empty_by_anything(memory: Memory) -> None:
    memory.profile.set({"langs": ["py"], "empty": {}})
    memory.profile.set({"langs": [], "empty": "no longer"})
    assert memory.profile.get() == {"langs": [], "empty": "no longer"}
