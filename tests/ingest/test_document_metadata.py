from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.ingest.chunker import chunk_markdown
from mindex.ingest.document_metadata import (
    MAX_TAGS,
    chunk_tags,
    document_links,
    document_tags,
    domain_of_current_file,
    domain_of_path,
    is_instruction,
)


def links(text: str, path: str = "guide/setup.md") -> tuple[str, ...]:
    return document_links(path, chunk_markdown(text))


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


def test_tags_are_the_front_matters_and_the_names_in_backticks() -> None:
    text = "---\ntags: [cache, Redis]\n---\nThe `PolicyController` reads `user_id` from `redis.conf`, see `redis`.\n"
    assert document_tags(chunk_markdown(text)) == (
        "cache",
        "Redis",
        "PolicyController",
        "user_id",
        "redis.conf",
    )


def test_only_names_become_tags() -> None:
    text = "`foo()` `std::vector` `@scope/pkg` `.env` `a b` `x = 1` `--flag` `true` `7` `d8cc478ae9` `deadline` ``x`y``"
    assert chunk_tags(text) == ("foo", "std::vector", "@scope/pkg", ".env", "deadline")


def test_code_blocks_give_no_tags_and_no_links() -> None:
    text = "See `real`.\n\n```sh\necho `date` [a](b.md)\n```\n\n~~~\n`no`\n~~~\n\nAnd `second`, not `[x](y.md)`.\n"
    assert chunk_tags(text) == ("real", "second")
    assert links(text) == ()


def test_tags_are_bounded() -> None:
    assert len(chunk_tags(" ".join(f"`name_{i}`" for i in range(100)))) == MAX_TAGS


def test_relative_links_become_paths_below_the_root() -> None:
    text = (
        "[a](other.md) [b](../api/index.md#top) [c](/top.md?raw=1) [d](<with space.md>) [e](caf%C3%A9.md 'title')\n"
        "[![badge](x.png)](linked.md) [ref][r]\n\n[r]: sub/ref.md\n[`code`]: sub/code.md\n"
    )
    assert links(text) == (
        "guide/other.md",
        "api/index.md",
        "top.md",
        "guide/with space.md",
        "guide/café.md",
        "guide/linked.md",
        "guide/sub/ref.md",
        "guide/sub/code.md",
    )


def test_wiki_links_become_paths() -> None:
    assert links("[[Redis]] [[people/Ann|Ann]] [[Redis#TTL]] [[plan.txt]] ![[image]]") == (
        "guide/Redis.md",
        "people/Ann.md",
        "guide/plan.txt",
    )


def test_links_outside_the_root_are_dropped() -> None:
    text = "[a](https://x.org/a.md) [b](mailto:a@b.c) [c](../../etc/passwd) [d](#here) [e](//host/x) [f](setup.md)\n"
    text += "![i](i.png)"
    assert links(text) == ()


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
        ("src/web/caching/x.ts", "frontend"),
    ],
)
def test_the_map_comes_first_and_its_longest_match_wins(current: str, expected: str | None) -> None:
    domain_map = {"src/web/": "frontend", "src\\web\\api": "api", "lib/**/Invoice.*": "billing"}
    assert domain_of_current_file(current, domain_map, KNOWN) == expected


@given(st.text(), st.dictionaries(st.text(), st.text(), max_size=3), st.lists(st.text(), max_size=3))
def test_no_path_makes_domain_of_current_file_raise(current: str, domain_map: dict[str, str], known: list[str]) -> None:
    found = domain_of_current_file(current, domain_map, known)
    assert found is None or found in {*known, *domain_map.values()}


@given(st.text(alphabet="ab[]()!`#:/.\\\n <>|%?~", max_size=200))
def test_links_never_leave_the_root(text: str) -> None:
    for link in links(text):
        assert not link.startswith(("/", "../")) and link not in ("", ".", "..")
