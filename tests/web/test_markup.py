"""Stored texts as HTML: escaped, marked, compared, and markdown in which nothing can run."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.web.markup import markdown, marked, text_difference, without_blank_lines
from mindex.web.paths import safe_next

_TAGS = re.compile(
    r"</?(?:p|h[1-6]|ul|ol|li|em|strong|s|code|pre|blockquote|br ?/?|hr ?/?|table|thead|tbody|tr|t[hd]|a|span)\b"
)


def test_marks_surround_escaped_text() -> None:
    assert marked("<b> tea & milk", ((4, 7),)) == "&lt;b&gt; <mark>tea</mark> &amp; milk"
    assert without_blank_lines(marked("a  \n\n \n b", ())) == "a\n b"


def test_a_difference_names_words() -> None:
    assert text_difference("at 14:00 <now>", "at 16:00 <now>") == ("at <del>14</del><ins>16</ins>:00 &lt;now&gt;")


def test_texts_that_repeat_one_word_thousands_of_times_are_not_compared_word_by_word() -> None:
    before, after = "." * 9_000, "." * 8_990 + ","
    assert text_difference(before, after) == f"<del>{before}</del>\n<ins>{after}</ins>"
    prose = "the harbour master writes the log of the day and signs it " * 80
    assert text_difference(prose, prose.replace("signs", "seals", 1)).count("<ins>seals</ins>") == 1


@pytest.mark.parametrize(
    "target",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "data:text/html,x",
        "vbscript:x",
        "file:///etc/passwd",
    ],
)
def test_a_link_with_another_scheme_is_not_a_link(target: str) -> None:
    for text in (f"[x]({target})", f"[x](<{target}>)", f"<{target}>", f"[x]\n\n[x]: {target}"):
        assert "<a " not in markdown(text, "docs", "a.md")


def test_links_lead_to_the_web_or_to_files_of_the_collection() -> None:
    page = markdown("[a](../b.md#x) [b](https://x.example) [c](../../../out.md) [d](//x.example)", "docs", "sub/a.md")
    links = re.findall(r'href="([^"]*)"', page)
    assert links == ["/files/docs/b.md", "https://x.example", "#", "//x.example"]
    assert page.count('rel="noopener noreferrer nofollow" target="_blank"') == 2


def test_a_scheme_with_a_blank_in_it_leads_nowhere() -> None:
    assert 'href="#"' in markdown("[x](<java\tscript:alert(1)>)", "docs", "a.md")


def test_a_table_has_classes_and_no_styles() -> None:
    page = markdown("| a | b |\n|:-:|--:|\n| 1 | 2 |\n")
    assert '<td class="center">1</td>' in page
    assert '<th class="right">b</th>' in page
    assert "style" not in page


def test_front_matter_is_shown_apart_and_lines_still_count() -> None:
    page = markdown("---\ntitle: <x>\n---\n# One\n\ntwo\n", hit=(6, 6))
    assert '<pre class="fields">title: &lt;x&gt;</pre>' in page
    assert '<p class="hit" id="hit">two</p>' in page


@given(st.text(alphabet=st.sampled_from(list("<>\"'&/=[]()!`*_|#-:\\ \n\tabjscriptonerr{}~")), max_size=200))
def test_no_markdown_makes_another_tag_or_attribute(text: str) -> None:
    page = str(markdown(text, "docs", "a.md"))
    for tag in re.findall(r"<[^>]*>", page):
        assert _TAGS.match(tag), tag
        names = re.findall(r'\s([a-z-]+)="[^"]*"', tag)
        assert set(names) <= {"href", "title", "class", "id", "rel", "target", "start"}, tag


@pytest.mark.parametrize(
    ("path", "expected"),
    [("/timeline?q=a", "/timeline?q=a"), ("//x", "/"), ("https://x", "/"), ("/login", "/"), ("/\\x", "/"), ("", "/")],
)
def test_a_login_goes_on_to_a_page_of_this_site_only(path: str, expected: str) -> None:
    assert safe_next(path) == expected
