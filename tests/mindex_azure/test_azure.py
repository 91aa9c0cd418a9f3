"""What only the Azure engine has: refusals, throttling, writes that show later, versions of an index, its limits.

What it has in common with every other engine is in `tests/contract`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp import Client
from mindex.datatypes import Collection, Filters, Model, RecordVectors
from mindex.datatypes.spaces import EmbedderSpec
from mindex.errors import ConfigError, SchemaError, SpaceChangedError, StoreBusyError, StoreError, UnsupportedError
from mindex.mcp.dialect import NATIVE, dialect_named
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.server import MindexServer
from mindex.mcp.server_options import ServerOptions
from mindex.memory import Memory
from mindex.store.open import open_store
from mindex_azure import schema
from mindex_azure.address import parse_address
from mindex_azure.connection import Connection
from mindex_azure.documents import key_of
from mindex_azure.odata import any_of, quoted
from mindex_azure.store import AzureStore
from tests.conftest import HANDBOOK, write
from tests.contract.records import EVERYTHING, MODEL, axis, found, nearest, update
from tests.handbook_questions import ANSWERED
from tests.mcp.conftest import KEYWORD, text
from tests.mindex_azure.azure_search_queries import Filter
from tests.mindex_azure.azure_search_server import KEY, AzureSearchServer
from tests.running import run_here

pytestmark = pytest.mark.server

KEYWORDS = {"embedding.provider": "none"}


@pytest.fixture
def server(azure_search_server: AzureSearchServer, azure_index: str) -> AzureSearchServer:
    return azure_search_server


@pytest.fixture
def store(azure_index: str) -> Iterator[AzureStore]:
    with closing(AzureStore(azure_index, cache_rows=100, wait=2.0)) as store:
        store.files.put_collection(Collection("docs", "/docs"))
        yield store


def writes(server: AzureSearchServer) -> int:
    return sum(one.endswith("/docs/search.index") for one in server.requests)


# ── the address ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("url", "endpoint", "place"),
    [
        ("azure://contoso/docs", "https://contoso.search.windows.net", "azure://contoso.search.windows.net/docs"),
        (
            "azure://search.contoso.example/docs-2",
            "https://search.contoso.example",
            "azure://search.contoso.example/docs-2",
        ),
    ],
)
def test_a_url_names_a_service_and_an_index(url: str, endpoint: str, place: str) -> None:
    address = parse_address(url)
    assert (address.endpoint, address.place) == (endpoint, place)


def test_without_a_service_the_one_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_SEARCH_ENDPOINT", "https://contoso.search.windows.net/")
    assert parse_address("azure:///docs").endpoint == "https://contoso.search.windows.net"


@pytest.mark.parametrize(
    ("url", "endpoint", "message"),
    [
        ("azure://contoso", "", "azure://contoso names no index of the service; write azure://SERVICE/INDEX"),
        ("azure://contoso/", "", "azure://contoso/ names no index of the service"),
        ("azure://contoso/Docs", "", "'Docs' cannot be the name of an index"),
        ("azure://contoso/a--b", "", "'a--b' cannot be the name of an index"),
        ("azure:///docs", "", "names no search service; write azure://SERVICE/INDEX"),
        ("azure://key@contoso/docs", "", "the URL of the index is malformed"),
        ("azure://key@contoso", "", "the URL of the index is malformed"),
        ("azure:///docs", "http://contoso.example", "would send the key unencrypted; let it begin with https"),
        ("azure:///docs", "contoso", "AZURE_SEARCH_ENDPOINT is malformed; set it to https"),
    ],
)
def test_an_address_that_cannot_be_used_says_what_to_write(
    url: str, endpoint: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_SEARCH_ENDPOINT", endpoint)
    with pytest.raises(ConfigError, match=re.escape(message)):
        parse_address(url)


@pytest.mark.parametrize("command", ["status", "search", "paths"])
@pytest.mark.parametrize(
    "url",
    [
        "azure://admin:the-secret-key@contoso/docs",
        "azure://contoso/docs?api-key=the-secret-key",
        "azure:///docs#the-secret-key",
    ],
)
def test_a_key_in_the_url_is_refused_and_not_repeated(url: str, command: str) -> None:
    ran = run_here("--db", url, command, *(["x"] if command == "search" else []))
    assert "put the key into AZURE_SEARCH_API_KEY" in ran.err and "the-secret-key" not in ran.out + ran.err


_WITHOUT_KEY = """
from mindex_azure.address import find_credential
try:
    find_credential().get_token("https://search.azure.com/.default")
