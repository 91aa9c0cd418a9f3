from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.entries.summary import MAX_CHARACTERS, MAX_DENSE, summarize


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("User prefers dark mode. It is easier on the eyes.", "User prefers dark mode."),
        ("Postgres listens on port 5432", "Postgres listens on port 5432"),
        ("is the build green? yes!", "is the build green?"),
        ("He said “Stop.” Then he left.", "He said “Stop.”"),
        ("Two lines that\nare one sentence. And more.", "Two lines that are one sentence."),
    ],
)
def test_the_first_sentence_is_the_summary(text: str, summary: str) -> None:
    assert summarize(text) == summary


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("Note that the port is 5432.", "The port is 5432."),
        ("Just so you know, the port is 5432.", "The port is 5432."),
        ("I think that we should use SQLite.", "We should use SQLite."),
        ("I think we should use SQLite.", "We should use SQLite."),
        ("Remember: npm needs a token.", "npm needs a token."),
        ("FYI iOS builds are slow.", "iOS builds are slow."),
        ("By the way, Anna moved to Oslo.", "Anna moved to Oslo."),
        ("Hi Anna,\nplease note that FYI the cache is cold.", "The cache is cold."),
        ("Hello! Thanks. The build is green.", "The build is green."),
        ("Übrigens, Anna mag Tee.", "Anna mag Tee."),
        ("顺便说一下，用户喜欢喝茶。", "用户喜欢喝茶。"),
    ],
)
def test_filler_is_left_out(text: str, summary: str) -> None:
    assert summarize(text) == summary


@pytest.mark.parametrize(
    "text", ["Remember to renew the passport.", "I think about trains a lot.", "Hello world programs are short.", "Hi!"]
)
def test_words_that_only_look_like_filler_stay(text: str) -> None:
    assert summarize(text) == text


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("# Decision\n\nWe use **SQLite** and `FTS5`. Why: speed.", "We use SQLite and FTS5."),
        ("- [ ] Call [Anna](tel:+47) today\n- [ ] Buy milk", "Call Anna today"),
        ("**Owner:** Anna and *Bob*", "Owner: Anna and Bob"),
        ("1. First thing. Really.\n2. Second thing.", "First thing."),
        ("> A quoted thought. More.", "A quoted thought."),
        ("```\nmake test\n```\nRun this before a push.", "Run this before a push."),
        ("| name | port |\n|---|---|\n| db | 5432 |", "name port"),
        ("Call __init__ with 2*3*4.", "Call __init__ with 2*3*4."),
    ],
)
def test_markup_is_left_out(text: str, summary: str) -> None:
    assert summarize(text) == summary


def test_a_heading_or_code_is_used_when_there_is_no_prose() -> None:
    assert summarize("## Deploying ##") == "Deploying"
    assert summarize("```\nmake test\n```") == "make test"


@pytest.mark.parametrize(
    "sentence",
    [
        "Use a small store, e.g. SQLite, i.e. one file.",
        "Dr. Smith met J. K. Rowling on Friday.",
        "It is v2.1 now and was v2.0.9 before.",
        "The U.S. Senate meets at 5 p.m. Friday.",
        "Pi is 3.14 and costs $2.50.",
        "See https://example.com/a.b?c=d! for more.",
        "Edit src/app.py and Node.js config.toml on .NET.",
        "Am 3. März ist z. B. Ruhetag.",
        "It is No. 5 in fig. 2 of the book.",
    ],
)
def test_abbreviations_numbers_and_names_end_no_sentence(sentence: str) -> None:
    assert summarize(f"{sentence} Another one follows.") == sentence


def test_an_abbreviation_may_end_a_sentence_when_another_clearly_starts() -> None:
    assert summarize("She moved to the U.S. The rest stayed.") == "She moved to the U.S."
    assert summarize("He said no. Yes was not heard.") == "He said no."


def test_a_long_sentence_is_cut_at_a_word() -> None:
    assert summarize("word " * 30) == "word " * 19 + "word…"
    assert summarize("one, two, three, four", most_words=2) == "one, two…"
    assert summarize("x" * 500) == "x" * (MAX_CHARACTERS - 1) + "…"


def test_chinese_ends_at_its_own_full_stop_and_at_sixty_characters() -> None:
    assert summarize("用户喜欢深色模式。他也喜欢茶。") == "用户喜欢深色模式。"
    cut = summarize("用户喜欢深色模式" * 20)
    assert len(cut) == MAX_DENSE
    assert cut.endswith("…")


TEXTS = st.text() | st.text(alphabet="aB1 .,!?…。！\n\t-*#>`|[]()~<:中文\u200b\u2028", max_size=400)


@given(TEXTS, st.integers(1, 40))
def test_a_summary_is_one_short_line_and_never_empty(text: str, most_words: int) -> None:
    summary = summarize(text, most_words)
    assert bool(summary) == bool(text.strip())
    assert summary == " ".join(summary.split())
    assert len(summary.split()) <= most_words
    assert len(summary) <= MAX_CHARACTERS


@pytest.mark.parametrize(
    "part", [".", "*", "[", "> ", "<!--", "a. ", " ", "I think, ", "`", "| ", "#", "[[", "。", "hi "]
)
def test_five_megabytes_of_anything_are_read_at_once(part: str) -> None:
    text = part * (5_000_000 // len(part))
    start = time.process_time()
    summarize(text)
    assert time.process_time() - start < 10  # a third of a second; with the square of the length many minutes
