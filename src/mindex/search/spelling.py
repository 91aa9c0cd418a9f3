"""Words of a query that no text holds, and the words of the store that may be meant by them.

One edit (a letter more, less, another one, or two swapped) is found by making every variant of the word and looking all
of them up, which costs the same in a store of any size. A second edit is looked for among the words that begin alike.
"""

import re
from collections.abc import Iterable, Iterator
from string import ascii_lowercase

from mindex.analyzer import QueryWord, analyze_query, fold, locate, word_token
from mindex.datatypes import Filters, Record, Term
from mindex.search.query import FIELDS, MAX_QUERY, parse
from mindex.store.base import KeywordQuery, Store
from mindex.store.rules.bm25 import matches
from mindex.values import dataclass

# Shorter words are one edit away from too many others; two edits change more than a short word can bear.
_MIN_LETTERS, _MIN_FOR_TWO = 4, 9
_LONGEST = 40
# A shorter word is likelier another word than a mistake, unless what it would mean finds an answer.
_MIN_TO_ASK = 7
# Shorter words are rarely mistyped at their first letter, and many words differ in nothing else.
_FIRST_LETTER_COUNTS = 6
_ALIKE = 2  # letters that a word with two edits has in common with the one that is meant, at its beginning
_MAX_READ = 20_000  # words of the store that begin alike
_MAX_WORDS = 5  # unknown words of one query
_MAX_TRIED = 8  # words of the store that are looked for in scope
_MAX_LOOKED_AT = 5  # records in which one of these may be written in several forms
_MAX_SUGGESTED = 3
_WORD = re.compile(rf'"[^"]*"|(?:(?:{FIELDS}):)?(?P<word>[^\s"()]+)')
_DIGITS = re.compile(r"\d+")
_EDGE = ".,;:!?'`’<>[]{}*"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """An unknown word of a query, and the words of the store that may be meant, the likeliest first."""

    word: str
    meant: tuple[str, ...]
    token: str  # of the first of these


@dataclass(frozen=True, slots=True)
class Correction:
    """A query with its unknown words replaced by the likeliest known ones."""

    query: str
    suggestions: tuple[Suggestion, ...]

    @property
    def needed_share(self) -> float:
        """The share of the corrected query that a hit must match: "long" in "how long may it live" is not "log"."""
        return 0.0 if any(len(one.word) >= _MIN_TO_ASK for one in self.suggestions) else 0.5

    def holds_words_of(self, records: Iterable[Record]) -> bool:
        """Whether one of the records holds a word that was put in: else its words have not found it."""
        tokens = [suggestion.token for suggestion in self.suggestions]
        return any(matches(Term(token), record) for record in records for token in tokens)


def results_for(correction: Correction) -> str:
    """The note on results that were found for the corrected query."""
    return f"{_unknown_text(correction.suggestions)}; these are the results for: {correction.query}"


def did_you_mean(correction: Correction) -> str:
    """The note on results of the query as it was typed; '' where the words are too short to be sure of a mistake."""
    sure = [one for one in correction.suggestions if len(one.word) >= _MIN_TO_ASK]
    meant = "; ".join(" or ".join(one.meant) for one in sure)
    return f"{_unknown_text(sure)}; did you mean {meant}?" if sure else ""


def _unknown_text(suggestions: Iterable[Suggestion]) -> str:
    return f"no text has {' or '.join(one.word for one in suggestions)}"


def correct(store: Store, query: str, filters: Filters) -> Correction | None:
    """The corrected query, or None when every word is known or none resembles a word in scope.

    Quoted words are meant as they are. A word is suggested only if a record that the filters admit contains it, so that
    no agent learns words of another one.
    """
    found: dict[str, Suggestion] = {}
    unknown = _unknown_words(store, query)
    for text, word in list(unknown.items())[:_MAX_WORDS]:
        if suggestion := _suggestion(store, text, word, filters):
            found[text] = suggestion
    if not found:
        return None

    def replaced(match: re.Match[str]) -> str:
        whole = match["word"] or ""
        text = whole.strip(_EDGE)
        if text not in found:
            return match[0]
        return match[0].removesuffix(whole) + whole.replace(text, found[text].meant[0])

    return Correction(_WORD.sub(replaced, query), tuple(found.values()))


