"""The same calls have the same results on all engines: random writes, and after each of them every way to read.

What a caller may not rely on is not compared: the order of pending records, and the exact scores of phrases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from mindex.datatypes import (
    AllOf,
    AnyOf,
    Change,
    Collection,
    Document,
    Filters,
    Model,
    Phrase,
    Prefix,
    Record,
    RecordVectors,
    Term,
    Without,
)  # fmt: skip
from mindex.datatypes.spaces import EmbedderSpec
from mindex.errors import MindexError
from mindex.store.base import Access, DocumentUpdate, KeywordQuery, RetryPolicy, Store
from mindex.store.export_rows import ExportRow, Extraction, ImportPreview, Link, RestoreOptions
from mindex.store.open import open_store
from tests.contract.memory_engine import DATABASES
from tests.postgres_server import PostgresServer

pytestmark = pytest.mark.slow  # a state machine

ONE, OTHER = Model("test", "one", 4), Model("test", "other", 4)
WORDS = ("apple", "pear", "red", "Redis", "PolicyController", "東京", "100%", "x_y", "naïve")
ENTRIES = tuple(f"m{number}" for number in range(8))
AGENTS, LINKS = ("a", "b"), ("near", "from")
PATHS = ("a.md", "dir/b.md", "dir/sub/C.md")
CHUNKS = tuple(f"{path}:{word}" for path in PATHS for word in WORDS)
QUERIES = (
    Term("red"), Term("titl", "title"), AnyOf((Term("appl"), Term("pear"))), AllOf((Term("red"), Term("appl"))),
    Phrase(("red", "appl")), Prefix("p"), Without(Term("red"), Term("pear")),
)  # fmt: skip
SCOPES = (
    Filters(agent="*", include_expired=True), Filters(agent="a"), Filters(agent="nobody"), Filters(kinds=("turn",)),
    Filters(agent="*", tags=("RED",)), Filters(agent="*", all_tags=("red", "blue")), Filters(entities=("emile",)),
    Filters(agent="*", path="dir"), Filters(path="[^a]*"), Filters(collections=("docs",)), Filters(session="s1"),
    Filters(agent="*", min_importance=5), Filters(min_confidence=0.5), Filters(agent="*", after=3, before=5),
    Filters(agent="*", as_of=1_005), Filters(agent="*", matching=Prefix("app")),
)  # fmt: skip
REFERENCES = ("a.md", "b.md", "docs/a.md", "dir/*", "docs/*", "[d]*", "*.MD", "/C.md", "dir", "md", "")

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
records = st.builds(
    Record,
    id=st.sampled_from(ENTRIES),
    kind=st.sampled_from(["memory", "memory", "turn", "contact"]),
    text=texts,
    title=st.sampled_from(["", "Red title"]),
    tags=st.sampled_from([(), ("Red",), ("Red", "blue")]),
    agent=st.sampled_from(AGENTS),
    created_at=st.integers(1, 6),
    updated_at=st.just(10),
    type=st.sampled_from(["fact", "event"]),
    importance=st.sampled_from([None, 3, 7]),
    confidence=st.sampled_from([None, 0.3, 0.9]),
    expires_at=st.sampled_from([None, None, 1_004, 5_000]),
    entities=st.sampled_from([(), ("Émile",)]),
    fields=st.fixed_dictionaries(
        {"session_id": st.sampled_from(["s1", "s2"]), "name": st.sampled_from(["É", "é", "B"])}
    ),
)
changes = st.one_of(
    texts.map(lambda text: {"text": text}),
    st.sampled_from([
        {"retired_at": 1_001}, {"retired_at": None}, {"title": "New"}, {"tags": ("blue",)}, {"importance": 9},
        {"retired_at": 1_001, "superseded_by": "m0"}, {"expires_at": 1_003}, {"fields": {"name": "B"}},
    ]),
)  # fmt: skip
entry_ids = st.sampled_from([*ENTRIES, "absent"])
record_ids = st.one_of(entry_ids, st.sampled_from(CHUNKS))
models = st.sampled_from([ONE, OTHER])


@st.composite
def updates(draw: st.DrawFn) -> DocumentUpdate:
    path, tags = draw(st.sampled_from(PATHS)), draw(st.sampled_from([(), ("Red",)]))
    place: dict[str, Any] = {"path": path, "collection": "docs", "domain": "root", "instruction": draw(st.booleans())}
    document = Document(id=path, fingerprint="", size=1, mtime_ns=1, tags=tags, **place)
    words = draw(st.lists(st.sampled_from(WORDS), unique=True, max_size=4))
    title = draw(st.sampled_from(["Page", "Red page"]))
    return DocumentUpdate(
        document,
        tuple(
            Record(f"{path}:{word}", "chunk", f"{word} text", title, tags, document=path, first_line=line, **place)
            for line, word in enumerate(words)
        ),
    )


@st.composite
def rows(draw: st.DrawFn) -> ExportRow:
    record = replace(draw(records), number=draw(st.sampled_from([None, 1, 50])))
    number = draw(st.sampled_from([0, 2, 500]))
    history = (Change(number, record.id, 7, "x", "add", "", None, record),) if draw(st.booleans()) else ()
    return ExportRow(record, history, extraction=draw(st.sampled_from([None, Extraction(5, 1)])))


class Engines(RuleBasedStateMachine):
    """Two stores with the same data."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000
        self.clock = patch("mindex.clock.time")
        self.clock.start().time_ns = lambda: self.now * 1_000_000
        self.folder = TemporaryDirectory()
        self.stores = open_store(Path(self.folder.name, "memory.db")), self.open_other()
        self.agree(lambda store: store.files.put_collection(Collection("docs", "/docs")))

    def open_other(self) -> Store:
        return open_store("toy://agrees")

    def teardown(self) -> None:
        for store in self.stores:
            store.close()
        DATABASES.clear()
        self.folder.cleanup()
        self.clock.stop()

    def agree(self, call: Callable[[Store], object]) -> None:
        ours, theirs = (outcome(call, store) for store in self.stores)
        assert ours == theirs

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────

    @rule(added=st.lists(records, min_size=1, max_size=3), unique=st.sampled_from(["", "name"]))
    def add(self, added: list[Record], unique: str) -> None:
        self.agree(lambda store: store.entries.add(added, by="me", unique=unique, once=True))

    @rule(id_=record_ids, values=changes, unique=st.sampled_from(["", "name"]))
    def revise(self, id_: str, values: Mapping[str, Any], unique: str) -> None:
        def change(record: Record) -> Record:
            return replace(record, **values)

        self.agree(lambda store: store.entries.revise(id_, change, by="me", action="update", unique=unique))

    @rule(ids=st.lists(entry_ids, min_size=1, max_size=3), fails=st.booleans())
    def change_as_one(self, ids: list[str], fails: bool) -> None:
        def call(store: Store) -> object:
            with store.entries.transaction(batch=True) as moment:
                for id_ in ids:
                    store.entries.revise(
                        id_, lambda record: replace(record, importance=1), by="me", action="undo", reason="all of it"
                    )
                if fails:
                    raise MindexError("an error after the last change", "")
            return moment

        self.agree(call)

    @rule(id_=record_ids, others=st.lists(record_ids, max_size=2))
    def purge(self, id_: str, others: list[str]) -> None:
        self.agree(lambda store: replace(store.entries.purge([id_, *others]), erased=True, notes=()))

    @rule(one=entry_ids, other=entry_ids, kind=st.sampled_from(LINKS), weight=st.sampled_from([0.2, 0.7]))
    def link(self, one: str, other: str, kind: str, weight: float) -> None:
        if one != other:
            self.agree(lambda store: store.entries.link([(one, other, kind, weight)]))
            self.agree(lambda store: store.entries.restore_links([(other, Link(one, "near", 0.5, 3))]))

    @rule(id_=entry_ids, answered=st.booleans())
    def extract_facts(self, id_: str, answered: bool) -> None:
        mark = "mark_extracted" if answered else "record_extraction_failure"
        self.agree(lambda store: getattr(store.entries, mark)(id_, *([2] if answered else [])))

    @rule(id_=st.sampled_from(ENTRIES))
    def access(self, id_: str) -> None:
        for store in self.stores:
            store.entries.log_access([Access(id_, self.now, "get")], oldest=0, rows=100)
            store.settle()

    @rule(restored=st.lists(rows(), min_size=1, max_size=2), above=st.sampled_from([0, 70]), dry=st.booleans())
    def restore(self, restored: list[ExportRow], above: int, dry: bool) -> None:
        options = RestoreOptions("import", unique={"contact": "name"}, above={"a": above})
        self.agree(lambda store: store.entries.restore_rows(restored, options, ImportPreview() if dry else None))

    @rule(applied=st.lists(updates(), max_size=2), removed=st.lists(st.sampled_from(PATHS), max_size=1))
    def apply(self, applied: list[DocumentUpdate], removed: list[str]) -> None:
        self.agree(lambda store: store.files.apply(applied, removed))

    @rule(ids=st.lists(record_ids, max_size=3), context=st.sampled_from(["", "of orchards"]), drop=st.booleans())
    def contextualize(self, ids: list[str], context: str, drop: bool) -> None:
        self.agree(lambda store: store.files.set_contexts([(id_, context) for id_ in ids]))
        if drop:
            self.agree(lambda store: store.files.drop_contexts(["docs"]))

    @rule()
    def remove_collection(self) -> None:
        self.agree(lambda store: store.files.remove_collection("docs"))
        self.agree(lambda store: store.files.put_collection(Collection("docs", "/docs")))

    @rule(model=models, ids=st.lists(record_ids, unique=True, min_size=1, max_size=4), seed=st.integers(0, 9))
    def embed(self, model: Model, ids: list[str], seed: int) -> None:
        vectors = np.random.default_rng(seed).normal(size=(len(ids), 2, model.dimensions)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
        embedded = [RecordVectors(id_, pieces, 0.5) for id_, pieces in zip(ids, vectors, strict=True)]
        self.agree(lambda store: store.vectors.put(model, embedded))

    @rule(model=models, step=st.sampled_from(["begin", "switch", "drop", "canary"]))
    def change_space(self, model: Model, step: str) -> None:
        steps: dict[str, Callable[[Store], object]] = {
            "begin": lambda store: store.vectors.begin_space(model, EmbedderSpec("test", model.name)),
            "switch": lambda store: store.vectors.switch_space(model),
            "drop": lambda store: store.vectors.drop_unused_spaces(),
            "canary": lambda store: store.vectors.put_canary(model, np.full(4, self.now, np.float32)).tolist(),
        }
        self.agree(steps[step])

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────

    @invariant()
    def all_reads_agree(self) -> None:
        self.now += 1
        for read in (read_entries, read_files, read_records, read_matches, read_vectors, read_counts):
            ours, theirs = (read(store, self.now) for store in self.stores)
            for name, result in ours.items():
                assert (name, result) == (name, theirs[name])

    @invariant()
    def scores_agree(self) -> None:
        query = KeywordQuery(QUERIES[2], ("red", "appl"), described=99, bonus=Term("red"), bonus_weight=0.5)
        for filters in SCOPES[:4]:
            ours, theirs = (store.retrieval.keyword(query, filters, 99) for store in self.stores)
            assert np.allclose([hit.score for hit in ours.hits], [hit.score for hit in theirs.hits], rtol=1e-4)
            assert (ours.statistics, ours.matched_tokens) == (theirs.statistics, theirs.matched_tokens)


Results = dict[str, object]


def read_entries(store: Store, now: int) -> Results:
    entries = store.entries
    rested = RetryPolicy(1, now - 3)
    return {
        "agents": entries.agents(),
        "owners": entries.owners(ENTRIES),
        "numbers": [entries.by_number(agent, number) for agent in AGENTS for number in range(9)],
        "expired": sorted(entries.expired(now)),
        "statistics": [entries.statistics(agent) for agent in AGENTS],
        "usage": [entries.usage(Filters(agent=agent), limit=3) for agent in (*AGENTS, "*")],
        "superseded": [entries.superseded(id_) for id_ in ENTRIES],
        "linked": [entries.linked(id_, kind) for id_ in ENTRIES for kind in LINKS],
        "links of": [entries.links_of(ENTRIES, kind) for kind in LINKS],
        "linked pairs": [entries.linked_pairs(kind, agent) for kind in LINKS for agent in (*AGENTS, "*")],
        "surrounding turns": [entries.surrounding_turns(id_, 1, 2) for id_ in ENTRIES],
        "history": [entries.history(id_) for id_ in ENTRIES],
        "change": [entries.change(number) for number in range(9)],
        "changes between": list(entries.changes_between(1_002, now - 1)),
        "changes, newest first": list(entries.changes_between(1_002, now - 1, newest_first=True)),
        "batches": [entries.batch(change.batch) for change in entries.changes_between(0, now)],
        "states": sorted(entries.states_at(now - 3), key=lambda record: record.id),
        "unextracted": [entries.unextracted("*", 9), entries.unextracted("a", 9, rested)],
        "count of unextracted": [entries.count_unextracted("a"), entries.count_unextracted("*", rested)],
        "is unextracted": [entries.is_unextracted(id_) for id_ in ENTRIES],
        "export": [exported(store, agent) for agent in ("*", *AGENTS)],
    }


def exported(store: Store, agent: str) -> object:
    with store.entries.export_snapshot(agent, vectors=True) as snapshot:
        return snapshot.last_numbers, snapshot.total, list(snapshot.rows)


def read_files(store: Store, _: int) -> Results:
    files = store.files
    return {
        "collections": files.collections(),
        "documents": files.documents("docs"),
        "found": [files.find_documents(reference) for reference in REFERENCES],
        "domains": files.domains(),
        "chunks": [files.chunks(path) for path in PATHS],
        "uncontextualized": files.uncontextualized(["docs"]),
    }


def read_records(store: Store, _: int) -> Results:
    retrieval = store.retrieval
    live = [record.id for record in retrieval.records(ENTRIES)]
    return {
        "records": retrieval.records([*ENTRIES, *CHUNKS]),
        "record": [retrieval.record(id_) for id_ in ENTRIES],
        "resolve": [retrieval.resolve("m", 3), retrieval.resolve("", 99, retired=True)],
        "signals": retrieval.ranking_signals([*ENTRIES, *CHUNKS]),
        "statistics": retrieval.term_statistics(["red", "appl", "東", "absent"]),
        "list": [retrieval.list(filters, limit=4, offset=1) for filters in SCOPES],
        "substring": [
            retrieval.substring(["pP", "e"], filters, 9, inside_words=inside)
            for filters in SCOPES
            for inside in (False, True)
        ],
        "adjacent turns": [
            set(retrieval.ranking_context((), whole=0, filters=filters, adjacent_to=live).adjacent_turns)
            for filters in SCOPES
        ],
    }


def read_matches(store: Store, _: int) -> Results:
    """Which records keyword queries and vectors find."""
    found = [store.retrieval.keyword(KeywordQuery(node), filters, 99).hits for node in QUERIES for filters in SCOPES]
    assert all(hit.score > 0 for hits in found for hit in hits)
    return {
        "keyword": [{hit.id: hit.kind for hit in hits} for hits in found],
        "nearest": [outcome(nearest, store, filters) for filters in SCOPES],
    }


def nearest(store: Store, filters: Filters) -> object:
    found = store.retrieval.nearest(ONE, np.full(4, 0.5, np.float32), filters, 99)
    hits = {
        hit.id: (round(hit.score, 3), hit.kind, hit.length, round(hit.fluency, 3), hit.collection_size)
        for hit in found.hits
    }
    return hits, found.size


def read_vectors(store: Store, _: int) -> Results:
    vectors = store.vectors
    results: Results = {"active space": vectors.active_space(), "spaces": vectors.spaces()}
    for model in (ONE, OTHER):
        pending = (
            vectors.pending_records(model, 99),
            vectors.pending_records(model, 99, entries_only=True),
            vectors.pending_records(model, 99, ids=ENTRIES[:3]),
        )
        results |= {
            f"pending {model.name}": vectors.pending(model),
            f"pending records {model.name}": [{record.id for record in found} for found in pending],
            f"embedded {model.name}": vectors.embedded_records(model, 3),
            f"stored {model.name}": {id_: one.tolist() for id_, one in vectors.stored(model, ENTRIES).items()},
            f"canary {model.name}": str(vectors.canary(model)),
        }
    return results


def read_counts(store: Store, _: int) -> Results:
    status = store.maintenance.status()
    healthy = all(check.ok for check in store.maintenance.check())
    return {"records": dict(status.records), "collections": dict(status.collections), "healthy": healthy}


def outcome(call: Callable[..., object], *arguments: object) -> object:
    """What a call returns, or which error it raises."""
    try:
        return call(*arguments)
    except MindexError as error:
        return type(error), error.message


TestEnginesAgree = Engines.TestCase
TestEnginesAgree.settings = settings(derandomize=True, max_examples=6, stateful_step_count=12)


@pytest.mark.server
@pytest.mark.slow
def test_postgresql_agrees_with_sqlite(postgres_server: PostgresServer) -> None:
    class WithPostgres(Engines):
        def open_other(self) -> Store:
            self.schema = postgres_server.schema()
            return open_store(self.schema.__enter__())

        def teardown(self) -> None:
            super().teardown()
            self.schema.__exit__(None, None, None)

    # Without shrinking: on a server it takes minutes.
    run_state_machine_as_test(WithPostgres, settings=settings(TestEnginesAgree.settings, phases=[Phase.generate]))
