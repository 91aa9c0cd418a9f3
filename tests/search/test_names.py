"""Whether a query is the name of a record, apart from case, plural and separators."""

import pytest

from mindex.datatypes import Record
from mindex.search.names import QueryName, name_of


def chunk(
    text: str = "", title: str = "Guide > Install", path: str = "docs/how-to-build.md", **fields: object
) -> Record:
    return Record("c", "chunk", text, title=title, path=path, **fields)  # type: ignore[arg-type]


def named(query: str, record: Record) -> str:
    name = QueryName.of(query)
    assert name is not None
    return name_of(name, record)


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("install", "heading"),
        ("Installs", "heading"),
        ("GUIDE", "title"),
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
    assert (named("first steps", record), named("Set-up", record)) == ("title", "title")


@pytest.mark.parametrize("kind", ["contact", "project"])
def test_a_contact_and_a_project_are_called_by_their_name(kind: str) -> None:
    record = Record("e", kind, "Ada Lovelace, mathematician", fields={"name": "Ada Lovelace"})  # type: ignore[arg-type]
    assert named("ada lovelace", record) == "heading"


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
