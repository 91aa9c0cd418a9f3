"""Several processes at once, and processes that die: acknowledged writes stay, each once."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import sys
import threading
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from mindex.datatypes import Collection
from mindex.errors import CollectionError, EmbeddingError
from mindex.memory import Memory
from mindex.providers import packaged_models
from mindex.providers.embed import local
from mindex.providers.packaged_models import BUILT_IN_FOLDER
from mindex.store.base import DocumentUpdate
from tests.conftest import write
from tests.running import finish, is_one_error, kill, run, start, wait_until, within, without_progress

KEYWORD = {"embedding.provider": "none"}
NO_MODEL = {"MINDEX_EMBEDDING_PROVIDER": "none"}
unix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")

# The command line, but every file takes a moment: there is time to interrupt it.
SLOWLY = """
import time
from mindex.cli.main import main
from mindex.files import indexer
read = indexer.read_bytes
def slow_read(*arguments, **options):
    time.sleep(0.004)
    return read(*arguments, **options)
indexer.read_bytes = slow_read
main()
"""
# The same of 400 pages, but it never gets past the last one: however late it is interrupted, it is in the middle.
ENDLESSLY = SLOWLY.replace("0.004", '600 if arguments[0].path == "6/0398.md" else 0.004')
# Some batches are embedded, and no more.
EMBED_THREE_BATCHES = """
import time
from mindex.cli.main import main
from mindex.store.sql.vector_store import SqlVectorStore
put, batches = SqlVectorStore.put, []
def put_three(*arguments, **options):
    if len(batches) == 3:
        time.sleep(600)
    batches.append(1)
    return put(*arguments, **options)
SqlVectorStore.put = put_three
main()
"""

# Memories that come and go.
ADD_AND_FORGET = """
import sys
from mindex.memory import Memory
with Memory(sys.argv[1], options={"embedding.provider": "none"}) as memory:
    for count in range(60):
        added = memory.add(f"harbour {sys.argv[2]} number {count}").id
        if count % 2:
            memory.forget(added)
