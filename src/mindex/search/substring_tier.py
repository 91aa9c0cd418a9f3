"""What a search answers when no hit is above the floor: records that hold its letters, or a note."""

import re
from collections.abc import Iterable, Iterator, Sequence

from mindex.analyzer import STOP_WORDS, analyze_query, fold, is_identifier, is_segmented
from mindex.datatypes import AllOf, Answer, Filters, Hit, Query, QueryTerms, Record, Stage, Term, Trace
from mindex.present.record_view import summary_of
from mindex.store.base import KeywordQuery, Store
from mindex.text_match import identifier_around, literal_ranges

# Letters alone say little: less than the floor asks for, even if they match.
_RELEVANCE = 0.1
_MAX_LITERALS = 20
_MIN_LETTERS, _MIN_UNSEGMENTED = 3, 2
_QUOTED = re.compile(r'"([^"]+)"')
_PUNCTUATION = "\"'`’.,;:!?()[]{}<>"
_MAX_NAMED = 3  # places that a note names
_LONGEST_NAMED = 60  # characters of each


def substring_answer(store: Store, query: Query, text: str, notes: tuple[str, ...], limit: int) -> Answer | None:
    """The last tier: records that hold the query's identifiers and quoted texts literally; None when there is none.

    An identifier among other words does not count if records hold it as a word: those were judged already, by meaning,
    and `long-lasting` in a question does not say what is sought. With `query.inside_words` one of the query's words is
    enough, and it may be in the middle of another word; records that hold more of them come first.
    """
    literals = tuple((_words(text) if query.inside_words else literal_texts(text))[:_MAX_LITERALS])
    if not query.inside_words and len(text.split()) > 1:
        literals = tuple(literal for literal in literals if not _is_word(store, literal, query.filters))
    if not literals:
        return None
    found = store.retrieval.substring(literals, query.filters, limit, inside_words=query.inside_words)
    if not found:
        return None
    terms = QueryTerms(literals=literals, inside_words=query.inside_words)
    shown = store.retrieval.records(found[query.offset : query.offset + query.limit])
    stages = (Stage("substring", _RELEVANCE),)
    return Answer(
        query=query.text,
        tier="substring",
        fusion=query.fusion,
        total=len(found),
        has_more=query.offset + len(shown) < len(found),
        hits=tuple(Hit(record, _RELEVANCE, _RELEVANCE, Trace(stages)) for record in shown),
        notes=(*notes, _letters_note(terms, shown)),
        total_capped=len(found) == limit,
        offset=query.offset,
        terms=terms,
    )


def _is_word(store: Store, literal: str, filters: Filters) -> bool:
    """Whether a record in scope holds this single word or identifier as a separate word."""
    words = analyze_query(literal)
    if len(words) != 1 or words[0].unsegmented:
        return False
    node = AllOf(tuple(map(Term, words[0].identifiers or words[0].words)))
    return bool(store.retrieval.keyword(KeywordQuery(node), filters, 1).hits)


def literal_texts(text: str) -> list[str]:
    """The parts of a query that are meant literally: quoted texts, identifiers, and a word that stands alone.

    A question has none: its words say what it is about, not which letters to look for.
    """
    quoted = [" ".join(literal.split()) for literal in _QUOTED.findall(text)]
    words = [word.strip(_PUNCTUATION) or word for word in _QUOTED.sub(" ", text).split()]
    alone = len(words) == 1 and not quoted
    meant = [word for word in words if is_identifier(word) or (alone and fold(word) not in STOP_WORDS)]
    return [literal for literal in dict.fromkeys((*quoted, *meant)) if _is_long_enough(literal)]


def _is_long_enough(literal: str) -> bool:
    return len(literal) >= (_MIN_LETTERS if is_segmented(literal) else _MIN_UNSEGMENTED)


def _words(text: str) -> list[str]:
    """The words of a query, without those that nearly every text holds, unless there are no others."""
    words = [word.strip(_PUNCTUATION) or word for word in text.split()]
    telling = [word for word in words if len(word) > 1 and fold(word) not in STOP_WORDS]
    return list(dict.fromkeys(telling or words))


def _letters_note(terms: QueryTerms, records: Sequence[Record]) -> str:
    """Says that only letters match, and which letters where."""
    places = list(dict.fromkeys(_matched_places(terms, records)))
    named = ", ".join(places[:_MAX_NAMED]) + (", …" if len(places) > _MAX_NAMED else "")
    return f"nothing is near enough by words or meaning; only letters match{': ' if named else ''}{named}"


def _matched_places(terms: QueryTerms, records: Iterable[Record]) -> Iterator[str]:
    for record in records:
        for literal in terms.literals:
            for text in (record.text, record.title):
                if match := next(literal_ranges(text, literal, inside_words=terms.inside_words), None):
                    start, end = match
                    around = identifier_around(text, start, end)
                    inside = f" in {_shortened(around)}" if len(around) > end - start else ""
                    yield f"'{_shortened(text[start:end])}'{inside}"
                    break


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_NAMED else f"{text[:_LONGEST_NAMED].rstrip()}…"


def nothing_relevant_note(nearest: Record | None, relevance: float) -> str:
    """Says that nothing is relevant, and names the nearest record, if there is one, by its first words."""
    if nearest is None:
        return "nothing relevant"
    place = f"{nearest.path}:{nearest.first_line}" if nearest.path else nearest.id
    words = _shortened(summary_of(nearest))
    return f"nothing relevant; the nearest is '{words}' ({place}, relevance {relevance:.2f})"
