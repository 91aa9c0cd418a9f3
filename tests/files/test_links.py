"""Links in the text of a file, and which indexed file each of them means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.datatypes import Document, Record
from mindex.files.links import LinkTargets, document_links, place_in


def links(text: str, path: str = "guide/setup.md") -> tuple[str, ...]:
    return document_links(path, text)


def document(path: str, title: str = "", *fields: str) -> Document:
    return Document(f"id{path}", "docs", path, "", 1, 1, title=title, fields=fields)


def meant(link: str, source: str, *documents: Document) -> tuple[str, str] | None:
    target = LinkTargets(documents).find(link, source)
    return (target.document.path, target.place) if target else None


# ── in a text ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_relative_links_become_paths_below_the_root() -> None:
    text = (
        "[a](other.md) [b](../api/index.md#top) [c](/top.md?raw=1) [d](<with space.md>) [e](caf%C3%A9.md 'title')\n"
        "[![badge](x.png)](linked.md) [ref][r]\n\n[r]: sub/ref.md\n[`code`]: sub/code.md\n"
    )
    assert links(text) == (
        "guide/other.md",
        "api/index.md#top",
        "top.md",
        "guide/with space.md",
        "guide/café.md",
        "guide/linked.md",
        "guide/sub/ref.md",
        "guide/sub/code.md",
    )


def test_wiki_links_keep_their_page_and_place() -> None:
    text = "[[Redis]] [[people/Ann|Ann]] [[Redis#TTL|how long]] [[Log#^a1b2]] [[plan.txt]] | [[Bo\\|B]] | [[Redis]]"
    assert links(text) == (
        "[[Redis]]", "[[people/Ann]]", "[[Redis#TTL]]", "[[Log#^a1b2]]", "[[plan.txt]]", "[[Bo]]",
    )  # fmt: skip


def test_an_embedded_page_is_a_link_and_an_embedded_image_is_not() -> None:
    assert links("![[Page]] ![[Page 2.md#^x]] ![[photo.png]] ![[film.mp4|200]] ![alt](x.png)") == (
        "[[Page]]",
        "[[Page 2.md#^x]]",
    )


def test_links_in_front_matter_are_links() -> None:
    assert links('---\nup: "[[Index]]"\n---\n\nText.\n') == ("[[Index]]",)


def test_code_has_no_links() -> None:
    assert links("```sh\n[a](b.md) [[c]]\n```\n\nNot `[x](y.md)` nor `[[z]]`.\n") == ()


def test_links_outside_the_root_are_dropped() -> None:
    text = "[a](https://x.org/a.md) [b](mailto:a@b.c) [c](../../etc/passwd) [d](#here) [e](//host/x) [f](setup.md)\n"
    text += "![i](i.png) [[#Here]]"
    assert links(text) == ()


@given(st.text(alphabet="ab[]()!`#:/.\\\n <>|%?~^", max_size=200))
def test_links_never_leave_the_root(text: str) -> None:
    for link in links(text):
        assert not link.startswith(("/", "../")) and link not in ("", ".", "..")


# ── what they mean ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "link",
    ["guide/setup.md", "guide/setup", "Guide/Setup.md", "guide/setup/", "[[setup]]", "[[Setup]]", "[[guide/setup]]"],
)
def test_a_link_means_the_file_with_its_path_or_name(link: str) -> None:
    assert meant(link, "a.md", document("other.md"), document("guide/setup.md")) == ("guide/setup.md", "")


def test_a_path_means_no_file_of_that_name_elsewhere() -> None:
    assert meant("setup.md", "a.md", document("guide/setup.md")) is None
    assert meant("[[Nowhere]]", "a.md", document("guide/setup.md")) is None


def test_a_folder_means_its_index_page() -> None:
    assert meant("guide", "a.md", document("guide/index.mdx")) == ("guide/index.mdx", "")
    assert meant("guide/", "a.md", document("guide/README.md")) == ("guide/README.md", "")


def test_a_wiki_link_means_the_page_beside_it_else_the_one_nearest_to_the_root() -> None:
    pages = (document("x/y/Log.md"), document("x/Log.md"), document("z/Log.md"))
    assert meant("[[Log]]", "z/a.md", *pages) == ("z/Log.md", "")
    assert meant("[[Log]]", "a.md", *pages) == ("x/Log.md", "")
    assert meant("[[y/Log]]", "a.md", *pages) == ("x/y/Log.md", "")


def test_a_wiki_link_may_be_written_like_the_file_the_title_or_an_alias() -> None:
    pages = (document("notes/ada-lovelace.md", "Countess of Lovelace", "aliases: Ada", "alias: A. L., Augusta"),)
    for page in ("Ada Lovelace", "ada_lovelace", "countess of lovelace", "ADA", "Augusta", "A. L."):
        assert meant(f"[[{page}]]", "a.md", *pages) == ("notes/ada-lovelace.md", ""), page


def test_the_name_of_a_file_goes_before_the_title_of_another() -> None:
    assert meant("[[Log]]", "a.md", document("a/b.md", "Log"), document("x/y/log.md")) == ("x/y/log.md", "")


def test_a_heading_or_a_block_is_found_in_its_chunk() -> None:
    texts = ("Intro", "## Redis: set-up\n\nInstall it.", "#### Deep one #\n\nA claim. ^a1\nMore.", "- a list\n^a12")
    chunks = [Record(f"c{number}", "chunk", text) for number, text in enumerate(texts)]
    found = {
        place: place_in(chunks, place) for place in ("", "Redis set-up", "redis-set-up", "X#Deep one", "^a1", "^a12")
    }
    assert {place: chunk.id for place, chunk in found.items() if chunk} == {
        "": "c0", "Redis set-up": "c1", "redis-set-up": "c1", "X#Deep one": "c2", "^a1": "c2", "^a12": "c3",
    }  # fmt: skip
    gone = place_in(chunks, "gone")
    assert gone is not None and gone.id == "c0"
    assert place_in([], "x") is None
