"""Whether a query is the name of a record, apart from case, plural and separators."""

from dataclasses import replace

import pytest

from mindex.datatypes import Record
from mindex.search.query_as_name import QueryName, name_of


def chunk(
    text: str = "", title: str = "Guide > Install", path: str = "docs/how-to-build.md", **fields: object
) -> Record:
    return Record("c", "chunk", text, title=title, path=path, **fields)  # type: ignore[arg-type]


def named(query: str, record: Record) -> str:
    name = QueryName.of(query)
    assert name is not None
    return name_of(name, record)[0]


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("install", "heading"),
        ("Installs", "heading"),
        ("GUIDE", "part"),
        ("how to build", "file"),
        ("how-to-build.md", "file"),
        ("How_to_Build", "file"),
        ("compile", ""),
        ("install guide", ""),
    ],
)
def test_a_chunk_is_called_by_its_heading_its_title_and_its_file(query: str, name: str) -> None:
    assert named(query, chunk("Some text.")) == name


def test_an_alias_in_front_matter_names_the_page() -> None:
    record = chunk("Some text.", document_fields=("aliases: set up, first steps",))
    assert (named("first steps", record), named("Set-up", record)) == ("part", "part")
    start = replace(record, title="Guide", text="Some text. " * 10)
    assert named("guide", replace(start, text="[Source](x.md)")) == "part"
    assert (named("first steps", start), named("Set-up", start), named("guide", start)) == ("title",) * 3


def test_a_heading_within_a_chunk_names_it_and_one_in_code_does_not() -> None:
    text = "### Scripts\n\nText.\n\n#### Allowed [values](x.md) ## {: #allowed }\n\n```sh\n# Clean up\n```\n"
    record = chunk(text)
    assert (named("allowed values", record), named("scripts", record)) == ("heading", "heading")
    assert named("clean up", record) == ""


def test_a_name_as_it_is_written_is_stronger_than_one_with_other_endings_or_stop_words() -> None:
    query = QueryName.of("all environments")
    assert query is not None
    found = [
        name_of(query, chunk("Text.", title=title))[1]
        for title in ("All Environments", "All-environment", "Environments")
    ]
    assert found == sorted(found, reverse=True) and len(set(found)) == 3


def test_a_question_is_not_the_title_that_is_its_only_word_beside_stop_words() -> None:
    assert named("when can we not install", chunk("Text.")) == ""


def test_an_option_is_not_what_a_page_of_its_word_is_about() -> None:
    assert named("--install", chunk("Text.")) == ""
    assert named("--install", chunk("`--install` installs.")) == "heading"


@pytest.mark.parametrize("kind", ["contact", "project"])
def test_a_contact_and_a_project_are_called_by_their_name(kind: str) -> None:
    record = Record("e", kind, "Ada Lovelace, mathematician", fields={"name": "Ada Lovelace"})  # type: ignore[arg-type]
    assert named("ada lovelace", record) == "title"


@pytest.mark.parametrize("carrier", [{"tags": ("release-notes",)}, {"entities": ("Release Notes",)}])
def test_a_tag_and_an_entity_are_carried(carrier: dict[str, tuple[str, ...]]) -> None:
    record = Record("m", "memory", "The notes are written on Fridays", **carrier)  # type: ignore[arg-type]
    assert named("release notes", record) == "carried"


@pytest.mark.parametrize(
    ("query", "text", "name"),
    [
        ("--sync", "Use the lock file.\n\n- `--sync` updates the environment", "defined"),
        ("--sync", "| `--sync` | update |", "defined"),
        ("--sync", "Pass `--sync` to update.", "literal"),
        ("--sync", "Pass `--sync-all` to update.", ""),
        ("--sync", "The sync takes a minute.", ""),
        ("PolicyController", "The PolicyController decides.", "literal"),
        ("PolicyController", "A policy is a controller of access.", ""),
        ("decides", "The PolicyController decides.", ""),
    ],
)
def test_a_text_that_defines_an_identifier_differs_from_one_that_contains_it(query: str, text: str, name: str) -> None:
    assert named(query, chunk(text)) == name


def test_a_heading_that_contains_an_identifier_defines_it() -> None:
    assert named("--sync", chunk("Text.", title="Options > The option --sync")) == "defined"


def test_a_query_without_letters_is_not_a_name() -> None:
    assert QueryName.of("--- ?!") is None
