"""The views of an answer (full, compact, digest, dual): which part of each hit is shown, within a token budget."""

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Literal, TypeAlias

from mindex.clock import to_iso
from mindex.model import Answer, Hit, QueryTerms, Record
from mindex.present.budget import check_budget, fit_answer, fit_dual, most_that_fit, with_cost
from mindex.present.record_view import (
    OMITTED,
    RecordView,
    anchor_view,
    best_line,
    ids_of,
    line_about,
    place,
    shortened_place,
    shortened_words,
    size_of,
    view_record,
)
from mindex.present.text import answer_text, dual_text, line_text
from mindex.present.to_json import Json, to_json
from mindex.present.token_count import count_tokens
from mindex.text_match import matched_ranges
from mindex.values import dataclass

View: TypeAlias = Literal["full", "compact", "digest", "dual"]
VIEWS: tuple[View, ...] = ("full", "compact", "digest", "dual")
# If no hit is confident, the lines of the weak ones may cost this many tokens, and show this many characters each.
_WEAK_BUDGET, _WEAK_LENGTH = 118, 60
_ECHO = 200  # characters of the query that an answer repeats
# Bytes of a place, and of a digest's first words, so that five lines of a digest cost at most 60 tokens. They share
# this: a short place leaves more to a long one, and fewer than five lines have the space of five.
_DIGEST_WIDTH, _DIGEST_LINES, _COMPACT_WIDTH = 26, 5, 60
_BEFORE_WORDS = 3  # bytes that separate an id from words, but not from a place


@dataclass(frozen=True, slots=True)
class AnswerView:
    """An answer cut to its view and budget: the same content as JSON and as text."""

    query: str
    tier: str
    fusion: str
    total: int
    has_more: bool
    tokens: int  # of its text or of its JSON, whichever has more
    rows: tuple[RecordView, ...]
    total_capped: bool = False
    notes: tuple[str, ...] = ()
    terms: QueryTerms = field(default_factory=QueryTerms)  # the words that a terminal highlights; not part of the JSON
    corrected_query: str = ""
    several_collections: bool = False  # then the name of a file says which one it is in; not part of the JSON

    @property
    def ids(self) -> frozenset[str]:
        """The ids of all hits that are shown."""
        return frozenset(row.id for row in self.rows)

    def json(self) -> dict[str, Json]:
        return to_json(self)

    def text(self, *, colour: bool = False) -> str:
        return answer_text(self, colour=colour)


@dataclass(frozen=True, slots=True)
class DualView(AnswerView):
    """An index of all hits, and the first ones with their texts as `rows`."""

    index: tuple[RecordView, ...] = ()

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(row.id for row in (*self.index, *self.rows))

    def text(self, *, colour: bool = False) -> str:
        return dual_text(self, colour=colour)


def view_answer(
    answer: Answer,
    view: View = "full",
    *,
    budget: int | None = None,
    explain: bool = False,
    details: int | None = None,
    several_collections: bool = False,
) -> AnswerView:
    """Cut an answer to a view and a budget. `details` bounds how many hits the dual view shows in detail.

    `several_collections`: the store has more than one, so that a path alone does not say which file it is.
    Raises UsageError for a budget below `LEAST_BUDGET`.
    """
    check_budget(budget)
    frame = (_echo(answer.query), answer.tier, answer.fusion, answer.total)
    last = (answer.notes, answer.terms, _echo(answer.corrected_query))
    if only_weak(answer) and not explain:
        rows = tuple(weak_view(hit, answer.terms, with_collection=several_collections) for hit in answer.hits)
        texts = [*map(line_text, rows)]
        most = most_that_fit(len(rows), lambda count: count_tokens("\n".join(texts[:count])) <= _WEAK_BUDGET)
        more = answer.has_more or most < len(rows)
        weak = with_cost(AnswerView(*frame, more, 0, rows[:most], False, *last))
        return weak if budget is None or weak.tokens <= budget else fit_answer(weak, budget)
    if view == "dual":
        index = tuple(index_view(hit, answer.terms) for hit in answer.hits)
        rows = tuple(_full_view(hit, answer.terms, explain) for hit in answer.hits[:details])
        more = answer.has_more or len(rows) < len(answer.hits)
        dual = DualView(*frame, more, 0, rows, answer.total_capped, *last, index=index)
        return with_cost(dual) if budget is None else fit_dual(dual, budget, answer.has_more)
    if view == "full":
        rows = tuple(_full_view(hit, answer.terms, explain) for hit in answer.hits)
    elif view == "digest":
        lines = digest_rows([hit.record for hit in answer.hits], answer.terms, with_collection=several_collections)
        rows = tuple(
            replace(row, weak=hit.weak or None, conflicts=ids_of(hit.conflicts))
            for hit, row in zip(answer.hits, lines, strict=True)
        )
    else:
        rows = tuple(compact_view(hit, answer.terms, with_collection=several_collections) for hit in answer.hits)
    whole = with_cost(AnswerView(*frame, answer.has_more, 0, rows, answer.total_capped, *last, several_collections))
    return whole if budget is None or whole.tokens <= budget else fit_answer(whole, budget)