"""


def pages(root: Path, count: int) -> Path:
    return write(
        root, {f"{n % 7}/{n:04}.md": f"# Page {n}\n\nharbour number{n}\n\n# More\n\ncrane{n}\n" for n in range(count)}
    )


def stored(db: Path, table: str = "documents") -> int:
    if not db.exists():
        return 0
    try:
        with closing(sqlite3.connect(f"{db.as_uri()}?mode=ro", uri=True)) as connection:
            return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
    except sqlite3.OperationalError:  # the table is not there yet
        return 0


def contents(db: Path) -> Counter[tuple[str, int, str]]:
    """What is stored, however it came to be there."""
    with closing(sqlite3.connect(db)) as connection:
        return Counter(
            connection.execute(
                "SELECT d.path, r.position, r.text FROM records r JOIN documents d ON d.key = r.document"
            )
        )


def is_sound(db: Path, options: dict[str, object] | None = None) -> bool:
    with Memory(db, options=KEYWORD if options is None else options) as memory:
        sick = [check for check in memory.doctor() if not check.ok]
    assert not sick, sick
    return True


@pytest.fixture
def expected(tmp_path: Path) -> Counter[tuple[str, int, str]]:
    """What a run that nothing disturbs stores of 400 pages."""
    with Memory(tmp_path / "undisturbed.db", options=KEYWORD) as memory:
        memory.index(pages(tmp_path / "docs", 400))
    return contents(tmp_path / "undisturbed.db")


# ── at once ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_a_search_never_fails_while_other_processes_add_and_forget(tmp_path: Path) -> None:
    """The word is in every record, and their number changes between any two statements."""
    db = tmp_path / "memory.db"
    with Memory(db, options=KEYWORD) as reader:
        reader.add("harbour at the beginning")
        writers = [start(db, name, program=ADD_AND_FORGET) for name in ("a", "b")]
        searches = 0
        while any(writer.poll() is None for writer in writers) or not searches:
            for query in ("harbour", "harbour number 3", '"harbour a"'):
                hits = reader.search(query, limit=20).hits
                assert all(isinstance(hit.score, float) and 0 <= hit.relevance <= 1 for hit in hits)
            reader.status()
            searches += 1
        assert [finish(writer).code for writer in writers] == [0, 0]
    assert is_sound(db)


@pytest.mark.slow
def test_two_indexers_and_a_search_at_once(tmp_path: Path, expected: Counter[tuple[str, int, str]]) -> None:
    db = tmp_path / "memory.db"
    indexers = [start("--db", db, "index", tmp_path / "docs", "--json", env=NO_MODEL, program=SLOWLY) for _ in range(2)]
    totals = []
    with Memory(db, options=KEYWORD) as reader:
        while any(indexer.poll() is None for indexer in indexers):
            totals.append(reader.search("harbour", limit=1).total)
            reader.status()
        ran = [finish(indexer) for indexer in indexers]
    assert [(one.code, without_progress(one.err)) for one in ran] == [(0, "")] * 2
    assert len(set(totals)) > 1  # the answers grew while it was indexed
    assert totals == sorted(totals)
    assert contents(db) == expected
    assert is_sound(db)
    again = run("--db", db, "index", "--json", env=NO_MODEL).json["collections"][0]
    assert (again["files"]["unchanged"], again["chunks"]["added"]) == (400, 0)


def test_many_processes_that_index_different_folders_at_once(tmp_path: Path) -> None:
    db = tmp_path / "memory.db"
    roots = [write(tmp_path / f"part{n}", {f"{i}.md": f"harbour {n} {i}" for i in range(30)}) for n in range(4)]
    ran = [finish(process) for process in [start("--db", db, "index", root, env=NO_MODEL) for root in roots]]
    assert [one.code for one in ran] == [0] * 4
    assert stored(db) == 120
    assert is_sound(db)


def test_two_folders_of_one_name_never_become_one_collection(tmp_path: Path) -> None:
    """Two processes may both find the name free; the second one must not take over what the first has stored."""
    with Memory(tmp_path / "memory.db", options=KEYWORD) as memory:
        memory.index(write(tmp_path / "a" / "docs", {"x.md": "harbour"}))
        with pytest.raises(CollectionError, match=r"just now.*again"):
            memory.store.files.put_collection(Collection("docs", str(tmp_path / "b" / "docs")))
        with pytest.raises(CollectionError, match=r"just now.*again"):
            memory.store.files.put_collection(Collection("other", str(tmp_path / "a" / "docs")))
        (collection,) = memory.store.files.collections()
        assert collection.root == str(tmp_path / "a" / "docs")


def test_a_file_seen_as_moved_by_one_and_as_new_by_another_is_indexed_once(tmp_path: Path) -> None:
    """The same path under two ids: the later word counts, and neither is an error."""
    with Memory(tmp_path / "memory.db", options=KEYWORD) as memory:
        memory.index(write(tmp_path / "docs", {"a.md": "harbour"}))
        seen_here = memory.store.files.documents("docs")["a.md"]
        (chunk,) = memory.store.files.chunks(seen_here.id)
        seen_there = replace(seen_here, id="another")
        memory.store.files.apply([DocumentUpdate(seen_there, (replace(chunk, id="twin", document="another"),))])
        assert [hit.record.id for hit in memory.search("harbour").hits] == ["twin"]
        assert set(memory.store.files.documents("docs")) == {"a.md"}
        assert all(check.ok for check in memory.doctor())


def test_threads_share_one_memory(tmp_path: Path) -> None:
    root = pages(tmp_path / "docs", 60)
    problems: list[BaseException] = []
    with Memory(tmp_path / "memory.db", options=KEYWORD) as memory:

        def work(job: int) -> None:
            try:
                for _ in range(4):
                    memory.index(root, force=True) if job % 2 else memory.search("harbour")
            except BaseException as error:
                problems.append(error)

        threads = [threading.Thread(target=work, args=(job,)) for job in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == []
        assert memory.list().total == 120


# ── killed ────────────────────────────────────────────────────────────────────────────────────────────────────


@unix_only
@pytest.mark.slow
def test_killed_again_and_again_while_indexing(tmp_path: Path, expected: Counter[tuple[str, int, str]]) -> None:
    db = tmp_path / "memory.db"
    chance = random.Random(11)
    for done in (0, 100, 200):  # a batch is a hundred files
        process = start("--db", db, "index", tmp_path / "docs", env=NO_MODEL, program=ENDLESSLY)
        wait_until(lambda done=done, process=process: stored(db) > done or process.poll() is not None)  # type: ignore[misc]
        threading.Event().wait(chance.uniform(0, 0.3))  # anywhere in the next one
        assert process.poll() is None, finish(process)
        kill(process)
        assert 0 < stored(db) < 400
        assert is_sound(db)
        assert not contents(db) - expected
    ran = run("--db", db, "index", tmp_path / "docs", env=NO_MODEL)
    assert (ran.code, ran.err) == (0, "")
    assert contents(db) == expected
    assert is_sound(db)


@unix_only
@pytest.mark.slow
def test_killed_again_and_again_while_embedding(tmp_path: Path) -> None:
    root = write(
        tmp_path / "docs",
        {f"{n:03}.md": f"# Parcel {n}\n\n" + f"Parcel {n} waits at station {n * 7}. " * 12 for n in range(100)},
    )
    db = tmp_path / "memory.db"
    assert run("--db", db, "index", root, "--no-embed").code == 0
    chance = random.Random(5)
    seen = 0
    for _ in range(2):
        process = start("--db", db, "backfill", "--batch", 10, program=EMBED_THREE_BATCHES)
        wait_until(lambda: stored(db, "vectors") > seen, what="a first batch")  # noqa: B023
        threading.Event().wait(chance.uniform(0, 0.3))
        kill(process)
        assert stored(db, "vectors") >= seen
        seen = stored(db, "vectors")
        assert seen < 100
    ran = run("--db", db, "index", "--json")
    assert ran.code == 0, ran
    assert (ran.json["embedded"], ran.json["pending"]) == (100 - seen, 0)
    with closing(sqlite3.connect(db)) as connection:
        assert connection.execute("SELECT count(*), count(DISTINCT record) FROM vectors").fetchone() == (100, 100)
    assert is_sound(db, {})


# ── interrupted ───────────────────────────────────────────────────────────────────────────────────────────────


@unix_only
def test_ctrl_c_while_indexing_keeps_what_is_done(tmp_path: Path, expected: Counter[tuple[str, int, str]]) -> None:
    db = tmp_path / "memory.db"
    process = start("--db", db, "index", tmp_path / "docs", env=NO_MODEL, program=ENDLESSLY)
    wait_until(lambda: stored(db) >= 100)
    process.send_signal(signal.SIGINT)
    ran = finish(process)
    assert (ran.code, ran.out) == (130, "")
    assert without_progress(ran.err) == "stopped; what was done is kept, run it again to go on\n"
    done = stored(db)
    assert 100 <= done < 400
    assert is_sound(db)
    again = run("--db", db, "index", "--json", env=NO_MODEL)
    assert again.json["collections"][0]["files"]["new"] == 400 - done
    assert contents(db) == expected


@unix_only
@pytest.mark.parametrize(("number", "more"), [(signal.SIGINT, []), (signal.SIGTERM, ["--poll"])])
def test_watch_ends_quietly_on_a_signal(tmp_path: Path, number: signal.Signals, more: list[str]) -> None:
    root = write(tmp_path / "docs", {"a.md": "harbour"})
    db = tmp_path / "memory.db"
    process = start("--db", db, "watch", root, "--json", *more, env=NO_MODEL)
    out = process.stdout
    assert process.stderr is not None and out is not None
    assert process.stderr.readline() == f"watching {root}\n"
    write(tmp_path, {"b.md": "crane"}).joinpath("b.md").rename(root / "b.md")  # whole from the start
    reports = within(60, lambda: [json.loads(out.readline()) for _ in range(2)])
    assert [report["collections"][0]["files"]["new"] for report in reports] == [1, 1]
    process.send_signal(number)
    ran = finish(process)
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert stored(db) == 2
    assert is_sound(db)


SIGNAL_WHILE_WAITING = """
import signal, threading
from mindex.cli.stop_signals import set_on_signal
stop = threading.Event()
set_on_signal(stop)
with stop._cond:  # as in stop.wait(), before it sleeps
    signal.raise_signal(signal.SIGTERM)
