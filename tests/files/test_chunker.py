from __future__ import annotations

import re
import time
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mindex.datatypes import Chunk
from mindex.files.block_splitter import ATOM_LIMIT, CHUNK_LIMIT, FRAGMENT
from mindex.files.chunker import MAX_LINES, ParsedDocument, chunk_markdown, chunk_text

SENTENCE = "The cache keeps what was asked for last and forgets the rest. "


def chunks(text: str) -> tuple[Chunk, ...]:
    return chunk_markdown(text).chunks


def places(text: str) -> list[tuple[tuple[str, ...], int, int]]:
    return [(chunk.breadcrumb, chunk.first_line, chunk.last_line) for chunk in chunks(text)]


def paragraph(size: int) -> str:
    """Wrapped prose of about `size` characters."""
    return "\n".join([SENTENCE.strip()] * (size // len(SENTENCE) + 1))


# ── sections ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_overview_caching_and_deployment_are_three_chunks() -> None:
    text = "# Architecture\n\n## Overview\n\nWhat it is.\n\n## Caching\n\nRedis.\n\n## Deployment\n\nFridays.\n"
    assert places(text) == [
        (("Architecture", "Overview"), 3, 5),
        (("Architecture", "Caching"), 7, 9),
        (("Architecture", "Deployment"), 11, 13),
    ]
    assert chunks(text)[1].text == "## Caching\n\nRedis."


def test_the_breadcrumb_follows_the_enclosing_headings() -> None:
    text = (
        "# Architecture\n\nA\n\n## Caching\n\nB\n\n### Redis Setup\n\nC\n\n## Deploy\n\nD\n\n# Other\n\n### Deep\n\nE\n"
    )
    assert [chunk.breadcrumb for chunk in chunks(text)] == [
        ("Architecture",),
        ("Architecture", "Caching"),
        ("Architecture", "Caching", "Redis Setup"),
        ("Architecture", "Deploy"),
        ("Other", "Deep"),
    ]


def test_setext_headings_are_headings() -> None:
    assert places("Title\n=====\n\nA\n\nPart\n----\n\nB\n") == [(("Title",), 1, 4), (("Title", "Part"), 6, 9)]


def test_deeper_headings_stay_inside() -> None:
    assert places("# A\n\n#### B\n\nb\n\n###### C\n\nc\n") == [(("A",), 1, 9)]


def test_a_breadcrumb_is_plain_text() -> None:
    text = "# The `Cache` of *all* [caches](x.md) &amp; ![logo](l.png) <b>bold</b> {#anchor}\n\nx\n"
    assert chunks(text)[0].breadcrumb == ("The Cache of all caches & logo bold",)
    assert chunks("# snake_case_name * 2\n\nx\n")[0].breadcrumb == ("snake_case_name * 2",)
    assert chunks("# [ref]\n\nx\n\n[ref]: /y\n")[0].breadcrumb == ("ref",)


def test_an_endless_heading_is_cut_in_the_breadcrumb_only() -> None:
    (chunk,) = chunks("# " + "word " * 300 + "\n\nbody\n")
    assert len(chunk.breadcrumb[0]) <= 200 and chunk.breadcrumb[0].endswith("…")


@pytest.mark.parametrize(
    "body",
    [
        "```\n# no\n```",
        "~~~sh\n# no\n~~~",
        "    # no",
        "<!--\n# no\n-->",
        "> # no\n> text",
        "- # no\n  text",
        "```\n# never closed\n\n# no",
        "\\# no",
        "#no",
    ],
)
def test_what_only_looks_like_a_heading_does_not_split(body: str) -> None:
    assert [chunk.breadcrumb for chunk in chunks(f"# Yes\n\nIntro.\n\n{body}\n")] == [("Yes",)]


def test_headings_after_the_deepest_nesting_are_still_headings() -> None:
    for nested in ("- " * 300, ">" * 300, "> - " * 200):
        assert [chunk.breadcrumb for chunk in chunks(f"# A\n\n{nested}a\n\n## B\n\nb\n")] == [("A",), ("A", "B")]


def test_a_heading_without_a_body_is_a_chunk() -> None:
    assert chunks("# Renew passport before July\n") == (
        Chunk("# Renew passport before July", ("Renew passport before July",), 1, 1),
    )
    assert places("# A\n\n## B\n\nb\n\n## C\n") == [(("A", "B"), 3, 5), (("A", "C"), 7, 7)]


def test_a_run_of_bare_headings_is_one_chunk_below_what_they_share() -> None:
    (chunk,) = chunks("# A\n\n## B\n\n---\n\n#### C\n\n## D\n")
    assert chunk == Chunk("# A\n\n## B\n\n---\n\n#### C\n\n## D", ("A",), 1, 9)
    assert places("# Shop\n## Milk\n## Bread\n## Fish\n\nFresh.\n# Call\n## Ann\n## Bo\n") == [
        (("Shop",), 2, 3),
        (("Shop", "Fish"), 4, 6),
        (("Call",), 7, 9),
    ]


def test_a_bare_heading_in_a_breadcrumb_is_not_a_chunk() -> None:
    assert places("# A\n\n## B\n\n### C\n\nc\n\n## D\n\nd\n") == [(("A", "B", "C"), 5, 7), (("A", "D"), 9, 11)]


def test_a_bare_heading_that_no_breadcrumb_holds_is_a_chunk() -> None:
    assert places("## B\n\n# A\n\na\n") == [(("B",), 1, 1), (("A",), 3, 5)]
    assert places("# A\n\n#### Deep\n\n## B\n\nb\n") == [(("A",), 1, 3), (("A", "B"), 5, 7)]
    long = "word " * 100
    assert [chunk.text for chunk in chunks(f"# {long}\n\n## B\n\nb\n")] == [f"# {long}".rstrip() + " ", "## B\n\nb"]


def test_a_heading_without_words_is_not_a_chunk() -> None:
    assert chunks("#\n\n## \n\n## ***\n") == ()


def test_a_one_line_note_is_a_chunk() -> None:
    assert chunks("ok") == (Chunk("ok", (), 1, 1),)


def test_an_empty_text_has_no_chunks() -> None:
    assert [chunks(text) for text in ("", "\n\n", " \t\n\u00a0\n", "---\n", "\f")] == [()] * 5


def test_link_definitions_are_kept() -> None:
    assert chunks("# A\n\n[x]: /y\n")[0].text == "# A\n\n[x]: /y"


def test_a_rule_between_sections_belongs_to_neither() -> None:
    before, after = chunks("## A\n\na\n\n---\n\n## B\n\nb\n\n***\n\nc\n")
    assert (before.text, after.text) == ("## A\n\na", "## B\n\nb\n\n***\n\nc")


# ── titles and front matter ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: Given\n---\n# Heading\n\nx", "Given"),
        ("intro\n\n## Two\n\nx\n\n# One *first*\n\nx\n\n# Second\n\nx", "One first"),
        ("## Only two\n\nx", ""),
        ("text", ""),
    ],
)
def test_the_title_is_the_front_matters_else_the_first_h1(text: str, title: str) -> None:
    assert chunk_markdown(text).title == title