except Exception as error:
    print(type(error).__name__)
"""


def test_without_a_key_and_an_identity_the_library_of_the_service_prints_nothing() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AZURE_")}
    environment["AZURE_TOKEN_CREDENTIALS"] = "EnvironmentCredential"  # the others look around for seconds
    command = [sys.executable, "-c", _WITHOUT_KEY]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert (ran.stdout, ran.stderr) == ("ClientAuthenticationError\n", "")


# ── what the service refuses ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (401, "refuses the key or identity (401); set AZURE_SEARCH_API_KEY to an admin key"),
        (403, "does not allow this (403); use an admin key, or an identity with the roles"),
        (404, "is not there (404); check the names of service and index"),
        (429, "is too busy (429) and was asked several times; wait a moment"),
        (503, "is too busy (503) and was asked several times; wait a moment"),
        (400, "refuses a request (400): made to fail with 400; `mindex doctor`"),
    ],
)
def test_a_refusal_is_one_sentence_with_its_fix_and_without_the_key(
    server: AzureSearchServer, store: AzureStore, azure_index: str, status: int, message: str
) -> None:
    server.fail(status, times=100, path="search.post")
    with closing(AzureStore(azure_index, cache_rows=0, wait=0.3)) as impatient, pytest.raises(StoreError) as refused:
        impatient.files.collections()
    assert message in str(refused.value)
    assert KEY not in str(refused.value) and "\n" not in str(refused.value)


def test_a_wrong_key_is_refused_at_once(azure_index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_SEARCH_API_KEY", "not-this-one")
    with pytest.raises(StoreError, match=r"\(403\)") as refused:
        open_store(azure_index)
    assert "not-this-one" not in str(refused.value)


def test_a_service_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_SEARCH_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("AZURE_SEARCH_API_KEY", KEY)
    with pytest.raises(StoreError, match=r"azure://127\.0\.0\.1:9/docs does not answer; check the name"):
        open_store("azure:///docs")


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_service_is_asked_again_after_the_time_that_it_names(
    server: AzureSearchServer, store: AzureStore, status: int
) -> None:
    server.fail(status, times=2, path="search.post", Retry_After="0.15")
    start = time.monotonic()
    assert [one.name for one in store.files.collections()] == ["docs"]
    assert time.monotonic() - start > 0.3


# ── batches ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_no_batch_has_more_than_a_thousand_documents(server: AzureSearchServer, store: AzureStore) -> None:
    before = writes(server)
    assert store.files.apply([update("a.md", *map(str, range(1_001)))]).added == 1_001
    assert writes(server) - before == 3  # two of chunks, then the document
    assert store.maintenance.status().records == {"chunk": 1_001}


def test_only_the_refused_documents_of_a_batch_are_sent_again(server: AzureSearchServer, store: AzureStore) -> None:
    server.refuse(key_of("chunk", "idamd2"), 503, 409)
    before = writes(server)
    store.files.apply([update("a.md", "one", "two", "three")])
    assert writes(server) - before == 4  # the batch, twice the one document, then the file
    assert len(store.files.chunks("doca.md")) == 3


def test_a_document_that_stays_refused_leaves_the_file_to_be_indexed_again(
    server: AzureSearchServer, store: AzureStore
) -> None:
    server.refuse(key_of("chunk", "idamd2"), 400)
    with pytest.raises(StoreError, match=r"refused 1 document of a batch \(400\): refused with 400; run the command"):
        store.files.apply([update("a.md", "one", "two")])
    assert store.files.documents("docs") == {}
    assert store.files.apply([update("a.md", "one", "two")]).added == 1
    assert [one.text for one in store.files.chunks("doca.md")] == ["one", "two"]


def test_a_merge_into_a_removed_chunk_stores_nothing(server: AzureSearchServer, store: AzureStore) -> None:
    store.files.apply([update("a.md", "one", "two")])
    server.refuse(key_of("chunk", "idamd2"), 404)
    vectors = [RecordVectors("idamd1", [axis(0)]), RecordVectors("idamd2", [axis(1)])]
    assert store.vectors.put(MODEL, vectors) == 1


# ── writes that show later ────────────────────────────────────────────────────────────────────────────────────


def test_a_process_reads_what_it_wrote_although_the_index_lags(server: AzureSearchServer, store: AzureStore) -> None:
    server.lag = 0.2
    store.files.apply([update("a.md", "apple", "pear")])
    assert found(store, "apple") == ["idamd1"]
    store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(0)])])
    assert nearest(store, axis(0)) == ["idamd1"]
    store.files.apply([], ["doca.md"])
    assert found(store, "apple") == []


def test_after_settling_other_processes_see_a_write_too(
    server: AzureSearchServer, store: AzureStore, azure_index: str
) -> None:
    with closing(open_store(azure_index)) as other:
        server.lag = 0.2
        store.files.apply([update("a.md", "apple")])
        assert found(other, "apple") == []
        store.settle()
        assert found(other, "apple") == ["idamd1"]


def test_another_file_is_written_without_waiting_for_the_one_before(
    server: AzureSearchServer, store: AzureStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.settle()
    server.lag = 0.3
    awaited: list[int] = []
    settle = Connection.settle
    monkeypatch.setattr(Connection, "settle", lambda self: (awaited.append(1), settle(self)))
    for number in range(4):
        store.files.apply([update(f"{number}.md", "apple")])
    assert awaited == []
    store.files.apply([update("0.md", "apple", "pear")])
    assert awaited
    assert len(found(store, "apple")) == 4


def test_a_write_that_another_process_overwrites_is_not_awaited_for_ever(
    server: AzureSearchServer, store: AzureStore, azure_index: str
) -> None:
    with closing(open_store(azure_index)) as other:
        server.lag = 0.2
        store.files.apply([update("a.md", "apple")])
        other.files.put_collection(Collection("docs", "/docs"))
        other.files.apply([update("a.md", "apple", fields=("status: done",))])
        assert found(store, "apple") == ["idamd1"]


def test_an_index_that_lags_too_long_is_one_sentence_and_loses_nothing(
    server: AzureSearchServer, azure_index: str
) -> None:
    with closing(AzureStore(azure_index, cache_rows=0, wait=0.2)) as impatient:
        server.lag = 1.0
        impatient.files.put_collection(Collection("docs", "/docs"))
        with pytest.raises(StoreBusyError, match=r"does not show yet what was written 0 s ago; it is stored: wait"):
            impatient.files.collections()
        time.sleep(1.0)
        assert [one.name for one in impatient.files.collections()] == ["docs"]


# ── keys and filters ──────────────────────────────────────────────────────────────────────────────────────────


@given(st.text(max_size=40), st.text(max_size=40))
def test_a_key_is_legal_and_no_other_name_has_it(one: str, other: str) -> None:
    keys = [key_of("document", one), key_of("document", one, 2), key_of("document", other)]
    assert all(re.fullmatch(r"[A-Za-z0-9=-][A-Za-z0-9_=-]{0,1023}", key) for key in keys)
    assert keys[0] != keys[1] != keys[2]
    assert (keys[0] == keys[2]) == (one == other)


def test_a_name_that_is_too_long_for_a_key_is_shortened() -> None:
    assert len(key_of("document", "ü" * 2_000)) < 1_024
    assert key_of("document", "ü" * 2_000) != key_of("document", "ü" * 2_001)


@given(st.text(max_size=20))
def test_a_quoted_value_is_read_back_by_the_service(value: str) -> None:
    fields = {"path": {"type": "Edm.String", "filterable": True}}
    if value == value.strip() or value.isprintable():
        assert Filter(f"path eq {quoted(value)}", fields)({"path": value})


@given(st.lists(st.text("a'|,;~\t\x1f ", max_size=6), min_size=1, max_size=5), st.text("a'|,;~\t\x1f ", max_size=6))
def test_a_list_of_values_admits_these_and_no_other(values: list[str], other: str) -> None:
    admits = Filter(any_of("path", values), {"path": {"type": "Edm.String", "filterable": True}})
    assert all(admits({"path": value}) for value in values)
    assert admits({"path": other}) == (other in values)


@pytest.mark.parametrize("name", ["O'Brien's", "a' or true or path eq '", "b*.md", "c [1], 2|3.md", "große/東京.md"])
def test_names_with_quotes_and_signs_are_found_and_change_no_filter(store: AzureStore, name: str) -> None:
    store.files.apply([update(name, "apple"), update("other.md", "apple")])
    (document,) = store.files.find_documents(name)
    assert document.path == name
    assert found(store, "apple", Filters(tags=(name,))) == []
    assert len(found(store, "apple", Filters(path=name))) == 1
    store.files.apply([], [document.id])
    assert list(store.files.documents("docs")) == ["other.md"]


@pytest.mark.parametrize(
    "query",
    [
        "cache -redis",
        "cache AND",
        "NOT",
        "a OR (b",
        '"half a phrase',
        "title:/x.*/",
        "c++ && d || !e",
        "~ ^ * ? \\",
        "AND",
    ],
)
def test_no_syntax_of_a_user_reaches_the_service(azure_index: str, tmp_path: Path, query: str) -> None:
    """The server of the tests rejects every sign that is not ours."""
    with Memory(azure_index, options=KEYWORDS) as memory:
        memory.index(write(tmp_path / "docs", {"a.md": "# Cache\n\nA cache without redis.\n"}))
        memory.search(query)


# ── vectors ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_chunk_of_several_pieces_is_found_by_each_and_leaves_none_behind(
    server: AzureSearchServer, store: AzureStore
) -> None:
    store.files.apply([update("a.md", "one", "two")])
    store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(0), axis(1), axis(2)]), RecordVectors("idamd2", [axis(9)])])
    for number in range(3):
        assert nearest(store, axis(number), limit=1) == ["idamd1"]
    near = store.retrieval.nearest(MODEL, np.asarray(axis(0), np.float32), EVERYTHING, 5)
    assert (len(near.hits), near.size) == (2, 4)
    store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(5)])])
    assert store.vectors.stored(MODEL, ["idamd1"])["idamd1"].tolist() == [axis(5)]
    (index,) = server.indexes.values()
    store.files.set_contexts([("idamd1", "of numbers")])
    assert sum("idamd1" in key for key in index.written) == 1
    store.files.apply([], ["doca.md"])
    assert {row["doctype"] for row in index.written.values()} == {"collection", "spaces"}


def test_a_filter_leaves_every_place_to_what_it_admits(store: AzureStore) -> None:
    store.files.put_collection(Collection("rare", "/rare"))
    store.files.apply([update("a.md", *["apple"] * 60), update("r.md", *["an apple"] * 5, collection="rare")])
    crowd = [RecordVectors(f"idamd{number}", [axis(0)]) for number in range(1, 61)]
    store.vectors.put(MODEL, [*crowd, *(RecordVectors(f"idrmd{number}", [axis(3, 0.1)]) for number in range(1, 6))])
    assert len(nearest(store, axis(0), Filters(collections=("rare",)), limit=5)) == 5


def test_files_of_other_collections_are_seen_by_no_search_of_a_limited_scope(store: AzureStore) -> None:
    store.files.put_collection(Collection("other", "/other"))
    store.files.apply([update("a.md", "apple"), update("b.md", "apple", collection="other")])
    store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(0)]), RecordVectors("idbmd1", [axis(0)])])
    scope = Filters(files_of=("docs",))
    assert found(store, "apple", scope) == nearest(store, axis(0), scope) == ["idamd1"]
    assert [record.id for record in store.retrieval.list(scope, limit=9).records] == ["idamd1"]


def test_the_files_are_embedded_again_beside_the_old_vectors_and_switched_at_once(store: AzureStore) -> None:
    new = Model("test", "new", 8)
    store.files.apply([update("a.md", "one", "two")])
    store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(0)]), RecordVectors("idamd2", [axis(1)])])
    store.vectors.begin_space(new, EmbedderSpec("test", "new"))
    vectors = np.eye(8, dtype=np.float32)
    store.vectors.put(new, [RecordVectors("idamd1", vectors[:1])])
    assert not store.vectors.switch_space(new)
    assert nearest(store, axis(1)) == ["idamd2", "idamd1"]
    store.vectors.put(new, [RecordVectors("idamd2", vectors[1:3])])
    assert store.vectors.switch_space(new)
    with pytest.raises(SpaceChangedError):
        nearest(store, axis(1))
    assert [hit.id for hit in store.retrieval.nearest(new, vectors[2], EVERYTHING, 1).hits] == ["idamd2"]
    assert store.vectors.drop_unused_spaces() == 1
    assert [space.model for space in store.vectors.spaces()] == [new]
    assert store.vectors.stored(MODEL, ["idamd1"]) == {}


def test_the_canary_of_a_space_stays_once_it_has_vectors(store: AzureStore) -> None:
    first, second = (np.asarray(axis(number), np.float32) for number in (1, 2))
    assert store.vectors.canary(MODEL) is None
    store.vectors.put_canary(MODEL, first)
    store.files.apply([update("a.md", "one")])
    store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(0)])])
    assert np.array_equal(store.vectors.put_canary(MODEL, second), first)


@pytest.mark.parametrize("damage", ["no base64 at all", "AAAA"])
def test_a_canary_that_cannot_be_read_is_none(store: AzureStore, damage: str) -> None:
    store.vectors.put_canary(MODEL, np.asarray(axis(1), np.float32))
    engine = store.vectors._engine
    spaces = engine.spaces()
    spaces.canaries[MODEL.fingerprint] = damage
    engine.put_spaces(spaces)
    assert store.vectors.canary(MODEL) is None


# ── versions ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_another_version_is_another_index_to_which_the_alias_moves(
    server: AzureSearchServer, azure_index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_store(azure_index)) as store:
        store.files.put_collection(Collection("docs", "/docs"))
        store.files.apply([update("a.md", "apple", "pear")])
        store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(0), axis(1)]), RecordVectors("idamd2", [axis(2)])])
    (alias,) = server.aliases.values()
    (old,) = alias["indexes"]
    monkeypatch.setattr(schema, "SCHEMA_VERSION", schema.SCHEMA_VERSION + 1)
    with closing(open_store(azure_index)) as store:
        (now,) = server.aliases[alias["name"]]["indexes"]
        assert (set(server.indexes), now != old) == ({old, now}, True)
        assert found(store, "pear") == ["idamd2"]
        assert nearest(store, axis(1), limit=1) == ["idamd1"]
        assert all(check.ok for check in store.maintenance.check())
        store.maintenance.optimize()
    assert set(server.indexes) == {now}
    monkeypatch.undo()
    monkeypatch.setenv("AZURE_SEARCH_ENDPOINT", server.endpoint)
    monkeypatch.setenv("AZURE_SEARCH_API_KEY", KEY)
    with pytest.raises(SchemaError, match="was made by a newer mindex; upgrade mindex"):
        open_store(azure_index)


def test_an_alias_of_another_program_is_left_alone(server: AzureSearchServer, azure_index: str) -> None:
    name = azure_index.rpartition("/")[2]
    with closing(open_store(azure_index)):
        server.indexes["theirs"] = next(iter(server.indexes.values()))
        server.aliases[name]["indexes"] = ["theirs"]
    with pytest.raises(StoreError, match="is the alias of 'theirs', which mindex did not make; choose another name"):
        open_store(azure_index)


# ── health ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_doctor_finds_what_belongs_to_nothing_and_optimize_removes_it(
    server: AzureSearchServer, store: AzureStore
) -> None:
    store.files.apply([update("a.md", "apple"), update("b.md", "pear")])
    store.vectors.put(MODEL, [RecordVectors("idbmd1", [axis(0), axis(1)])])
    store.settle()
    (index,) = server.indexes.values()
    for key in (key_of("document", "doca.md"), key_of("chunk", "idbmd1")):
        del index.rows()[key]
    messages = [check.message for check in store.maintenance.check() if not check.ok]
    assert messages == ["1 chunks lack their file", "1 vectors lack a record"]
    store.maintenance.optimize()
    assert all(check.ok for check in store.maintenance.check())


def test_words_that_the_analyzer_does_not_make_are_found_and_rewritten(
    server: AzureSearchServer, store: AzureStore
) -> None:
    store.files.apply([update("a.md", "apple")])
    (index,) = server.indexes.values()
    index.rows()[key_of("chunk", "idamd1")]["words_text"] = "wrong"
    assert [check.message for check in store.maintenance.check() if not check.ok] == [
        "1 records analysed again, 1 differ"
    ]
    store.maintenance.optimize()
    assert found(store, "apple") == ["idamd1"]


# ── the product on it ─────────────────────────────────────────────────────────────────────────────────────────


def test_the_handbook_is_ranked_as_on_sqlite(azure_index: str, tmp_path: Path) -> None:
    ranked = []
    for database in (tmp_path / "memory.db", azure_index):
        with Memory(database, options=KEYWORDS) as memory:
            memory.index(HANDBOOK)
            answers = [memory.search(question, limit=5) for question, _ in ANSWERED[:10]]
            ranked.append([(hit.record.path, hit.record.first_line) for answer in answers for hit in answer.hits])
    assert ranked[0] == ranked[1]


def test_files_are_indexed_searched_read_and_counted_by_the_commands(
    azure_index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "none")
    docs = write(
        tmp_path / "docs", {"a.md": "# Harbour\n\nThe keeper lights the lamp at dusk.\n", "b.md": "# B\n\nTea.\n"}
    )

    def mindex(*arguments: object) -> str:
        ran = run_here("--db", azure_index, *arguments)
        assert ran.code == 0, ran
        return ran.out

    assert "2 files, 2 new; chunks +2" in mindex("index", docs)
    assert "lights the lamp" in mindex("search", "who lights the lamp?")
    assert "lights the lamp" in mindex("get", "a.md")
    assert "2 documents, 2 chunks" in mindex("status")
    assert "every chunk belongs to a file" in mindex("doctor")
    assert "a.md" in mindex("list", "--kind", "chunk")
    mindex("optimize")
    mindex("scan")
    (docs / "a.md").unlink()
    assert "1 deleted" in mindex("index", docs)
    assert "nothing" in mindex("search", "lamp")


@pytest.mark.parametrize(
    "command",
    [
        ["add", "Ada prefers tea"],
        ["history", "abc"],
        ["undo", "3"],
        ["forget", "abc"],
        ["timeline"],
        ["profile", "get"],
        ["contact", "list"],
        ["conversation", "list"],
        ["stats"],
        ["search", "tea", "--as-of", "yesterday"],
        ["get", "#5"],
    ],
)
def test_what_is_not_served_is_one_sentence_that_names_a_store_which_serves_it(
    azure_index: str, command: list[str]
) -> None:
    ran = run_here("--db", azure_index, *command)
    assert ran.code == 1
    assert ran.err.startswith("error: Azure AI Search does not store entries: no memories, ")
    assert "use a SQLite file or PostgreSQL" in ran.err and ran.err.count("\n") == 1


def test_entries_are_not_a_capability(store: AzureStore) -> None:
    assert "entries" not in store.capabilities
    with pytest.raises(UnsupportedError):
        _ = store.entries


@pytest.mark.anyio
async def test_the_dialect_of_memory_exchange_answers_from_an_azure_index(azure_index: str, tmp_path: Path) -> None:
    source = write(
        tmp_path / "docs", {"domains/caching/redis.md": "# Redis\n\n## TTL\n\nEntries expire after 45 seconds.\n"}
    )
    dialect = dialect_named("memory-exchange")
    settings = {**KEYWORD, **dialect.settings_for(source)}
    host = MemoryHost(ServerOptions(source=source, settings=settings, db=azure_index, exclude=dialect.exclude))
    try:
        host.memory.index(source, exclude=host.options.exclude)
        async with Client(MindexServer(host, dialect)) as client:
            searched = text(await client.call_tool("search_memory_exchange", {"query": "when do entries expire"}))
            assert "45 seconds" in searched
            assert "Redis" in text(await client.call_tool("get_memory_file", {"filePath": "domains/caching/redis.md"}))
            assert "1" in text(await client.call_tool("get_index_status", {}))
    finally:
        host.close()


@pytest.mark.anyio
async def test_the_native_server_searches_files_and_refuses_memories_in_one_sentence(
    azure_index: str, tmp_path: Path
) -> None:
    source = write(tmp_path / "docs", {"a.md": "# Harbour\n\nThe keeper lights the lamp at dusk.\n"})
    host = MemoryHost(ServerOptions(settings=KEYWORD, db=azure_index))
    try:
        host.memory.index(source)
        async with Client(MindexServer(host, dialect_named(NATIVE))) as client:
            assert "lamp" in text(await client.call_tool("search", {"query": "who lights the lamp"}))
            refused = await client.call_tool("remember", {"text": "Ada prefers tea"})
            assert refused.is_error and "Azure AI Search does not store entries" in text(refused)
    finally:
        host.close()


def test_without_its_packages_the_engine_says_what_to_install(
    azure_index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    for name in [name for name in sys.modules if name.startswith(("mindex_azure", "azure"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "azure.search.documents", None)
    with pytest.raises(ConfigError, match=r"needs two more packages; pip install 'mindex\[azure\]'"):
        open_store(azure_index)
