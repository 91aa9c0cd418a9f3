"""Whether a query is the name of a record: its heading, its page's title, its file, an alias. Pure.

A contact or project is called what its field `name` says. A tag or an entity is carried: it does not name the record.
"""

import re
from collections.abc import Iterable, Iterator

from mindex.analyzer import STOP_WORDS, analyze, fold, is_identifier
from mindex.datatypes import Record
from mindex.values import dataclass

_SEPARATORS = re.compile(r"[\W_]+")
_SIGN = re.compile(r"[^\w\s]|\w[A-Z0-9_]")
# The code span that a heading, a paragraph, a list item or a row of a table begins with.
_BEGINNING = re.compile(r"^[ \t]*(?:#+ +|[-*+|] *|\d+\. +)*`(?:#!\w+ )?", re.MULTILINE)
_HEADING = re.compile(r" {0,3}#{1,6} +(.+?)(?: +#+)?(?: *\{[^}]*\})?(?: +#+)? *$")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_FENCES = ("```", "~~~")
# How much of a name a query is: it is the same but for case; for plural and separators; for endings and stop words.
_SAME, _SAME_LETTERS, _SAME_STEMS = 1.0, 0.9, 0.7
_MIN_START = 100  # characters that the start of a page has, to be the best answer to its title
_LONGEST = 200  # characters of a query that may be a name
_NAMING_FIELDS = ("title", "name", "alias", "aliases")  # of the front matter


@dataclass(frozen=True, slots=True)
class QueryName:
    """A query, folded in the two ways in which it may equal a name."""

    text: str
    tokens: tuple[str, ...]
    letters: str
    literal: re.Pattern[str] | None = None  # of one word with a sign in it: the word as it is, not in a longer one

    @classmethod
    def of(cls, text: str) -> "QueryName | None":
        """None if the text cannot be a name."""
        stripped = text.strip()
        letters = _letters(stripped)
        if not letters or len(stripped) > _LONGEST:
            return None
        telling = _telling(stripped)
        # A question is not a name: most of its words are stop words, and the one left may well be a title.
        if 2 * len(telling) < len(analyze(stripped).words):
            telling = ()
        return cls(stripped, telling, letters, _literal(stripped))

    def likeness(self, name: str) -> float:
        """How much this is the name; 0 if it is another one."""
        if not name:
            return 0.0
        if _letters(name) == self.letters:
            return _SAME if fold(name).split() == fold(self.text).split() else _SAME_LETTERS
        return _SAME_STEMS if self.tokens and _telling(name) == self.tokens else 0.0

    def likest(self, names: Iterable[str]) -> float:
        return max(map(self.likeness, names), default=0.0)


def name_of(query: QueryName, record: Record) -> tuple[str, float]:
    """How a record has the query as a name, and how much of this name the query is; '' if it has not.

    `title`: its page is called so, and it is the start of the page. `heading`: its own section or one within it.
    `file`: its file. `part`: it is below a page or section of this name. `defined`, `literal`: an identifier that its
    heading or a line of it begins with, that its text contains as it was typed. `carried`: a tag or an entity.
    """
    contained = query.literal is not None and query.literal.search(f"{record.title}\n{record.text}")
    # `--target` is an option, and not what a page called `Target` is about.
    if query.text.startswith("-") and not contained:
        return "", 0.0
    own = [*_own_names(query, record)]
    if contained:
        own.append(("defined" if _defines(query, record) else "literal", _SAME))
    own.append(("carried", query.likest((*record.tags, *record.entities))))
    return next(((name, likeness) for name, likeness in own if likeness), ("", 0.0))


def _own_names(query: QueryName, record: Record) -> Iterator[tuple[str, float]]:
    """What a record is called, the strongest first, and how much of it the query is."""
    if record.kind != "chunk":
        title = record.title if record.kind != "turn" else ""
        yield "title", query.likest((title, str(record.fields.get("name", "")), record.text))
        return
    *above, heading = [crumb.strip() for crumb in record.title.split(" > ")]
    aliases = query.likest(_aliases(record))
    if not above and len(record.text) >= _MIN_START:  # a line of links or badges says nothing
        yield "title", max(aliases, query.likeness(heading))
    elif not above:
        yield "part", max(aliases, query.likeness(heading))
    yield "heading", max(query.likeness(heading), query.likest(_headings(record.text)))
    file = record.path.rpartition("/")[2]
    yield "file", _SAME if fold(file) == fold(query.text) else query.likeness(file.rpartition(".")[0])
    yield "part", max(aliases, query.likest(above))


def _headings(text: str) -> Iterator[str]:
    """The headings of the sections that a chunk consists of, without those in code."""
    fenced = False
    for line in text.splitlines() if "#" in text else ():
        if line.lstrip().startswith(_FENCES):
            fenced = not fenced
        elif not fenced and (found := _HEADING.match(line)):
            yield _LINK.sub(r"\1", found[1])


def _defines(query: QueryName, record: Record) -> bool:
    if query.literal is None:
        return False
    heading = record.title.rpartition(" > ")[2]
    return bool(query.literal.search(heading)) or any(
        query.literal.match(record.text, begin.end()) for begin in _BEGINNING.finditer(record.text)
    )


def _literal(text: str) -> re.Pattern[str] | None:
    """A pattern for a word that is not an everyday one: it contains a sign, a digit or a capital inside."""
    if " " in text or not (_SIGN.search(text) or is_identifier(text)):
        return None
    return re.compile(rf"(?<![\w-]){re.escape(text)}(?![\w-])")


def _aliases(record: Record) -> Iterator[str]:
    """The names of a page in its front matter."""
    for field in record.document_fields:
        key, _, value = field.partition(": ")
        if key.lower() in _NAMING_FIELDS:
            yield value
            if "," in value:
                yield from (one.strip() for one in value.split(","))


def _letters(name: str) -> str:
    """The letters and digits of a name, folded, without a plural `s`."""
    letters = _SEPARATORS.sub("", fold(name))
    return letters[:-1] if letters.endswith("s") and len(letters) > 3 else letters


def _telling(name: str) -> tuple[str, ...]:
    """The stems of a name without its stop words, unless it has no others."""
    words = analyze(name).words
    return tuple(word for word in words if word not in STOP_WORDS) or words
