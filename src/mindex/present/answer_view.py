"""The views of an answer (full, compact, digest, dual): which part of each hit is shown, within a token budget."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import field, replace
from math import inf
from typing import Literal, TypeAlias, TypeVar

from mindex.clock import to_iso
from mindex.datatypes import Answer, Hit, QueryTerms, Record
from mindex.present.budget import (
    MIN_BUDGET,
    RICH_BUDGET,
    Level,
    check_budget,
    cut_row,
    fill,
    layout_of,
    lines_that_fit,
    with_cost,
)
from mindex.present.passage_choice import passage_gains
from mindex.present.passage_layout import Layout, Size
from mindex.present.passages import FENCE, HEADING
from mindex.present.record_view import (
    RecordView,
    anchor_view,
    best_line,
    file_name,
    heading_of,
    ids_of,
    line_about,
    neighbour_view,
    older_view,
    place,
    shortened_place,
    shortened_words,
    size_of,
    view_record,
    words_around,
)
from mindex.present.text import answer_text, dual_text, line_text
from mindex.present.to_json import Json, compact_json, to_json
from mindex.present.token_count import count_tokens
from mindex.text_match import matched_ranges
from mindex.values import dataclass

View: TypeAlias = Literal["passages", "full", "compact", "digest", "dual"]
VIEWS: tuple[View, ...] = ("passages", "full", "compact", "digest", "dual")
PASSAGE_TOKENS, DETAIL_TOKENS = 140, 200  # of each result, without a budget: of the view `passages`, and of `dual`
_EXPLAIN_TOKENS = 250  # of each result that is explained, beside these
_WORTH = 0.5  # of the best gain: passages with less are not shown instead of the beginning of the best one
_NEAR = 0.25  # of the relevance of the best hit: a weak hit with less is only a line
_WEAK_BYTES = 80  # of the line of a weak hit: 20 tokens
_ANY_BUDGET = 10**9  # in which every code block fits
_COUNT = 4  # bytes by which the head line may be longer than that of no rows
_ECHO = 200  # characters of the query that an answer repeats
# Bytes of a place, and of a digest's first words, so that five lines of a digest cost at most 60 tokens. They share
# this: a short place leaves more to a long one, and fewer than five lines have the space of five.
_DIGEST_WIDTH, _DIGEST_LINES, _COMPACT_WIDTH = 26, 5, 40
_COMPACT_BYTES, _MIN_LINE = 130, 28  # of a line of the view `compact`, and at least of what answers in it
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
class BriefView(AnswerView):
    """An answer whose JSON leaves out what is constant and what the caller knows."""


@dataclass(frozen=True, slots=True)
class DualView(AnswerView):
    """An index of all hits, and the first ones with their texts as `rows`."""

    index: tuple[RecordView, ...] = ()

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(row.id for row in (*self.index, *self.rows))

    def text(self, *, colour: bool = False) -> str:
        return dual_text(self, colour=colour)


A = TypeVar("A", bound=AnswerView)


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
    Raises UsageError for a budget below `MIN_BUDGET`.
    """
    check_budget(budget)
    shown = _Shown(answer, view, explain=explain, several_collections=several_collections)
    if view == "passages":
        return shown.passages(budget)
    if view == "dual":
        return shown.dual(budget, len(answer.hits) if details is None else details)
    whole = with_cost(shown.whole())
    if budget is None or whole.tokens <= budget:
        return whole
    return shown.passages(budget) if view == "full" else shown.lines(budget)


