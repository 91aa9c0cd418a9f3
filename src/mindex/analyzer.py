"""The analyzer: turns text into tokens, the same for every engine at index and at query time.

Prose becomes folded Porter stems. Identifiers are kept whole (`PolicyController` → `policycontroller`,
`v2.1.4` → `v2_1_4`) and in parts. Scripts without spaces become overlapping pairs of characters. Tokens hold
letters, digits and `_` only, so no user text ever reaches an engine's query parser.
"""

import re
import threading
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

import Stemmer

from mindex.model import DESCRIPTIVE_FIELDS, Record
from mindex.values import dataclass

# Raise it whenever the tokens of any text change: stores rebuild their keyword index then.
ANALYZER_VERSION = 2

MAX_TOKEN = 64

# Scripts without spaces; Hangul has them, but its words include their particles, so pairs serve it better.
_UNSEGMENTED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u1049\u1050-\u109f\u1780-\u17d3\u2e80-\u2fdf\u3005-\u3007"
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003134f"
)
# Vowel signs and points that belong to a word although they are not letters.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0971-\u0dff"
_LETTER = rf"(?:(?![{_UNSEGMENTED}])(?:[^\W_]|[{_MARKS}]))"
_RUNS = (
    rf"(?P<cjk>[{_UNSEGMENTED}]+)"
    rf"|(?P<word>{_LETTER}+(?:[-_./\\:@#+'’]{{1,3}}{_LETTER}+)*(?:\+\+|#)?)"
)
# The same for plain ASCII: twice as fast to match, and compiled at once where the other takes as long as a search.
_ASCII_RUNS = re.compile(r"(?P<word>[^\W_]+(?:[-_./\\:@#+']{1,3}[^\W_]+)*(?:\+\+|#)?)")
_APOSTROPHE = re.compile(r"['’]")
_SEPARATOR = re.compile(r"[^\w" + _MARKS + r"]+|_+")
_SEGMENT = re.compile(r"[/\\:@#]+")
_ACRONYM = re.compile(r"[A-Z]{2,}s?")
_VERSION = re.compile(r"v\d+(?:_\d+)+")

STOP_WORDS = frozenset(
    """
    a about after all also am an and any are as at be because been before being but by can could did do does doing for
    from had has have having he her here hers him his how i if in into is it its itself just me more most my no nor not
    of off on once only or other our ours out over own same she should so some such than that the their theirs them
    then there these they this those through to too under until up very was we were what when where which while who
    whom why will with would you your yours
    """.split()
)


@dataclass(frozen=True, slots=True)
class Analysis:
    """The tokens of a text: stems in reading order, and each identifier among them as one token."""

    words: tuple[str, ...]
    identifiers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueryWord:
    """One word of a query: its stems (several for an identifier or a CJK run) and its forms as one token."""

    words: tuple[str, ...]
    identifiers: tuple[str, ...]
    stop: bool = False
    lone_character: bool = False  # a single CJK character: a prefix of the indexed pairs
    unsegmented: bool = False  # in a script without spaces: its tokens are pairs of characters


_local = threading.local()


def _stem(word: str) -> str:
    stemmer = getattr(_local, "stemmer", None)
    if stemmer is None:
        stemmer = _local.stemmer = Stemmer.Stemmer("porter")  # not safe to share between threads
    return str(stemmer.stemWord(word))


def fold(text: str) -> str:
    """Return `text` without case, ligatures and Latin accents: `Größe` and `GROSSE` are one word."""
    folded = text.casefold()
    if folded.isascii():
        return folded
    decomposed = unicodedata.normalize("NFD", folded)
    return unicodedata.normalize("NFC", "".join(c for c in decomposed if not "\u0300" <= c <= "\u036f"))


def word_set(words: str) -> frozenset[str]:
    """Return the words of a list, folded."""
    return frozenset(fold(words).split())


def _parts(name: str) -> list[str]:
    """Return the parts of a name: `RedisClient2` → Redis, Client, 2; `sha256` → sha, 256; `l6` stays whole."""
    if _ACRONYM.fullmatch(name) or (len(name) > 1 and name[1:].isdigit()):
        return [name]
    starts = [0, *(i for i in range(1, len(name)) if _starts_part(name, i)), len(name)]
    return [name[start:end] for start, end in pairwise(starts)]


def _starts_part(name: str, i: int) -> bool:
    before, here = name[i - 1], name[i]
    if here.isdigit() != before.isdigit():
        return True
    return here.isupper() and (before.islower() or (before.isupper() and name[i + 1 : i + 2].islower()))


