"""Another model behind the same name, with vectors of the same length: noticed before its vectors are stored."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pytest

from mindex.datatypes import Progress
from mindex.embedding.canary import SENTENCE, likeness
from mindex.errors import EmbeddingError, StoreError
from mindex.memory import Memory
from mindex.providers.embed.base import create_embedder
from mindex.providers.packaged_models import BUILT_IN
from tests.conftest import write
from tests.providers.conftest import Again
from tests.providers.onnx_models import WORDS, embedder, tokenizer
from tests.providers.servers import ModelServer, changed, late, status
from tests.running import run

QUESTION = "where do parcels wait?"
NEAR = "Pier: parcels of a ship wait at pier"  # nearly the text of each file
FILES = {
    f"{number:02}.md": f"# Pier {number}\n\nParcels of ship {number} wait at pier {number}." for number in range(70)
}
ANOTHER = "has become another model than the one that this memory was embedded with"
FORCE = "run `mindex reembed --force`"


@pytest.fixture
def opened(again: Again) -> Callable[..., Memory]:
    def open_memory(served: ModelServer, model: str = "first") -> Memory:
        named = {"embedding.provider": "openai", "embedding.url": served.url, "embedding.model": model}
        return again({**named, "embedding.timeout": 20.0})

    return open_memory


@pytest.fixture
def filled(server: ModelServer, docs: Path, opened: Callable[..., Memory]) -> Memory:
    memory = opened(server)
    assert memory.index(docs).embedded == 70
    server.asked.clear()
    return memory


def forget_canaries(memory: Memory) -> None:
    """A database as it was before there were canaries."""
    with memory.store._engine.database.write() as connection:  # type: ignore[attr-defined]
        assert connection.execute("DELETE FROM meta WHERE key LIKE 'canary %'").rowcount == 1


def kept(memory: Memory) -> list[bool]:
    return [memory.store.vectors.canary(space.model) is not None for space in memory.store.vectors.spaces()]


def editions(memory: Memory) -> list[tuple[int, bool, int]]:
    return [(space.model.edition, space.active, space.vectors) for space in memory.store.vectors.spaces()]


def stored(memory: Memory) -> dict[str, np.ndarray]:
    (space,) = (space for space in memory.store.vectors.spaces() if space.active)
    records = memory.store.vectors.embedded_records(space.model, 100)
    return memory.store.vectors.stored(space.model, [record.id for record in records])


# ── alarms ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_search_is_by_keyword_when_the_model_is_another_one(
    filled: Memory, server: ModelServer, opened: Callable[..., Memory]
) -> None:
    server.salt = "swapped"
    answer = opened(server).search(QUESTION)
    assert answer.tier == "keyword"
    assert answer.hits
    note = answer.notes[0]
    assert f"openai/first {ANOTHER}" in note
    assert FORCE in note

    server.salt = ""
    assert opened(server).search(QUESTION).tier == "hybrid"


def test_nothing_that_another_model_made_is_stored(
    filled: Memory, server: ModelServer, opened: Callable[..., Memory], docs: Path
) -> None:
    before = stored(filled)
    server.salt = "swapped"
    memory = opened(server)
    added = memory.add("The harbour master drinks tea")
    write(docs, {"new.md": "# Ferries\n\nFerries leave at noon.", "newer.md": "# Tugs\n\nTugs pull."})
    report = memory.index(docs)
    assert (report.embedded, report.pending) == (0, 3)
    assert any(ANOTHER in note and FORCE in note for note in report.notes)
    with pytest.raises(EmbeddingError, match=ANOTHER):
        memory.maintenance.backfill()
    assert stored(filled).keys() == before.keys()
    assert memory.search("harbour master tea").hits[0].record.id == added.id

    server.salt = ""
    assert memory.maintenance.backfill() == (3, 0)


def test_a_process_that_writes_notices_another_model_with_the_next_text(filled: Memory, server: ModelServer) -> None:
    filled.add("The harbour master drinks tea")
    server.salt = "swapped"
    filled.add("The old crane is painted green")
    assert filled.status().embedding.pending == 1


def test_a_process_that_searches_notices_another_model_after_a_while(
    filled: Memory, server: ModelServer, opened: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mindex.embedding.canary._TRUSTED_SECONDS", 0.0)
    memory = opened(server)
    assert memory.search(QUESTION).tier == "hybrid"
    server.salt = "swapped"
    assert memory.search("parcels of ship seven", floor=0).tier == "keyword"
    server.salt = ""
    assert memory.search("parcels of ship eight", floor=0).tier == "hybrid"


def test_the_cached_queries_of_another_model_are_cleared(
    filled: Memory, server: ModelServer, opened: Callable[..., Memory]
) -> None:
    filled.search(QUESTION)
    server.salt = "swapped"
    poisoned = "parcels of ship seven"
    assert filled.search(poisoned, floor=0).tier == "hybrid"  # it was looked at a moment ago
    filled.store.settle()
    assert opened(server).search("parcels of ship eight", floor=0).tier == "keyword"
    server.salt = ""
    server.asked.clear()
    assert opened(server).search(poisoned, floor=0).tier == "hybrid"
    assert sum(poisoned in str(body) for body in server.bodies) == 1


def test_doctor_reports_the_changed_model(filled: Memory, server: ModelServer) -> None:
    server.salt = "swapped"
    (check,) = [one for one in filled.doctor() if one.name == "embedding model"]
    assert not check.ok
    assert f"openai/first {ANOTHER}" in check.message
    assert FORCE in check.fix
    server.salt = ""
    (check,) = [one for one in filled.doctor() if one.name == "embedding model"]
    assert check.ok


def test_a_small_difference_is_the_same_model(
    filled: Memory, server: ModelServer, opened: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = server.vector
    monkeypatch.setattr(server, "vector", lambda text: [value + 0.1 * (-1) ** n for n, value in enumerate(exact(text))])
    assert 0.99 < likeness(np.array(exact(SENTENCE)), np.array(server.vector(SENTENCE))) < 0.9999
    assert opened(server).search(QUESTION).tier == "hybrid"
    filled.add("The harbour master drinks tea")
    assert filled.status().embedding.pending == 0


def noisy(row: list[float]) -> list[float]:
    return [value + 0.8 * (-1) ** n for n, value in enumerate(row)]


def noisy_in_batches(body: dict[str, Any]) -> dict[str, Any]:
    """The answer of a server that rounds otherwise when it reads several texts at once."""
    if len(body["data"]) == 1:
        return body
    return {**body, "data": [{**row, "embedding": noisy(row["embedding"])} for row in body["data"]]}


def test_a_server_whose_vectors_depend_on_the_batch_is_the_same_model(
    server: ModelServer, docs: Path, opened: Callable[..., Memory]
) -> None:
    server.always = changed(noisy_in_batches)
    exact = server.vector(SENTENCE)
    assert likeness(np.array(exact), np.array(noisy(exact))) < 0.95
    memory = opened(server)
    assert memory.index(docs).embedded == 70
    memory.add("The harbour master drinks tea")
    assert memory.status().embedding.pending == 0
    assert opened(server).search(QUESTION).tier == "hybrid"
    assert all(check.ok for check in memory.doctor())
    assert memory.models.reembed(force=True).embedded == 71


def test_each_alarm_clears_the_query_cache(filled: Memory, server: ModelServer, opened: Callable[..., Memory]) -> None:
    memory = opened(server)
    for turn in range(2):
        server.salt = ""
        filled.search(f"parcels of ship {turn}", floor=0)
        filled.store.settle()
        assert filled.store.maintenance.status().caches["query-embedding"]
        server.salt = "swapped"
        memory.add(f"The harbour master drinks {turn} cups of tea")
        assert "query-embedding" not in filled.store.maintenance.status().caches
        server.salt = ""
        memory.maintenance.backfill()


def test_a_search_does_not_wait_for_a_lock(
    filled: Memory, server: ModelServer, opened: Callable[..., Memory], tmp_path: Path
) -> None:
    memory = opened(server)
    server.salt = "swapped"
    with closing(sqlite3.connect(tmp_path / "memory.db", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        started = monotonic()
        answer = memory.search(QUESTION)
        assert monotonic() - started < 20  # a writer would wait for 30 s
        writer.execute("ROLLBACK")
    assert any(ANOTHER in note for note in answer.notes)


def test_a_canary_without_vectors_stops_no_process(
    server: ModelServer, opened: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as dying:
        dying.setattr("mindex.store.sql.vector_store.SqlVectorStore.put", failing)
        with suppress(StoreError):
            opened(server).add("The harbour master drinks tea")
    server.salt = "swapped"
    memory = opened(server)
    assert memory.add("The old crane is painted green").notes == ()
    assert memory.maintenance.backfill() == (1, 0)
    assert memory.search("painted crane").tier == "hybrid"


def failing(*_: object, **__: object) -> None:
    raise StoreError("the disk is full", "free some space")


def test_imported_vectors_are_made_again_when_the_model_may_be_another(
    filled: Memory, server: ModelServer, tmp_path: Path
) -> None:
    options = {"embedding.provider": "openai", "embedding.url": server.url, "embedding.model": "first"}
    for number in range(5):
        filled.add(f"Parcels of ship {number} wait at pier {number}")
    filled.transfer.export(tmp_path / "all.jsonl", vectors=True)
    server.salt = "swapped"
    with Memory(tmp_path / "elsewhere.db", options=options) as other:
        other.add("Parcels of a ship wait at a pier")
        other.transfer.import_(tmp_path / "all.jsonl")
        other.maintenance.backfill()
        assert other.status().embedding.pending == 0
        for hit in other.search(NEAR, mode="vector", floor=0).hits:
            assert (hit.trace.cosine or 0) > 0.8
    server.salt = ""
    server.asked.clear()
    with Memory(tmp_path / "restored.db", options=options) as restored:
        restored.transfer.import_(tmp_path / "all.jsonl")
        assert restored.status().embedding.pending == 0
    assert not server.bodies


@pytest.mark.model
def test_a_tokenizer_that_was_changed_in_a_models_folder_is_noticed(tmp_path: Path, alone: Path) -> None:
    folder = embedder(tmp_path / "mine")
    options = {"embedding.model": str(folder)}
    with Memory(tmp_path / "memory.db", options=options) as memory:
        memory.add("the choir sings at night")
        assert kept(memory) == [True]
    words = ("[PAD]", WORDS[5], *WORDS[2:5], "[UNK]", *WORDS[6:])  # what it does not know is another word now
    tokenizer(words=words).save(str(folder / "tokenizer.json"))
    with Memory(tmp_path / "memory.db", options=options) as memory:
        memory.add("the key of the door")
        assert memory.status().embedding.pending == 1
        (check,) = [one for one in memory.doctor() if one.name == "embedding model"]
        assert ANOTHER in check.message


# ── what it costs ─────────────────────────────────────────────────────────────────────────────────────────────


def test_the_canary_costs_one_separate_request_in_a_spaces_life(
    server: ModelServer, docs: Path, opened: Callable[..., Memory]
) -> None:
    memory = opened(server)
    memory.models.load()
    server.asked.clear()
    assert memory.index(docs).embedded == 70
    # 63 and 7 records, each with the canary; and once, when the space began, the canary alone.
    assert [len(body["input"]) for body in server.bodies] == [32, 32, 1, 8]
    server.asked.clear()
    assert opened(server).search(QUESTION).tier == "hybrid"
    assert [body["input"] for body in server.bodies] == [[QUESTION, SENTENCE]]


def test_a_process_sends_the_canary_with_its_first_query_only(filled: Memory, server: ModelServer) -> None:
    for number in range(3):
        filled.search(f"parcels of ship {number}")
    assert [len(body["input"]) for body in server.bodies] == [1, 1, 1]  # it has just indexed, and looked then


# ── old databases ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_space_without_a_canary_gets_one_when_the_model_is_the_same(
    filled: Memory, server: ModelServer, opened: Callable[..., Memory]
) -> None:
    forget_canaries(filled)
    memory = opened(server)
    assert memory.search(QUESTION).tier == "hybrid"
    assert kept(memory) == [False]
    memory.add("The harbour master drinks tea")
    assert (memory.status().embedding.pending, kept(memory)) == (0, [True])


def test_a_space_without_a_canary_gets_no_vectors_of_another_model(
    filled: Memory, server: ModelServer, opened: Callable[..., Memory]
) -> None:
    forget_canaries(filled)
    server.salt = "swapped"
    memory = opened(server)
    memory.add("The harbour master drinks tea")
    assert (memory.status().embedding.pending, kept(memory)) == (1, [False])
    (check,) = [one for one in memory.doctor() if one.name == "embedding model"]
    assert ANOTHER in check.message


@pytest.mark.parametrize("damage", ["", "no base64 at all", "AAAA", "a" * 256])
def test_a_canary_that_cannot_be_read_is_none(
    filled: Memory, server: ModelServer, opened: Callable[..., Memory], damage: str
) -> None:
    with filled.store._engine.database.write() as connection:  # type: ignore[attr-defined]
        connection.execute("UPDATE meta SET value = ? WHERE key LIKE 'canary %'", (damage,))
    memory = opened(server)  # this process compared the canary just now, and does not read it again
    if damage != "a" * 256:  # as long as it should be, and not what the model says
        assert kept(memory) == [False]
        memory.add("The harbour master drinks tea")
        assert (memory.status().embedding.pending, kept(memory)) == (0, [True])
    else:
        memory.add("The harbour master drinks tea")
        assert memory.status().embedding.pending == 1


@pytest.mark.model
def test_the_built_in_model_has_a_canary_too(tmp_path: Path) -> None:
    for number in range(2):
        with Memory(tmp_path / "memory.db") as memory:
            memory.add(f"Parcels wait at pier {number}")
            assert memory.status().embedding.pending == 0
            canary = memory.store.vectors.canary(BUILT_IN)
    assert canary is not None
    built_in = create_embedder(memory.embedding.configured)
    assert built_in is not None
    assert likeness(canary, built_in.embed(["another text", SENTENCE])[1]) > 0.9999


# ── embedding again ───────────────────────────────────────────────────────────────────────────────────────────


def test_everything_can_be_embedded_again_with_the_same_model(
    filled: Memory, server: ModelServer, opened: Callable[..., Memory]
) -> None:
    elsewhere = opened(server)
    assert elsewhere.search(QUESTION).tier == "hybrid"
    before = stored(filled)
    server.salt = "swapped"
    with pytest.raises(EmbeddingError, match="another model") as failed:
        filled.models.reembed()
    assert "--force" in failed.value.hint

    done = filled.models.reembed(force=True)

    assert (done.source, done.target, done.embedded, done.remaining) == ("openai/first", "openai/first", 70, 0)
    assert done.notes == ()
    assert editions(filled) == [(1, True, 70)]
    after = stored(filled)
    assert all(likeness(before[id_][0], after[id_][0]) < 0.9 for id_ in before)
    for memory in (filled, elsewhere, opened(server)):
        answer = memory.search(NEAR, mode="vector", floor=0)
        assert (answer.tier, answer.notes) == ("vector", ())
        assert min(hit.trace.cosine or 0 for hit in answer.hits) > 0.8
        memory.add(f"The harbour master {id(memory)} drinks tea")
        assert memory.status().embedding.pending == 0
    assert kept(filled) == [True]
    assert all(check.ok for check in filled.doctor())


def test_the_old_vectors_serve_until_the_new_ones_are_complete(
    filled: Memory, server: ModelServer, opened: Callable[..., Memory]
) -> None:
    elsewhere = opened(server)
    met: list[tuple[str, list[tuple[int, bool, int]]]] = []

    def ask(progress: Progress) -> None:
        if progress.done < 70:
            met.append((elsewhere.search(f"{QUESTION} {progress.done}").tier, editions(elsewhere)))

    assert filled.models.reembed(force=True, report=ask).embedded == 70
    assert met == [("hybrid", [(0, True, 70), (1, False, 63)])]
    assert filled.models.reembed(force=True).embedded == 70  # each time
    assert editions(filled) == [(2, True, 70)]


def half_done(filled: Memory, server: ModelServer, alone: Path) -> None:
    server.tricks.extend([late(0)] * 5)  # its card, a sign of life, 63 of the records, and the canary alone
    server.always = status(404, {"error": {"message": "The model `first` does not exist"}})
    with pytest.raises(EmbeddingError, match="the old model is used until then"):
        filled.models.reembed(force=True)
    server.always = None
    for file in (alone / "breakers").glob("*"):
        file.unlink()
    assert editions(filled) == [(0, True, 70), (1, False, 63)]


@pytest.mark.parametrize("force", [False, True])
def test_an_interrupted_change_to_the_same_model_is_resumed(
    filled: Memory, server: ModelServer, alone: Path, opened: Callable[..., Memory], force: bool
) -> None:
    half_done(filled, server, alone)
    assert filled.search(QUESTION).tier == "hybrid"
    change = filled.status().embedding.reembedding
    assert change is not None
    assert (change.to, change.done, change.total) == ("openai/first", 63, 70)
    assert opened(server).models.reembed(force=force).embedded == 7
    assert editions(filled) == [(1, True, 70)]


def test_the_vectors_of_a_replaced_model_are_not_continued(filled: Memory, server: ModelServer, alone: Path) -> None:
    half_done(filled, server, alone)
    server.salt = "swapped again"
    assert filled.models.reembed(force=True).embedded == 70
    assert editions(filled) == [(2, True, 70)]
    assert min(hit.trace.cosine or 0 for hit in filled.search(NEAR, mode="vector", floor=0).hits) > 0.8


def test_two_processes_that_embed_everything_again_fill_the_same_space(
    filled: Memory, server: ModelServer, opened: Callable[..., Memory]
) -> None:
    rival = opened(server)
    theirs: list[int] = []

    def interfere(progress: Progress) -> None:
        if not theirs:
            theirs.append(rival.models.reembed(force=True).embedded)

    ours = filled.models.reembed(force=True, report=interfere).embedded
    assert (ours, theirs) == (63, [7])
    assert editions(filled) == [(1, True, 70)]


def test_a_dry_run_reports_how_much_would_be_embedded(filled: Memory, server: ModelServer) -> None:
    done = filled.models.reembed(force=True, dry_run=True)
    assert (done.dry_run, done.remaining, done.pieces) == (True, 70, 70)
    assert editions(filled) == [(0, True, 70)]


def test_another_model_and_back_is_the_first_edition_again(filled: Memory, server: ModelServer) -> None:
    filled.models.reembed(force=True)
    filled.models.reembed(model="second")
    filled.models.reembed(model="first")
    assert editions(filled) == [(0, True, 70)]
    assert kept(filled) == [True]


def test_the_command_repairs_what_the_note_of_a_search_names(server: ModelServer, docs: Path, tmp_path: Path) -> None:
    env = {
        "MINDEX_DB": str(tmp_path / "memory.db"),
        "MINDEX_EMBEDDING_PROVIDER": "openai",
        "MINDEX_EMBEDDING_URL": server.url,
        "MINDEX_EMBEDDING_MODEL": "first",
    }
    assert run("index", docs, env=env).code == 0
    server.salt = "swapped"
    ran = run("search", QUESTION, "--json", env=env).json
    assert (ran["tier"], ANOTHER in str(ran["notes"])) == ("keyword", True)
    refused = run("reembed", env=env)
    assert (refused.code, "--force" in refused.err) == (1, True)
    assert run("reembed", "--force", "--json", env=env).json["embedded"] == 70
    assert run("search", QUESTION, "--json", env=env).json["tier"] == "hybrid"
