"""The laws of tokens."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindex.datatypes.access_tokens import Token
from mindex.errors import ConflictError
from mindex.store.base import Store
from tests.contract.records import Open

ANNA = Token("anna", "aa" * 32, "anna", "write", ("docs", 'a, "b"'), 1_000, 2_000)
BEN = Token("Ben", "bb" * 32, "*", "read", (), 1_000)


def test_a_token_is_found_by_its_hash_in_every_process(open_store: Open, store: Store) -> None:
    store.tokens.add(ANNA)
    for one in (store, open_store()):
        assert one.tokens.by_hash(ANNA.hash) == ANNA
        assert one.tokens.by_hash(BEN.hash) is None
        assert one.tokens.by_hash("") is None


def test_tokens_are_listed_by_name_as_they_were_added(store: Store) -> None:
    assert store.tokens.all() == ()
    store.tokens.add(ANNA)
    store.tokens.add(BEN)
    assert store.tokens.all() == (BEN, ANNA)


def test_a_removed_token_is_gone_for_every_process_and_its_name_is_free(open_store: Open, store: Store) -> None:
    store.tokens.add(ANNA)
    other = open_store()
    assert store.tokens.remove("anna")
    assert not store.tokens.remove("anna")
    assert other.tokens.by_hash(ANNA.hash) is None
    other.tokens.add(replace(BEN, name="anna"))
    assert [token.hash for token in store.tokens.all()] == [BEN.hash]


def test_a_name_is_given_to_one_token_only(store: Store) -> None:
    store.tokens.add(ANNA)
    with pytest.raises(ConflictError, match="there is a token 'anna' already"):
        store.tokens.add(replace(BEN, name="anna"))
    assert store.tokens.all() == (ANNA,)
