from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.entries.entities import extract_entities


def test_the_example_of_the_spec() -> None:
    text = "User builds with Python, TypeScript and React behind an API"
    assert extract_entities(text) == ("Python", "TypeScript", "React", "API")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Yesterday Anna Lindqvist moved to New York.", ("Anna Lindqvist", "New York")),
        ("The talk was by Jan van der Berg and J. K. Rowling.", ("Jan van der Berg", "J. K. Rowling")),
        ("We met Dr. Smith, O'Brien and Jean-Luc McDonald.", ("Smith", "O'Brien", "Jean-Luc McDonald")),
        ("She studied at the University of Oslo.", ("University of Oslo",)),
        ("здесь живёт Ольга Петрова из Берлина", ("Ольга Петрова", "Берлина")),
        ("The invoice goes to Acme GmbH, not to Foo Inc. or Bar AG", ("Acme GmbH", "Foo Inc.", "Bar AG")),
    ],
)
def test_proper_names(text: str, names: tuple[str, ...]) -> None:
    assert extract_entities(text) == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("We call it “Project Falcon” and run `make test` daily.", ("Project Falcon", "make test")),
        ("The branch 'Blue Whale' is old", ("Blue Whale",)),
        ("部署在「东京」用Redis缓存", ("东京", "Redis")),
        ("Call it with `--force` and `the` on `Redis`", ("Redis",)),
        ('He said "let us go now, it is late." and left', ()),
    ],
)
def test_quoted_names(text: str, names: tuple[str, ...]) -> None:
    assert extract_entities(text) == names


def test_a_particle_is_part_of_a_name_only_between_names() -> None:
    assert extract_entities("on the Monday of Anna and at the Bank of May") == ("Anna", "Bank")


def test_identifiers_are_kept_as_written() -> None:
    text = "The PolicyController reads user_id with sqlite-vec in src/app.py, config.toml and getUser()"
    assert extract_entities(text) == (
        "PolicyController", "user_id", "sqlite-vec", "src/app.py", "config.toml", "getUser",
    )  # fmt: skip


def test_technologies_with_odd_capitals() -> None:
    text = "we use PostgreSQL, FastAPI, iOS, C++, C#, .NET, Node.js, S3 and GPT-4"
    assert extract_entities(text) == ("PostgreSQL", "FastAPI", "iOS", "C++", "C#", ".NET", "Node.js", "S3", "GPT-4")


def test_acronyms_without_their_plural() -> None:
    assert extract_entities("the TTL of both APIs on AWS, under GDPR and CI/CD") == (
        "TTL",
        "API",
        "AWS",
        "GDPR",
        "CI/CD",
    )


@pytest.mark.parametrize(
    "text", ["DO NOT DEPLOY ON FRIDAY", "NEVER push to main", "this is VERY IMPORTANT", "OK, TODO"]
)
def test_words_in_capitals_for_emphasis_are_not_names(text: str) -> None:
    assert extract_entities(text) == ()


def test_versions_are_names_alone_and_with_their_program() -> None:
    assert extract_entities("needs v2.1.4, 1.2.3-rc1 and Python 3.11, costs 2.50") == (
        "v2.1.4", "1.2.3-rc1", "Python", "Python 3.11",
    )  # fmt: skip


def test_handles_tags_and_addresses_keep_their_sign() -> None:
    text = "ask @anna.l about #search, #42 or mail anna@example.com, see https://example.com/Some/Page"
    assert extract_entities(text) == ("@anna.l", "#search", "#42", "anna@example.com")


@pytest.mark.parametrize(
    "text",
    [
        "User prefers dark mode.",
        "Deploying takes long. Documentation is missing.",
        "However, we wait. Then I left on Monday in May.",
        "well-known near-duplicate, and/or, 24/7",
        "Breakfast at eight.",
    ],
)
def test_a_word_capitalised_by_its_place_is_not_a_name(text: str) -> None:
    assert extract_entities(text) == ()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Falcon ships soon. The team likes Falcon.", ("Falcon",)),
        ("Anna is allergic to peanuts.", ("Anna",)),
        ("Anna's dog barks. Call Bob.", ("Anna", "Bob")),
        ("Python, Rust and Go", ("Python", "Rust")),
        ("- Python\n- Rust", ("Python", "Rust")),
        ("Editor: Neovim", ("Neovim",)),
    ],
)
def test_a_capitalised_first_word_is_a_name_when_a_verb_of_people_or_a_list_follows(
    text: str, names: tuple[str, ...]
) -> None:
    assert extract_entities(text) == names


def test_a_name_is_listed_once_in_its_best_case_where_it_first_occurs() -> None:
    assert extract_entities("ask `postgresql`, Redis, Postgresql or PostgreSQL") == ("PostgreSQL", "Redis")


def test_the_number_of_names_is_limited() -> None:
    assert extract_entities("Use Redis, Kafka and Python", most=2) == ("Redis", "Kafka")
    assert extract_entities("Redis", most=0) == ()


TEXTS = st.text() | st.lists(
    st.sampled_from(
        ["Anna", "van", "der", "Berg", "PolicyController", "user_id", "API", "v2.1", "@x", "#y", "C++", ".NET"]
    )
    | st.text(alphabet="aB1 .,\"'`/@#+-_\n中", max_size=6)
).map(" ".join)


@given(TEXTS)
def test_every_name_occurs_in_the_text_and_none_is_listed_twice(text: str) -> None:
    names = extract_entities(text)
    assert all(name and name in text for name in names)
    assert len({name.casefold() for name in names}) == len(names) <= 20


@pytest.mark.parametrize(
    "part", ["A ", "Ab ", "A. ", "Ab-", "a/", "-", ".", "@", '`"', "'A ", "_a", "Ab of the ", "1.", "中A"]
)
def test_five_megabytes_of_anything_are_read_at_once(part: str) -> None:
    text = part * (5_000_000 // len(part))
    start = time.process_time()
    extract_entities(text)
    assert time.process_time() - start < 10  # a third of a second; with the square of the length many minutes
