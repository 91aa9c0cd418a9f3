"""The laws of entries: duplicates, unique names, numbers, history, links, and what is known of turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from mindex.clock import DAY_MS
from mindex.datatypes import Change, Filters, MemoryStatistics, Record, Session, SessionPage
from mindex.datatypes.consolidation import FROM
from mindex.errors import ConflictError, NotFoundError
from mindex.store.base import Access, RetryPolicy, Store
from mindex.store.results import UsageCounts
from tests.contract.records import EVERYONE, found, memory_of, turn, update


def test_facts_of_a_turn_are_extracted_once(store: Store) -> None:
    turns = [Record(id=f"t{n}", kind="turn", text=f"said {n}", agent=f"a{n % 2}", created_at=9 - n) for n in range(4)]
    store.entries.add([*turns, Record(id="m", kind="memory", text="tea", agent="a0")], by="me")
    assert [record.id for record in store.entries.unextracted("*", 3)] == ["t3", "t2", "t1"]
    assert [record.id for record in store.entries.unextracted("a0", 9)] == ["t2", "t0"]
    store.entries.mark_extracted("t2", 0)
    store.entries.mark_extracted("m", 1)
    assert (store.entries.count_unextracted("a0"), store.entries.count_unextracted("*")) == (1, 3)
    store.entries.purge(["t2"])
    assert store.entries.count_unextracted("*") == 3


def test_a_turn_whose_extraction_failed_comes_after_the_others_and_may_be_left_out(store: Store) -> None:
    turns = [Record(id=f"t{n}", kind="turn", text=f"said {n}", agent="a", created_at=n) for n in range(3)]
    store.entries.add(turns, by="me")
    for id_ in ("t0", "t0", "gone"):
        store.entries.record_extraction_failure(id_)
    assert [record.id for record in store.entries.unextracted("a", 9)] == ["t1", "t2", "t0"]
    assert [record.id for record in store.entries.unextracted("a", 9, RetryPolicy(2, 0))] == ["t1", "t2"]
    assert (
        store.entries.count_unextracted("a", RetryPolicy(3, 0)),
        store.entries.count_unextracted("a", RetryPolicy(2, 2**50)),
    ) == (
        3,
        3,
    )
    assert store.entries.is_unextracted("t0") and not store.entries.is_unextracted("gone")
    store.entries.mark_extracted("t0", 1)
    store.entries.record_extraction_failure("t0")  # another process was slower, and failed
    assert (store.entries.is_unextracted("t0"), store.entries.count_unextracted("*", RetryPolicy(1, 0))) == (False, 2)
    store.entries.purge(["t1"])
    assert [record.id for record in store.entries.unextracted("*", 9)] == ["t2"]


def retire(store: Store, id_: str) -> Change:
    return store.entries.revise(id_, lambda record: replace(record, retired_at=5), by="me", action="forget")


def contact(id_: str, name: str) -> Record:
    return Record(id_, "contact", name, agent="a", created_at=1, updated_at=1, fields={"name": name})


# ── adding ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_added_entry_is_read_back_unchanged(store: Store) -> None:
    fields = {"anchor": {"path": "a.md", "lines": [1, 2]}, "naïve": None, "score": 0.5}
    entry = Record(
        "one", "memory", "Größe in 東京", "A title", ("Tea", "größe"), "a", 5, 6, type="fact", summary="s", context="c",
        source="chat", importance=7, confidence=0.25, expires_at=2**45, entities=("Zoë",), fields=fields,
    )  # fmt: skip
    (outcome,) = store.entries.add([entry], by="me", reason="why")
    assert (outcome.id, outcome.created) == ("one", True)
    assert store.retrieval.record("one") == replace(entry, number=1)
    (change,) = store.entries.history("one")
    assert (change.at, change.by, change.action, change.reason, change.batch) == (6, "me", "add", "why", "")
    assert (change.before, change.after) == (None, replace(entry, number=1))


def test_many_entries_added_at_once_are_as_if_added_one_by_one(store: Store) -> None:
    store.entries.add([memory_of("known")], by="me")
    many = [memory_of(f"m{n}", tags=("fruit",), entities=("Anna",)) for n in range(10)]
    many[3] = replace(many[3], text="text of known", updated_at=7)
    many[5] = replace(many[5], text=many[4].text, updated_at=8)
    many[6] = replace(many[6], agent="b", number=40)
    many[7] = replace(many[7], agent="b")
    many[8] = replace(many[8], text=many[4].text, agent="b")
    outcomes = store.entries.add(many, by="me", reason="why")
    assert [(one.id, one.created) for one in outcomes] == [
        ("m0", True), ("m1", True), ("m2", True), ("known", False), ("m4", True), ("m4", False), ("m6", True),
        ("m7", True), ("m8", True), ("m9", True),
    ]  # fmt: skip
    kept = {record.id: record for record in store.retrieval.list(EVERYONE, limit=50).records}
    numbers = {id_: record.number for id_, record in kept.items()}
    assert numbers == {"known": 1, "m0": 2, "m1": 3, "m2": 4, "m4": 5, "m6": 40, "m7": 41, "m8": 42, "m9": 43}
    assert (kept["known"].updated_at, kept["m4"].updated_at) == (7, 8)
    (change,) = store.entries.history("m9")
    assert (change.by, change.action, change.reason, change.after) == ("me", "add", "why", kept["m9"])
    assert found(store, "m9", EVERYONE) == ["m9"]
    assert set(found(store, "text", replace(EVERYONE, tags=("Fruit",), entities=("anna",)))) == set(numbers) - {"known"}
    (later,) = store.entries.add([memory_of("later")], by="me")
    record = store.retrieval.record(later.id)
    assert record is not None and record.number == 44


def test_the_same_content_is_stored_once_per_agent(store: Store) -> None:
    store.entries.add([memory_of("one")], by="me")
    (again,) = store.entries.add([replace(memory_of("two"), text=" text  of\none ", updated_at=9)], by="me")
    assert (again.id, again.created) == ("one", False)
    kept = store.retrieval.record("one")
    assert kept is not None and (kept.updated_at, len(store.entries.history("one"))) == (9, 1)
    (theirs,) = store.entries.add([replace(memory_of("three"), text="text of one", agent="b")], by="me")
    assert theirs.created


@pytest.mark.parametrize("state", [{"retired_at": 3}, {"expires_at": 3}])
def test_a_forgotten_or_expired_memory_does_not_block_a_new_one(store: Store, state: dict[str, int]) -> None:
    store.entries.add([memory_of("one", **state)], by="me")
    (again,) = store.entries.add([replace(memory_of("two"), text="text of one", updated_at=9)], by="me")
    assert again.created


def test_other_kinds_may_have_the_same_content(store: Store) -> None:
    turns = [turn("one", "s", 1), replace(turn("two", "s", 2), text="said one")]
    assert [outcome.created for outcome in store.entries.add(turns, by="me")] == [True, True]


@pytest.mark.parametrize("name", ["Émile", "émile", "ÉMILE"])
def test_unique_names_are_compared_by_unicode_case_folding(store: Store, name: str) -> None:
    store.entries.add([contact("one", "Émile")], by="me", unique="name")
    (again,) = store.entries.add([contact("two", name)], by="me", unique="name")
    assert (again.id, again.created) == ("one", False)


def test_a_unique_name_is_free_for_another_kind_agent_or_retired_record(store: Store) -> None:
    store.entries.add([contact("one", "Straße"), contact("gone", "Anna")], by="me", unique="name")
    assert store.entries.add([contact("sharp", "STRASSE")], by="me", unique="name")[0].id == "one"
    retire(store, "gone")
    others = [contact("anna", "Anna"), replace(contact("theirs", "Straße"), agent="b"), contact("emile", "Emile")]
    others.append(replace(contact("project", "Straße"), kind="project"))
    for other in others:
        assert store.entries.add([other], by="me", unique="name")[0].created
    for id_ in ("unnamed", "nameless"):
        assert store.entries.add([Record(id_, "contact", id_, agent="a")], by="me", unique="name")[0].created


def test_an_id_that_exists_is_left_as_it_is_on_demand(store: Store) -> None:
    store.entries.add([Record("p", "profile", "first", agent="a")], by="me", once=True)
    (again,) = store.entries.add([Record("p", "profile", "second", agent="a")], by="me", once=True)
    kept = store.retrieval.record("p")
    assert kept is not None and (again.created, kept.text) == (False, "first")


# ── numbers ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_numbers_count_from_one_over_all_agents_and_are_never_given_again(store: Store) -> None:
    store.entries.add([memory_of("one"), memory_of("two"), replace(memory_of("theirs"), agent="b")], by="me")
    numbers = {id_: record.number for id_ in ("one", "two", "theirs") if (record := store.retrieval.record(id_))}
    assert numbers == {"one": 1, "two": 2, "theirs": 3}
    assert (store.entries.by_number("a", 3), store.entries.by_number("b", 3)) == (None, "theirs")
    store.entries.purge(["two"])
    store.entries.add([memory_of("three")], by="me")
    assert (store.entries.by_number("a", 2), store.entries.by_number("a", 4)) == (None, "three")


@pytest.mark.parametrize("number", [0, -1, 99, 2**63, 2**80])
def test_a_number_that_was_never_given_names_nothing(store: Store, number: int) -> None:
    store.entries.add([memory_of("one")], by="me")
    assert store.entries.by_number("a", number) is None


def test_agents_are_all_that_have_an_entry(store: Store) -> None:
    store.files.apply([update("a.md", "shared")])
    store.entries.add(
        [memory_of("one"), *(replace(memory_of(f"of {name}"), agent=name) for name in ("Z", "b"))], by="me"
    )
    retire(store, "one")
    assert store.entries.agents() == ("Z", "a", "b")
    assert store.entries.owners(["one", "nowhere", "of b"]) == {"one": "a", "of b": "b"}


# ── revising ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_revision_replaces_the_entry_and_keeps_what_it_was(store: Store) -> None:
    store.entries.add([memory_of("one", tags=("old",), entities=("Ann",))], by="me")
    before = store.retrieval.record("one")

    def change(record: Record) -> Record:
        return replace(record, id="other", number=99, text="apple", tags=("new",), entities=("Ben",))

    made = store.entries.revise("one", change, by="you", action="update", reason="why")
    after = store.retrieval.record("one")
    assert after is not None and (after.text, after.number, after.updated_at) == ("apple", 1, made.at)
    assert (made.before, made.after, made.by, made.action, made.reason) == (before, after, "you", "update", "why")
    assert store.entries.history("one")[-1] == made == store.entries.change(made.change)
    assert (found(store, "apple", EVERYONE), found(store, "text", EVERYONE)) == (["one"], [])
    filters = [replace(EVERYONE, tags=("old",)), replace(EVERYONE, entities=("ann",))]
    assert [store.retrieval.list(one, limit=5).total for one in filters] == [0, 0]
    filters = [replace(EVERYONE, tags=("NEW",)), replace(EVERYONE, entities=("BEN",))]
    assert [store.retrieval.list(one, limit=5).total for one in filters] == [1, 1]


def test_only_an_entry_is_revised(store: Store) -> None:
    store.files.apply([update("a.md", "one")])
    for id_ in ("nowhere", "idamd1"):
        with pytest.raises(NotFoundError):
            store.entries.revise(id_, lambda record: record, by="me", action="update")


def test_a_revision_that_would_make_two_live_memories_of_one_content_is_refused(store: Store) -> None:
    store.entries.add([memory_of("one"), memory_of("two")], by="me")
    with pytest.raises(ConflictError, match="'one'"):
        store.entries.revise("two", lambda record: replace(record, text="text of one"), by="me", action="update")
    retire(store, "one")
    store.entries.revise("two", lambda record: replace(record, text="text of one"), by="me", action="update")
    with pytest.raises(ConflictError, match="'two'"):
        store.entries.revise("one", lambda record: replace(record, retired_at=None), by="me", action="restore")


def test_a_revision_to_a_unique_name_of_another_record_is_refused(store: Store) -> None:
    store.entries.add([contact("one", "Émile"), contact("two", "Anna")], by="me", unique="name")

    def named(name: str) -> Callable[[Record], Record]:
        return lambda record: replace(record, fields={**record.fields, "name": name})

    with pytest.raises(ConflictError, match="'one' has the same name"):
        store.entries.revise("two", named("ÉMILE"), by="me", action="update", unique="name")
    assert (
        store.entries.revise("two", named("ANNA"), by="me", action="update", unique="name").after.fields["name"]
        == "ANNA"
    )


def test_a_name_that_was_there_twice_before_it_was_unique_can_be_kept(store: Store) -> None:
    store.entries.add([contact("one", "Émile"), contact("two", "émile")], by="me")
    done = store.entries.revise(
        "two", lambda record: replace(record, text="changed"), by="me", action="update", unique="name"
    )
    assert done.after.text == "changed"


def test_a_retired_entry_leaves_the_indexes_and_comes_back(store: Store) -> None:
    store.entries.add([memory_of("one")], by="me")
    retire(store, "one")
    assert (found(store, "text", EVERYONE), store.retrieval.list(EVERYONE, limit=5).total) == ([], 0)
    store.entries.revise("one", lambda record: replace(record, retired_at=None), by="me", action="restore")
    assert found(store, "text", EVERYONE) == ["one"]
    assert [change.action for change in store.entries.history("one")] == ["add", "forget", "restore"]


def test_superseded_records_are_known_by_their_successor(store: Store) -> None:
    store.entries.add([memory_of(id_) for id_ in ("new", "old", "older")], by="me")
    for id_ in ("older", "old"):
        store.entries.revise(
            id_, lambda record: replace(record, retired_at=5, superseded_by="new"), by="me", action="supersede"
        )
    assert store.entries.superseded("new") == ("old", "older")
    assert store.entries.superseded("old") == ()


# ── history ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_change_numbers_grow_over_all_records(store: Store) -> None:
    store.entries.add([memory_of("one"), memory_of("two")], by="me")
    last = retire(store, "one").change
    numbers = [change.change for id_ in ("one", "two") for change in store.entries.history(id_)]
    assert max(numbers) == last and len(set(numbers)) == 3
    assert store.entries.change(last + 1) is None
    store.entries.purge(["one"])
    assert store.entries.change(last) is None
    assert retire(store, "two").change > last


def test_changes_of_a_time_span_come_in_order_of_time(store: Store) -> None:
    times = [50, 10, 30, 30]
    store.entries.add([replace(memory_of(f"m{n}"), updated_at=at) for n, at in enumerate(times)], by="me")
    between = [(change.at, change.record) for change in store.entries.changes_between(10, 50)]
    assert between == [(10, "m1"), (30, "m2"), (30, "m3")]
    assert list(store.entries.changes_between(11, 30)) == []


def test_changes_of_a_time_span_come_newest_first_on_request(store: Store) -> None:
    times = [50, 10, 30, 30]
    store.entries.add([replace(memory_of(f"m{n}"), updated_at=at) for n, at in enumerate(times)], by="me")
    between = [(change.at, change.record) for change in store.entries.changes_between(10, 50, newest_first=True)]
    assert between == [(30, "m3"), (30, "m2"), (10, "m1")]


def test_many_changes_of_one_moment_are_all_returned(store: Store) -> None:
    store.entries.add([memory_of(f"m{n:04}") for n in range(1_200)], by="me")
    forwards = [change.record for change in store.entries.changes_between(0, 2)]
    assert len(set(forwards)) == len(forwards) == 1_200
    assert [change.record for change in store.entries.changes_between(0, 2, newest_first=True)] == forwards[::-1]


def test_states_are_those_right_before_the_first_change_after_a_moment(store: Store) -> None:
    store.entries.add([memory_of("one")], by="me")
    first = store.entries.revise("one", lambda record: replace(record, text="second"), by="me", action="update").at
    store.entries.add([replace(memory_of("later"), updated_at=first + 5)], by="me")
    assert [record.text for record in store.entries.states_at(first - 1)] == ["text of one"]
    assert store.entries.states_at(first + 10) == ()


# ── links, expiry, statistics ─────────────────────────────────────────────────────────────────────────────────


def test_a_link_leads_in_both_directions_the_heaviest_first(store: Store) -> None:
    store.entries.add([memory_of(id_) for id_ in ("one", "two", "three", "gone")], by="me")
    for id_, weight in (("two", 0.6), ("three", 0.9), ("gone", 1.0), ("nowhere", 1.0)):
        store.entries.link([("one", id_, "near", weight)])
    retire(store, "gone")
    assert store.entries.linked("one", "near") == ("three", "two")
    assert (store.entries.linked("two", "near"), store.entries.linked("one", "other")) == (("one",), ())
    store.entries.link([("one", "two", "near", 0.95)])
    assert store.entries.linked("one", "near") == ("two", "three")


def test_links_are_made_with_an_entry_only_if_it_is_new(store: Store) -> None:
    store.entries.add([memory_of("one")], by="me")
    links = [("two", "one", "near", 0.6), ("two", "nowhere", "near", 1.0), ("one", "one", "near", 1.0)]
    store.entries.add([memory_of("two")], by="me", links=links)
    assert (store.entries.linked("two", "near"), store.entries.linked("one", "near")) == (("one",), ("two",))
    store.entries.add([replace(memory_of("three"), text="text of one")], by="me", links=[("three", "two", "near", 1.0)])
    assert store.entries.linked("two", "near") == ("one",)


def test_several_links_are_made_at_once(store: Store) -> None:
    store.entries.add([memory_of(id_) for id_ in ("one", "two", "three")], by="me")
    store.entries.link([("one", "two", "near", 0.6), ("three", "one", "near", 0.9), ("two", "gone", "near", 1.0)])
    assert store.entries.linked("one", "near") == ("three", "two")
    store.entries.link([])
    assert store.entries.links_of(["two", "three"], "near") == {"two": ("one",), "three": ("one",)}


def test_the_links_of_several_records_are_read_at_once(store: Store) -> None:
    store.entries.add([memory_of(id_) for id_ in ("one", "two", "three", "gone", "single")], by="me")
    for source, target, weight in (("one", "two", 0.6), ("one", "three", 0.9), ("gone", "one", 1.0)):
        store.entries.link([(source, target, "near", weight)])
    retire(store, "gone")
    ids = ["three", "one", "single", "nowhere"]
    assert store.entries.links_of(ids, "near") == {"one": ("three", "two"), "three": ("one",)}
    assert store.entries.links_of(ids, "other") == store.entries.links_of([], "near") == {}


def test_linked_pairs_are_named_once_and_only_while_both_are_live(store: Store) -> None:
    store.entries.add([memory_of(id_) for id_ in ("one", "two", "gone")], by="me")
    store.entries.add([replace(memory_of(id_), agent="other") for id_ in ("foreign", "stranger")], by="me")
    for source, target, kind in (
        ("two", "one", "conflict"),
        ("one", "gone", "conflict"),
        ("one", "two", "near"),
        ("stranger", "foreign", "conflict"),
    ):
        store.entries.link([(source, target, kind, 1.0)])
    retire(store, "gone")
    assert store.entries.linked_pairs("conflict", memory_of("one").agent) == (("one", "two"),)
    assert store.entries.linked_pairs("conflict", "*") == (("foreign", "stranger"), ("one", "two"))
    assert store.entries.linked_pairs("other", "*") == ()
    store.entries.purge(["two"])
    assert store.entries.linked_pairs("conflict", memory_of("one").agent) == ()


def test_expired_entries_are_named_whether_live_or_retired(store: Store) -> None:
    store.entries.add([memory_of("one", expires_at=5), memory_of("two", expires_at=9), memory_of("three")], by="me")
    retire(store, "one")
    assert set(store.entries.expired(10)) == {"one", "two"}
    assert store.entries.expired(9) == ("one",)


def test_statistics_are_of_live_memories(store: Store) -> None:
    memories = [
        memory_of("one", type="fact", importance=4, confidence=0.5),
        memory_of("two", type="fact", importance=8),
        memory_of("old", type="fact", expires_at=5),
        replace(memory_of("theirs"), agent="b"),
    ]
    store.entries.add([*memories, turn("t", "s", 9)], by="me")
    store.entries.log_access([Access("one", 3, "get"), Access("t", 3, "get")], oldest=0, rows=10)
    store.settle()
    assert store.entries.statistics("a") == MemoryStatistics(2, {"fact": 2}, 6.0, 0.5, 1, 1, 1)
    assert store.entries.statistics("unknown").total == 0


def test_statistics_of_every_agent_count_the_memories_of_each(store: Store) -> None:
    theirs = replace(memory_of("theirs", type="event", importance=2), agent="b")
    store.entries.add([memory_of("one", type="fact", importance=4), theirs, turn("t", "s", 9)], by="me")
    found = store.entries.statistics("*")
    assert (found.total, found.by_type, found.average_importance) == (2, {"fact": 1, "event": 1}, 3.0)


def test_usage_counts_by_day_what_was_created_and_returned(store: Store) -> None:
    store.files.apply([update("a.md", "apples")])
    memories = [
        replace(memory_of("old", importance=5), created_at=DAY_MS - 1),
        replace(memory_of("new", importance=5), created_at=DAY_MS),
        replace(memory_of("main", importance=9), created_at=2 * DAY_MS),
        replace(memory_of("ancient", importance=1), created_at=-1),
        replace(memory_of("theirs"), agent="b"),
        memory_of("expired", expires_at=5),
        memory_of("gone"),
    ]
    store.entries.add([*memories, turn("t", "s", 9)], by="me")
    retire(store, "gone")
    accesses = [Access("new", at, "get") for at in (5, DAY_MS, DAY_MS + 1)]
    store.entries.log_access([*accesses, Access("t", 7, "get"), Access("theirs", 5, "get")], oldest=0, rows=99)
    store.settle()
    found = store.entries.usage(Filters(agent="a"), limit=2)
    assert (dict(found.entries), dict(found.chunks)) == ({-1: 1, 0: 2, 1: 1, 2: 1}, {0: 1})
    assert dict(found.recalls) == {0: 2, 1: 2}
    assert found.most_recalled == (("new", 3, DAY_MS + 1), ("t", 1, 7))
    assert (found.memories, found.never_recalled, found.unused) == (4, 3, ("main", "old"))
    assert store.entries.usage(Filters(agent="*"), limit=9).memories == 5
    nothing = Filters(agent="nobody", kinds=("memory",))
    assert store.entries.usage(nothing, limit=9) == UsageCounts({}, {}, {}, (), 0, 0, ())


def test_logged_queries_can_be_read_and_forgotten(store: Store) -> None:
    store.entries.add([memory_of("m")], by="me")
    accesses = [Access("m", at, "search", query) for at, query in ((1, "pears"), (2, "apples"), (3, "pears"))]
    store.entries.log_access([*accesses, Access("m", 4, "get")], oldest=0, rows=10)
    assert store.entries.logged_queries() == ("apples", "pears")
    assert store.entries.forget_queries(["pears", "plums"]) == 2
    assert store.entries.logged_queries() == ("apples",)
    store.settle()
    assert store.retrieval.ranking_signals(["m"])["m"].access_count == 4  # who was returned stays


# ── turns ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_turns_around_one_are_of_its_session_in_order(store: Store) -> None:
    turns = [turn(f"t{n}", "s", n) for n in range(6)]
    store.entries.add([*turns, turn("other", "x", 3), memory_of("m")], by="me")
    retire(store, "t2")
    assert [one.id for one in store.entries.surrounding_turns("t3", 1, 2)] == ["t1", "t3", "t4", "t5"]
    assert [one.id for one in store.entries.surrounding_turns("t0", 5, 0)] == ["t0"]
    assert [store.entries.surrounding_turns(id_, 1, 1) for id_ in ("t2", "m", "nowhere")] == [(), (), ()]


def test_sessions_are_counted_with_their_times_and_first_words_the_latest_first(store: Store) -> None:
    planning = [turn("p1", "planning", 5, summary="Freeze?"), turn("p2", "planning", 9, summary="Over.")]
    theirs = replace(turn("t1", "planning", 7, summary="Theirs"), agent="b")
    nowhere = Record(id="loose", kind="turn", text="said", agent="a", created_at=99)
    store.entries.add([*planning, turn("i1", "incident", 8), theirs, turn("gone", "old", 3), nowhere], by="me")
    retire(store, "gone")
    incident = Session("incident", "a", 1, 8, 8)
    mine, other = Session("planning", "a", 2, 5, 9, "Freeze?"), Session("planning", "b", 1, 7, 7, "Theirs")
    assert store.entries.sessions("a", limit=9) == SessionPage((mine, incident), 2)
    assert store.entries.sessions("*", limit=9) == SessionPage((mine, incident, other), 3)
    assert store.entries.sessions("*", limit=1, offset=1) == SessionPage((incident,), 3)
    assert store.entries.sessions("a", limit=9, offset=10**30) == SessionPage((), 2)
    assert store.entries.sessions("nobody", limit=9) == SessionPage((), 0)


# ── purging ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_purge_leaves_nothing(store: Store) -> None:
    store.entries.add([memory_of("one", tags=("tea",)), memory_of("two")], by="me")
    store.entries.link([("one", "two", "near", 0.9)])
    retire(store, "one")
    result = store.entries.purge(["one", "nowhere"])
    assert (result.records, result.history, result.facts) == (1, 2, ())
    assert (store.retrieval.record("one"), store.entries.history("one")) == (None, ())
    assert store.entries.linked("two", "near") == ()
    assert store.retrieval.resolve("o", retired=True) == ()


def test_a_purge_of_a_turn_names_the_facts_that_were_extracted_from_it(store: Store) -> None:
    store.entries.add([turn("t", "s", 1), memory_of("fact"), memory_of("purged"), memory_of("other")], by="me")
    for id_ in ("fact", "purged"):
        store.entries.link([("t", id_, FROM, 1.0)])
    assert store.entries.purge(["t", "purged"]).facts == ("fact",)


def logged(store: Store) -> tuple[str, ...]:
    store.settle()
    return store.entries.logged_queries()


def log_searches(store: Store, count: int) -> None:
    """Log searches at the moments 1, 2, 3 …, each with a query that names its moment."""
    store.entries.add([memory_of("m")], by="me")
    accesses = [Access("m", at, "search", f"query {at}") for at in range(1, count + 1)]
    store.entries.log_access(accesses, oldest=0, rows=1_000)
    store.settle()


def test_the_log_of_accesses_is_pruned_by_age_and_by_length(store: Store) -> None:
    log_searches(store, 6)
    store.entries.prune_access_log(oldest=3, rows=100)
    assert logged(store) == ("query 3", "query 4", "query 5", "query 6")
    store.entries.prune_access_log(oldest=0, rows=2)
    assert logged(store) == ("query 5", "query 6")
    store.entries.prune_access_log(oldest=0, rows=0)
    assert logged(store) == ()
    assert store.retrieval.ranking_signals(["m"])["m"].access_count == 6  # how often it was returned stays


@pytest.mark.parametrize(("oldest", "rows"), [(5, 100), (0, 2)])
def test_the_log_of_accesses_is_pruned_later_if_it_is_due(store: Store, oldest: int, rows: int) -> None:
    log_searches(store, 6)
    store.entries.prune_access_log_later(oldest=1, rows=6)
    assert len(logged(store)) == 6
    store.entries.prune_access_log_later(oldest=oldest, rows=rows)
    assert logged(store) == ("query 5", "query 6")
