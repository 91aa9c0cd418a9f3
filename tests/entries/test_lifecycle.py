"""The life of a memory: added, recognised as a duplicate, updated, forgotten, restored, undone, purged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from mindex.clock import DAY_MS, now_ms, to_iso
from mindex.embedding import queue
from mindex.errors import AmbiguousIdError, ConflictError, MindexError, NotFoundError, UsageError
from mindex.memory import Memory
from tests.providers.servers import ModelServer, hang, status
from tests.running import run_here, wait_until


@pytest.fixture
def memory(keyword_memory: Memory) -> Memory:
    return keyword_memory


def found(memory: Memory, query: str, **options: object) -> list[str]:
    return [hit.record.id for hit in memory.search(query, **options).hits]  # type: ignore[arg-type]


# ── adding ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_memory_is_found_with_all_its_properties(memory: Memory) -> None:
    added = memory.add(
        "Anna Lindqvist prefers PostgreSQL over MySQL",
        type="preference",
        importance=7,
        confidence=0.8,
        tags=["databases"],
        context="hiring",
        source="meeting",
        expires="30d",
    )
    assert (added.created, added.duplicate, added.similar, added.redacted) == (True, False, (), ())
    (hit,) = memory.search("postgresql").hits
    record = hit.record
    assert (record.id, record.kind, record.type) == (added.id, "memory", "preference")
    assert (record.importance, record.confidence, record.tags) == (7, 0.8, ("databases",))
    assert (record.context, record.source, record.agent) == ("hiring", "meeting", "main")
    assert record.number == 1
    assert {"Anna Lindqvist", "PostgreSQL", "MySQL"} <= set(record.entities)
    assert record.summary == "Anna Lindqvist prefers PostgreSQL over MySQL"
    assert record.expires_at is not None and record.expires_at > now_ms()


def test_the_same_text_again_is_the_same_memory(memory: Memory) -> None:
    first = memory.add("The build runs on  Tuesdays")
    again = memory.add("The build runs on Tuesdays\n")
    assert (again.id, again.created, again.duplicate) == (first.id, False, True)
    assert memory.list().total == 1
    assert len(memory.history(first.id)) == 1


def test_two_agents_may_have_the_same_memory(memory: Memory) -> None:
    ours = memory.add("The build runs on Tuesdays")
    theirs = memory.add("The build runs on Tuesdays", agent="other")
    assert ours.id != theirs.id
    assert found(memory, "build") == [ours.id]
    assert found(memory, "build", agent="other") == [theirs.id]
    assert set(found(memory, "build", agent="*")) == {ours.id, theirs.id}


def test_near_duplicates_are_stored_linked_both_ways_and_named(memory: Memory) -> None:
    first = memory.add("User prefers dark mode in every editor", type="preference")
    second = memory.add("The user prefers dark mode in the editor", type="preference")
    assert second.created
    assert [one.id for one in second.similar] == [first.id]
    assert second.similar[0].overlap >= 0.6
    assert memory.store.entries.linked(first.id, "near") == (second.id,)
    assert memory.store.entries.linked(second.id, "near") == (first.id,)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The database listens on port 5432", "The database listens on port 5433"),
        ("Anna likes long meetings in the morning", "Anna does not like long meetings in the morning"),
    ],
)
def test_other_numbers_and_negations_are_not_near(memory: Memory, one: str, other: str) -> None:
    memory.add(one)
    assert memory.add(other).similar == ()


def test_other_types_are_not_near(memory: Memory) -> None:
    memory.add("User prefers dark mode in every editor", type="preference")
    assert memory.add("User prefers dark mode in each editor", type="fact").similar == ()


def test_a_secret_is_redacted_and_reported(memory: Memory) -> None:
    key = "sk-" + "proj-" + "aB3dE5" * 8
    added = memory.add(f"The deploy key is {key} since May")
    assert added.redacted
    (record,) = memory.get(added.id).records
    assert key not in record.text
    assert "[redacted:" in record.text
    assert key not in str(memory.history(added.id))


def test_strict_mode_rejects_a_secret_and_stores_nothing(tmp_path: Path) -> None:
    key = "sk-" + "proj-" + "aB3dE5" * 8
    options = {"embedding.provider": "none", "secrets.mode": "strict"}
    with Memory(tmp_path / "strict.db", options=options) as memory:
        with pytest.raises(MindexError) as caught:
            memory.add(f"The deploy key is {key}")
        assert key not in str(caught.value)
        assert memory.list().total == 0
    for file in tmp_path.glob("strict.db*"):
        assert key.encode() not in file.read_bytes()


@pytest.mark.parametrize(
    ("text", "options", "complaint"),
    [
        ("", {}, "empty"),
        ("  \n", {}, "empty"),
        ("x" * 5_000_000, {}, "bytes"),
        ("fine", {"type": "rumour"}, "fact, preference"),
        ("fine", {"importance": 11}, "1 .* to 10"),
        ("fine", {"importance": 0}, "1 .* to 10"),
        ("fine", {"confidence": 2.0}, "0 .* to 1"),
        ("fine", {"confidence": float("nan")}, "0 .* to 1"),
        ("fine", {"expires": "someday"}, "not a time"),
        ("fine", {"expires": "2001-01-01"}, "past"),
        ("fine", {"agent": "*"}, "means all agents"),
    ],
)
def test_invalid_properties_are_errors_and_nothing_is_stored(
    memory: Memory, text: str, options: dict[str, object], complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        memory.add(text, **options)  # type: ignore[arg-type]
    assert memory.list().total == 0


# ── changing ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_update_replaces_what_is_given_and_keeps_the_rest(memory: Memory) -> None:
    added = memory.add("The office is in Hamburg", tags=["place"], importance=4)
    change = memory.update(added.id, text="The office is in Rotterdam", reason="moved")
    (record,) = memory.get(added.id).records
    assert (record.text, record.tags, record.importance) == ("The office is in Rotterdam", ("place",), 4)
    assert record.summary == "The office is in Rotterdam"
    assert "Rotterdam" in record.entities and "Hamburg" not in record.entities
    assert (change.action, change.reason, change.by) == ("update", "moved", "main")
    assert found(memory, "rotterdam") == [added.id]
    assert found(memory, "hamburg") == []


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({}, "nothing to change"),
        ({"type": "rumour"}, "unknown type"),
        ({"importance": 11}, "out of range"),
        ({"text": " "}, "empty"),
        ({"colour": "red"}, "unknown property"),
    ],
)
def test_a_bad_update_changes_nothing(memory: Memory, changes: dict[str, object], complaint: str) -> None:
    added = memory.add("The office is in Hamburg")
    with pytest.raises(UsageError, match=complaint):
        memory.update(added.id, **changes)
    assert len(memory.history(added.id)) == 1


def test_an_update_may_not_make_two_memories_say_the_same(memory: Memory) -> None:
    memory.add("one thing")
    other = memory.add("another thing")
    with pytest.raises(ConflictError, match="has the same text"):
        memory.update(other.id, text="one thing")


def test_a_forgotten_memory_is_not_found_and_is_restored_whole(memory: Memory) -> None:
    added = memory.add("The office is in Hamburg", tags=["place"])
    memory.forget(added.id, "moved away")
    assert found(memory, "hamburg") == []
    assert memory.list().total == 0
    assert memory.get(added.id).missing == (added.id,)
    memory.restore(added.id)
    assert found(memory, "hamburg") == [added.id]
    assert memory.get(added.id).records[0].tags == ("place",)
    with pytest.raises(ConflictError, match="not forgotten"):
        memory.restore(added.id)


def test_an_entry_is_changed_and_forgotten_by_its_number(memory: Memory) -> None:
    memory.add("The printer is on the second floor")
    added = memory.add("The coffee machine is on the third floor")
    number = memory.get(added.id).records[0].number
    assert memory.update(f"#{number}", text="The coffee machine is on the first floor").record == added.id
    assert memory.forget(f"#{number}").record == added.id
    assert memory.restore(f"#{number}").record == added.id
    assert memory.undo(f"#{number}")[0].record == added.id
    with pytest.raises(NotFoundError, match="there is no entry '#99'"):
        memory.forget("#99")


def test_a_forgotten_memory_can_be_added_again(memory: Memory) -> None:
    first = memory.add("The office is in Hamburg")
    memory.forget(first.id)
    second = memory.add("The office is in Hamburg")
    assert second.created and second.id != first.id
    with pytest.raises(ConflictError, match="has the same text"):
        memory.restore(first.id)


def test_a_superseded_memory_leaves_the_search_but_is_kept(memory: Memory) -> None:
    old = memory.add("The office is in Hamburg")
    new = memory.add("The office is in Rotterdam", supersedes=old.id[:6])
    assert found(memory, "office") == [new.id]
    (record,) = memory.get(old.id).records
    assert record.superseded_by == new.id


def test_superseding_in_a_circle_is_refused(memory: Memory) -> None:
    old = memory.add("The office is in Hamburg")
    new = memory.add("The office is in Rotterdam", supersedes=old.id)
    with pytest.raises(ConflictError, match="cannot supersede"):
        memory.update(old.id, supersedes=new.id)
    with pytest.raises(ConflictError, match="cannot supersede"):
        memory.update(new.id, supersedes=new.id)


def test_unknown_and_ambiguous_ids_are_errors(memory: Memory) -> None:
    added = memory.add("one")
    for call in (memory.forget, memory.restore, memory.history, memory.undo, memory.purge):
        with pytest.raises(NotFoundError):
            call("zzzzzzzz")
    twin, other = added.id[:5] + "zzzzzzz", memory.add("two")
    with memory.store._engine.database.write() as connection:  # type: ignore[attr-defined]
        connection.execute("UPDATE records SET id = ? WHERE id = ?", (twin, other.id))
    with pytest.raises(AmbiguousIdError):
        memory.forget(added.id[:5])


def test_a_chunk_is_not_a_memory(memory: Memory, handbook: Path) -> None:
    memory.index(handbook)
    chunk = memory.search("redis").hits[0].record
    with pytest.raises(NotFoundError, match="a chunk of a file"):
        memory.forget(chunk.id)


# ── history ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_change_is_kept_with_before_after_when_by_whom_and_why(memory: Memory) -> None:
    added = memory.add("one")
    memory.update(added.id, text="two", reason="because")
    memory.forget(added.id, "done")
    memory.restore(added.id)
    changes = memory.history(added.id)
    assert [change.action for change in changes] == ["add", "update", "forget", "restore"]
    assert [change.before.text if change.before else None for change in changes] == [None, "one", "two", "two"]
    assert [change.after.text for change in changes] == ["one", "two", "two", "two"]
    assert [change.reason for change in changes] == ["", "because", "done", ""]
    assert changes[2].after.retired_at is not None and changes[3].after.retired_at is None
    assert all(change.by == "main" and change.at for change in changes)


def test_any_change_can_be_undone_and_so_can_the_undo(memory: Memory) -> None:
    added = memory.add("one", tags=["a"])
    first = memory.update(added.id, text="two")
    memory.update(added.id, tags=["b"])
    change, undone = memory.undo(str(first.change))
    assert undone == first.change
    (record,) = memory.get(added.id).records
    assert (record.text, record.tags) == ("one", ("b",))  # what was changed since stays
    memory.undo(str(change.change))
    assert memory.get(added.id).records[0].text == "two"


def test_undo_of_the_first_change_retires_the_memory(memory: Memory) -> None:
    added = memory.add("one")
    change, _ = memory.undo(added.id)
    assert found(memory, "one") == []
    memory.undo(str(change.change))
    assert found(memory, "one") == [added.id]


def test_every_undo_by_id_goes_one_change_further_back(memory: Memory) -> None:
    added = memory.add("one")
    second, third = memory.update(added.id, text="two"), memory.update(added.id, text="three")
    texts, undone = [], []
    for _ in range(2):
        change, number = memory.undo(added.id)
        texts.append(change.after.text)
        undone.append(number)
    assert (texts, undone) == (["two", "one"], [third.change, second.change])
    change, _ = memory.undo(added.id)
    assert change.after.retired_at is not None
    with pytest.raises(NotFoundError, match=r"every change of .* is undone already") as raised:
        memory.undo(added.id)
    assert raised.value.hint == f"`mindex undo {change.change}` reverts the last undo"


def test_an_undo_is_undone_by_its_number_and_then_undone_again_by_id(memory: Memory) -> None:
    added = memory.add("one")
    second = memory.update(added.id, text="two")
    undo, _ = memory.undo(added.id)
    redo, _ = memory.undo(str(undo.change))
    assert redo.after.text == "two"
    again, number = memory.undo(added.id)
    assert (again.after.text, number) == ("one", second.change)
    memory.undo(str(again.change))
    memory.update(added.id, text="three")
    assert [memory.undo(added.id)[0].after.text for _ in range(2)] == ["two", "one"]


def test_undo_by_id_passes_over_a_change_that_was_undone_by_its_number(memory: Memory) -> None:
    added = memory.add("one", tags=["a"])
    second = memory.update(added.id, text="two")
    third = memory.update(added.id, tags=["b"])
    memory.undo(str(second.change))
    change, number = memory.undo(added.id)
    assert (number, change.after.text, change.after.tags) == (third.change, "one", ("a",))


def test_undo_by_id_goes_on_behind_a_merge_that_was_undone_as_a_whole(memory: Memory) -> None:
    first = memory.add("The office in Genoa opens at eight", importance=3)
    memory.update(first.id, importance=4)
    second = memory.add("The office in Genoa opens at nine")
    merged = memory.update(second.id, supersedes=first.id)
    with memory.store.entries.transaction(batch=True):
        for id_ in (first.id, second.id):
            memory.update(id_, confidence=0.5)
    memory.undo(first.id)  # of both records: the reason in the history of the second names the change of the first
    assert memory.entries.find(second.id).confidence == 1.0
    _, number = memory.undo(second.id)
    assert number == merged.change


def test_a_change_of_which_nothing_is_left_is_not_undone_again(memory: Memory) -> None:
    id_ = memory.add("Tea is green").id
    change = memory.update(id_, importance=9).change
    memory.undo(str(change))
    before = memory.history(id_)
    with pytest.raises(NotFoundError, match=f"nothing of change {change} is left to undo"):
        memory.undo(str(change))
    assert memory.history(id_) == before
    memory.update(id_, importance=9)
    memory.undo(str(change))  # it has an effect again
    assert memory.entries.find(id_).importance != 9


def test_undo_of_nothing_is_an_error(memory: Memory) -> None:
    with pytest.raises(NotFoundError, match="no change 99"):
        memory.undo("99")


def test_a_search_as_of_a_time_finds_what_was_stored_then(memory: Memory) -> None:
    kept = memory.add("The harbour office has a kitchen")
    changed = memory.add("The harbour office opens at eight")
    forgotten = memory.add("The harbour office has a parrot")
    then = to_iso_ms(now_ms())
    _later()
    memory.update(changed.id, text="The harbour office opens at nine")
    memory.forget(forgotten.id)
    added = memory.add("The harbour office was painted")
    now = {hit.record.id: hit.record.text for hit in memory.search("harbour office").hits}
    past = {hit.record.id: hit.record.text for hit in memory.search("harbour office", as_of=then).hits}
    assert set(now) == {kept.id, changed.id, added.id}
    assert set(past) == {kept.id, changed.id, forgotten.id}
    assert past[changed.id] == "The harbour office opens at eight"
    assert found(memory, "nine", as_of=then) == []
    assert found(memory, "parrot NOT kitchen", as_of=then) == [forgotten.id]
    assert memory.get(changed.id, as_of=then).records[0].text == "The harbour office opens at eight"
    assert memory.get(added.id, as_of=then).missing == (added.id,)


def test_scores_as_of_a_time_are_comparable_with_those_of_now(memory: Memory) -> None:
    added = memory.add("The harbour office opens at eight")
    for number in range(30):
        memory.add(f"Something else entirely, number {number}, about weather and tea")
    present = memory.search("harbour office").hits[0].trace.keyword_score
    then = to_iso_ms(now_ms())
    _later()
    memory.update(added.id, importance=9)
    past = memory.search("harbour office", as_of=then).hits[0].trace.keyword_score
    assert past == pytest.approx(present, rel=0.05)


def test_purged_text_never_returns(memory: Memory, tmp_path: Path) -> None:
    added = memory.add("The harbour office has a xylophone")
    memory.update(added.id, text="The harbour office has a glockenspiel")
    other = memory.add("The harbour office has a piano")
    then = to_iso_ms(now_ms())
    purged = memory.purge(added.id)
    assert (purged.records, purged.history) == (1, 2)
    assert found(memory, "office", as_of=then) == [other.id]
    with pytest.raises(NotFoundError):
        memory.history(added.id)
    memory.store.settle()
    for file in tmp_path.glob("memory.db*"):
        content = file.read_bytes()
        assert b"xylophon" not in content and b"glockenspiel" not in content
    assert all(check.ok for check in memory.store.maintenance.check())


def test_the_timeline_lists_the_events_between_two_times(memory: Memory) -> None:
    added = memory.add("one thing")
    memory.forget(added.id)
    memory.add("another story")
    assert [event.action for event in memory.timeline.events("1d")] == ["add", "forget", "add"]
    assert [event.summary for event in memory.timeline.events("1d", query="story")] == ["another story"]
    assert memory.timeline.events("2001", "2002") == ()
    with pytest.raises(UsageError, match="after '2002' is later than before '2001'"):
        memory.timeline.events("2002", "2001")
    assert len(memory.timeline.events("1d", limit=2)) == 2


def test_the_timeline_without_a_beginning_is_the_last_seven_days_newest_first(memory: Memory) -> None:
    old = memory.add("eight days old")
    with memory.store._engine.database.write() as connection:  # type: ignore[attr-defined]
        connection.execute("UPDATE history SET at = ? WHERE record = ?", (now_ms() - 8 * DAY_MS, old.id))
    first, second = memory.add("one thing"), memory.add("another story")
    assert [event.id for event in memory.timeline.events()] == [second.id, first.id]
    assert [event.id for event in memory.timeline.events(limit=1)] == [second.id]
    assert [event.id for event in memory.timeline.events(before="7d")] == [old.id]
    assert [event.id for event in memory.timeline.events("2 weeks ago")] == [old.id, first.id, second.id]


# ── ranking ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_expired_memories_are_hidden_by_default_and_removed_after_the_grace_period(memory: Memory) -> None:
    added = memory.add("The harbour office is closed", expires=now_ms() + 60_000)
    with memory.store._engine.database.write() as connection:  # type: ignore[attr-defined]
        connection.execute("UPDATE records SET expires_at = ? WHERE id = ?", (now_ms() - 1_000, added.id))
    assert found(memory, "harbour") == []
    assert found(memory, "harbour", include_expired=True) == [added.id]
    assert memory.maintenance.purge_expired() == 0
    with memory.store._engine.database.write() as connection:  # type: ignore[attr-defined]
        connection.execute("UPDATE records SET expires_at = 1000 WHERE id = ?", (added.id,))
    assert memory.maintenance.purge_expired() == 1
    assert found(memory, "harbour", include_expired=True) == []


def test_returned_entries_are_logged_in_the_background(memory: Memory) -> None:
    added = memory.add("The harbour office has a kitchen")
    memory.search("kitchen")
    memory.get(added.id)
    memory.store.settle()
    signals = memory.store.retrieval.ranking_signals([added.id])[added.id]
    assert signals.access_count == 2
    assert signals.last_accessed is not None
    assert memory.maintenance.statistics().accesses == 2


def test_only_confident_hits_and_what_is_fetched_count_as_accessed(memory: Memory) -> None:
    added = memory.add("The harbour office has a kitchen")
    query = "harbour kitchen with copper pots and candles"
    (weak,) = memory.search(query).hits
    assert weak.weak
    memory.store.settle()
    assert memory.maintenance.statistics().accesses == 0
    (sure,) = memory.search(query, floor=0).hits  # as the tools of other programs search: all that they return counts
    assert not sure.weak
    memory.get(added.id)
    memory.store.settle()
    assert memory.maintenance.statistics().accesses == 2


def test_importance_moves_a_memory_within_its_band_only(memory: Memory) -> None:
    low = memory.add("The harbour office has a red kitchen", importance=1)
    high = memory.add("The harbour office has a blue kitchen", importance=10)
    scores = {hit.record.id: hit for hit in memory.search("harbour kitchen").hits}
    assert scores[high.id].score > scores[low.id].score
    assert scores[high.id].score / scores[low.id].score < 1.1 / 0.9 + 1e-6


def test_memories_are_filtered_by_their_properties(memory: Memory) -> None:
    a = memory.add("Anna works on Falcon", type="relationship", importance=8, confidence=0.4, tags=["team"])
    b = memory.add("Bert works on Falcon", type="fact", importance=2, tags=["other"])
    assert found(memory, "falcon", types=["relationship"]) == [a.id]
    assert found(memory, "falcon", entities=["anna"]) == [a.id]
    assert found(memory, "falcon", tags=["TEAM"]) == [a.id]
    assert found(memory, "falcon", min_importance=5) == [a.id]
    assert found(memory, "falcon", min_confidence=0.5) == [b.id]
    assert set(found(memory, "falcon", kinds=["memory"])) == {a.id, b.id}
    assert found(memory, "falcon", kinds=["chunk"]) == []


def test_statistics_count_what_is_live(memory: Memory) -> None:
    memory.add("one", importance=4, type="fact")
    memory.forget(memory.add("two", importance=8).id)
    numbers = memory.maintenance.statistics()
    assert (numbers.total, dict(numbers.by_type), numbers.average_importance) == (1, {"fact": 1}, 4.0)


def test_many_memories_are_added_at_once(memory: Memory) -> None:
    from mindex.entries.new_memory import NewMemory

    added = memory.add_many(NewMemory(f"Memory number {number}") for number in range(1_200))
    assert all(one.created for one in added)
    assert memory.list().total == 1_200
    assert not any(one.created for one in memory.add_many([NewMemory("Memory number 7"), NewMemory("Memory number 7")]))


# ── with the model ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def model_memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "model.db") as memory:
        yield memory


@pytest.mark.model
def test_dark_theme_finds_dark_mode(model_memory: Memory) -> None:
    added = model_memory.add("user prefers dark mode", type="preference")
    model_memory.add("user lives in Hamburg")
    answer = model_memory.search("dark theme")
    assert answer.tier == "hybrid"
    assert answer.hits[0].record.id == added.id


@pytest.mark.model
def test_an_update_gets_a_new_vector_and_forgetting_drops_it(model_memory: Memory) -> None:
    assert model_memory.models.embedder is not None
    added = model_memory.add("the cat sleeps on the sofa")
    model_memory.update(added.id, text="quarterly revenue grew by a third")
    assert model_memory.store.vectors.pending(model_memory.models.embedder.model) == 0
    hit = model_memory.search("company earnings", mode="vector").hits[0]
    assert hit.record.id == added.id
    model_memory.forget(added.id)
    assert model_memory.search("company earnings", mode="vector", floor=0).hits == ()
    model_memory.restore(added.id)
    assert model_memory.search("company earnings", mode="vector").hits[0].record.id == added.id


@pytest.mark.model
def test_meaning_alone_links_near_duplicates(model_memory: Memory) -> None:
    first = model_memory.add("The meeting takes place on the third floor")
    second = model_memory.add("The meeting happens on the third floor of the building")
    assert second.id in model_memory.store.entries.linked(first.id, "near")


@pytest.mark.model
def test_the_past_is_searched_by_meaning_too(model_memory: Memory) -> None:
    added = model_memory.add("quarterly revenue grew by a third")
    model_memory.add("the cat sleeps on the sofa")
    then = to_iso_ms(now_ms())
    _later()
    model_memory.update(added.id, text="the dog sleeps in the garden")
    answer = model_memory.search("company earnings", as_of=then)
    assert answer.hits[0].record.text == "quarterly revenue grew by a third"
    assert any("as they were then" in note for note in answer.notes)


# ── any order ─────────────────────────────────────────────────────────────────────────────────────────────────


class AnyOrder(RuleBasedStateMachine):
    """After any operations in any order, records, index and history agree, and doctor finds no fault."""

    @initialize()
    def open(self) -> None:
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "any.db"
        self.memory = Memory(path, options={"embedding.provider": "none"})
        self.texts: dict[str, str] = {}
        self.forgotten: set[str] = set()
        self.count = 0

    def _pick(self, number: int) -> str | None:
        return sorted(self.texts)[number % len(self.texts)] if self.texts else None

    @rule()
    def add(self) -> None:
        self.count += 1
        text = f"memory {_word(self.count)}"
        self.texts[self.memory.add(text).id] = text

    @rule(number=st.integers(0, 99))
    def update(self, number: int) -> None:
        if (id_ := self._pick(number)) is not None:
            self.count += 1
            self.texts[id_] = f"memory {_word(self.count)}"
            self.memory.update(id_, text=self.texts[id_])

    @rule(number=st.integers(0, 99))
    def forget_or_restore(self, number: int) -> None:
        if (id_ := self._pick(number)) is None:
            return
        if id_ in self.forgotten:
            self.memory.restore(id_)
            self.forgotten.discard(id_)
        else:
            self.memory.forget(id_)
            self.forgotten.add(id_)

    @rule(number=st.integers(0, 99))
    def undo_and_undo_again(self, number: int) -> None:
        if (id_ := self._pick(number)) is not None:
            before = self.memory.store.retrieval.record(id_)
            change, _ = self.memory.undo(id_)
            self.memory.undo(str(change.change))
            after = self.memory.store.retrieval.record(id_)
            assert before is not None and after is not None
            assert (before.text, before.retired_at is None) == (after.text, after.retired_at is None)

    @rule(number=st.integers(0, 99))
    def purge(self, number: int) -> None:
        if (id_ := self._pick(number)) is not None:
            self.memory.purge(id_)
            del self.texts[id_]
            self.forgotten.discard(id_)

    @rule()
    def everything_agrees(self) -> None:
        live = {id_ for id_ in self.texts if id_ not in self.forgotten}
        assert {record.id for record in self.memory.list(limit=50).records} == live
        for id_, text in self.texts.items():
            hits = [hit.record.id for hit in self.memory.search(f'"{text.split()[1]}"', floor=0).hits]
            assert hits == ([id_] if id_ in live else [])
            assert self.memory.history(id_)[-1].after.text == text
        assert all(check.ok for check in self.memory.store.maintenance.check())

    def teardown(self) -> None:
        if hasattr(self, "memory"):
            self.memory.close()
            self.folder.cleanup()


AnyOrder.TestCase.settings = settings(
    max_examples=15, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
TestAnyOrder = AnyOrder.TestCase


def _word(number: int) -> str:
    """A different word for each number, not a part of another."""
    return "zz" + "".join("bcdfghjklm"[int(digit)] for digit in f"{number:04}")


def to_iso_ms(moment: int) -> str:
    return f"{to_iso(moment)[:-1]}.{moment % 1000:03}Z"


def _later() -> None:
    """Let the clock move on, so that "then" and "now" are different moments."""
    start = now_ms()
    while now_ms() <= start + 1:
        pass


# ── vectors follow ────────────────────────────────────────────────────────────────────────────────────────────


def pending(memory: Memory) -> int:
    assert memory.models.embedder is not None
    return memory.store.vectors.pending(memory.models.embedder.model)


def test_the_wait_for_a_server_that_hangs_is_short_and_noted(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert queue._SECONDS_PER_ENTRY <= 8
    monkeypatch.setattr(queue, "_SECONDS_PER_ENTRY", 0.3)
    server.always = hang
    with Memory(tmp_path / "memory.db", options={"embedding.timeout": 60}) as memory:
        started = monotonic()
        added = memory.add("The build runs on Tuesdays")
        assert monotonic() - started < 20  # it would hang for 30 s
        assert added.notes == ("stored; its vector follows: ollama has not answered for 0.3 s",)
        assert found(memory, "build", mode="keyword") == [added.id]
        started = monotonic()
        changed = memory.update(added.id, text="The build runs on Fridays")
        assert monotonic() - started < 20 and changed.record == added.id


def test_a_server_that_fails_is_a_note_and_the_vector_follows(server: ModelServer, tmp_path: Path) -> None:
    server.always = status(401)
    with Memory(tmp_path / "memory.db") as memory:
        (note,) = memory.add("The build runs on Tuesdays").notes
        assert note.startswith("stored; its vector follows: ") and server.url.removeprefix("http://") in note
        assert pending(memory) == 1
        server.always = None
        assert memory.add("The harbour has three cranes").notes == ()
        memory.embedding_queue.embed_all()
        assert pending(memory) == 0


def test_a_failure_to_embed_in_the_background_is_noted_with_the_next_memory(
    server: ModelServer, tmp_path: Path
) -> None:
    server.always = status(401)
    with Memory(tmp_path / "memory.db") as memory:
        memory.embedding_queue.in_background = True
        assert memory.add("The build runs on Tuesdays").notes == ()
        wait_until(lambda: memory.embedding_queue._failure != "", what="a failure")
        assert memory.add("The harbour has three cranes").notes[0].startswith("stored; its vector follows: ")


def test_the_command_prints_that_a_vector_follows(server: ModelServer, tmp_path: Path) -> None:
    server.always = status(401)
    db = tmp_path / "memory.db"
    said = run_here("--db", db, "add", "The build runs on Tuesdays")
    assert (said.code, "note: stored; its vector follows: " in said.out) == (0, True)
    shown = run_here("--db", db, "--json", "add", "The harbour has three cranes").json
    assert shown["created"] and shown["notes"][0].startswith("stored; its vector follows: ")


@pytest.mark.model
def test_the_local_model_is_waited_for_as_long_as_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "_SECONDS_PER_ENTRY", 0.0)
    with Memory(tmp_path / "memory.db") as memory:
        assert memory.add("The build runs on Tuesdays").notes == ()
        assert pending(memory) == 0


# ── references ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("reference", ["whole", "start", "memory://", "#1", "mem_a1", "MEM_UPPER", "mudpuppy:3"])
def test_every_verb_takes_the_references_that_get_takes(memory: Memory, reference: str) -> None:
    ids = {"mudpuppy": ["3", "mem_a1"], "short_id": "MEM_UPPER"}
    id_ = memory.add("The harbour office has a kitchen", fields={"foreign_ids": ids}).id
    given = {"whole": id_, "start": id_[:6], "memory://": f"memory://{id_}"}.get(reference, reference)
    assert [record.id for record in memory.get(given).records] == [id_]
    assert memory.update(given, importance=7).record == id_
    assert memory.forget(given).record == id_
    assert memory.restore(given).record == id_
    assert len(memory.history(given)) == 4
    assert memory.undo(given)[0].record == id_
    newer = memory.add("The harbour office has a new kitchen", supersedes=given)
    assert memory.entries.find(id_).superseded_by == newer.id
    assert memory.purge(given).records == 1


def test_an_id_of_two_entries_of_other_programs_is_refused_by_name(memory: Memory) -> None:
    one = memory.add("The pier is green", fields={"foreign_ids": {"mudpuppy": "mem_a1"}}).id
    two = memory.add("Ada bakes on Sundays", fields={"foreign_ids": {"memorizer": "mem_a1"}}).id
    with pytest.raises(AmbiguousIdError, match=f"{one}.*{two}"):
        memory.forget("mem_a1")
    assert memory.forget("memorizer:mem_a1").record == two


def test_of_two_entries_with_one_foreign_id_the_one_that_is_not_forgotten_is_meant(memory: Memory) -> None:
    ids = {"foreign_ids": {"mudpuppy": "mem_a1"}}
    memory.forget(memory.add("The pier is green", fields=ids).id)
    live = memory.add("The pier is red", fields=ids).id
    assert memory.forget("mem_a1").record == live


def test_a_bare_number_is_not_an_id_of_another_program(memory: Memory) -> None:
    memory.add("The pier is green", fields={"foreign_ids": {"mudpuppy": "3"}})
    with pytest.raises(NotFoundError):
        memory.forget("3")