print(stop.wait(30))
"""


@unix_only
def test_a_signal_that_meets_a_wait_for_the_end_is_obeyed() -> None:
    ran = run(program=SIGNAL_WHILE_WAITING)
    assert (ran.code, ran.out) == (0, "True\n")


# ── without a model that works ────────────────────────────────────────────────────────────────────────────────


def heals(root: Path, db: Path) -> None:
    """The next run with a sound model embeds what was left."""
    with Memory(db) as memory:
        report = memory.index(root)
        assert (report.embedded, report.pending, report.notes) == (2, 0, ())
        assert memory.search("parcels in a harbour").tier == "hybrid"


def test_an_unknown_model_means_keyword_and_a_note(tmp_path: Path) -> None:
    root = write(tmp_path / "docs", {"a.md": "Parcels wait in the harbour.", "b.md": "Couriers sleep."})
    db = tmp_path / "memory.db"
    nonsense = {"MINDEX_EMBEDDING_MODEL": "nonsense"}
    report = run("--db", db, "index", root, "--json", env=nonsense)
    assert report.code == 0
    assert (report.json["embedded"], report.json["pending"]) == (0, 2)
    assert "no model 'nonsense'" in report.json["notes"][0]
    answer = run("--db", db, "search", "harbour parcels", "--json", env=nonsense).json
    assert (answer["tier"], answer["total"]) == ("keyword", 1)
    assert any("no model 'nonsense'" in note for note in answer["notes"])
    status = run("--db", db, "status", "--json", env=nonsense).json
    assert status["embedding"]["pending"] == 2
    doctor = run("--db", db, "doctor", "--json", env=nonsense)
    assert doctor.code == 1
    assert any("embedding.model" in check.get("fix", "") for check in doctor.json["checks"])
    is_one_error(run("--db", db, "backfill", env=nonsense), "nonsense", "embedding.model")
    heals(root, db)


def test_an_unknown_provider_is_an_error_of_the_settings(tmp_path: Path) -> None:
    """Before anything is stored, so that an error never means that something was."""
    for command in (("search", "x"), ("add", "Herons eat fish"), ("index", str(tmp_path))):
        ran = run("--db", tmp_path / "m.db", *command, env={"MINDEX_EMBEDDING_PROVIDER": "magic"})
        is_one_error(ran, "invalid value for embedding.provider in MINDEX_EMBEDDING_PROVIDER", "not 'magic'", "ollama")
    assert not (tmp_path / "m.db").exists()


@pytest.mark.parametrize("damage", ["missing", "cut short", "garbage"])
def test_broken_weights_mean_keyword_and_a_note(tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = tmp_path / "model.onnx"
    if damage == "cut short":
        weights.write_bytes((BUILT_IN_FOLDER / weights.name).read_bytes()[:100_000])
    elif damage == "garbage":
        weights.write_bytes(random.Random(1).randbytes(100_000))
    root = write(tmp_path / "docs", {"a.md": "Parcels wait in the harbour.", "b.md": "Couriers sleep."})
    db = tmp_path / "memory.db"
    with monkeypatch.context() as broken:
        broken.setattr(packaged_models, "BUILT_IN_FOLDER", tmp_path)
        broken.setenv("MINDEX_CACHE_DIR", str(tmp_path / "cache"))
        with Memory(db) as memory:
            report = memory.index(root)
            assert (report.embedded, report.pending) == (0, 2)
            assert "pip install --force-reinstall mindex" in report.notes[0]
            answer = memory.search("harbour")
            assert (answer.tier, answer.total) == ("keyword", 1)
            assert any("embedding model" in note for note in answer.notes)
            assert [check.ok for check in memory.doctor() if check.name == "embedding model"] == [False]
            with pytest.raises(EmbeddingError, match="force-reinstall"):
                memory.maintenance.backfill()
    heals(root, db)


def test_a_model_that_fails_halfway_leaves_the_rest_for_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write(tmp_path / "docs", {f"{n:03}.md": f"Parcel {n} waits." for n in range(70)})
    embed = local.LocalEmbedder.embed
    calls = []

    def failing(self: local.LocalEmbedder, texts: list[str]) -> object:
        calls.append(len(texts))
        if len(calls) > 1:
            raise EmbeddingError("the embedding model failed (out of memory)", "free some memory and try again")
        return embed(self, texts)

    with Memory(tmp_path / "memory.db") as memory:
        with monkeypatch.context() as broken:
            broken.setattr(local.LocalEmbedder, "embed", failing)
            report = memory.index(root)
        assert report.embedded == calls[0] - 1  # with them came the canary, which tells whether it is the same model
        assert report.pending == 70 - report.embedded > 0
        assert "out of memory" in report.notes[0]
        after = memory.index(root)
        assert (after.embedded, after.pending) == (report.pending, 0)


def test_a_search_before_anything_is_embedded_says_so(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db") as memory:
        memory.index(write(tmp_path / "docs", {"a.md": "Parcels wait in the harbour."}), embed=False)
        answer = memory.search("harbour")
        assert (answer.tier, answer.total) == ("keyword", 1)
        assert any("vector" in note for note in answer.notes)
