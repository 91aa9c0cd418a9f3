from __future__ import annotations

import pytest

from tests.cli.conftest import Mindex
from tests.running import run_here


@pytest.fixture
def tagged() -> Mindex:
    run_here("add", "Anna drinks tea", "--type", "preference", "--tag", "tea", "--tag", "anna")
    run_here("add", "Tea is served at five", "--type", "fact", "--tag", "tea")
    return run_here


def test_tags_are_listed_with_their_counts(tagged: Mindex) -> None:
    assert tagged("tags").out == "2 tea\n1 anna\n"
    assert tagged("tags", "an", "--json").json == {"tags": [{"name": "anna", "count": 1}]}
    assert tagged("tags", "--kind", "chunk").out == "none\n"
    assert tagged("tags", "--limit", 900).err == "note: limit cut to 500, the maximum\n"


def test_types_are_listed_with_their_counts(tagged: Mindex) -> None:
    assert tagged("types").out.startswith("1 fact\n1 preference\n0 ")
    assert {"name": "fact", "count": 1} in tagged("types", "--json").json["types"]
