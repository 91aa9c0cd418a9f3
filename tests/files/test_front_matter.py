from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.files.front_matter import MAX_FIELD, MAX_FIELDS, MAX_SIZE, MAX_TAGS, FrontMatter, read_front_matter


def test_title_tags_and_fields_are_read() -> None:
    front = read_front_matter("---\ntitle: Redis Setup\ntags: [cache, Redis, redis]\ntype: guide\n---\n# Body\n")
    assert front == FrontMatter("Redis Setup", ("cache", "Redis"), ("type: guide",), lines=5)


def test_keywords_are_tags_beside_the_others() -> None:
    assert read_front_matter("---\ntags: [cache]\nkeywords: Redis, TTL\n---\n").tags == ("cache", "Redis", "TTL")


def test_lists_and_nested_fields_have_a_line_for_each_value() -> None:
    text = "---\naliases: [K8s, kube]\nhero:\n  name: Harbour\n  actions:\n    - text: Start\n      link: /a\n---\n"
    assert read_front_matter(text).fields == (
        "aliases: K8s",
        "aliases: kube",
        "hero.name: Harbour",
        "hero.actions.text: Start",
        "hero.actions.link: /a",
    )


def test_a_value_of_several_lines_is_one_line() -> None:
    text = "---\ndescription: >\n  how we deploy\n  on Fridays\nempty:\n---\n"
    assert read_front_matter(text).fields == ("description: how we deploy on Fridays",)


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
    assert front == FrontMatter("Redis: setup", ("a", "b"), lines=5, has_more=True)


def test_an_alias_bomb_is_not_expanded() -> None:
    bomb = "a: &a [x, x]\n" + "".join(f"b{i}: &b{i} [*a, *a]\n" for i in range(30))
    front = read_front_matter(f"---\ntitle: Boom\n{bomb}---\nbody")
    assert front == FrontMatter("Boom", lines=34, has_more=True)


def test_huge_and_deep_yaml_is_not_built() -> None:
    assert read_front_matter("---\na: " + "[" * 50_000 + "\n---\n").lines == 3
    assert read_front_matter("---\na: " + "x" * MAX_SIZE + "\n---\n").lines == 3


def test_values_that_yaml_would_convert_stay_words() -> None:
    front = read_front_matter("---\ntitle: 2024-13-45\ntype: no\ndate: 0000-99-99\n---\n")
    assert (front.title, front.fields, front.lines) == ("2024-13-45", ("type: no", "date: 0000-99-99"), 5)


@pytest.mark.parametrize(
    "more",
    [
        f"abstract: {'word ' * MAX_FIELD}",
        "\n".join(f"field{n}: {'word ' * 20}" for n in range(MAX_FIELDS // 100)),
        f"title: {'word ' * 100}",
        f"tags: [{', '.join(f't{n}' for n in range(MAX_TAGS + 1))}]",
        "tags: {nested: tag}",
    ],
    ids=["a long field", "many fields", "a long title", "many tags", "tags that are none"],
)
def test_what_is_too_long_to_be_a_field_is_said_to_be_there(more: str) -> None:
    front = read_front_matter(f"---\ndescription: how we deploy\n{more}\n---\n")
    assert front.has_more and front.fields[0] == "description: how we deploy"
    assert not read_front_matter("---\ntitle: a b c d\ntags: [a, b]\ndescription: how we deploy\n---\n").has_more


@given(
    st.text(),
    st.sampled_from(["---\n", "---\nkey: ", "---\ntags: ["]),
    st.sampled_from(["\n---\n", "\n...", "", "]\n---\n"]),
)
def test_no_input_makes_it_raise(text: str, before: str, after: str) -> None:
    source = before + text + after
    assert 0 <= read_front_matter(source).lines <= source.count("\n") + 1