def _echo(query: str) -> str:
    return query if len(query) <= _ECHO else query[: _ECHO - 1] + "…"


def only_weak(answer: Answer) -> bool:
    """Whether an answer has hits and none is confident: then each is shown in one line, whatever the view."""
    return bool(answer.hits) and all(hit.weak for hit in answer.hits)


def _full_view(hit: Hit, terms: QueryTerms, explain: bool) -> RecordView:
    ranges = matched_ranges(hit.record.text, terms)
    return view_record(hit.record, hit, explain=explain, highlights=ranges)


def compact_view(hit: Hit, terms: QueryTerms, *, with_collection: bool = False) -> RecordView:
    """One line of a hit: where it is and what it is about."""
    return replace(
        compact_row(hit.record, terms, with_collection=with_collection),
        score=round(hit.score, 3),
        relevance=round(hit.relevance, 3),
        weak=hit.weak or None,
        conflicts=ids_of(hit.conflicts),
    )


def compact_row(record: Record, terms: QueryTerms, *, with_collection: bool = False) -> RecordView:
    """One line of a record: where it is and what it is about."""
    heading = record.title.rsplit(" > ", 1)[-1][:60]
    return RecordView(
        id=record.id,
        at=shortened_place(place(record, with_collection=with_collection), _COMPACT_WIDTH) or None,
        # An entry has no place that would say what it is about: its summary does.
        title=(heading if record.kind == "chunk" else _about(record, terms)) or None,
        type=(record.type or None) if record.kind != "chunk" else None,
        date=to_iso(record.created_at)[:10] if record.created_at else None,
        tokens=count_tokens(record.text),
        anchor=anchor_view(record),
    )


def _about(record: Record, terms: QueryTerms) -> str:
    return line_about(record, matched_ranges(record.text, terms) if record.kind == "profile" else ())


def digest_rows(records: Sequence[Record], terms: QueryTerms, *, with_collection: bool = False) -> list[RecordView]:
    """As few tokens as name each record: its place or, of an entry, its first words."""
    places = [place(record, with_collection=with_collection) for record in records]
    whole = [at or _about(record, terms) for at, record in zip(places, records, strict=True)]

    def shortened(width: int) -> list[str]:
        return [
            shortened_place(text, width) if at else shortened_words(text, width - _BEFORE_WORDS)
            for at, text in zip(places, whole, strict=True)
        ]

    def cost(width: int) -> int:
        words = sum(not at for at in places)
        return sum(map(size_of, shortened(width))) + words * _BEFORE_WORDS

    allowed = _DIGEST_WIDTH * max(_DIGEST_LINES, len(records))
    widest = max(map(size_of, whole), default=0) + _BEFORE_WORDS
    shown = shortened(most_that_fit(widest, lambda width: cost(width) <= allowed))
    return [
        RecordView(
            id=record.id,
            at=(text if at else "") or None,
            title=(text if not at else "") or None,
            anchor=anchor_view(record),
        )
        for record, at, text in zip(records, places, shown, strict=True)
    ]


def weak_view(hit: Hit, terms: QueryTerms, *, with_collection: bool = False) -> RecordView:
    """As little of a hit as tells a reader whether it may help: what it is about; `get` shows the rest."""
    record = hit.record
    about = record.title.rsplit(" > ", 1)[-1] if record.kind == "chunk" else _about(record, terms)
    if len(about) > _WEAK_LENGTH:
        about = about[: _WEAK_LENGTH - 1].rstrip() + OMITTED
    return RecordView(
        id=record.id,
        title=about,
        score=round(hit.score, 3),
        relevance=round(hit.relevance, 3),
        weak=True,
        path=record.path or "",  # a reader of JSON may count on it
        collection=(record.collection or None) if with_collection else None,
        conflicts=ids_of(hit.conflicts),
    )


def index_view(hit: Hit, terms: QueryTerms) -> RecordView:
    """An entry of the dual view's index: an id and at most twenty words, a summary or the words around the match."""
    matches = matched_ranges(hit.record.text, terms)
    line = line_about(hit.record, matches) if hit.record.kind == "profile" else best_line(hit.record, matches)
    return RecordView(id=hit.record.id, summary=line, conflicts=ids_of(hit.conflicts))