@lru_cache(maxsize=65536)
def _word(raw: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the stems and the whole forms of one run of letters, digits and joiners."""
    if raw.endswith(("++", "#")):
        bare = raw.rstrip("+#")
        stems, forms = _word(bare)
        return stems, (*forms, _finish(bare + ("plusplus" if raw.endswith("+") else "sharp")))
    raw = _APOSTROPHE.sub("", raw)
    words: list[str] = []
    wholes: list[str] = []
    pieces = [piece for piece in _SEPARATOR.split(raw) if piece]
    for piece in pieces:
        parts = _parts(piece)
        words.extend(word for word in map(_finish, parts) if word)
        if len(parts) > 1:
            wholes.append(fold(piece))
    if len(pieces) > 1:
        segments = [s for s in _SEGMENT.split(raw) if s]
        for segment in segments if len(segments) > 1 else []:
            names = [p for p in _SEPARATOR.split(segment) if p]
            if len(names) > 1:
                wholes.append(fold("_".join(names)))
        wholes.append(fold("_".join(pieces)))
    wholes.extend(whole[1:] for whole in list(wholes) if _VERSION.fullmatch(whole))
    # A whole form of letters alone is stemmed like prose, so that the query `policycontroller` finds it, too.
    finished = (_finish(whole) for whole in wholes if len(whole) <= MAX_TOKEN)
    return tuple(words), tuple(dict.fromkeys(whole for whole in finished if whole))


def _finish(part: str) -> str:
    folded = fold(part)[:MAX_TOKEN]
    return _stem(folded) if len(folded) > 2 and folded.isalpha() and folded not in STOP_WORDS else folded


def _pairs(run: str) -> tuple[str, ...]:
    return tuple(run[i : i + 2] for i in range(len(run) - 1)) if len(run) > 1 else (run,)


def is_lone(token: str) -> bool:
    """Return whether a token is one character of a script without spaces, which texts hold as the first of a pair."""
    return len(token) == 1 and _is_unsegmented(token)


def is_segmented(text: str) -> bool:
    """Return whether a text has no character of a script without spaces."""
    return text.isascii() or not any(map(_is_unsegmented, set(unicodedata.normalize("NFKC", text))))


def _is_unsegmented(character: str) -> bool:
    ranges = zip(_UNSEGMENTED[::3], _UNSEGMENTED[2::3], strict=True)
    return not character.isascii() and any(first <= character <= last for first, last in ranges)


@cache
def _wide_runs() -> re.Pattern[str]:
    return re.compile(_RUNS)


def _runs(text: str) -> Iterator[re.Match[str]]:
    """Return the runs of letters, digits and joiners in a text, and those of scripts without spaces."""
    if text.isascii():
        return _ASCII_RUNS.finditer(text)
    return _wide_runs().finditer(unicodedata.normalize("NFKC", text))


def analyze(text: str) -> Analysis:
    """Return the tokens of a text, as they are indexed."""
    words: list[str] = []
    identifiers: list[str] = []
    for match in _runs(text):
        if match.lastgroup == "cjk":
            words.extend(_pairs(match[0]))
        else:
            stems, wholes = _word(match[0])
            words.extend(stems)
            identifiers.extend(wholes)
    return Analysis(tuple(words), tuple(identifiers))


def analyze_query(text: str) -> tuple[QueryWord, ...]:
    """Return the tokens of a query, word by word, so that a search can require any or all of the words."""
    found: list[QueryWord] = []
    for match in _runs(text):
        if match.lastgroup == "cjk":
            run = match[0]
            found.append(QueryWord(_pairs(run), (), lone_character=len(run) == 1, unsegmented=True))
            continue
        words, wholes = _word(match[0])
        found.append(QueryWord(words, wholes, stop=fold(match[0]) in STOP_WORDS))
    return tuple(found)


class Columns(NamedTuple):
    """A record's tokens by searchable column, joined by spaces: the content of every engine's keyword index."""

    title: str
    text: str
    summary: str
    tags: str
    identifiers: str


# The weight of a word by its column; `tags` include context, entities and path, `summary` a document's front matter.
COLUMN_WEIGHTS = {"title": 1.0, "text": 1.0, "summary": 0.5, "tags": 0.5, "identifiers": 1.0}
COLUMNS = Columns._fields


def _field_words(field: str) -> str:
    key, _, value = field.partition(": ")
    return value if key in DESCRIPTIVE_FIELDS else field


def analyze_record(record: Record) -> Columns:
    """Return the tokens of everything that a keyword search can find of a record."""
    # The title of a turn is its date, with which its text begins; `root` means no domain.
    title = analyze(record.title if record.kind != "turn" else "")
    text = analyze(record.text)
    described = (record.summary if record.kind != "turn" else "", *map(_field_words, record.document_fields))
    summary = analyze(" ".join(described))
    domain = record.domain if record.domain != "root" else ""
    tags = analyze(" ".join((*record.tags, *record.entities, record.context, record.path, domain)))
    identifiers = dict.fromkeys((*title.identifiers, *text.identifiers, *summary.identifiers, *tags.identifiers))
    return Columns(
        title=" ".join(title.words),
        text=" ".join(text.words),
        summary=" ".join(summary.words),
        tags=" ".join(tags.words),
        identifiers=" ".join(identifiers),
    )
