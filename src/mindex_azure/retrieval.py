"""Reading and searching chunks in Azure AI Search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from mindex.analyzer import STOP_WORDS, analyze_query, fold
from mindex.datatypes import AllOf, AnyOf, Filters, KeywordNode, Model, Prefix, Record, Term, VectorArray
from mindex.errors import UsageError
from mindex.store.base import (
    KeywordQuery,
    KeywordResult,
    Label,
    NearestRecords,
    Neighbours,
    Page,
    RankingContext,
    RankingSignals,
    ScoredRecord,
    TermStatistics,
    TokenChoice,
    unsupported_inside_words,
)
from mindex.store.engine_parts import holds_literally, query_vector, require_role
from mindex_azure import keyword, odata
from mindex_azure.connection import PAGE
from mindex_azure.documents import foreign_id, key_of, read_body
from mindex_azure.engine import AzureEngine
from mindex_azure.odata import WORD_FIELDS
from mindex_azure.schema import fluency_field, space_of, vector_field

_NEWEST = ("created_at desc", "path asc", "position asc", "key asc")
_SIGNALS = ("id", "domain", "instruction", "created_at", "document")
# A scope of at most this number of vectors is searched exhaustively.
_EXACT = 5_000
_MIN_STEM = 3
_TEXTS_AT_ONCE, _MAX_TEXTS = 200, 5_000
_MAX_SKIPPED = 100_000  # the service's limit


class AzureRetrieval:
    """Implements `mindex.store.base.RetrievalStore`."""

    def __init__(self, engine: AzureEngine) -> None:
        self._engine = engine
        self._connection = engine.connection

    # ── by id ─────────────────────────────────────────────────────────────────────────────────────────────────

    def records(self, ids: Sequence[str]) -> tuple[Record, ...]:
        rows = self._connection.with_keys([key_of("chunk", id_) for id_ in dict.fromkeys(ids)], ("id", "body"))
        found = {row["id"]: read_body(Record, row) for row in rows}
        return tuple(found[id_] for id_ in ids if id_ in found)

    def record(self, id_: str) -> Record | None:
        row = self._connection.get(key_of("chunk", id_))
        return None if row is None else read_body(Record, row)

    def resolve(self, prefix: str, limit: int = 10, *, retired: bool = False) -> tuple[str, ...]:  # noqa: ARG002
        """No chunk is ever retired."""
        where = odata.both(odata.CHUNKS, odata.starts_with("id", prefix) if prefix else "")
        rows = self._connection.search(where, select=("id",), order=("id asc",), top=min(limit, PAGE)).rows
        return tuple(row["id"] for row in rows)

    def find_by_foreign_id(self, foreign_id_: str, program: str = "") -> tuple[str, ...]:
        where = odata.both(odata.CHUNKS, odata.has("foreign_ids", foreign_id(foreign_id_, program)))
        rows = self._connection.search(where, select=("id",), order=_NEWEST[1:]).rows
        return tuple(row["id"] for row in rows)

    # ── by scope ──────────────────────────────────────────────────────────────────────────────────────────────

    def list(self, filters: Filters, *, limit: int, offset: int = 0) -> Page:
        where = self._engine.scope(filters)
        if where is None:
            return Page((), 0)
        if offset > _MAX_SKIPPED:
            total = self._connection.count(where)
            if offset < total:
                raise UsageError(f"Azure AI Search lists no more than {_MAX_SKIPPED:,} records", "narrow the filters")
            return Page((), total)
        found = self._connection.search(where, select=("body",), order=_NEWEST, top=min(limit, PAGE), skip=offset)
        return Page(tuple(read_body(Record, row) for row in found.rows), found.total)

    def label_counts(self, label: Label, filters: Filters) -> dict[str, int]:
        where = self._engine.scope(filters)
        if where is None:
            return {}
        counts = self._engine.facet(where, "tags" if label == "tag" else "type")
        return {name: count for name, count in counts.items() if name}

    def substring(
        self, literals: Sequence[str], filters: Filters, limit: int, *, inside_words: bool = False
    ) -> tuple[str, ...]:
        """Its words, or their beginnings, choose the records whose texts are read: at most `_MAX_TEXTS`.

        The service finds no letters inside of words: `inside_words` raises UnsupportedError.
        """
        if inside_words:
            raise unsupported_inside_words("Azure AI Search")
        where = self._engine.scope(filters)
        if where is None:
            return ()
        likely = [node for literal in literals if (node := _likely(literal)) is not None]
        text = odata.query_text(AllOf(tuple(likely))) if likely else "*"
        return tuple(islice(self._holding(literals, where, text), limit))

    def _holding(self, literals: Sequence[str], where: str, text: str) -> Iterator[str]:
        order = ("updated_at desc", *_NEWEST[1:])
        for skip in range(0, _MAX_TEXTS, _TEXTS_AT_ONCE):
            page = self._connection.search(
                where, text=text, fields=WORD_FIELDS, select=("body",), order=order, top=_TEXTS_AT_ONCE, skip=skip
            ).rows
            for record in (read_body(Record, row) for row in page):
                if holds_literally(literals, record.text, record.title):
                    yield record.id
            if len(page) < _TEXTS_AT_ONCE:
                return

    # ── by words and vectors ──────────────────────────────────────────────────────────────────────────────────

    def keyword(self, query: KeywordQuery, filters: Filters, limit: int) -> KeywordResult:
        return keyword.search(self._engine, query, filters, limit)

    def term_statistics(self, tokens: Sequence[str]) -> TermStatistics:
        return keyword.statistics(self._engine, list(dict.fromkeys(tokens)))

    def records_with_tokens(
        self, tokens: Sequence[str], choose: TokenChoice, filters: Filters, limit: int
    ) -> tuple[Record, ...]:
        if not (chosen := choose(self.term_statistics(tokens).frequency)):
            return ()
        query = KeywordQuery(AnyOf(tuple(map(Term, chosen))))
        return self.records([hit.id for hit in self.keyword(query, filters, limit).hits])

    def terms(self, prefix: str, *, shortest: int, longest: int, limit: int) -> dict[str, int]:
        return keyword.terms(self._engine, prefix, shortest, longest, limit)

    def nearest(self, model: Model, vector: VectorArray, filters: Filters, limit: int) -> NearestRecords:
        query = query_vector(model, vector)
        spaces = self._engine.spaces()
        require_role(spaces.roles, model)
        where = self._engine.scope(filters, odata.VECTORS)
        if where is None or model.fingerprint not in spaces.descriptions:
            return NearestRecords((), 0)
        where = odata.both(where, odata.has("spaces", space_of(model.fingerprint)))
        size = self._engine.kept(where, lambda: self._connection.count(where))
        hits = self._nearest(model, [float(value) for value in query], where, limit, exact=size <= _EXACT)
        return NearestRecords(tuple(hits), size)

    def neighbours(self, model: Model, vectors: VectorArray, filters: Filters, limit: int, least: float) -> Neighbours:
        from mindex.store.rules.neighbours import one_by_one  # needs numpy (which a keyword search does without)

        found = one_by_one(lambda vector: self.nearest(model, vector, filters, limit), vectors, least)
        return Neighbours.read(found, self.records)

    def _nearest(
        self, model: Model, vector: Sequence[float], where: str, limit: int, *, exact: bool
    ) -> Sequence[ScoredRecord]:
        """The nearest records, each by its best piece; those found are left out of a further request."""
        from azure.search.documents.models import VectorizedQuery  # a keyword search does without

        space = space_of(model.fingerprint)
        sizes = self._engine.documents_by_collection()
        wanted = min(PAGE, 2 * limit)
        query = VectorizedQuery(
            vector=list(vector), k_nearest_neighbors=wanted, fields=vector_field(space), exhaustive=exact
        )
        select = ("id", "collection", fluency_field(space))
        found: dict[str, ScoredRecord] = {}
        while True:
            others = odata.both(where, f"not {odata.any_of('id', found)}" if found else "")
            rows = self._connection.search(others, vector=query, select=select, top=wanted).rows
            for row in rows:
                cosine = 2 - 1 / row["@search.score"]  # the service's score is 1 / (2 - cosine)
                fluency, size = row[fluency_field(space)], sizes.get(row["collection"], 0)
                hit = ScoredRecord(row["id"], cosine, "chunk", 0, 1.0 if fluency is None else fluency, size)
                if row["id"] not in found or found[row["id"]].score < cosine:
                    found[row["id"]] = hit
            if len(found) >= limit or len(rows) < wanted:
                return sorted(found.values(), key=lambda hit: (-hit.score, hit.id))[:limit]

    # ── for ranking ───────────────────────────────────────────────────────────────────────────────────────────

    def ranking_signals(self, ids: Sequence[str]) -> dict[str, RankingSignals]:
        rows = self._connection.with_keys([key_of("chunk", id_) for id_ in dict.fromkeys(ids)], _SIGNALS)
        return {
            row["id"]: RankingSignals(
                row["id"],
                "chunk",
                row["domain"] or "",
                bool(row["instruction"]),
                created_at=row["created_at"],
                source=row["document"],
            )
            for row in rows
        }

    def ranking_context(
        self, ids: Sequence[str], *, whole: int, filters: Filters, adjacent_to: Sequence[str] = ()
    ) -> RankingContext:
        """No chunk has adjacent turns."""
        del filters, adjacent_to
        signals, records = self._connection.together(
            lambda: self.ranking_signals(ids), lambda: {one.id: one for one in self.records(ids[:whole])}
        )
        return RankingContext(signals, (), records)  # type: ignore[arg-type]


def _likely(literal: str) -> KeywordNode | None:
    """What every record matches that holds a text at the beginnings of words; None when it holds no word at all.

    The last word of the text may be the beginning of a longer one, whose stem may in turn be shorter than the text.
    """
    words = analyze_query(literal)
    needed: list[KeywordNode] = [
        Term(token) for word in words[:-1] if not word.stop and not word.unsegmented for token in word.words
    ]
    if words:
        needed.append(_beginning(fold(literal)) if not words[-1].unsegmented else _pairs(words[-1].words))
    return AllOf(tuple(needed)) if needed else None


def _pairs(tokens: Sequence[str]) -> KeywordNode:
    return AllOf(tuple(map(odata.holding, tokens)))


def _beginning(literal: str) -> KeywordNode:
    """What matches a word that begins with the last letters and digits of a text."""
    run = ""
    for character in reversed(literal):
        if character.isalnum():
            run = character + run
        elif run:
            break
    if run in STOP_WORDS:
        return Prefix(run)
    stems = [run[:size] + ending for size in range(_MIN_STEM, len(run)) for ending in ("", "i", "e", "y")]
    return AnyOf((Prefix(run), *map(Term, dict.fromkeys(stems))))