def test_lines_of_the_front_matter_count() -> None:
    parsed = chunk_markdown("---\ntitle: T\ntags: a, b\n---\n\n# H\n\nbody\n")
    assert parsed.front_matter.tags == ("a", "b")
    assert parsed.chunks == (Chunk("# H\n\nbody", ("H",), 6, 8),)


def test_short_front_matter_is_not_a_chunk() -> None:
    parsed = chunk_markdown("---\ntitle: T\ndescription: how we deploy on Fridays\n---\n\n# H\n\nbody\n")
    assert [chunk.breadcrumb for chunk in parsed.chunks] == [("H",)]
    assert parsed.front_matter.fields == ("description: how we deploy on Fridays",)


def test_front_matter_alone_is_a_chunk() -> None:
    assert chunks("---\ntitle: T\nstatus: to do\n---\n") == (Chunk("title: T\nstatus: to do", (), 2, 3),)
    assert chunks("---\n---\n") == ()


def test_a_long_text_in_the_front_matter_is_a_chunk() -> None:
    abstract = "abstract: " + SENTENCE.strip() * 10
    first, second = chunks(f"---\ntitle: T\n{abstract}\n---\n\n# H\n\nbody\n")
    assert first == Chunk(f"title: T\n{abstract}", (), 2, 3)
    assert second.breadcrumb == ("H",)


def test_imports_and_exports_of_mdx_are_not_a_chunk() -> None:
    text = "import Tabs from '@theme/Tabs'\n\n# A\n\na\n\nexport const x = 1\n\nb\n\n# B\n\nimport the rest\n"
    assert [chunk.text for chunk in chunk_markdown(text, mdx=True).chunks] == [
        "# A\n\na\n\nexport const x = 1\n\nb",
        "# B",
    ]
    assert len(chunks(text)) == 3


