"""Which sentences of a user state a fact, by rules."""

import pytest

from mindex.entries.stated_facts import stated_facts

STATED = {
    "I prefer tabs over spaces": "preference",
    "ok, also I prefer `ruff` to black": "preference",
    "I strongly dislike long meetings.": "preference",
    "Please always run the tests before committing.": "preference",
    "never push to main directly": "preference",
    "- Always use type hints": "preference",
    "From now on use uv instead of pip": "preference",
    "In this repo, never edit generated files.": "preference",
    "We decided to use PostgreSQL for the queue.": "decision",
    "Our decision is to drop Python 3.9": "decision",
    "My name is Ada Lovelace": "fact",
    "my timezone is Europe/Berlin.": "fact",
    "My favorite editor is Helix.": "fact",
    "I'm a backend engineer.": "fact",
    "I work at Initech": "fact",
    "my wife is called Anna": "relationship",
}
NOT_STATED = [
    "Do I prefer tabs?",
    "I don't prefer tabs",
    "We have not decided to use Postgres",
    "We didn't decide on that",
    "Have we decided to use redis?",
    'He said "I prefer tabs"',
    '"I prefer tabs" is what the linter says',
    "> I prefer tabs",
    "# I prefer tabs",
    "```\nI prefer tabs\n```",
    "<log>\nI prefer tabs\n</log>",
    "If we decided to use Rust it would be slow",
    "maybe we decided on it",
    "I would prefer that you stop",
    "I prefer this",
    "I love it",
    "my code is broken and I don't know why",
    "My test is failing",
    "my question is why it fails",
    "my name is not Bob",
    "my editor is broken",
    "my wife is calling me",
    "I always thought this was fine",
    "never mind",
    "never seen that before",
    "Never give up!",
    "should I always run tests?",
    "always use the second one for now",
]


@pytest.mark.parametrize(("sentence", "type_"), STATED.items())
def test_a_statement_is_a_fact_of_its_type(sentence: str, type_: str) -> None:
    assert [fact.type for fact in stated_facts(sentence)] == [type_]


@pytest.mark.parametrize("sentence", NOT_STATED)
def test_questions_negations_quotes_code_and_guesses_state_nothing(sentence: str) -> None:
    assert stated_facts(sentence) == ()


def test_only_the_sentence_that_states_it_is_the_fact() -> None:
    found = stated_facts("Hi! The build is red again. By the way, I prefer short commit messages. Can you look?")
    assert [fact.text for fact in found] == ["I prefer short commit messages."]


def test_a_sentence_that_is_repeated_is_one_fact() -> None:
    assert len(stated_facts("I prefer tabs over spaces.\nI prefer tabs over spaces.")) == 1


def test_a_long_message_is_pasted_and_states_nothing() -> None:
    assert stated_facts("I prefer tabs over spaces.\n" + "A line of a document.\n" * 200) == ()
