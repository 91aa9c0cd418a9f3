"""The summary of a text in one line: its first sentence with content, without filler and markup."""

import re
from collections.abc import Iterator

from mindex.analyzer import STOP_WORDS, fold, word_set
from mindex.lexicon import load, words

READ_LIMIT = 4_000  # characters: a sentence that starts later does not open the text
MAX_CHARACTERS = 200
MAX_DENSE = 60  # characters of a script without spaces, which say about as much as twenty words

_LISTS = load("sentences")
ABBREVIATIONS = word_set(_LISTS["abbreviations"])
_BEFORE_NUMBER = frozenset(_LISTS["before_number"].split())
_MAY_END = frozenset(_LISTS["may_end"].split())
_DOTTED = re.compile(r"\w(?:\.\w)+")
# "am 3. März": only before these words is a number surely a German ordinal and not the end of a sentence.
_GERMAN_MONTHS = frozenset(words(load("dates")["months"]["de"].replace("|", " ")))

_END = re.compile(r"[.!?…]++[\"'”’»)\]]*+(?=\s|$)|[。！？]++[」』”’）]*+")
_NEXT = re.compile(r"\s*[\"'“„«(\[]*(\w*)")
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
_DENSE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f]"
)
_TRAILING = " ,;:–—-([{/&，、；："

_FENCE = re.compile(r"\s*(?:```|~~~)")
_RULE = re.compile(r"[\s|:=*_+-]*")  # a thematic break, an underlined heading's line, a table's separator, a blank
_LEAD = re.compile(r"\s*(?:>\s*)*(?:(?P<heading>#{1,6}\s+)|(?P<item>(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?))?")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)|\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]")
# Underscores stay: `__init__` looks like bold. Stars between two letters are products, not emphasis.
_MARKED = re.compile(r"[`~<*|]")
_MARKUP = re.compile(r"`+|~~|<!--[^<>]*-->|(?<![\w*])\*{1,3}+(?=\S)|(?<=[^\s*])\*{1,3}(?!\w)|(?<=\s)\|(?=\s)|^\||\|$")

_FILLER = re.compile(_LISTS["filler"], re.IGNORECASE | re.VERBOSE)


def summarize(text: str, most_words: int = 20) -> str:
    """Return the first sentence with content, on one line; empty only for a blank text.

    A heading or code is used only when there is no prose. A sentence of more than `most_words` words, 200 characters
    or 60 characters of a script without spaces is cut at a word and ends in `…`.
    """
    text = text.lstrip()[:READ_LIMIT]
    fallback = ""
    for prose, block in _blocks(text):
        for sentence in _sentences(_plain(block)):
            content = _without_filler(sentence)
            if not _LETTER_OR_DIGIT.search(content):
                continue
            if prose:
                return _cut(content, most_words)
            fallback = fallback or content
    return _cut(fallback or text, most_words)


def _blocks(text: str) -> Iterator[tuple[bool, str]]:
    """Yield paragraphs, list items, headings and lines of code in order, each with whether it is prose."""
    paragraph: list[str] = []
    code = False
    lines = text.splitlines()
    if len(lines) == 1 and text[0].isalpha():  # most memories: one line that begins with a word is prose
        yield True, lines[0]
        return
    for line in lines:
        lead = _LEAD.match(line)
        fence = _FENCE.match(line) is not None
        ends_paragraph = fence or code or _RULE.fullmatch(line) or (lead and lead.lastgroup)
        if ends_paragraph and paragraph:
            yield True, " ".join(paragraph)
            paragraph = []
        if fence:
            code = not code
        elif code:
            yield False, line
        elif lead and not _RULE.fullmatch(line):
            content = line[lead.end() :]
            if lead["heading"]:
                yield False, content.rstrip(" #")
            else:
                paragraph.append(content)
    if paragraph:
        yield True, " ".join(paragraph)


def _plain(block: str) -> str:
    if "[" in block:
        block = _LINK.sub(lambda link: link[1] or link[2] or "", block)
    return _MARKUP.sub("", block) if _MARKED.search(block) else block


def _sentences(block: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(block):
        if _ends_sentence(block, end):
            yield block[start : end.end()].strip()
            start = end.end()
    yield block[start:].strip()


def _ends_sentence(block: str, end: re.Match[str]) -> bool:
    if end[0][0] in "。！？":
        return True
    following = _NEXT.match(block, end.end())
    following_word = following[1] if following else ""
    # In a text that starts in lower case, its sentences also do.
    if following_word[:1].islower() and not block[:1].islower():
        return False
    if not end[0].startswith(".") or end[0].startswith(".."):
        return True
    word = block[block.rfind(" ", 0, end.start()) + 1 : end.start()].lstrip("(\"'“„«[")
    folded = word.lower()
    if folded in ABBREVIATIONS or (folded in _BEFORE_NUMBER and following_word.isdecimal()):
        return False
    if word.isdecimal() and fold(following_word) in _GERMAN_MONTHS:
        return False
    if folded in _MAY_END or _DOTTED.fullmatch(folded) or (len(word) == 1 and word.isalpha()):
        return not following_word or following_word.lower() in STOP_WORDS
    return True


def _without_filler(sentence: str) -> str:
    content = sentence
    while filler := _FILLER.match(content):
        content = content[filler.end() :]
    first = content.partition(" ")[0]
    # A name is not capitalised: `npm` and `iOS` stay as they were written.
    if content != sentence and first in STOP_WORDS:
        return content[0].upper() + content[1:]
    return content


def _cut(sentence: str, most_words: int) -> str:
    words = sentence.split()
    whole = " ".join(words)
    sample = whole[: 2 * MAX_CHARACTERS]
    dense = not sample.isascii() and 3 * len(_DENSE.findall(sample)) > len(sample)
    most = MAX_DENSE if dense else MAX_CHARACTERS
    short = " ".join(words[: max(1, most_words)])
    if short == whole and len(whole) <= most:
        return whole
    if len(short) >= most:
        short = short[: most - 1]
        short = short if dense else short.rpartition(" ")[0] or short
    return (short.rstrip(_TRAILING) or short) + "…"