def test_a_wiki_link_in_a_heading_is_shown_as_its_alias() -> None:
    assert chunks("# [[people/Ann|Ann]] and [[Bo]]\n\nx\n")[0].breadcrumb == ("Ann and Bo",)


def test_a_rule_at_the_top_is_not_front_matter() -> None:
    assert chunks("---\n\nprose\n")[0] == Chunk("prose", (), 3, 3)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_lines_end_as_commonmark_says(newline: str) -> None:
    text = newline.join(["# A", "", "one\u2028still one\x0cstill\x85one", "", "## B", "", "two"])
    assert places(text) == [(("A",), 1, 3), (("A", "B"), 5, 7)]


# ── sizes ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_long_section_is_cut_between_paragraphs() -> None:
    found = chunks("# A\n\n" + "\n\n".join([paragraph(700)] * 6))
    assert len(found) == 3
    assert all(chunk.breadcrumb == ("A",) and len(chunk.text) <= CHUNK_LIMIT for chunk in found)
    assert all(chunk.text.endswith(".") for chunk in found)


def test_a_long_paragraph_is_cut_at_lines() -> None:
    text = "# A\n\n" + paragraph(5_000)
    found = chunks(text)
    assert len(found) == 3
    assert all(len(chunk.text) <= CHUNK_LIMIT and chunk.parts == 1 for chunk in found)
    assert [chunk.first_line for chunk in found[1:]] == [chunk.last_line + 1 for chunk in found[:-1]]


def test_a_long_line_is_cut_at_sentences_and_its_parts_are_numbered() -> None:
    found = chunks("# A\n\n" + SENTENCE * 80)
    assert {(chunk.first_line, chunk.last_line) for chunk in found[1:]} == {(3, 3)}
    assert [(chunk.part, chunk.parts) for chunk in found] == [(i, len(found)) for i in range(1, len(found) + 1)]
    assert all(len(chunk.text) <= CHUNK_LIMIT and chunk.text.rstrip().endswith("rest.") for chunk in found)


def test_a_line_without_spaces_is_cut_by_characters_and_nothing_is_lost() -> None:
    found = chunks("x" * 5_050)
    assert [len(chunk.text) for chunk in found] == [2_000, 2_000, 1_050]
    assert "".join(chunk.text for chunk in chunks("é" * 5_050)) == "é" * 5_050


def test_accents_and_joined_emoji_are_not_split() -> None:
    for character in ("e\u0301", "👩\u200d💻"):
        found = chunks("ab"[: CHUNK_LIMIT % 2] + "x" + character * 3_000)
        assert len(found) > 1 and all(chunk.text[0] in "xe👩" for chunk in found)


def test_a_long_list_is_cut_between_items() -> None:
    found = chunks("# A\n\n" + "".join(f"- item {i}: {SENTENCE}\n  - sub {i}\n" for i in range(80)))
    assert len(found) > 2
    assert all(chunk.text.startswith("- item") for chunk in found[1:])
    assert all(len(chunk.text) <= CHUNK_LIMIT for chunk in found)


def test_a_long_item_is_cut_inside_but_its_code_is_not() -> None:
    code = "  ```\n" + "  x = 1\n" * 300 + "  ```"
    found = chunks(f"- {SENTENCE * 20}\n\n  Then run:\n\n{code}\n\n  after\n- next\n")
    (holder,) = [chunk for chunk in found if "x = 1" in chunk.text]
    assert code in holder.text and "Then run:" in holder.text


def test_small_neighbours_share_a_chunk_with_a_short_tail() -> None:
    text = "# A\n\n" + paragraph(1_900) + "\n\nEnd.\n"
    (chunk,) = chunks(text)
    assert chunk.text.endswith("End.")


def test_a_short_introduction_is_in_the_chunk_of_what_it_introduces() -> None:
    table = "| a | b |\n|---|---|\n" + "| cell | cell |\n" * 150
    text = "# A\n\n" + paragraph(1_850) + "\n\nThe values in full detail, as of today, are these:\n\n" + table
    assert chunks(text)[-1].text.startswith("The values")


def test_a_deeper_heading_is_the_best_place_to_cut() -> None:
    text = "# A\n\n" + "\n\n".join(f"#### Part {i}\n\n{paragraph(500)}\n\n{paragraph(500)}" for i in range(4))
    assert [chunk.text.split("\n")[0] for chunk in chunks(text)] == ["# A", "#### Part 1", "#### Part 2", "#### Part 3"]


