"""Whether a query is the name of a record: its heading, its page's title, its file, an alias. Pure.

A contact or project is called what its field `name` says. A tag or an entity is carried: it does not name the record.
"""

import re
from collections.abc import Iterator

from mindex.analyzer import STOP_WORDS, analyze, fold, is_identifier
from mindex.datatypes import Record
from mindex.values import dataclass

_SEPARATORS = re.compile(r"[\W_]+")
_SIGN = re.compile(r"[^\w\s]|\w[A-Z0-9_]")
# The code span that a heading, a paragraph, a list item or a row of a table begins with.
_BEGINNING = re.compile(r"^[ \t]*(?:#+ +|[-*+|] *|\d+\. +)*`(?:#!\w+ )?", re.MULTILINE)
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
        return cls(stripped, _telling(stripped), letters, _literal(stripped))

    def equals(self, name: str) -> bool:
        """Whether a name is this one, apart from case, plural and separators."""
        return bool(name) and (_letters(name) == self.letters or _telling(name) == self.tokens)


def name_of(query: QueryName, record: Record) -> str:
    """How a record has the query as a name; '' if it has not.

    `heading`, `title` of its page or `file`: it is called so. `defined`, `literal`: an identifier that its heading or a
    line of it begins with, that its text contains as it was typed. `carried`: a tag or an entity.
    """
    if own := _own_name(query, record):
        return own
    if query.literal is not None and query.literal.search(f"{record.title}\n{record.text}"):
        return "defined" if _defines(query, record) else "literal"
    return "carried" if any(map(query.equals, (*record.tags, *record.entities))) else ""


def _own_name(query: QueryName, record: Record) -> str:
    if record.kind == "chunk":
        *above, heading = [crumb.strip() for crumb in record.title.split(" > ")]
        if query.equals(heading):
            return "heading"
        if any(map(query.equals, above)) or any(map(query.equals, _aliases(record))):
            return "title"
        file = record.path.rpartition("/")[2]
        if query.equals(file.rpartition(".")[0]) or fold(file) == fold(query.text):
            return "file"
        return ""
    names = (record.title if record.kind != "turn" else "", str(record.fields.get("name", "")), record.text)
    return "heading" if any(map(query.equals, names)) else ""


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
