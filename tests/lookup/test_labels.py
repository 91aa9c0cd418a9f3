"""Tags and types that records have, with their counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindex.datatypes import TYPES, LabelCount
from mindex.errors import UsageError
from mindex.memory import Memory
from tests.conftest import write


@pytest.fixture
def memory(keyword_memory: Memory) -> Memory:
    keyword_memory.add("Anna drinks tea", type="preference", tags=["Tea", "Anna"])
    keyword_memory.add("Tea is served at five", type="fact", tags=["tea", "kitchen"])
    keyword_memory.add("The kitchen has tea", type="fact", tags=["tea"])
    return keyword_memory


def test_tags_are_counted_the_most_frequent_first_in_their_usual_spelling(memory: Memory) -> None:
    assert memory.labels.tags() == (LabelCount("tea", 3), LabelCount("Anna", 1), LabelCount("kitchen", 1))


def test_tags_are_found_by_their_first_letters_as_filters_compare_them(memory: Memory) -> None:
    assert [one.name for one in memory.labels.tags("TE")] == ["tea"]
    assert [one.name for one in memory.labels.tags("ki")] == ["kitchen"]
    assert memory.labels.tags("x") == ()


def test_tags_are_those_of_the_records_in_scope(memory: Memory, tmp_path: Path) -> None:
    memory.index(write(tmp_path / "docs", {"a.md": "---\ntags: [harbour]\n---\n\nShips and `cranes`."}))
    files = {one.name for one in memory.labels.tags(filters=memory.filters(kinds=["chunk"]))}
    assert "harbour" in files and "tea" not in files
    assert {one.name for one in memory.labels.tags(filters=memory.filters(kinds=["memory"], agent="other"))} == set()


def test_a_limit_bounds_the_list_of_tags(memory: Memory) -> None:
    assert memory.labels.tags(limit=1) == (LabelCount("tea", 3),)
    with pytest.raises(UsageError, match="limit 0"):
        memory.labels.tags(limit=0)


def test_every_type_is_listed_those_in_use_first(memory: Memory) -> None:
    memory.contacts.add(name="Anna", type="work")  # no type of a memory
    types = memory.labels.types()
    assert types[:2] == (LabelCount("fact", 2), LabelCount("preference", 1))
    assert {one.name for one in types} == set(TYPES)
    assert all(not one.count for one in types[2:])