def test_a_deep_heading_before_the_first_section_is_a_chunk() -> None:
    assert [chunk.text for chunk in chunks("#### Draft\n\n# Guide\n\nText.\n")] == ["#### Draft", "# Guide\n\nText."]


def test_a_run_of_bare_headings_does_not_make_an_endless_chunk() -> None:
    found = chunks("# A\n\n" + "#### Step\n" * 2_000 + "\nDone.\n")
    assert max(len(chunk.text) for chunk in found) <= CHUNK_LIMIT + 2 * FRAGMENT
    assert found[-1].text.endswith("Done.")


# ── code and tables ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("opening", "closing", "indent"), [("```py\n", "```", ""), ("~~~\n", "~~~", ""), ("", "", "    ")]
)
def test_a_code_block_is_never_split(opening: str, closing: str, indent: str) -> None:
    code = opening + f"{indent}value = compute()\n\n" * 250 + closing
    text = f"# A\n\n{paragraph(1_500)}\n\nRun this\n\n{code}\n\n{paragraph(1_500)}\n"
    (holder,) = [chunk for chunk in chunks(text) if "compute" in chunk.text]
    assert code.strip("\n") in holder.text
    assert holder.text.startswith("Run this") and holder.parts == 1


def test_code_past_8000_characters_is_cut_at_blank_lines() -> None:
    code = "```\n" + ("line of code\n" * 30 + "\n") * 60 + "```"
    found = chunks(f"# A\n\nBefore.\n\n{code}\n\nAfter.\n")
    parts = [chunk for chunk in found if "line of code" in chunk.text]
    assert [(chunk.part, chunk.parts) for chunk in parts] == [(1, 3), (2, 3), (3, 3)]
    assert parts[0].text.startswith("# A\n\nBefore.\n\n```")
    assert all(len(chunk.text) <= ATOM_LIMIT + FRAGMENT for chunk in parts)
    assert all(chunk.last_line + 2 == later.first_line for chunk, later in pairwise(parts))


def test_code_without_blank_lines_is_cut_at_lines_and_a_huge_line_by_characters() -> None:
    by_lines = chunks("```\n" + "line of code\n" * 1_500 + "```\n")
    assert [chunk.parts for chunk in by_lines] == [3, 3, 3]
    assert all(chunk.last_line + 1 == later.first_line for chunk, later in pairwise(by_lines))
    by_characters = chunks("```\n" + "x" * 20_000 + "\n```\n")
    assert sum(chunk.text.count("x") for chunk in by_characters) == 20_000
    assert max(len(chunk.text) for chunk in by_characters) <= ATOM_LIMIT


def test_a_table_is_not_split_from_its_header() -> None:
    table = "| name | value |\n|---|---|\n" + "| key | something |\n" * 300
    text = f"# A\n\n{paragraph(1_900)}\n\n{table}"
    (holder,) = [chunk for chunk in chunks(text) if "| key |" in chunk.text]
    assert table.strip() in holder.text


def test_parts_of_an_overlong_table_repeat_the_header() -> None:
    header = "| name | value |\n|---|---|\n"
    found = chunks(header + "| key | something |\n" * 1_000)
    assert len(found) > 1
    assert all(chunk.text.startswith(header + "| key |") and len(chunk.text) <= ATOM_LIMIT for chunk in found)
    assert [(chunk.part, chunk.parts) for chunk in found] == [(i, len(found)) for i in range(1, len(found) + 1)]
    assert sum(chunk.text.count("| key |") for chunk in found) == 1_000
    assert (found[0].first_line, found[-1].last_line) == (1, 1_002)


# ── plain text ────────────────────────────────────────────────────────────────────────────────────────────────


def test_plain_text_has_paragraphs_and_no_headings() -> None:
    text = "# not a heading\n\n" + "\n\n".join([paragraph(800)] * 4)
    found = chunk_text(text).chunks
    assert len(found) == 2
    assert all(chunk.breadcrumb == () and len(chunk.text) <= CHUNK_LIMIT for chunk in found)
    assert chunk_text("one\r\n\r\ntwo\r\n").chunks == (Chunk("one\n\ntwo", (), 1, 3),)


def test_a_file_of_too_many_lines_is_plain_text() -> None:
    (first, *_) = chunks("# H\n" + "a\n" * MAX_LINES)
    assert first.breadcrumb == () and first.text.startswith("# H")


# ── laws ──────────────────────────────────────────────────────────────────────────────────────────────────────

