"""The laws of a store as one principal sees it: what belongs to others does not exist, however it is asked for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mindex.datatypes import Collection, Filters, Record, RecordVectors, Term
from mindex.datatypes.access_tokens import Principal
from mindex.errors import AccessDeniedError, MindexError, NotFoundError
from mindex.store import base
from mindex.store.base import KeywordQuery, Store
from mindex.store.export_rows import ExportRow, Link, RestoreOptions
from mindex.store.scoped.store import ScopedStore
from tests.contract.records import MODEL, axis, update
from tests.contract.test_interface import PROTOCOLS, methods

READ_ONLY = "this access token is read-only; nothing was changed; ask the server's owner for a token that may write"
OTHERS = "this token acts as the agent 'anna' and for no other; leave the agent out"
EVERYTHING = "this concerns the records of all agents"


def entry(id_: str, agent: str, text: str, kind: str = "memory", **more: object) -> Record:
    return Record(id=id_, kind=kind, text=text, agent=agent, created_at=10, updated_at=10, **more)  # type: ignore[arg-type]


@pytest.fixture
def filled(store: Store) -> Store:
    """Two agents with the same kinds of records, and two collections."""
    store.files.put_collection(Collection("payroll", "/payroll"))
    store.files.apply([update("a.md", "shared harbour page"), update("pay.md", "harbour wages", collection="payroll")])
    for agent in ("anna", "ben"):
        session = {"session_id": "s"}
        store.entries.add(
            [
                entry(f"m{agent}", agent, f"harbour of {agent}", fields={"foreign_ids": {"other": "7"}}),
                entry(f"n{agent}", agent, f"harbour old {agent}", expires_at=20),
                entry(f"t{agent}1", agent, f"harbour turn {agent}", "turn", fields=session),
                entry(f"t{agent}2", agent, f"harbour answer {agent}", "turn", fields=session),
            ],
            by=agent,
        )
        store.entries.revise(f"m{agent}", lambda one: replace(one, tags=("port",)), by=agent, action="update")
        store.entries.link([(f"m{agent}", f"n{agent}", "near", 0.9)])
    store.entries.link([("manna", "mben", "near", 0.8)])
    return store


@pytest.fixture
def anna(filled: Store) -> ScopedStore:
    return ScopedStore(filled, Principal("anna", "anna", "write", ("docs",)))


@pytest.fixture
def reader(filled: Store) -> ScopedStore:
    return ScopedStore(filled, Principal("reader", "anna", "read"))


MINE = {"manna", "tanna1", "tanna2"}
ALL_MINE = {*MINE, "nanna", "idamd1"}


@pytest.mark.parametrize("group", sorted(set(PROTOCOLS) - {"tokens", "sync"}))
def test_every_method_of_the_interface_has_its_rule(group: str, anna: ScopedStore) -> None:
    """None is passed on by default: a new method of the interface needs a decision here."""
    assert methods(PROTOCOLS[group]) <= set(vars(type(getattr(anna, group))))


def test_a_token_cannot_sync_what_belongs_to_all_agents(anna: ScopedStore) -> None:
    assert "sync" not in anna.capabilities
    with pytest.raises(AccessDeniedError, match="a token cannot sync; ask the server's owner"):
        _ = anna.sync


def test_every_search_and_list_leaves_out_what_others_have(anna: ScopedStore) -> None:
    retrieval = anna.retrieval
    for agent in ("anna", "*"):
        scope = Filters(agent=agent)
        assert {one.id for one in retrieval.list(scope, limit=99).records} == {*MINE, "idamd1"}
        assert retrieval.list(scope, limit=1).total == 4
        assert {one.id for one in retrieval.keyword(KeywordQuery(Term("harbour")), scope, 99).hits} == {*MINE, "idamd1"}
        assert set(retrieval.substring(["harbour"], scope, 99)) == {*MINE, "idamd1"}
        assert retrieval.label_counts("tag", scope) == {"port": 1}
        assert set(retrieval.ranking_context(sorted(MINE), whole=9, filters=scope).records) == MINE
    hidden = Filters(agent="*", collections=("payroll",))
    assert retrieval.list(hidden, limit=9).total == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.retrieval.list(Filters(agent="ben"), limit=9),
        lambda store: store.retrieval.keyword(KeywordQuery(Term("harbour")), Filters(agent="ben"), 9),
        lambda store: store.retrieval.substring(["harbour"], Filters(agent="ben"), 9),
        lambda store: store.retrieval.label_counts("tag", Filters(agent="ben")),
        lambda store: store.retrieval.ranking_context([], whole=1, filters=Filters(agent="ben")),
        lambda store: store.entries.by_number("ben", 1),
        lambda store: store.entries.by_number("ben", 1, program="mudpuppy", kind="memory"),
        lambda store: store.entries.sessions("ben", limit=9),
        lambda store: store.entries.statistics("ben"),
        lambda store: store.entries.usage(Filters(agent="ben"), limit=9),
        lambda store: store.entries.linked_pairs("near", "ben"),
        lambda store: store.entries.unextracted("ben", 9),
        lambda store: store.entries.count_unextracted("ben"),
        lambda store: store.entries.export_snapshot("ben").__enter__(),
        lambda store: store.entries.add([entry("new", "ben", "planted")], by="anna"),
        lambda store: store.entries.revise("manna", lambda one: replace(one, agent="ben"), by="anna", action="update"),
        lambda store: store.entries.restore_rows([ExportRow(entry("new", "ben", "x"))], RestoreOptions("anna")),
    ],
)
def test_another_agent_that_is_named_is_refused_in_one_sentence(anna: ScopedStore, filled: Store, call: object) -> None:
    with pytest.raises(AccessDeniedError) as refused:
        call(anna)  # type: ignore[operator]
    assert str(refused.value) == OTHERS
    assert filled.retrieval.record("new") is None


@pytest.mark.parametrize("id_", ["mben", "nben", "tben1", "idpaymd1", "nothing"])
def test_a_foreign_id_is_answered_like_one_that_does_not_exist(anna: ScopedStore, filled: Store, id_: str) -> None:
    retrieval, entries = anna.retrieval, anna.entries
    assert retrieval.record(id_) is None
    assert retrieval.records([id_]) == ()
    assert retrieval.resolve(id_, retired=True) == ()
    assert retrieval.ranking_signals([id_]) == {}
    assert entries.history(id_) == entries.superseded(id_) == entries.linked(id_, "near") == ()
    assert entries.links_of([id_], "near") == {}
    assert entries.surrounding_turns(id_, 1, 1) == ()
    assert entries.owners([id_]) == {}
    assert not entries.is_unextracted(id_)
    assert anna.vectors.stored(MODEL, [id_]) == {} if "vectors" in filled.capabilities else True
    with pytest.raises(NotFoundError, match=f"there is no memory '{id_}'"):
        entries.revise(id_, lambda one: replace(one, text="defaced"), by="anna", action="update")
    assert entries.purge([id_]).records == 0
    entries.link([("manna", id_, "conflict", 1.0)])
    entries.restore_links([("manna", Link(id_, "conflict", 1.0))])
    anna.entries.add([entry("new", "anna", "harbour light")], by="anna", links=[("new", id_, "conflict", 1.0)])
    assert filled.entries.linked("manna", "conflict") == filled.entries.linked("new", "conflict") == ()
    before = filled.retrieval.record(id_)
    assert before is None or "defaced" not in before.text


def test_ids_are_found_by_prefix_however_many_others_start_so(filled: Store, anna: ScopedStore) -> None:
    filled.entries.add([entry(f"m{number:03}", "ben", f"number {number}") for number in range(60)], by="ben")
    assert anna.retrieval.resolve("m", 5) == ("manna",)
    assert set(anna.retrieval.resolve("", 99, retired=True)) == ALL_MINE
    assert anna.retrieval.find_by_foreign_id("7") == ("manna",)
    assert filled.retrieval.find_by_foreign_id("7") == ("manna", "mben")


def test_changes_and_past_states_of_others_are_not_seen(filled: Store, anna: ScopedStore) -> None:
    numbers = [change.change for change in filled.entries.changes_between(0, 10**15)]
    seen = [change for number in numbers if (change := anna.entries.change(number))]
    assert {change.record for change in seen} == {"manna", "nanna", "tanna1", "tanna2"}
    assert list(anna.entries.changes_between(0, 10**15)) == seen
    assert {one.id for one in anna.entries.states_at(10)} == {"manna"}
    assert {one.id for one in filled.entries.states_at(10)} == {"manna", "mben"}
    with filled.entries.transaction(batch=True):
        for id_ in ("manna", "mben"):
            filled.entries.revise(id_, lambda one: replace(one, importance=3), by="x", action="update")
    batch = filled.entries.history("mben")[-1].batch
    assert {change.record for change in anna.entries.batch(batch)} == {"manna"}
    assert anna.entries.expired(10**15) == ("nanna",)


def test_exports_sessions_statistics_and_agents_are_of_one_agent(anna: ScopedStore) -> None:
    with anna.entries.export_snapshot() as snapshot:
        assert (snapshot.total, dict(snapshot.last_numbers)) == (4, {})
        rows = {row.record.id: row for row in snapshot.rows}
    assert {row.record.agent for row in rows.values()} == {"anna"}
    assert [link.target for link in rows["manna"].links] == ["nanna"]
    assert anna.entries.agents() == ("anna",)
    assert [one.agent for one in anna.entries.sessions("*", limit=9).sessions] == ["anna"]
    assert anna.entries.statistics("*").total == 1
    usage = anna.entries.usage(Filters(agent="*"), limit=9)
    assert (usage.memories, usage.unused, sum(usage.chunks.values())) == (1, ("manna",), 1)
    assert anna.entries.linked("manna", "near") == ("nanna",)
    assert anna.entries.links_of(["manna", "mben"], "near") == {"manna": ("nanna",)}
    assert all({one, other} <= ALL_MINE for one, other in anna.entries.linked_pairs("near", "*"))
    assert {one.agent for one in anna.entries.unextracted("*", 9)} == {"anna"}
    assert anna.entries.count_unextracted("*") == 2


def test_a_word_that_only_others_wrote_is_unknown(filled: Store, anna: ScopedStore) -> None:
    filled.entries.add([entry("secret", "ben", "zanzibar")], by="ben")
    assert anna.retrieval.term_statistics(["zanzibar", "harbour"]).frequency["zanzibar"] == 0
    assert anna.retrieval.term_statistics(["harbour"]).frequency["harbour"] > 0
    assert filled.retrieval.term_statistics(["zanzibar"]).frequency["zanzibar"] == 1
    assert anna.retrieval.records_with_tokens(["zanzibar"], list, Filters(agent="*"), 10) == ()


def test_only_files_of_its_collections_are_seen_and_changed(filled: Store, anna: ScopedStore) -> None:
    files = anna.files
    assert [one.name for one in files.collections()] == ["docs"]
    assert set(files.documents("docs")) == {"a.md"}
    assert files.documents("payroll") == {}
    assert [one.path for one in files.find_documents("*.md")] == ["a.md"]
    assert files.find_documents("payroll/pay.md") == ()
    assert files.domains() == filled.files.domains()
    assert files.chunks("docpay.md") == ()
    assert files.uncontextualized(["docs", "payroll"]) == ("idamd1",)
    assert files.set_contexts([("idpaymd1", "x")]) == 0
    files.apply([], ["docpay.md"])
    assert set(filled.files.documents("payroll")) == {"pay.md"}
    for call in (
        lambda: files.put_collection(Collection("new", "/new")),
        lambda: files.remove_collection("payroll"),
        lambda: files.apply([update("x.md", "x", collection="payroll")]),
        lambda: files.drop_contexts(["payroll"]),
    ):
        with pytest.raises(AccessDeniedError, match="this token may index docs only"):
            call()
    assert files.apply([update("b.md", "another page")]).added == 1


def test_a_principal_of_all_agents_may_be_limited_to_some_files(filled: Store) -> None:
    store = ScopedStore(filled, Principal("board", "*", "read", ("payroll",)))
    found = {one.id for one in store.retrieval.list(Filters(agent="*"), limit=99).records}
    assert found == {"idpaymd1", "manna", "mben", "tanna1", "tanna2", "tben1", "tben2"}
    assert store.entries.agents() == ("anna", "ben")
    assert store.retrieval.list(Filters(agent="ben"), limit=1).total == 4


def test_a_reader_reads_and_every_write_is_refused_in_one_sentence(filled: Store, reader: ScopedStore) -> None:
    assert reader.read_only
    assert reader.retrieval.list(Filters(agent="*"), limit=1).total == 5
    entries, files = reader.entries, reader.files
    for call in (
        lambda: entries.transaction().__enter__(),
        lambda: entries.add([entry("new", "anna", "x")], by="x"),
        lambda: entries.revise("manna", lambda one: one, by="x", action="update"),
        lambda: entries.purge(["manna"]),
        lambda: entries.link([("manna", "nanna", "near", 1.0)]),
        lambda: entries.restore_rows([], RestoreOptions("x")),
        lambda: entries.restore_links([]),
        lambda: entries.mark_extracted("tanna1", 0),
        lambda: entries.record_extraction_failure("tanna1"),
        lambda: entries.forget_queries(["x"]),
        lambda: files.put_collection(Collection("new", "/new")),
        lambda: files.remove_collection("docs"),
        lambda: files.apply([]),
        lambda: files.set_contexts([]),
        lambda: files.drop_contexts(["docs"]),
        lambda: reader.vectors.put(MODEL, []),
        lambda: reader.caches.clear(),
        lambda: reader.maintenance.optimize(),
    ):
        with pytest.raises(AccessDeniedError) as refused:
            call()
        assert str(refused.value) == READ_ONLY
    assert filled.entries.agents() == ("anna", "ben")


def test_what_concerns_all_agents_is_left_to_the_owner(anna: ScopedStore) -> None:
    vectors = anna.vectors
    for call in (
        anna.entries.logged_queries,
        lambda: anna.entries.forget_queries([]),
        lambda: anna.caches.items(),
        lambda: anna.caches.clear(),
        anna.maintenance.check,
        anna.maintenance.optimize,
        vectors.pack,
        vectors.drop_unused_spaces,
        lambda: vectors.put_canary(MODEL, np.zeros(64, np.float32)),
        lambda: vectors.switch_space(MODEL),
    ):
        with pytest.raises(AccessDeniedError, match=EVERYTHING):
            call()
    with pytest.raises(AccessDeniedError, match="a token cannot manage tokens"):
        _ = anna.tokens
    assert "tokens" not in anna.capabilities


def test_the_status_counts_what_is_seen_and_does_not_tell_the_size(anna: ScopedStore, filled: Store) -> None:
    status = anna.maintenance.status()
    assert dict(status.records) == {"chunk": 1, "memory": 2, "turn": 2}
    assert set(status.collections) == {"docs"}
    assert (status.size_bytes, dict(status.caches)) == (None, {})
    assert status.location != filled.maintenance.status().location


def test_vectors_of_others_are_neither_found_nor_counted(filled: Store, anna: ScopedStore) -> None:
    pieces = np.array([axis(1)], np.float32)
    ids = ["manna", "mben", "idamd1", "idpaymd1"]
    filled.vectors.put(MODEL, [RecordVectors(id_, pieces, 1.0) for id_ in ids])
    near = anna.retrieval.nearest(MODEL, pieces[0], Filters(agent="*"), 9)
    assert {one.id for one in near.hits} == {"manna", "idamd1"}
    assert {one.id for one in anna.vectors.embedded_records(MODEL, 99)} == {"manna", "idamd1"}
    assert set(anna.vectors.stored(MODEL, ids)) == {"manna", "idamd1"}
    assert {one.id for one in anna.vectors.pending_records(MODEL, 99)} == {"nanna", "tanna1", "tanna2"}
    assert anna.vectors.pending(MODEL) == 3
    assert [one.vectors for one in anna.vectors.spaces()] == [0]
    assert anna.vectors.active_space() == filled.vectors.active_space()
    assert anna.vectors.canary(MODEL) is None


def test_an_engine_without_entries_is_served_too(open_store: object, store: Store) -> None:
    """A scope has all groups that the engine has."""

    class FilesOnly:
        def __init__(self, whole: Store) -> None:
            self.capabilities = frozenset({"files", "retrieval"})
            self.files, self.retrieval = whole.files, whole.retrieval
            self.read_only, self.folder = False, None

    store.files.apply([update("a.md", "page")])
    scoped = ScopedStore(FilesOnly(store), Principal("x", "x", "read", ("docs",)))  # type: ignore[arg-type]
    assert scoped.retrieval.resolve("id") == ("idamd1",)
    assert scoped.capabilities < base.GROUPS
    with pytest.raises(MindexError, match="is read-only"):
        scoped.files.apply([])
