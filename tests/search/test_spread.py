"""Which hits fill a page: further hits of one session, file or text must add something."""

from __future__ import annotations

import pytest

from mindex.search.spread import Spreadable, needs_several_sessions, spread
from mindex.store.rules.kind_groups import KindGroup


def hit(id_: str, score: float, source: str, group: KindGroup = "turn", text: str = "") -> Spreadable:
    return Spreadable(id_, score, group, source, text or id_, frozenset())


ONE_CHAT = [hit("a1", 3.0, "a"), hit("a2", 2.5, "a"), hit("a3", 2.2, "a"), hit("b1", 1.4, "b"), hit("c1", 1.2, "c")]


def test_turns_of_one_session_fill_a_page_if_they_are_better_than_others() -> None:
    assert spread(ONE_CHAT, {}, 3) == ["a1", "a2", "a3"]


def test_a_query_that_needs_several_sessions_gets_others_first() -> None:
    assert spread(ONE_CHAT, {}, 3, several_sessions=True) == ["a1", "b1", "c1"]


@pytest.mark.parametrize("count", range(1, 6))
def test_a_smaller_page_is_the_start_of_a_larger_one(count: int) -> None:
    for asks in (False, True):
        assert (
            spread(ONE_CHAT, {}, count, several_sessions=asks) == spread(ONE_CHAT, {}, 5, several_sessions=asks)[:count]
        )


def test_the_same_text_from_two_places_is_shown_late() -> None:
    copies = [hit("a", 3.0, "x", "file", "same"), hit("b", 2.9, "y", "file", "same"), hit("c", 0.0, "z", "file")]
    assert spread(copies, {}, 2) == ["a", "c"]


@pytest.mark.parametrize(
    "query",
    [
        "How many bikes did I service in March?",
        "What is the total distance of my four road trips?",
        "Which event did I attend first, the run or the league?",
        "Wie viel habe ich insgesamt ausgegeben?",
        "Combien de livres ai-je lus ?",
        "¿Cuántas veces fui al médico?",
    ],
)
def test_a_query_that_counts_or_compares_needs_several_sessions(query: str) -> None:
    assert needs_several_sessions(query)


@pytest.mark.parametrize(
    "query", ["Where did I attend the concert?", "Was isst Jonas gern?", "Où habite Léa ?", "¿Dónde vive Ana?"]
)
def test_a_query_for_one_thing_needs_one_session(query: str) -> None:
    assert not needs_several_sessions(query)
