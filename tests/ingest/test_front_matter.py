from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.ingest.front_matter import MAX_SIZE, FrontMatter, read_front_matter


def test_title_tags_and_type_are_read() -> None:
    front = read_front_matter("---\ntitle: Redis Setup\ntags: [cache, Redis, redis]\ntype: guide\n---\n# Body\n")
    assert front == FrontMatter("Redis Setup", ("cache", "Redis"), "guide", lines=5)


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("a, b ,c", ("a", "b", "c")),
        ("[a, b]", ("a", "b")),
        ("\n  - a\n  - '#b'", ("a", "b")),
        ("machine learning", ("machine learning",)),
        ("[yes, 2024, 1.0]", ("yes", "2024", "1.0")),
        ("", ()),
        ("{a: b}", ()),
        ("[a, [b], {c: d}, '']", ("a",)),
    ],
)
def test_tags_may_be_a_list_or_words_with_commas(tags: str, expected: tuple[str, ...]) -> None:
    assert read_front_matter(f"---\ntags: {tags}\n---\n").tags == expected


def test_three_dots_close_it_too() -> None:
    assert read_front_matter("---\ntitle: x\n...\nbody") == FrontMatter("x", lines=3)


def test_a_file_may_be_front_matter_only() -> None:
    assert read_front_matter("---\ntitle: x\n---") == FrontMatter("x", lines=3)
    assert read_front_matter("---\n---\n") == FrontMatter(lines=2)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# Title\n",
        "---\n\nprose after a thematic break\n",  # never closes
        "---\nprose between\n---\n",
        "---\n- a\n- list\n---\n",
        "\n---\ntitle: not at the top\n---\n",
        " ---\ntitle: x\n---\n",
        "----\ntitle: x\n----\n",
        "--- # yaml\ntitle: x\n---\n",
    ],
)
def test_anything_else_is_not_front_matter(text: str) -> None:
    assert read_front_matter(text) == FrontMatter()


def test_broken_yaml_still_gives_what_can_be_read_and_its_words_are_kept() -> None:
    front = read_front_matter('---\ntitle: "Redis: setup\ntags: [a, b\nnote: x: y\n---\nbody\n')
    assert front == FrontMatter("Redis: setup", ("a", "b"), lines=5, has_prose=True)


def test_an_alias_bomb_is_not_expanded() -> None:
    bomb = "a: &a [x, x]\n" + "".join(f"b{i}: &b{i} [*a, *a]\n" for i in range(30))
    front = read_front_matter(f"---\ntitle: Boom\n{bomb}---\nbody")
    assert front == FrontMatter("Boom", lines=34, has_prose=True)


def test_huge_and_deep_yaml_is_not_built() -> None:
    assert read_front_matter("---\na: " + "[" * 50_000 + "\n---\n").lines == 3
    assert read_front_matter("---\na: " + "x" * MAX_SIZE + "\n---\n").lines == 3


def test_values_that_yaml_would_convert_stay_words() -> None:
    front = read_front_matter("---\ntitle: 2024-13-45\ntype: no\ndate: 0000-99-99\n---\n")
    assert (front.title, front.type, front.lines) == ("2024-13-45", "no", 5)


def test_a_description_is_prose_and_short_fields_are_not() -> None:
    assert read_front_matter("---\ntitle: x\ndescription: how we deploy on Fridays\n---\n").has_prose
    assert not read_front_matter("---\ntitle: a b c d\nlayout: post\ndate: 2024-01-01\n---\n").has_prose


@given(
    st.text(),
    st.sampled_from(["---\n", "---\nkey: ", "---\ntags: ["]),
    st.sampled_from(["\n---\n", "\n...", "", "]\n---\n"]),
)
def test_no_input_makes_it_raise(text: str, before: str, after: str) -> None:
    source = before + text + after
    assert 0 <= read_front_matter(source).lines <= source.count("\n") + 1
