"""An exchange beside a good hit is lifted a little: the question is in one, the answer in the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.datatypes import Hit
from mindex.memory import Memory
from mindex.search.fuse import FUSIONS
from mindex.search.judgement import NEIGHBOUR, Scores, add_neighbours, relevance
from tests.search.asking import adds_up, moment, stages

QUERY = "harbour repair dock"
ASKED = "Which harbour has the repair dock?"
ANSWERED = "The dock of Rotterdam, at the north end."


def say(memory: Memory, text: str, session: str = "s1", **more: str) -> str:
    return memory.conversations.add(text, "", session_id=session, **more)[0].id  # type: ignore[arg-type]


def found(memory: Memory, query: str = QUERY, **scope: object) -> dict[str, Hit]:
    return {hit.record.id: hit for hit in memory.search(query, floor=0, limit=50, **scope).hits}  # type: ignore[arg-type]


def lifted(hit: Hit) -> float:
    return stages(hit).get("neighbours", 0.0)


def own(hit: Hit) -> float:
    """The log-odds of a hit before it was lifted and boosted."""
    return sum(stage.change for stage in hit.trace.stages if stage.name not in ("neighbours", "importance"))


def lift(*beside: Hit) -> float:
    """What the best of these turns adds to the one beside them."""
    return NEIGHBOUR * max(relevance(own(hit)) for hit in beside)


@pytest.fixture
def memory(keyword_memory: Memory) -> Memory:
    for n in range(8):  # so that the words of the question are rare
        keyword_memory.add(f"Something else entirely, number {n}")
    return keyword_memory


def test_the_answer_after_the_question_is_lifted_by_the_relevance_of_the_question(memory: Memory) -> None:
    asked, answered = say(memory, ASKED), say(memory, ANSWERED)
    elsewhere = say(memory, ANSWERED, "s2")
    hits = found(memory)
    assert own(hits[answered]) == pytest.approx(own(hits[elsewhere]))
    assert lifted(hits[answered]) == pytest.approx(lift(hits[asked]))
    assert lifted(hits[asked]) == pytest.approx(lift(hits[answered]))
    assert lifted(hits[elsewhere]) == 0
    assert hits[answered].score > hits[elsewhere].score
    assert hits[answered].relevance > hits[elsewhere].relevance


def test_both_sides_lift_and_none_further_away(memory: Memory) -> None:
    ids = [say(memory, text) for text in (ANSWERED, ANSWERED, ASKED, ANSWERED, ANSWERED)]
    hits = found(memory)
    asked, answered = lift(hits[ids[2]]), lift(hits[ids[0]])
    assert asked > answered
    expected = [answered, asked, answered, asked, answered]
    assert [lifted(hits[id_]) for id_ in ids] == pytest.approx(expected)


@pytest.mark.parametrize("around", [0, 1, 2])
def test_no_turn_is_shown_both_as_a_hit_and_around_one(memory: Memory, around: int) -> None:
    for text in (ANSWERED, ASKED, ANSWERED, "Thanks, that helps.", ASKED, "It is late."):
        say(memory, text)
    hits = memory.search(QUERY, around=around, limit=50).hits
    shown = [hit.record.id for hit in hits]
    beside_them = {turn.id for hit in hits for turn in hit.around}
    assert len(shown) == len(set(shown))
    assert beside_them.isdisjoint(shown)


def test_the_stages_sum_to_the_score(memory: Memory) -> None:
    for text in (ANSWERED, ASKED, ANSWERED):
        say(memory, text)
    answer = memory.search(QUERY)
    assert len([hit for hit in answer.hits if lifted(hit)]) == 3
    assert adds_up(answer)


# ── who is a neighbour ────────────────────────────────────────────────────────────────────────────────────────


def test_a_turn_right_after_in_another_session_is_not_a_neighbour(memory: Memory) -> None:
    say(memory, ASKED, "s1")
    other = say(memory, ANSWERED, "s2")
    assert lifted(found(memory)[other]) == 0


def test_an_entry_in_between_parts_no_neighbours(memory: Memory) -> None:
    """Facts of a turn are stored right after it, and other sessions continue in the meantime."""
    say(memory, ASKED)
    memory.add("The user asks about docks")
    say(memory, "Good morning.", "s2")
    answered = say(memory, ANSWERED)
    assert lifted(found(memory)[answered]) > 0


def test_a_forgotten_turn_separates_no_neighbours(memory: Memory) -> None:
    say(memory, ASKED)
    between = say(memory, "One moment, I look it up.")
    answered = say(memory, ANSWERED)
    assert lifted(found(memory)[answered]) == 0
    memory.forget(between)
    assert lifted(found(memory)[answered]) > 0


def test_neighbours_are_ordered_by_the_time_of_the_turn_not_of_adding_it(memory: Memory) -> None:
    late = say(memory, ANSWERED, at="2026-03-01T12:00:00Z")
    say(memory, ASKED, at="2026-03-01T10:00:00Z")
    say(memory, "One moment, I look it up.", at="2026-03-01T11:00:00Z")
    early = say(memory, ANSWERED, at="2026-03-01T09:00:00Z")
    hits = found(memory)
    assert lifted(hits[late]) == 0
    assert lifted(hits[early]) > 0


def test_agents_do_not_lift_each_other_in_a_session_of_the_same_name(memory: Memory) -> None:
    say(memory, ASKED)
    theirs = say(memory, ANSWERED, agent="other")
    assert theirs not in found(memory)
    assert lifted(found(memory, agent="*")[theirs]) == 0


@pytest.mark.parametrize(
    "scope",
    [
        {"tags": ["wanted"]},
        {"after": "2026-03-02"},
        {"before": "2026-03-03", "tags": ["wanted"]},
        {"kinds": ["turn"], "tags": ["wanted"]},
        {"session": "s1", "after": "2026-03-02"},
    ],
)
def test_a_neighbour_outside_the_scope_never_shows(memory: Memory, scope: dict[str, object]) -> None:
    hidden = say(memory, ANSWERED, at="2026-03-01")
    asked = memory.conversations.add(ASKED, "", session_id="s1", tags=["wanted"], at="2026-03-02")[0].id
    assert set(found(memory)) == {hidden, asked}
    assert set(found(memory, **scope)) == {asked}
    assert set(found(memory, kinds=["memory"])) == set()


def test_a_neighbour_added_later_does_not_count_in_the_past(memory: Memory) -> None:
    asked = say(memory, ASKED)
    then = moment()
    answered = say(memory, ANSWERED)
    assert set(found(memory)) == {asked, answered}
    past = found(memory, as_of=then)
    assert set(past) == {asked}
    assert lifted(past[asked]) == 0


# ── who is shown ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_turn_that_shares_nothing_with_the_query_is_not_shown_for_its_neighbours_sake(
    memory: Memory,
) -> None:
    say(memory, "How was the weekend?")
    asked = say(memory, ASKED)
    say(memory, "Thanks, that helps.")
    assert set(found(memory)) == {asked}


def adjacent(memory: Memory, ids: Iterable[str]) -> tuple[tuple[str, str], ...]:
    context = memory.store.retrieval.ranking_context((), whole=0, filters=memory.filters(), adjacent_to=list(ids))
    return context.adjacent_turns


def scored(**scores: float) -> Scores:
    return Scores(scores, lambda _: ())


def test_a_lifted_turn_lifts_no_other() -> None:
    scores = scored(asked=2.0, beside=-4.0, further=-4.0)
    pairs = [("asked", "beside"), ("beside", "asked"), ("beside", "further"), ("further", "beside")]
    add_neighbours(scores, pairs)
    assert scores.total["beside"] == pytest.approx(-4.0 + NEIGHBOUR * relevance(2.0))
    assert scores.total["further"] == pytest.approx(-4.0 + NEIGHBOUR * relevance(-4.0))


def test_only_what_was_found_is_lifted() -> None:
    scores = scored(asked=2.0)
    add_neighbours(scores, [("asked", "other"), ("other", "asked")])
    assert scores.total == {"asked": 2.0}


@given(st.floats(-9, 9), st.floats(-9, 9), st.floats(-9, 9))
def test_a_better_neighbour_lifts_more_and_none_lifts_more_than_the_weight(
    mine: float, neighbour: float, better: float
) -> None:
    def with_neighbour(odds: float) -> float:
        scores = scored(mine=mine, beside=odds)
        add_neighbours(scores, [("beside", "mine")])
        return scores.total["mine"]

    low, high = sorted((neighbour, better))
    assert mine <= with_neighbour(low) <= with_neighbour(high) <= mine + NEIGHBOUR


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """A few days of talk, read by the built-in model. Shared: tests only ask."""
    said = {
        "s1": [
            ("Where should we hold Anna's party?", "Do you have a place in mind?"),
            ("At the lake house, if the weather holds.", "Good, I noted the lake house."),
            ("Can you also order thirty croissants?", "Ordered from the bakery on Mill Street."),
            ("What did the zirconium valve cost?", "It was 340 euros, from Bauer."),
        ],
        "s2": [
            ("My flight to Oslo leaves at nine.", "I will remind you at six."),
            ("Cancel the gym on Thursday.", "Cancelled."),
            ("That worked, thanks.", "You're welcome."),
            ("Remind me to call the dentist tomorrow.", "Will do."),
        ],
    }
    with Memory(tmp_path_factory.mktemp("chat") / "memory.db") as memory:
        for session, exchanges in said.items():
            for user, agent in exchanges:
                memory.conversations.add(user, agent, session_id=session)
        memory.maintenance.backfill()
        yield memory


def said_by(memory: Memory, query: str) -> list[str]:
    return [str(hit.record.fields["user_message"]) for hit in memory.search(query, weak=False).hits]


@pytest.mark.model
def test_an_answer_without_a_word_of_the_query_ranks_after_the_turn_that_has_one(chat: Memory) -> None:
    hits = chat.search("where is the party", floor=0.0).hits[:2]
    assert [hit.record.fields["user_message"] for hit in hits] == [
        "Where should we hold Anna's party?",
        "At the lake house, if the weather holds.",
    ]


@pytest.mark.model
@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("zirconium", "What did the zirconium valve cost?"),
        ("dentist", "Remind me to call the dentist tomorrow."),
    ],
)
def test_small_talk_beside_a_hit_is_not_shown_with_it(chat: Memory, query: str, text: str) -> None:
    assert said_by(chat, query) == [text]


@pytest.mark.model
def test_an_unrelated_query_finds_no_neighbours(chat: Memory) -> None:
    assert said_by(chat, "how do volcanoes erupt") == []


# ── where it does not apply ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("query", ["dock AND rotterdam OR harbour", '"repair dock" OR rotterdam', "content:dock"])
def test_a_strict_query_lifts_no_turn(memory: Memory, query: str) -> None:
    say(memory, ASKED), say(memory, ANSWERED)
    hits = found(memory, query)
    assert len(hits) == 2
    assert [lifted(hit) for hit in hits.values()] == [0, 0]


@pytest.mark.parametrize("fusion", FUSIONS)
def test_the_other_fusions_lift_no_turn(memory: Memory, fusion: str) -> None:
    say(memory, ASKED), say(memory, ANSWERED)
    hits = found(memory, fusion=fusion)
    assert len(hits) == 2
    assert [lifted(hit) for hit in hits.values()] == [0, 0]


def test_without_turns_there_are_no_neighbours(memory: Memory) -> None:
    one, other = memory.add(ASKED).id, memory.add(ANSWERED).id
    hits = found(memory)
    assert set(hits) == {one, other}
    assert [lifted(hit) for hit in hits.values()] == [0, 0]
    assert adjacent(memory, [one, other]) == ()
