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
from unicodedata import normalize

import Stemmer

from mindex.datatypes import DESCRIPTIVE_FIELDS, Record
from mindex.values import dataclass
from mindex.word_cache import WordCache

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
_ASCII_RUNS = re.compile(r"(?P<word>[A-Za-z0-9]++(?:[-_./\\:@#+']{1,3}[A-Za-z0-9]++)*(?:\+\+|#)?)")
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


_NO_TOKENS = Analysis((), ())


@dataclass(frozen=True, slots=True)
class QueryWord:
    """One word of a query: its stems (several for an identifier or a CJK run) and its forms as one token."""

    words: tuple[str, ...]
    identifiers: tuple[str, ...]
    stop: bool = False
    lone_character: bool = False  # a single CJK character: a prefix of the indexed pairs
    unsegmented: bool = False  # in a script without spaces: its tokens are pairs of characters


class Token(NamedTuple):
    """A token and the characters that it represents: from `start` to before `end`."""

    token: str
    start: int
    end: int
    whole: bool = False  # an identifier as one token


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
    decomposed = normalize("NFD", folded)
    return normalize("NFC", "".join(c for c in decomposed if not "\u0300" <= c <= "\u036f"))


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


def _analyze_word(raw: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the stems and the whole forms of one run of letters, digits and joiners."""
    tokens = _word_tokens(raw)
    if len(tokens) == 1 and not tokens[0].whole:  # no identifier: most words
        return (tokens[0].token,), ()
    words = tuple([one.token for one in tokens if not one.whole])
    return words, tuple(dict.fromkeys([one.token for one in tokens if one.whole]))


_word = WordCache(_analyze_word).__getitem__


@lru_cache(maxsize=8192)
def _word_tokens(raw: str) -> tuple[Token, ...]:
    """Return the stems of one run, then its whole forms, with their places in the run."""
    if raw[1:].islower() and raw.isalpha():  # most words of most texts
        return (Token(word_token(raw), 0, len(raw)),)
    if raw.endswith(("++", "#")):
        bare = raw.rstrip("+#")
        named = word_token(bare + ("plusplus" if raw.endswith("+") else "sharp"))
        return (*_word_tokens(bare), Token(named, 0, len(raw), whole=True))
    if _APOSTROPHE.search(raw):
        places = [i for i, character in enumerate(raw) if not _APOSTROPHE.match(character)]
        found = _name_tokens(_APOSTROPHE.sub("", raw))
        return tuple(Token(one.token, places[one.start], places[one.end - 1] + 1, one.whole) for one in found)
    return tuple(_name_tokens(raw))


def _name_tokens(raw: str) -> list[Token]:
    """Return the stems of the parts of a run without apostrophes, then its whole forms."""
    words: list[Token] = []
    wholes: list[tuple[str, int, int]] = []
    pieces = _split(_SEPARATOR, raw)
    for start, piece in pieces:
        parts = _parts(piece)
        at = start
        for part in parts:
            words.append(Token(word_token(part), at, at + len(part)))
            at += len(part)
        if len(parts) > 1:
            wholes.append((piece, start, at))
    if len(pieces) > 1:
        for start, segment in _split(_SEGMENT, raw) if _SEGMENT.search(raw) else []:
            names = [name for _, name in _split(_SEPARATOR, segment)]
            if len(names) > 1:
                wholes.append(("_".join(names), start, start + len(segment)))
        wholes.append(("_".join(piece for _, piece in pieces), 0, len(raw)))
    folded = [(fold(whole), start, end) for whole, start, end in wholes]
    folded += [(whole[1:], start + 1, end) for whole, start, end in folded if _VERSION.fullmatch(whole)]
    # A whole form of letters alone is stemmed like prose, so that the query `policycontroller` also finds it.
    words += [Token(word_token(one), i, j, whole=True) for one, i, j in folded if len(one) <= MAX_TOKEN]
    return [one for one in words if one.token]


def _split(separator: re.Pattern[str], text: str) -> list[tuple[int, str]]:
    """Return what lies between the separators, each with its place in the text."""
    found: list[tuple[int, str]] = []
    start = 0
    for match in separator.finditer(text):
        end, after = match.span()
        if start < end:
            found.append((start, text[start:end]))
        start = after
    if start < len(text):
        found.append((start, text[start:]))
    return found


def word_token(part: str) -> str:
    """Return the token of one word, or of an identifier that is folded to one token already."""
    folded = fold(part)[:MAX_TOKEN]
    return _stem(folded) if len(folded) > 2 and folded.isalpha() and folded not in STOP_WORDS else folded


def _pairs(run: str) -> tuple[str, ...]:
    return tuple(run[i : i + 2] for i in range(len(run) - 1)) if len(run) > 1 else (run,)


def is_lone(token: str) -> bool:
    """Return whether a token is one character of a script without spaces, which texts hold as the first of a pair."""
    return len(token) == 1 and is_unsegmented(token)


def is_segmented(text: str) -> bool:
    """Return whether a text has no character of a script without spaces."""
    return text.isascii() or not any(map(is_unsegmented, set(normalize("NFKC", text))))


def is_unsegmented(character: str) -> bool:
    """Return whether a character belongs to a script without spaces."""
    ranges = zip(_UNSEGMENTED[::3], _UNSEGMENTED[2::3], strict=True)
    return not character.isascii() and any(first <= character <= last for first, last in ranges)


@cache
def _wide_runs() -> re.Pattern[str]:
    return re.compile(_RUNS)


def _runs(text: str) -> Iterator[re.Match[str]]:
    """Return the runs of letters, digits and joiners in a text, and those of scripts without spaces."""
    if text.isascii():
        return _ASCII_RUNS.finditer(text)
    return _wide_runs().finditer(normalize("NFKC", text))


def analyze(text: str) -> Analysis:
    """Return the tokens of a text, as they are indexed."""
    if not text:  # most memories have no title
        return _NO_TOKENS
    words: list[str] = []
    identifiers: list[str] = []
    # No token reaches over a blank, and most texts between two blanks were met before.
    for stems, wholes in map(_between_blanks, (text if text.isascii() else normalize("NFKC", text)).split()):
        words += stems
        if wholes:
            identifiers += wholes
    return Analysis(tuple(words), tuple(identifiers))


def _analyze_between_blanks(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the stems and the whole forms of a text without blanks, which is normalised."""
    if text.isascii():
        found = [_word(run) for run in _ASCII_RUNS.findall(text)]
    else:
        runs = _wide_runs().finditer(text)
        found = [(_pairs(run[0]), ()) if run.lastgroup == "cjk" else _word(run[0]) for run in runs]
    if len(found) == 1:
        return found[0]
    return tuple([stem for stems, _ in found for stem in stems]), tuple(
        [whole for _, wholes in found for whole in wholes]
    )


_between_blanks = WordCache(_analyze_between_blanks).__getitem__


def locate(text: str) -> Iterator[Token]:
    """Return the tokens of a text as `analyze` does, each with the characters of the text that it represents."""
    if text.isascii() or unicodedata.is_normalized("NFKC", text):
        return _locate_normalised(text)
    normalised: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for start, cluster in _clusters(text):
        composed = normalize("NFKC", cluster)
        normalised.append(composed)
        starts += [start] * len(composed)
        ends += [start + len(cluster)] * len(composed)
    located = _locate_normalised("".join(normalised))
    return (Token(token, starts[start], ends[end - 1], whole) for token, start, end, whole in located)


def _locate_normalised(text: str) -> Iterator[Token]:
    for match in _runs(text):
        if match.lastgroup == "cjk":
            size = min(2, len(match[0]))
            tokens = tuple(Token(pair, i, i + size) for i, pair in enumerate(_pairs(match[0])))
        else:
            tokens = _word_tokens(match[0])
        offset = match.start()
        for token, start, end, whole in tokens:
            yield Token(token, offset + start, offset + end, whole)


def _clusters(text: str) -> Iterator[tuple[int, str]]:
    """Return the characters of a text, each with the marks that NFKC may join to it, and with its place."""
    start = 0
    for place in range(1, len(text) + 1):
        if place == len(text) or not _joins(text[place]):
            yield start, text[start:place]
            start = place


def _joins(character: str) -> bool:
    # Beside combining marks: the vowels and final consonants of Hangul, and the halfwidth marks of Katakana.
    return bool(unicodedata.combining(character)) or "\u1160" <= character <= "\u11ff" or character in "\uff9e\uff9f"


def is_identifier(run: str) -> bool:
    """Return whether a run of letters, digits and joiners has several parts: `getUser`, `user_id`, `sha256`."""
    pieces = _split(_SEPARATOR, _APOSTROPHE.sub("", run))
    return len(pieces) > 1 or any(len(_parts(piece)) > 1 for _, piece in pieces)


def starts_part(text: str, place: int) -> bool:
    """Return whether a word, or a part of an identifier, starts at this place of a text."""
    return not is_word_character(text[place - 1 : place]) or _starts_part(text, place)


def is_word_character(character: str) -> bool:
    """Return whether a character is a letter, a digit or a mark on one; '' is not."""
    return character.isalnum() or (not character.isascii() and unicodedata.category(character)[0] == "M")


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
    about = " ".join(described)
    summary = text if about == record.text else analyze(about)  # a short memory is its own summary
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
