"""Questions of a user about themselves: each value of the profile is found alone, in a profile of any size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from mindex.datatypes import Hit, Record
from mindex.embedding_text import embedding_pieces
from mindex.entries.profile import with_unchecked_data
from mindex.memory import Memory

PROFILE = {
    "user": {"name": "Anna Keller", "home": "Lisbon, Portugal", "birthday": "14 March 1988", "role": "data engineer"},
    "preferences": {"editor": "Neovim", "theme": "dark", "package_manager": "pnpm"},
    "diet": "vegetarian",
    "allergies": ["peanuts"],
    "family": {"partner": "Tiago"},
    "pets": [{"name": "Biscuit", "species": "beagle"}],
    "timezone": "Europe/Lisbon",
    "contact": {"email": "anna@keller.example"},
    "work": {"hours": "9 to 17"},
}
EMPTY = Record(id="p", kind="profile", text="", agent="main", title="Profile of main")


def test_each_value_of_a_profile_is_embedded_as_its_user_would_say_it() -> None:
    data = {
        "user": {"name": "Anna", "languages": ["German", "Tamil"]},
        "packageManager": "pnpm",
        "os_name": "Fedora 41",
    }
    assert embedding_pieces(with_unchecked_data(EMPTY, data)) == [
        "My name: Anna",
        "My languages: German",
        "My languages: Tamil",
        "My package Manager: pnpm",
        "My os name: Fedora 41",
    ]


@pytest.mark.parametrize("text", ["", "no path\nin here", "2024: a year", "motto: first\nsecond line\n"])
def test_nothing_of_a_profile_is_left_out_of_its_pieces(text: str) -> None:
    pieces = "\n".join(embedding_pieces(replace(EMPTY, text=text)))
    assert all(word in pieces for word in text.replace(":", "").split())


def test_a_value_in_several_lines_is_one_piece() -> None:
    assert embedding_pieces(with_unchecked_data(EMPTY, {"motto": "be brief\nbe kind", "diet": "vegan"})) == [
        "My motto: be brief\nbe kind",
        "My diet: vegan",
    ]


def test_a_profile_of_many_values_has_few_pieces_and_leaves_none_out() -> None:
    pieces = embedding_pieces(with_unchecked_data(EMPTY, {f"key{number}": f"value{number}" for number in range(1_000)}))
    assert len(pieces) < 250 and max(map(len, pieces)) <= 800
    assert all(f"value{number}" in "\n".join(pieces) for number in range(1_000))


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    with Memory(tmp_path_factory.mktemp("profile") / "memory.db") as memory:
        memory.profile.set(PROFILE)
        memory.maintenance.backfill()
        yield memory


def best(memory: Memory, question: str) -> Hit | None:
    return next(iter(memory.search(question).hits), None)


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.parametrize(
    "question",
    [
        "what is my name", "where do I live", "when is my birthday", "what is my job", "what editor do I use",
        "do I prefer dark or light mode", "which package manager do I like", "am I vegetarian",
        "what am I allergic to", "what is my partner's name", "what is my dog called", "which timezone am I in",
        "what is my email address", "what are my working hours", "the user's editor",
    ],
)  # fmt: skip
def test_what_the_profile_says_is_a_confident_answer(memory: Memory, question: str) -> None:
    hit = best(memory, question)
    assert hit is not None and (hit.record.kind, hit.weak) == ("profile", False)


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.parametrize(
    "question",
    [
        "how do I reset the router", "what is the capital of Mongolia", "how to bake sourdough bread",
        "why does the build fail on Windows", "which vaccine prevents measles", "what is our refund policy",
        "what does the error E1042 mean", "who won the match yesterday", "how do I rotate the database password",
    ],
)  # fmt: skip
def test_a_profile_without_the_answer_is_not_a_confident_hit(memory: Memory, question: str) -> None:
    hit = best(memory, question)
    assert hit is None or hit.weak