LINES = st.sampled_from(
    [
        "", "", "  ", "# A", "## B *x*", "### C", "#### D", "Title", "===", "---", "***", "```", "~~~py", "    code",
        "\tcode", "- item", "  - sub", "1. one", "> quote", ">> deep", "| a | b |", "|---|---|", "| 1 | 2 |", "<div>",
        "<!--", "-->", "[ref]: /x", "text", "Two sentences. Here:", "title: x", "...", "東京。" * 900, "word " * 600,
        "x" * 2_500,
        "    " + "y" * 9_000, "\n".join(["- " + "item " * 20] * 30), "\n".join(["some prose."] * 250),
        "\n".join(["    code"] * 1_000), "\n".join(["| 1 | 2 |"] * 1_000), "\u00a0", "a\x0cb", "- " * 20 + "a",
        ">" * 40 + "a", "hard break  ",
    ]
)  # fmt: skip
DOCUMENTS = (
    st.lists(LINES, max_size=25).map("\n".join) | st.text() | st.text(alphabet="#-=`~>|* \t\nab:[]", max_size=300)
)


def check(text: str, parsed: ParsedDocument) -> None:
    lines = re.split(r"\r\n?|\n", text)
    for chunk in parsed.chunks:
        assert chunk.text.strip()
        assert 1 <= chunk.first_line <= chunk.last_line <= len(lines)
        assert 1 <= chunk.part <= chunk.parts
        assert len(chunk.text) <= ATOM_LIMIT + CHUNK_LIMIT + 2 * FRAGMENT
        if chunk.parts == 1:
            assert chunk.text == "\n".join(lines[chunk.first_line - 1 : chunk.last_line])
            assert lines[chunk.first_line - 1].strip() and lines[chunk.last_line - 1].strip()
    assert list(parsed.chunks) == sorted(parsed.chunks, key=lambda chunk: (chunk.first_line, chunk.last_line))


@settings(max_examples=150, deadline=None)
@given(DOCUMENTS)
def test_no_input_makes_it_raise_and_lines_are_exact(text: str) -> None:
    check(text, chunk_markdown(text))
    check(text, chunk_text(text))


@settings(max_examples=150, deadline=None)
@example("#### D\n# A\nTitle")
@given(DOCUMENTS)
def test_every_line_with_content_is_in_a_chunk(text: str) -> None:
    parsed = chunk_markdown(text)
    covered = {line for chunk in parsed.chunks for line in range(chunk.first_line, chunk.last_line + 1)}
    if not parsed.front_matter.has_more:
        covered |= set(range(1, parsed.front_matter.lines + 1))
    lines = re.split(r"\r\n?|\n", text)
    titles = " ".join(title for chunk in parsed.chunks for title in chunk.breadcrumb)
    for number, line in enumerate(lines, start=1):
        if re.search(r"\w", line) and number not in covered:
            words = re.findall(r"\w+", line)
            assert [word for word in words if word not in titles] == [], (number, line)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from([SENTENCE, SENTENCE * 50, "x" * 3_000, "東京。" * 1_500]), min_size=1, max_size=4))
def test_no_character_of_prose_is_lost(sentences: list[str]) -> None:
    text = "\n".join(sentence.strip() for sentence in sentences)
    rejoined = "".join(chunk.text for chunk in chunks(text))
    assert re.sub(r"\s", "", rejoined) == re.sub(r"\s", "", text)


@given(st.lists(st.sampled_from(["short", paragraph(900), "```\ncode\n```"]), min_size=1, max_size=12))
def test_an_appended_section_leaves_the_chunks_before_it_alone(blocks: list[str]) -> None:
    text = "# Log\n\n" + "\n\n".join(blocks)
    before = chunks(text)
    assert chunks(text + "\n\n---\n\n## New\n\nentry\n")[: len(before)] == before


@pytest.mark.parametrize(
    "text",
    [
        "```\n" + "x = 1\n" * 200_000,
        "".join(f"# h{i}\n\ntext\n\n" for i in range(10_000)),
        "word " * 400_000,
        "x" * 2_000_000,
        ">" * 10_000 + " a",
        ("> " * 5_000 + "a\n") * 50,
        "- " * 5_000 + "a",
        "".join("  " * i + "- a\n" for i in range(700)),
        "[" * 500_000,
        "> a\n" + "lazy\n" * 20_000,
    ],
    ids=["fence", "headings", "words", "characters", "quotes", "quoted lines", "lists", "stairs", "brackets", "lazy"],
)
def test_hostile_files_are_chunked_in_moderate_time(text: str) -> None:
    start = time.process_time()
    check(text, chunk_markdown(text))
    assert time.process_time() - start < 20  # a second at most; with the square of the length many minutes
