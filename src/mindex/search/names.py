"""Whether a query is the name of a record: its heading, its page's title, its file, an alias. Pure."""

import re
from collections.abc import Iterator

from mindex.analyzer import STOP_WORDS, analyze, fold
from mindex.model import Record
from mindex.values import dataclass

_SEPARATORS = re.compile(r"[\W_]+")
_LONGEST = 200  # characters of a query that may be a name
_NAMING_FIELDS = ("title", "name", "alias", "aliases")  # of the front matter


@dataclass(frozen=True, slots=True)
class QueryName:
    """A query, folded in the two ways in which it may equal a name."""

    text: str
    tokens: tuple[str, ...]
    letters: str

    @classmethod
    def of(cls, text: str) -> "QueryName | None":
        """None if the text cannot be a name."""
        stripped = text.strip()
        letters = _letters(stripped)
        return cls(stripped, _telling(stripped), letters) if letters and len(stripped) <= _LONGEST else None

    def equals(self, name: str) -> bool:
        """Whether a name is this one, apart from case, plural and separators."""
        return bool(name) and (_letters(name) == self.letters or _telling(name) == self.tokens)


def name_of(query: QueryName, record: Record) -> str:
    """What of a record the query names: `heading`, `title` of its page, or `file`; '' if it names nothing."""
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
