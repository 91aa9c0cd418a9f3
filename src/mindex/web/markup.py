"""Stored texts as HTML: matches marked, markdown rendered, two versions compared. Nothing in them can run.

HTML in markdown is not rendered; links lead to http, https or a file of the same collection; images are
shown as their description, so that no page loads anything from elsewhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import cache
from posixpath import dirname, normpath
from typing import Any
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from mindex.datatypes import QueryTerms, Range
from mindex.text_match import matched_ranges
from mindex.web.paths import file_path

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?P<fields>.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_WORDS = re.compile(r"\s+|[^\W_]+|.", re.DOTALL)
_BLANK_LINES = re.compile(r"[ \t]*\n\s*\n")
_MAX_COMPARED = 20_000  # characters: longer texts are shown one after the other
# Pairs of equal words are what comparing costs: prose of that length has 2 million and takes half a second, a line of
# full stops has 98 million and takes ten, and the page answers no request in that time.
_MAX_PAIRS = 4_000_000
_BLOCKS = ("paragraph_open", "heading_open", "fence", "code_block", "tr_open", "list_item_open", "hr")


def marked(text: str, ranges: Sequence[Range] | None) -> Markup:
    """The text, with `<mark>` around the ranges."""
    parts, end = [], 0
    for start, stop in ranges or ():
        parts += [escape(text[end:start]), Markup("<mark>"), escape(text[start:stop]), Markup("</mark>")]
        end = stop
    return Markup("").join([*parts, escape(text[end:])])


def without_blank_lines(text: Markup) -> Markup:
    """A passage in few lines: blanks and ends of lines are all that it changes."""
    return Markup(_BLANK_LINES.sub("\n", text))


def text_difference(before: str, after: str) -> Markup:
    """One text with what was removed as `<del>` and what was added as `<ins>`, word by word."""
    one_after_the_other = Markup("<del>{}</del>\n<ins>{}</ins>").format(before, after)
    if len(before) + len(after) > _MAX_COMPARED:
        return one_after_the_other
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    counts = Counter(new)
    if sum(count * counts[word] for word, count in Counter(old).items()) > _MAX_PAIRS:
        return one_after_the_other
    parts: list[Markup] = []
    for kind, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        removed, added = "".join(old[i:j]), "".join(new[k:m])
        if kind == "equal":
            parts.append(escape(added))
        else:
            parts += [Markup("<del>{}</del>").format(removed)] if removed else []
            parts += [Markup("<ins>{}</ins>").format(added)] if added else []
    return Markup("").join(parts)


def markdown(
    text: str,
    collection: str = "",
    path: str = "",
    *,
    hit: tuple[int, int] | None = None,
    terms: QueryTerms | None = None,
) -> Markup:
    """Markdown as HTML. `collection` and `path` name the file it is from, which relative links start at.

    `hit` are the lines to mark, from 1; `terms` the words to mark.
    """
    fields = ""
    if front := _FRONT_MATTER.match(text):
        fields = front["fields"]
        text = "\n" * front[0].count("\n") + text[front.end() :]
    parser = _parser()
    tokens = parser.parse(text)
    for token in tokens:  # the page allows no inline style
        if align := token.attrs.pop("style", None):
            token.attrSet("class", str(align).removeprefix("text-align:"))
    if hit is not None:
        _mark_lines(tokens, hit[0] - 1, hit[1] - 1)
    body = parser.renderer.render(tokens, parser.options, {"collection": collection, "path": path, "terms": terms})
    head = Markup('<pre class="fields">{}</pre>\n').format(fields) if fields else Markup("")
    return head + Markup(body)  # the renderer escapes all texts, and HTML is switched off


@cache
def _parser() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    made.validateLink = _is_safe  # type: ignore[method-assign, assignment]  # the library's own way to replace it
    made.add_render_rule("link_open", _link_open)
    made.add_render_rule("image", _image)
    made.add_render_rule("text", _text)
    return made


def _is_safe(target: str) -> bool:
    """Whether a link may stay: an address of the web, or a path."""
    try:
        scheme = urlsplit(re.sub(r"[\x00-\x20]", "", target)).scheme.lower()
    except ValueError:
        return False
    return scheme in ("", "http", "https")


def _link_open(renderer: Any, tokens: Sequence[Token], i: int, options: Any, env: Any) -> str:
    """A link: to the web in a new tab, to a file of the collection by its page."""
    token = tokens[i]
    target = str(token.attrs.get("href", ""))
    if urlsplit(target).scheme or target.startswith("//"):
        token.attrs |= {"rel": "noopener noreferrer nofollow", "target": "_blank"}
    elif not target.startswith("#"):
        token.attrs["href"] = _page_of(target, env.get("collection", ""), env.get("path", ""))
    return str(renderer.renderToken(tokens, i, options, env))


def _page_of(target: str, collection: str, path: str) -> str:
    name = unquote(target.partition("#")[0].partition("?")[0])
    below = normpath(name.lstrip("/") if name.startswith("/") else f"{dirname(path)}/{name}".lstrip("/"))
    if not collection or below.startswith("..") or not below.isprintable():
        return "#"
    return file_path(collection, below)


def _image(renderer: Any, tokens: Sequence[Token], i: int, options: Any, env: Any) -> str:
    alt = renderer.renderInlineAsText(tokens[i].children, options, env) or "image"
    return str(Markup('<span class="image">[{}]</span>').format(alt))


def _text(renderer: Any, tokens: Sequence[Token], i: int, options: Any, env: Any) -> str:  # noqa: ARG001 - a rule
    text, terms = tokens[i].content, env.get("terms")
    return str(marked(text, matched_ranges(text, terms) if terms else ()))


def _mark_lines(tokens: Sequence[Token], first: int, last: int) -> None:
    """Give the innermost blocks of these lines the class `hit`, and the first of them the id to scroll to."""
    is_first = True
    for i, token in enumerate(tokens):
        if token.map is None or token.type not in _BLOCKS or token.hidden:
            continue
        if token.type == "list_item_open" and not (i + 1 < len(tokens) and tokens[i + 1].hidden):
            continue  # its paragraphs are marked
        start, end = token.map
        if token.type == "list_item_open":
            end = next((one.map[1] for one in tokens[i + 1 : i + 2] if one.map), end)
        if start <= last and end > first:
            token.attrSet("class", "hit")
            if is_first:
                token.attrSet("id", "hit")
                is_first = False