def _unknown_words(store: Store, query: str) -> dict[str, QueryWord]:
    """The words of a query, as typed, that are in no text. Quoted and excluded ones are left out."""
    sought = set(parse(query).words)
    words: dict[str, QueryWord] = {}
    for match in _WORD.finditer(query[:MAX_QUERY]):
        text = (match["word"] or "").strip(_EDGE)
        if _MIN_LETTERS <= len(text) <= _LONGEST and len(analysed := analyze_query(text)) == 1:
            (word,) = analysed
            skipped = word.stop or word.unsegmented or not word.words  # marks alone are not tokens
            if word in sought and not skipped and not _token(word).isdecimal():
                words[text] = word
    known = store.retrieval.term_statistics([_token(word) for word in words.values()])
    if not known.records:  # no word can be meant
        return {}
    return {text: word for text, word in words.items() if not known.frequency[_token(word)]}


def _token(word: QueryWord) -> str:
    """The one token of a word: of an identifier, the whole of it."""
    return word.identifiers[-1] if word.identifiers else word.words[0]


def _suggestion(store: Store, text: str, word: QueryWord, filters: Filters) -> Suggestion | None:
    meant: dict[str, str] = {}
    typed = fold(text)
    letters = "".join(filter(str.isalnum, typed))  # as in a token: without apostrophes and signs
    for token in _similar_tokens(store, word.identifiers[-1] if word.identifiers else letters)[:_MAX_TRIED]:
        hits = store.retrieval.keyword(KeywordQuery(Term(token)), filters, _MAX_LOOKED_AT).hits
        records = store.retrieval.records([hit.id for hit in hits])
        forms = {form: edit_distance(typed, fold(form), 2) for one in records for form in _as_written(one, token)}
        nearest = min(forms, key=lambda form: forms[form], default=None)
        # Stems are nearer to each other than the words that have them: `morn` is the one of `morning`.
        if nearest is not None and forms[nearest] <= (2 if len(text) >= _MIN_FOR_TWO else 1):
            meant.setdefault(nearest, token)
        if len(meant) == _MAX_SUGGESTED:
            break
    return Suggestion(text, tuple(meant), next(iter(meant.values()))) if meant else None


def _similar_tokens(store: Store, word: str) -> list[str]:
    """Tokens of the store by distance, those of few records first: rare words are the ones that queries seek."""
    token = word_token(word)
    variants = dict.fromkeys(map(word_token, _one_edit(word)))
    counts = store.retrieval.term_statistics([one for one in variants if _may_be_meant(one, token)]).frequency
    near = {one: (1, count, one) for one, count in counts.items() if count}
    if not near and len(word) >= _MIN_FOR_TWO:
        alike = store.retrieval.terms(token[:_ALIKE], shortest=len(token) - 2, longest=len(token) + 2, limit=_MAX_READ)
        possible = {one: count for one, count in alike.items() if _may_be_meant(one, token)}
        near = {one: (2, count, one) for one, count in possible.items() if edit_distance(token, one, 2) <= 2}
    return sorted(near, key=lambda one: near[one])


def _may_be_meant(token: str, typed: str) -> bool:
    """Whether one token can be meant by another: a number is another number, not a mistake (`sha256`, `v2.1`)."""
    return token != typed and _DIGITS.findall(token) == _DIGITS.findall(typed)


def _one_edit(word: str) -> Iterator[str]:
    """Every text that is one edit away from a word."""
    letters = _alphabet(word)
    first = 0 if len(word) >= _FIRST_LETTER_COUNTS else 1
    for place in range(len(word) + 1):
        before, after = word[:place], word[place:]
        if place >= first:
            yield from (before + letter + after for letter in letters)
            if after:
                yield before + after[1:]
                yield from (before + letter + after[1:] for letter in letters)
        if len(after) > 1:
            yield before + after[1] + after[0] + after[2:]


def _alphabet(word: str) -> str:
    """The letters that may be missing in a word: those of its script; in an identifier also `_`."""
    more = {
        letter
        for start in {ord(character) & ~63 for character in word if not character.isascii()}
        for letter in map(chr, range(start, start + 64))
        if letter.isalpha() and fold(letter) == letter
    }
    return ascii_lowercase + ("" if word.isalpha() else "_") + "".join(sorted(more))


def edit_distance(one: str, other: str, most: int) -> int:
    """How many edits lead from one text to another, two swapped letters being one; `most` + 1 means more."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    above: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        two_above, above, row = above, row, [i]
        for j, another in enumerate(other, start=1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (letter != another))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == another:
                cost = min(cost, two_above[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)


def _as_written(record: Record, token: str) -> Iterator[str]:
    """The forms in which a record writes a token; tokens are stems."""
    for text in (record.text, record.title, record.summary, " ".join((*record.tags, *record.entities)), record.path):
        yield from (text[place.start : place.end] for place in locate(text) if place.token == token)
