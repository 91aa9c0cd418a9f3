"""Changing the model of a filled memory: the old vectors serve until the new ones are complete."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mindex.datatypes import Model, Progress, RecordVectors
from mindex.datatypes.spaces import EmbedderSpec
from mindex.entries.near_duplicates import NEAR_LINK
from mindex.errors import EmbeddingError, SpaceChangedError, UsageError
from mindex.memory import Memory
from mindex.store.sql.retrieval import SqlRetrieval
from mindex.store.sql.vector_store import SqlVectorStore
from tests.providers.conftest import Again
from tests.providers.servers import ModelServer, Trick, html, late, status

QUESTION = "where do parcels wait?"
FILES = {
    f"{number:02}.md": f"# Pier {number}\n\nParcels of ship {number} wait at pier {number}." for number in range(70)
}


@pytest.fixture
def opened(again: Again) -> Callable[..., Memory]:
    """By the settings of one server or another."""

    def open_memory(served: ModelServer | None, model: str = "first", **more: object) -> Memory:
        options: dict[str, object] = {"embedding.timeout": 20.0, **more}
        if served is not None:
            options |= {"embedding.provider": "openai", "embedding.url": served.url, "embedding.model": model}
        return again(options)

    return open_memory


@pytest.fixture
def filled(server: ModelServer, docs: Path, opened: Callable[..., Memory]) -> Memory:
    memory = opened(server)
    assert memory.index(docs).embedded == 70
    return memory


def forgive(cache: Path) -> None:
    """As after half a minute: a server that failed is called again."""
    for file in (cache / "breakers").glob("*"):
        file.unlink()


def spaces(memory: Memory) -> list[tuple[str, bool, int]]:
    return [(space.model.name, space.active, space.vectors) for space in memory.store.vectors.spaces()]


def asked_for(served: ModelServer, text: str) -> int:
    return sum(text in str(body) for body in served.bodies)


# ── the target ────────────────────────────────────────────────────────────────────────────────────────────────


def test_after_a_change_of_model_searches_use_the_new_one(filled: Memory, other: ModelServer) -> None:
    seen: list[Progress] = []
    done = filled.models.reembed(model="second", url=other.url, report=seen.append)
    assert (done.source, done.target, done.embedded, done.remaining) == ("openai/first", "openai/second", 70, 0)
    assert seen[-1] == Progress("embed", 70, 70)
    assert spaces(filled) == [("second", True, 70)]
    answer = filled.search(QUESTION)
    assert answer.tier == "hybrid"
    assert asked_for(other, QUESTION) == 1
    embedding = filled.status().embedding
    assert (embedding.model, embedding.dimensions, embedding.pending) == ("second", 64, 0)


def test_the_settings_take_effect_when_the_change_is_made_and_not_before(
    filled: Memory, server: ModelServer, other: ModelServer, opened: Callable[..., Memory], docs: Path
) -> None:
    wanting = opened(other, "second")
    note = "the settings name openai/second, this memory was embedded with openai/first; run `mindex reembed`"
    first = wanting.search(QUESTION, floor=0)
    assert (first.tier, first.notes) == ("hybrid", (note,))
    assert wanting.search(QUESTION, floor=0).notes == ()
    assert wanting.status().embedding.note == note
    assert opened(other, "second").index(docs).notes == (note,)
    assert not other.asked

    done = wanting.models.reembed()

    assert (done.source, done.target, done.notes) == ("openai/first", "openai/second", ())
    assert wanting.search(QUESTION).tier == "hybrid"
    assert wanting.status().embedding.note == ""
    assert filled.status().embedding.note.startswith("the settings name openai/first")


def test_a_change_that_the_settings_contradict_has_a_note(filled: Memory, other: ModelServer) -> None:
    done = filled.models.reembed(model="second", url=other.url)
    assert done.notes == ("the settings name openai/first: change them to match",)


def test_a_change_to_the_active_model_has_nothing_to_do(filled: Memory, server: ModelServer) -> None:
    before = len(server.asked)
    done = filled.models.reembed()
    assert (done.embedded, done.remaining) == (0, 0)
    assert done.notes == ("everything is embedded with openai/first already",)
    assert sum(len(body["input"]) for body in server.bodies[before:]) < 70


def test_pending_records_of_the_active_space_get_their_vectors(filled: Memory) -> None:
    filled.add("The harbour master drinks tea", embed=False)
    done = filled.models.reembed()
    assert (done.embedded, done.remaining, done.notes) == (1, 0, ())


def test_a_change_of_model_also_embeds_a_memory_without_vectors(
    docs: Path, other: ModelServer, opened: Callable[..., Memory]
) -> None:
    memory = opened(None)
    memory.index(docs, embed=False)
    done = memory.models.reembed(provider="openai", model="second", url=other.url)
    assert (done.source, done.target, done.embedded) == ("", "openai/second", 70)
    assert memory.search(QUESTION).tier == "hybrid"


def test_none_embeds_nothing(filled: Memory) -> None:
    with pytest.raises(UsageError, match="none"):
        filled.models.reembed(provider="none")


def test_a_dry_run_reports_how_much_and_changes_nothing(filled: Memory, other: ModelServer) -> None:
    before = filled.store.vectors.spaces()
    done = filled.models.reembed(model="second", url=other.url, dry_run=True)
    assert (done.dry_run, done.target, done.remaining, done.pieces) == (True, "openai/second", 70, 70)
    assert filled.store.vectors.spaces() == before
    assert asked_for(other, "pier 5") < 20


def test_a_model_with_other_dimensions_gets_its_own_space(filled: Memory, server: ModelServer, alone: Path) -> None:
    server.dimensions = 32
    assert filled.search(QUESTION).tier == "keyword"
    done = filled.models.reembed()
    assert (done.source, done.target, done.embedded) == ("openai/first", "openai/first", 70)
    assert filled.search("parcels at which pier?").tier == "hybrid"
    assert filled.status().embedding.dimensions == 32


# ── failures ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("trick", [status(401), status(404), html, status(400, {"error": {"message": "no"}})])
def test_a_model_that_fails_at_once_changes_nothing(filled: Memory, other: ModelServer, trick: Trick) -> None:
    before = filled.store.vectors.spaces()
    other.always = trick
    with pytest.raises(EmbeddingError):
        filled.models.reembed(model="second", url=other.url)
    assert filled.store.vectors.spaces() == before
    assert filled.search(QUESTION).tier == "hybrid"


def test_an_address_without_a_server_changes_nothing(filled: Memory, other: ModelServer) -> None:
    other.stop()
    before = filled.store.vectors.spaces()
    with pytest.raises(EmbeddingError, match="nothing answers"):
        filled.models.reembed(model="second", url=other.url)
    assert filled.store.vectors.spaces() == before


def half_done(filled: Memory, other: ModelServer, alone: Path) -> None:
    """Begin a change to the second model that fails on its way."""
    other.tricks.extend([late(0)] * 5)  # its card, a sign of life, 63 of the records, and the canary alone
    other.always = status(404, {"error": {"message": "The model `second` does not exist"}})
    with pytest.raises(EmbeddingError, match="the old model is used until then"):
        filled.models.reembed(model="second", url=other.url)
    other.always = None
    forgive(alone)


def test_after_a_change_that_failed_half_way_the_old_model_serves_and_the_change_can_be_resumed(
    filled: Memory, server: ModelServer, other: ModelServer, alone: Path, opened: Callable[..., Memory]
) -> None:
    half_done(filled, other, alone)
    assert spaces(filled) == [("first", True, 70), ("second", False, 63)]
    assert filled.search(QUESTION).tier == "hybrid"
    change = filled.status().embedding.reembedding
    assert change is not None
    assert (change.to, change.done, change.total, change.percent) == ("openai/second", 63, 70, 90)
    (check,) = [one for one in filled.doctor() if one.name == "change of model"]
    assert (check.ok, check.message) == (False, "the change to openai/second is 90 % done")
    assert check.fix == "run `mindex reembed`"

    done = opened(server).models.reembed()  # no target is named: the interrupted one is known

    assert (done.target, done.embedded, done.remaining) == ("openai/second", 7, 0)
    assert filled.status().embedding.reembedding is None


def test_a_change_to_a_third_model_removes_the_half_done_space(filled: Memory, other: ModelServer, alone: Path) -> None:
    half_done(filled, other, alone)
    filled.models.reembed(model="third", url=other.url)
    assert spaces(filled) == [("third", True, 70)]


def test_a_change_back_to_the_active_model_removes_the_half_done_space(
    filled: Memory, server: ModelServer, other: ModelServer, alone: Path
) -> None:
    half_done(filled, other, alone)
    done = filled.models.reembed(model="first", url=server.url)
    assert (done.embedded, spaces(filled)) == (0, [("first", True, 70)])


def test_memories_that_are_added_and_forgotten_during_a_change_are_covered(
    filled: Memory, server: ModelServer, other: ModelServer, opened: Callable[..., Memory]
) -> None:
    elsewhere = opened(server)
    doomed = filled.add("The old crane is painted green").id
    added: list[str] = []

    def add_once(progress: Progress) -> None:
        if not added:
            added.append(elsewhere.add("The harbour master drinks tea from a blue cup").id)
            elsewhere.forget(doomed)

    done = filled.models.reembed(model="second", url=other.url, report=add_once)

    assert done.remaining == 0
    assert spaces(filled) == [("second", True, 71)]
    answer = elsewhere.search("tea from a blue cup", mode="vector")
    assert answer.hits[0].record.id == added[0]


def test_two_changes_at_once_end_in_one_of_them(
    filled: Memory, server: ModelServer, other: ModelServer, opened: Callable[..., Memory]
) -> None:
    rival = opened(server)

    def interfere(progress: Progress) -> None:
        if progress.done < 70:
            rival.models.reembed(model="third", url=other.url)

    with pytest.raises(SpaceChangedError, match="the one to openai/second is given up"):
        filled.models.reembed(model="second", url=other.url, report=interfere)
    assert spaces(filled) == [("third", True, 70)]
    assert filled.search(QUESTION).tier == "hybrid"


def test_a_text_that_the_new_model_refuses_does_not_keep_the_others_from_changing(
    filled: Memory, other: ModelServer
) -> None:
    other.poison = "pier 33"
    assert filled.models.reembed(model="second", url=other.url).remaining == 0
    assert filled.search("ship 33").hits[0].record.path == "33.md"


# ── notes ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_another_process_follows_with_its_next_query_and_its_next_memory(
    filled: Memory, server: ModelServer, other: ModelServer, opened: Callable[..., Memory]
) -> None:
    elsewhere = opened(server)
    assert elsewhere.search(QUESTION).tier == "hybrid"
    filled.models.reembed(model="second", url=other.url)
    server.stop()
    answer = elsewhere.search("parcels of ship 7")
    assert (answer.tier, answer.notes[1:]) == ("hybrid", ())
    elsewhere.add("The harbour master drinks tea")
    assert elsewhere.status().embedding.pending == 0


def test_a_query_during_which_the_model_changes_is_repeated(
    filled: Memory,
    server: ModelServer,
    other: ModelServer,
    opened: Callable[..., Memory],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    elsewhere = opened(server)
    elsewhere.search(QUESTION)
    nearest = SqlRetrieval.nearest
    met: list[str] = []

    def change_first(self: SqlRetrieval[Any], model: Model, *given: object) -> object:
        if not met:
            met.append(model.name)
            filled.models.reembed(model="second", url=other.url)
        return nearest(self, model, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(SqlRetrieval, "nearest", change_first)
    answer = elsewhere.search("parcels of ship 7")
    assert met == ["first"]
    assert answer.tier == "hybrid"
    assert asked_for(other, "parcels of ship 7") == 1
    assert answer.hits[0].record.path == "07.md"


def test_a_memory_during_whose_embedding_the_model_changes_gets_its_vector_in_the_new_space(
    filled: Memory,
    server: ModelServer,
    other: ModelServer,
    opened: Callable[..., Memory],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    elsewhere = opened(server)
    put = SqlVectorStore.put
    met: list[str] = []

    def change_first(self: SqlVectorStore[Any], model: Model, *given: object) -> int:
        if not met:
            met.append(model.name)
            filled.models.reembed(model="second", url=other.url)
        return put(self, model, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(SqlVectorStore, "put", change_first)
    elsewhere.add("The harbour master drinks tea")
    assert met == ["first"]
    assert filled.status().embedding.pending == 0


def test_near_duplicates_stay_linked(filled: Memory, other: ModelServer) -> None:
    one = filled.add("The harbour master drinks black tea every morning")
    two = filled.add("Every morning the harbour master drinks black tea")
    before = filled.store.entries.linked(one.id, NEAR_LINK), filled.store.entries.linked(two.id, NEAR_LINK)
    assert before == ((two.id,), (one.id,))
    filled.models.reembed(model="second", url=other.url)
    after = filled.store.entries.linked(one.id, NEAR_LINK), filled.store.entries.linked(two.id, NEAR_LINK)
    assert after == before


def test_the_query_cache_of_the_old_model_is_cleared(filled: Memory, other: ModelServer) -> None:
    filled.search(QUESTION)
    filled.store.settle()
    assert filled.status().caches["query-embedding"] == 1
    filled.models.reembed(model="second", url=other.url)
    assert "query-embedding" not in filled.status().caches


# ── unknown databases ─────────────────────────────────────────────────────────────────────────────────────────


def test_no_server_is_called_because_a_database_names_it(opened: Callable[..., Memory]) -> None:
    memory = opened(None)
    added = memory.add("Parcels wait in the harbour", embed=False)
    model = Model("openai", "theirs", 4)
    far = EmbedderSpec("openai", "theirs", "http://192.0.2.1/v1")
    memory.store.vectors.put(model, [RecordVectors(added.id, np.ones((1, 4), np.float32) / 2)], far)

    answer = memory.search("harbour parcels")

    assert (answer.tier, answer.hits[0].record.id) == ("keyword", added.id)
    assert any("a server at http://192.0.2.1/v1, which the settings do not name" in note for note in answer.notes)
    (check,) = [one for one in memory.doctor() if one.name == "embedding model"]
    assert not check.ok
    assert "embedding.url to http://192.0.2.1/v1" in check.fix


def named_by_a_file(memory: Memory, embedder_spec: EmbedderSpec) -> None:
    """Make a database claim, as an unknown one may, that its vectors are of this provider."""
    added = memory.add("Parcels wait in the harbour", embed=False)
    model = Model(embedder_spec.provider, embedder_spec.model, 4)
    memory.store.vectors.put(model, [RecordVectors(added.id, np.ones((1, 4), np.float32) / 2)], embedder_spec)


@pytest.mark.parametrize(
    ("embedder_spec", "where"),
    [
        (EmbedderSpec("openai", "text-embedding-3-small"), "https://api.openai.com/v1"),
        (EmbedderSpec("groq", "some-model"), "https://api.groq.com/openai/v1"),
        (EmbedderSpec("cloudflare", "@cf/baai/bge-base-en-v1.5"), "https://api.cloudflare.com"),
        (EmbedderSpec("openai", "theirs", "http://127.0.0.1.example.org/v1"), "http://127.0.0.1.example.org/v1"),
    ],
)
@pytest.mark.parametrize("settings", [{}, {"embedding.provider": "ollama"}])
def test_a_database_alone_sends_nothing_to_a_provider_elsewhere(
    opened: Callable[..., Memory],
    monkeypatch: pytest.MonkeyPatch,
    embedder_spec: EmbedderSpec,
    where: str,
    settings: dict[str, object],
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-victim")
    monkeypatch.setenv("CLOUDFLARE_ACCOUNT_ID", "0123456789abcdef")
    memory = opened(None, **settings)
    named_by_a_file(memory, embedder_spec)
    monkeypatch.setattr("mindex.providers.server.Server.post", lambda *_, **__: pytest.fail("asked"))

    answer = memory.search("harbour parcels")

    assert answer.tier == "keyword"
    assert any(f"a server at {where}, which the settings do not name" in note for note in answer.notes)
    if not settings:  # whose model it is, and where, would be the file's word as well
        with pytest.raises(EmbeddingError, match="settings do not name"):
            memory.models.reembed(model="another")


def test_a_provider_that_the_settings_name_is_called_at_its_default_address(opened: Callable[..., Memory]) -> None:
    memory = opened(None, **{"embedding.provider": "openai"})
    asked = memory.embedding.permitted(EmbedderSpec("openai", "text-embedding-3-small"))
    assert (asked.provider, asked.url, asked.keyed) == ("openai", "", True)


def test_a_provider_is_not_called_at_another_address_than_that_of_the_settings(
    opened: Callable[..., Memory], other: ModelServer
) -> None:
    memory = opened(other, "mine")
    with pytest.raises(EmbeddingError, match=r"api\.openai\.com"):
        memory.embedding.permitted(EmbedderSpec("openai", "text-embedding-3-small"))


def test_no_key_is_sent_to_an_address_that_only_the_database_names(
    filled: Memory, server: ModelServer, opened: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    assert opened(None, **{"embedding.api_key": "sk-of-the-settings"}).search(QUESTION).tier == "hybrid"
    assert asked_for(server, QUESTION) == 1
    assert not any("sk-of" in str(one.headers) for one in server.asked)

    server.key = "sk-of-the-environment"
    refused = opened(None).search(f"{QUESTION} tell me")
    assert refused.tier == "keyword"
    assert any(f"set embedding.url to {server.url}" in note for note in refused.notes)
    assert opened(server).search(f"{QUESTION} tell me").tier == "hybrid"


def test_a_change_to_another_provider_does_not_use_the_old_key(
    opened: Callable[..., Memory], other: ModelServer, server: ModelServer, docs: Path
) -> None:
    memory = opened(server, **{"embedding.api_key": "sk-of-openai"})
    memory.index(docs, embed=False)
    done = memory.models.reembed(provider="ollama", model="second", url=other.url)
    assert done.embedded == 70
    assert not any("sk-of-openai" in str(one.headers) for one in other.asked)
    memory.models.reembed(provider="openai", model="first", url=server.url)
    assert all(one.headers["authorization"] == "Bearer sk-of-openai" for one in server.asked)


@pytest.mark.parametrize("given", [{}, {"provider": "local"}, {"provider": "llama-cpp"}])
def test_an_address_for_a_model_in_this_process_is_an_error(
    opened: Callable[..., Memory], other: ModelServer, given: dict[str, str]
) -> None:
    with pytest.raises(UsageError, match="has no address"):
        opened(None).models.reembed(url=other.url, **given)


def test_control_characters_in_the_name_of_a_model_are_not_printed(
    opened: Callable[..., Memory], server: ModelServer
) -> None:
    memory = opened(None)
    named_by_a_file(memory, EmbedderSpec("openai", "evil\x1b[2J\x07", server.url))
    shown = [
        str(memory.status()),
        str(memory.models.list()),
        str(memory.doctor()),
        *memory.search("harbour parcels").notes,
    ]
    assert any("evil?[2J?" in text for text in shown)
    assert not any("\\x1b" in text or "\x1b" in text for text in shown)
    assert not server.asked


def test_keys_and_logins_stay_out_of_the_database(
    server: ModelServer, docs: Path, opened: Callable[..., Memory], tmp_path: Path
) -> None:
    server.key = "sk-not-to-be-kept"
    memory = opened(
        server,
        **{"embedding.api_key": server.key, "embedding.url": server.url.replace("//", "//me:hidden@") + "/v1?t=hush"},
    )
    assert memory.index(docs).embedded == 70
    memory.models.reembed(model="second", url=server.url + "/v1?t=hush")
    memory.store.settle()
    kept = b"".join(file.read_bytes() for file in tmp_path.glob("memory.db*"))
    assert server.url.encode() in kept
    for secret in (b"sk-not-to-be-kept", b"hidden", b"hush"):
        assert secret not in kept


def test_a_key_that_was_given_for_one_provider_is_not_sent_to_another(
    filled: Memory, server: ModelServer, opened: Callable[..., Memory]
) -> None:
    elsewhere = opened(None, **{"embedding.provider": "ollama", "embedding.api_key": "sk-of-the-other-one"})
    assert elsewhere.search(QUESTION).tier == "hybrid"
    assert asked_for(server, QUESTION) == 1
    assert not any("sk-of-the-other-one" in str(one.headers) for one in server.asked)


def test_with_the_provider_none_there_is_no_embedder_for_any_database(
    filled: Memory, server: ModelServer, opened: Callable[..., Memory]
) -> None:
    memory = opened(None, **{"embedding.provider": "none"})
    before = len(server.asked)
    assert memory.models.embedder is None
    assert (memory.search(QUESTION).tier, memory.status().embedding.provider) == ("keyword", "none")
    assert len(server.asked) == before
