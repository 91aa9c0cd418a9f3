from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.files.chunker import chunk_markdown
from mindex.files.document_metadata import (
    MAX_TAGS,
    chunk_tags,
    document_tags,
    domain_of_current_file,
    domain_of_path,
    is_instruction,
)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("domains/caching/redis.md", "caching"),
        ("docs/domains/caching/deep/redis.md", "caching"),
        ("domains/readme.md", "domains"),
        ("guide/setup/redis.md", "guide"),
        ("readme.md", "root"),
    ],
)
def test_domain_is_named_by_the_path(path: str, expected: str) -> None:
    assert domain_of_path(path) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [("style.instructions.md", True), ("a/Style.Instructions.MD", True), ("instructions.md", False), ("a.md", False)],
)
def test_instruction_files_are_flagged(path: str, expected: bool) -> None:
    assert is_instruction(path) is expected


def test_tags_are_those_of_the_front_matter_and_the_text() -> None:
    text = "---\ntags: [cache, Redis]\n---\nThe `PolicyController` reads `user_id`. #todo\n"
    assert document_tags(chunk_markdown(text)) == ("cache", "Redis", "todo")


@pytest.mark.parametrize(
    "text", ["`Path` and `dict`", "`#code`", "``x`y``", "```sh\necho #no\n```", "    #define NO 1"]
)
def test_code_gives_no_tags(text: str) -> None:
    assert chunk_tags(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "## Version ## {: #version }", "## 1.32.0 ## {: #hatchling-v1.32.0 .cls }", "# Setup {#setup}",
        "# Setup { #setup .wide }", "[Go](x){ .md-button #go }", "{:.note #why}", '# Code {title="a b" #sample key=1}',
    ],
)  # fmt: skip
def test_an_attribute_list_gives_no_tags(text: str) -> None:
    assert chunk_tags(text) == ()
    assert chunk_tags(f"{text}\n\nLater: #todo") == ("todo",)


def test_braces_around_other_text_hide_no_tag() -> None:
    assert chunk_tags("{see the #todo list} and {: open #later") == ("todo", "later")


def test_inline_tags_are_tags() -> None:
    text = (
        "#recipe for Sunday, see (#oat-milk) and #größe, #project/alpha/beta: done #2024plan.\n- [ ] call Ann #todo\n"
    )
    assert chunk_tags(text) == (
        "recipe", "oat-milk", "größe", "project/alpha/beta", "2024plan", "todo", "project/alpha", "project",
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "# Heading", "## Heading", "issue #123", "C# and F#", "https://x.org/#top", "[here](#anchor)", "`#code`",
        "colour #fff, #1a2b3c and #FFFFFF", "a#b", "#", "#!/bin/sh", "#define(x)", "path#L10", "[#12](x)",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_tag_is_none(text: str) -> None:
    assert chunk_tags(text) == ()


def test_a_long_run_of_letters_is_not_a_tag() -> None:
    assert chunk_tags("#" + "A" * 200_000 + "=") == ()


def test_words_of_the_letters_a_to_f_are_tags() -> None:
    assert chunk_tags("#facade #cafe #decade") == ("facade", "cafe", "decade")


def test_tags_are_bounded() -> None:
    assert len(chunk_tags(" ".join(f"#name_{i}" for i in range(100)))) == MAX_TAGS


KNOWN = ("caching", "Billing", "root")


@pytest.mark.parametrize(
    ("current", "expected"),
    [
        ("src/Caching/RedisClient.cs", "caching"),
        ("src\\Caching\\RedisClient.cs", "caching"),
        ("/home/me/src/caching/x.py", "caching"),
        ("src/billing.py", "Billing"),
        ("billing/caching/x.py", "caching"),
        ("/srv/ROOT/x.py", None),
        ("src/CachingTools/x.py", None),
        ("", None),
    ],
)
def test_a_path_part_names_a_known_domain(current: str, expected: str | None) -> None:
    assert domain_of_current_file(current, {}, KNOWN) == expected


@pytest.mark.parametrize(
    ("current", "expected"),
    [
        ("src/web/api/x.ts", "api"),
        ("src/web/x.ts", "frontend"),
        ("SRC\\Web\\x.ts", "frontend"),
        ("/home/me/repo/src/web/x.ts", "frontend"),
        ("src/website/x.ts", None),
        ("lib/deep/pay/Invoice.cs", "Billing"),
        ("lib/deep/SomeTests/unit/x.cs", "tests"),
        ("lib/deep/Tests.cs", None),
        ("src/web/caching/x.ts", "frontend"),
    ],
)
def test_the_map_comes_first_and_its_longest_match_wins(current: str, expected: str | None) -> None:
    domain_map = {
        "src/web/": "frontend",
        "src\\web\\api": "api",
        "lib/**/Invoice.*": "billing",
        "lib/**/*Tests/": "tests",
    }
    assert domain_of_current_file(current, domain_map, KNOWN) == expected


@given(st.text(), st.dictionaries(st.text(), st.text(), max_size=3), st.lists(st.text(), max_size=3))
def test_no_path_makes_domain_of_current_file_raise(current: str, domain_map: dict[str, str], known: list[str]) -> None:
    found = domain_of_current_file(current, domain_map, known)
    assert found is None or found in {*known, *domain_map.values()}
