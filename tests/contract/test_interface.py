"""Every method of the store interface has a contract test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mindex.store import base

PROTOCOLS = {
    "files": base.FileStore,
    "entries": base.EntryStore,
    "retrieval": base.RetrievalStore,
    "vectors": base.VectorStore,
    "caches": base.CacheStore,
    "tokens": base.TokenStore,
    "maintenance": base.Maintenance,
    "sync": base.SyncStore,
}
TESTS = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))


def methods(protocol: type) -> set[str]:
    return {name for name in vars(protocol) if not name.startswith("_")}


@pytest.mark.parametrize("group", sorted(PROTOCOLS))
def test_every_method_of_a_group_is_called_by_a_contract_test(group: str) -> None:
    assert methods(PROTOCOLS[group]) - set(re.findall(rf"\.{group}\.(\w+)\(", TESTS)) == set()


def test_the_groups_are_those_of_the_interface() -> None:
    assert set(PROTOCOLS) == base.GROUPS
    assert methods(base.Store) > base.GROUPS


@pytest.mark.parametrize("group", sorted(PROTOCOLS))
def test_every_method_says_what_it_does(group: str) -> None:
    protocol = PROTOCOLS[group]
    assert {name for name in methods(protocol) if not getattr(protocol, name).__doc__} == set()