class _Shown:
    """One answer as one view shows it."""

    def __init__(self, answer: Answer, view: View, *, explain: bool, several_collections: bool) -> None:
        self._answer = answer
        self._view = view
        self._explain = explain
        self._several = several_collections

    def _frame(self, kind: type[A], rows: tuple[RecordView, ...] = ()) -> A:
        answer = self._answer
        return kind(
            _echo(answer.query), answer.tier, answer.fusion, answer.total, answer.has_more, 0, rows,
            answer.total_capped, answer.notes, answer.terms, _echo(answer.corrected_query), self._several,
        )  # fmt: skip

    def whole(self) -> AnswerView:
        """All rows of a view in full, or of a view whose rows are lines."""
        kind = BriefView if self._view == "compact" else AnswerView
        return self._frame(kind, tuple(self._rows()))

    def _rows(self) -> list[RecordView]:
        hits, terms = self._answer.hits, self._answer.terms
        if self._view == "digest":
            lines = digest_rows([hit.record for hit in hits], terms, with_collection=self._several)
            return [
                replace(row, weak=hit.weak or None, conflicts=ids_of(hit.conflicts), **older_view(hit))
                for hit, row in zip(hits, lines, strict=True)
            ]
        if self._view != "compact":
            return [self._line(hit) if self._is_line(hit) else _full_view(hit, terms, self._explain) for hit in hits]
        layouts = [_layout(hit.record, _ANY_BUDGET, with_collection=self._several) for hit in hits]
        gains = passage_gains(hits, layouts, terms, self._answer.term_weights)
        return [
            self._line(hit)
            if self._is_line(hit)
            else _compact_view(hit, terms, layout, own, with_collection=self._several)
            for hit, layout, own in zip(hits, layouts, gains, strict=True)
        ]

    def _is_line(self, hit: Hit) -> bool:
        return hit.weak and not self._explain

    def _line(self, hit: Hit) -> RecordView:
        return weak_view(hit, self._answer.terms, with_collection=self._several)

    # ── lines ─────────────────────────────────────────────────────────────────────────────────────────────────

    def lines(self, budget: int) -> AnswerView:
        """As many rows of a view of lines as fit."""
        whole = self.whole()
        bare = replace(whole, rows=())
        for frame in (bare, _without_notes(bare)):
            count = lines_that_fit(whole.rows, _space(frame, budget))
            if count or not frame.notes:
                break
        rows = whole.rows[:count]
        if not rows and whole.rows:
            rows = (cut_row(whole.rows[0], None, (), _space(frame, budget)),)
        return with_cost(replace(frame, rows=rows, has_more=whole.has_more or count < len(whole.rows)))

    # ── passages ──────────────────────────────────────────────────────────────────────────────────────────────

    def passages(self, budget: int | None) -> AnswerView:
        """The passages with the most gain that fit."""
        kind = BriefView if self._view == "passages" else AnswerView
        frame = self._frame(kind)
        hits = self._answer.hits
        if not hits:
            return with_cost(frame) if budget is None else _notes_that_fit(frame, budget)
        # Weak hits compete if they are near the best; of an answer that is not confident, only if there is a budget.
        least = inf if budget is None and all(hit.weak for hit in hits) else _NEAR * hits[0].relevance
        lines = frozenset(hit.record.id for hit in hits if self._is_line(hit) and hit.relevance < least)
        return self._filled(frame, hits, budget, PASSAGE_TOKENS, lines)

    def _filled(
        self, frame: A, hits: Sequence[Hit], budget: int | None, each: int, lines: frozenset[str] = frozenset()
    ) -> A:
        """The frame with the passages of some hits; without a budget, `each` tokens per hit.

        Those with an id in `lines` are a line each.
        """
        is_brief = isinstance(frame, BriefView)
        most = budget or (each + (_EXPLAIN_TOKENS if self._explain else 0)) * len(hits)
        sources = self._sources(hits, most, lines)
        note = f"budget of {most} tokens: {len(hits)} of {len(hits)} shown, as passages"
        if not is_brief:
            frame = replace(frame, notes=(*frame.notes, note))
        rich, lean = frame, _without_notes(frame)
        sizes = [_size(lean, most), _size(rich, most)]
        least = max(RICH_BUDGET, max(sizes[1]) - max(sizes[0]))  # the notes may cost a quarter of the budget
        levels = [
            Level(0, sizes[0], [self._lean_head(hit, is_brief, hit.record.id in lines) for hit in hits]),
            Level(
                0 if budget is None else least,
                sizes[1],
                [self._line(hit) if hit.record.id in lines else self._head(hit, is_brief) for hit in hits],
            ),
        ]
        found = fill(levels, sources, most)
        rows, shape = found.rows, (lean, rich)[found.level]
        best = max(next((gains for _, gains in sources if gains), ()), default=0.0)
        if not rows or found.gain < _WORTH * best:
            shape = lean
            space = _space(lean, most)
            row = cut_row(levels[0].heads[0], *sources[0], space)
            # Without space for a text, there may be some for a name.
            rows = (row if row.text or row.title else cut_row(_without_score(self._line(hits[0])), None, (), space),)
        elif not is_brief and shape is rich:
            told = () if found.whole or budget is None else (note.replace(f"{len(hits)} of", f"{len(rows)} of", 1),)
            shape = replace(rich, notes=(*rich.notes[:-1], *told))
        more = self._answer.has_more or len(rows) < len(self._answer.hits)
        return with_cost(replace(shape, rows=rows, has_more=more))

    def _sources(
        self, hits: Sequence[Hit], budget: int, lines: frozenset[str]
    ) -> list[tuple[Layout | None, tuple[float, ...]]]:
        """The passages of each hit and their gains; None for one that is a line."""
        texts = [hit for hit in hits if hit.record.id not in lines]
        layouts = [_layout(hit.record, budget, with_collection=self._several) for hit in texts]
        gains = passage_gains(texts, layouts, self._answer.terms, self._answer.term_weights)
        shown = iter(zip(layouts, gains, strict=True))
        return [(None, ()) if hit.record.id in lines else next(shown) for hit in hits]

    def _head(self, hit: Hit, is_brief: bool) -> RecordView:
        """A hit without its text: what it is, where, and how well it fits."""
        record = hit.record
        is_chunk = record.kind == "chunk"
        return RecordView(
            id=record.id,
            at=None if record.first_line else record.path or None,
            title=(heading_of(record) if is_chunk else record.title if record.kind != "turn" else "") or None,
            kind=None if is_chunk else record.kind,
            type=(record.type or None) if not is_chunk else None,
            score=None if is_brief and not self._explain else round(hit.score, 4),
            relevance=round(hit.relevance, 3),
            weak=hit.weak or None,
            date=to_iso(record.created_at)[:10] if record.created_at and not is_chunk else None,
            anchor=anchor_view(record),
            truncated=None if is_brief else True,
            explain=hit if self._explain else None,
            around=tuple(map(neighbour_view, hit.around)) or None,
            conflicts=ids_of(hit.conflicts),
            **older_view(hit),
        )

    def _lean_head(self, hit: Hit, is_brief: bool, is_line: bool) -> RecordView:
        """Only what finds a hit again."""
        if is_line:
            return _without_score(self._line(hit))
        truncated = None if is_brief else True
        return RecordView(
            id=hit.record.id,
            weak=hit.weak or None,
            truncated=truncated,
            conflicts=ids_of(hit.conflicts),
            **older_view(hit),
        )

    def dual(self, budget: int | None, details: int) -> DualView:
        """An index of all hits, and the passages of the first ones: at least half of the budget is for these."""
        answer = self._answer
        index = tuple(index_view(hit, answer.terms) for hit in answer.hits)
        hits = [hit for hit in answer.hits[:details] if not self._is_line(hit)]
        frame = self._frame(DualView)
        if budget is None:
            shown = self._filled(frame, hits, None, DETAIL_TOKENS) if hits else frame
            more = answer.has_more or len(shown.rows) < len(answer.hits)
            return with_cost(replace(shown, notes=answer.notes, query=frame.query, index=index, has_more=more))
        shown = (
            self._filled(frame, hits, max(MIN_BUDGET, budget // 2), DETAIL_TOKENS) if hits else _without_notes(frame)
        )
        listed = lines_that_fit(index, _space(shown, budget))
        if not listed and index:
            shown = _without_notes(frame)
            listed = lines_that_fit(index, _space(shown, budget))
            index = index if listed else (cut_row(index[0], None, (), _space(shown, budget)),)
            listed = max(listed, 1)
        more = answer.has_more or min(listed, len(shown.rows)) < len(answer.hits)
        return with_cost(replace(shown, index=index[:listed], has_more=more))


def _layout(record: Record, budget: int, *, with_collection: bool) -> Layout:
    return layout_of(
        record.text,
        file_name(record.path, record.collection if with_collection else ""),
        record.first_line or 0,
        budget,
    )


def _best_line(layout: Layout, gains: Sequence[float], terms: QueryTerms, most: int) -> str:
    """The words of the passage with the most gain that answer, in about `most` bytes; '' for a text without any."""
    if not gains:
        return ""
    best = layout.passages[max(range(len(gains)), key=lambda i: (not layout.passages[i].is_heading, gains[i], -i))]
    text = layout.text[best.start : best.end]
    left_out = FENCE if best.is_code else HEADING
    text = "\n".join(line for line in text.split("\n") if not left_out.match(line)).strip() or text
    return words_around(text, matched_ranges(text, terms), most, is_code=best.is_code)


def _without_score(line: RecordView) -> RecordView:
    return replace(line, score=None, path=None)


def _without_notes(frame: A) -> A:
    return replace(frame, query="", corrected_query="", notes=())


def _notes_that_fit(frame: A, budget: int) -> A:
    """An answer without hits: the notes say why, as far as they fit."""
    for count in range(len(frame.notes), -1, -1):
        shown = with_cost(replace(frame, notes=frame.notes[:count]))
        if shown.tokens <= budget:
            return shown
    return with_cost(_without_notes(frame))


def _size(frame: AnswerView, budget: int) -> Size:
    """The bytes of an answer without its rows, at most."""
    text = frame.text()
    shown = replace(frame, tokens=budget, has_more=False)
    return Size(len(text.encode("utf-8", "replace")) + _COUNT, len(compact_json(shown).encode("utf-8", "replace")))


def _space(frame: AnswerView, budget: int) -> Size:
    """What an answer leaves of a budget."""
    size = _size(frame, budget)
    return Size(4 * budget - size.text, 4 * budget - size.json)


def _echo(query: str) -> str:
    return query if len(query) <= _ECHO else query[: _ECHO - 1] + "…"


def _full_view(hit: Hit, terms: QueryTerms, explain: bool) -> RecordView:
    ranges = matched_ranges(hit.record.text, terms)
    return view_record(hit.record, hit, explain=explain, highlights=ranges)


def _compact_view(
    hit: Hit, terms: QueryTerms, layout: Layout, gains: Sequence[float], *, with_collection: bool = False
) -> RecordView:
    """One line of a hit: where it is, what it is about and, of a file, what answers."""
    is_chunk = hit.record.kind == "chunk"
    row = replace(
        compact_row(hit.record, terms, with_collection=with_collection),
        kind=None if is_chunk else hit.record.kind,
        relevance=round(hit.relevance, 3),
        weak=hit.weak or None,
        conflicts=ids_of(hit.conflicts),
        **older_view(hit),
    )
    if not is_chunk:
        return row
    row = replace(row, date=None)
    left = _COMPACT_BYTES - size_of(line_text(row))
    return replace(row, summary=_best_line(layout, gains, terms, max(_MIN_LINE, left)))


def compact_row(record: Record, terms: QueryTerms, *, with_collection: bool = False) -> RecordView:
    """One line of a record: where it is and what it is about."""
    return RecordView(
        id=record.id,
        at=shortened_place(place(record, with_collection=with_collection), _COMPACT_WIDTH) or None,
        # An entry has no place that would say what it is about: its summary does.
        title=(heading_of(record) if record.kind == "chunk" else _about(record, terms)) or None,
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
    shown = shortened(bisect_left(range(1, widest + 1), True, key=lambda width: cost(width) > allowed))
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
    row = RecordView(
        id=record.id,
        title=(heading_of(record) if record.kind == "chunk" else "") or _about(record, terms),
        score=round(hit.score, 3),
        relevance=round(hit.relevance, 3),
        weak=True,
        path=record.path or "",  # a reader of JSON may count on it
        collection=(record.collection or None) if with_collection else None,
        conflicts=ids_of(hit.conflicts),
        **older_view(hit),
    )
    line = size_of(line_text(replace(row, conflicts=None)))
    if line > _WEAK_BYTES:
        row = replace(
            row, title=shortened_words(row.title or "", max(0, size_of(row.title or "") + _WEAK_BYTES - line))
        )
    return row


def index_view(hit: Hit, terms: QueryTerms) -> RecordView:
    """An entry of the dual view's index: an id and at most twenty words, a summary or the words around the match."""
    matches = matched_ranges(hit.record.text, terms)
    line = line_about(hit.record, matches) if hit.record.kind == "profile" else best_line(hit.record, matches)
    if hit.weak:
        line = shortened_words(line, _WEAK_BYTES - size_of(hit.record.id) - 1)
    return RecordView(id=hit.record.id, summary=line, conflicts=ids_of(hit.conflicts), **older_view(hit))
