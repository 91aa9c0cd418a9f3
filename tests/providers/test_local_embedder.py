"""The built-in embedder, with the real model: its space, its promises to callers, its cache, its failures."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mindex.errors import EmbeddingError
from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import create_embedder
from mindex.providers.embed.local import LocalEmbedder
from mindex.providers.packaged_models import BUILT_IN, MINILM, built_in_files, packaged_models

pytestmark = pytest.mark.model

ENGLISH = (
    "The cache is emptied every night, because stale entries would otherwise be served to users who had already "
    "changed their settings. When the job fails, an alert is raised and somebody looks at it in the morning."
)
SPANISH = (
    "La memoria caché se vacía todas las noches, porque de lo contrario las entradas obsoletas se servirían a los "
    "usuarios que ya habían cambiado su configuración. Cuando la tarea falla, se genera una alerta."
)
CHINESE = "缓存每天晚上都会被清空，否则过期的条目会提供给已经更改设置的用户。"
THAI = "แคชจะถูกล้างทุกคืน เพราะมิฉะนั้น รายการที่ล้าสมัย"


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def embedder(cache: Path) -> LocalEmbedder:
    return LocalEmbedder(cache_dir=cache)


@pytest.fixture
def own_cache(tmp_path: Path) -> Path:
    folder = tmp_path / "own cache"
    folder.mkdir()
    return folder


def with_weights(weights: Path, cache: Path) -> LocalEmbedder:
    """The built-in model, opened from another file."""
    return LocalEmbedder(files=lambda: replace(built_in_files(), weights=weights), cache_dir=cache)


def copies(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.ort"))


def identity(file: Path) -> tuple[int, int]:
    """Changes when the file is replaced by another one."""
    status = file.stat()
    return status.st_ino, status.st_mtime_ns


def run(program: str, without: Sequence[str] = (), **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if name not in without}
    return subprocess.run(
        [sys.executable, "-c", program], env=inherited | environment, capture_output=True, text=True, check=False
    )


# ── the space ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_vector_has_the_models_dimensions_and_length_one(embedder: LocalEmbedder) -> None:
    vectors = embedder.embed([ENGLISH, "a"])
    query = embedder.embed_query("how data is cached")

    assert vectors.shape == (2, embedder.model.dimensions) == (2, 384)
    assert query.shape == (384,)
    assert vectors.dtype == query.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1], abs=1e-5)
    assert np.linalg.norm(query) == pytest.approx(1, abs=1e-5)


def test_the_vectors_of_all_minilm_are_those_of_the_published_model(cache: Path) -> None:
    """The model card's example, with the cosines the full-precision model is known for."""
    (package,) = [package for package in packaged_models("embedding") if package.model == MINILM]
    embedder = LocalEmbedder(MINILM, package.files, cache_dir=cache.with_name(f"{cache.name}-minilm"))
    person = embedder.embed_query("That is a happy person")
    others = embedder.embed(["That is a happy dog", "That is a very happy person", "Today is a sunny day"])

    assert others @ person == pytest.approx([0.6946, 0.9429, 0.2569], abs=0.01)


def test_a_related_sentence_is_nearer_than_an_unrelated_one(embedder: LocalEmbedder) -> None:
    query = embedder.embed_query("how data is cached")
    related, unrelated = embedder.embed(["Redis TTL and eviction policies", "The choir rehearses on Thursday evenings"])

    assert query @ related > query @ unrelated + 0.05


def test_a_query_and_a_text_share_one_space(embedder: LocalEmbedder) -> None:
    assert embedder.embed_query(ENGLISH) == pytest.approx(embedder.embed([ENGLISH])[0], abs=1e-5)


def test_a_text_has_the_same_vector_in_every_batch(embedder: LocalEmbedder) -> None:
    texts = [ENGLISH, "cache", SPANISH, CHINESE, "Redis TTL and eviction policies", f"{ENGLISH} {SPANISH}" * 3, ""]
    alone = np.stack([embedder.embed([text])[0] for text in texts])

    assert np.abs(embedder.embed(texts) - alone).max() < 1e-5
    assert np.abs(embedder.embed(texts[::-1])[::-1] - alone).max() < 1e-5


def test_vectors_come_back_in_the_order_of_the_texts(embedder: LocalEmbedder) -> None:
    texts = [" ".join(["word"] * (1 + index * 7 % 23)) + f" number {index}" for index in range(30)]
    vectors = embedder.embed(texts)

    for index in range(0, 30, 5):
        assert vectors[index] == pytest.approx(embedder.embed_query(texts[index]), abs=1e-5)


def test_only_the_first_256_tokens_count(embedder: LocalEmbedder) -> None:
    beginning = "cache " * 300

    assert embedder.embed_query(beginning + "elephants") == pytest.approx(embedder.embed_query(beginning), abs=1e-6)
    assert embedder.embed_query("cache " * 200 + "elephants") != pytest.approx(
        embedder.embed_query("cache " * 200), abs=1e-6
    )


def test_no_texts_give_no_vectors(embedder: LocalEmbedder) -> None:
    assert embedder.embed([]).shape == (0, 384)
    assert embedder.fluency([]) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n",
        "\x00",
        "nul\x00inside",
        "\ud83d",
        "half \udcff pair",
        "word " * 210_000,
        "x" * 1_000_000,
        " " * 1_000_000,
    ],
    ids=["empty", "blank", "nul", "nul-inside", "surrogate", "half-pair", "1-MB", "1-MB-word", "1-MB-blanks"],
)
def test_no_string_is_too_strange(embedder: LocalEmbedder, text: str) -> None:
    for vector in (embedder.embed([text, "a"])[0], embedder.embed_query(text)):
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
    assert 0 <= embedder.fluency([text])[0] <= 1


def test_the_models_control_tokens_in_a_text_are_only_words(embedder: LocalEmbedder) -> None:
    spoken, control = embedder.embed(["[ sep ] ends a sentence", "[SEP] ends a sentence"])

    assert spoken == pytest.approx(control, abs=1e-6)


def test_eight_threads_share_one_embedder(cache: Path) -> None:
    embedder = LocalEmbedder(cache_dir=cache)
    start = threading.Barrier(8)
    texts = [ENGLISH, "cache", SPANISH] * 4

    def work(number: int) -> tuple[np.ndarray, np.ndarray]:
        start.wait()
        return embedder.embed_query(f"query {number}"), embedder.embed(texts)

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(8)))

    expected = embedder.embed(texts)
    for number, (query, vectors) in enumerate(results):
        assert query == pytest.approx(embedder.embed_query(f"query {number}"), abs=1e-5)
        assert np.abs(vectors - expected).max() < 1e-5


# ── fluency ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_model_reads_english_well_spanish_fairly_chinese_a_little_and_thai_not_at_all(
    embedder: LocalEmbedder,
) -> None:
    english, spanish, chinese, thai = embedder.fluency([ENGLISH, SPANISH, CHINESE, THAI])

    assert english > 0.75
    assert 0.45 <= spanish <= 0.6
    assert BUILT_IN.unread < chinese < BUILT_IN.fluent
    assert thai < 0.05


def test_markdown_and_code_are_not_a_foreign_language(embedder: LocalEmbedder) -> None:
    table = "| what | reach |\n|---|---|\n| hybrid search, 10k records | ≤ 2× |\n| vector stage | ≥ 20× faster |\n"
    code = "for rank, record in enumerate(ranking, start=1):\n    fused[record] += 1 / (k + rank)\n"

    assert min(embedder.fluency([table, code])) > 0.75


def test_fluency_counts_words_per_piece(embedder: LocalEmbedder) -> None:
    # cache | ev ##iction | 東 | 京
    assert embedder.fluency(["cache eviction, 東京"]) == [pytest.approx((2 + 2 * BUILT_IN.per_han) / 5)]


def test_a_script_the_vocabulary_lacks_is_not_read_fluently(embedder: LocalEmbedder) -> None:
    assert embedder.fluency(["ሰላም ለዓለም"]) == [0.0]


@pytest.mark.parametrize("text", ["", "  \n", "---", "… !?"])
def test_a_text_without_words_says_nothing_against_the_model(embedder: LocalEmbedder, text: str) -> None:
    assert embedder.fluency([text]) == [1.0]


# ── loading ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["", "mindex-minilm", "all-MiniLM-L6-v2"])
def test_the_built_in_model_needs_no_name(name: str) -> None:
    embedder = create_embedder(ProviderSettings("local", model=name))

    assert embedder is not None
    assert not embedder.loaded
    assert embedder.model.fingerprint == f"local/{name or 'mindex-minilm'}/384/mean/256/|@{embedder.model.sha256}"


def test_an_unknown_model_fails_when_it_is_needed_and_names_the_one_there_is() -> None:
    embedder = create_embedder(ProviderSettings("local", model="bge-m3"))

    assert embedder is not None
    with pytest.raises(EmbeddingError, match=r"no model 'bge-m3'.*mindex-minilm, all-MiniLM-L6-v2"):
        embedder.load()


def test_creating_an_embedder_imports_nothing_heavy_and_using_it_prints_nothing(cache: Path) -> None:
    program = """
import sys
from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import create_embedder
embedder = create_embedder(ProviderSettings("local"))
heavy = {"numpy", "onnxruntime", "tokenizers", "platformdirs"} & set(sys.modules)
assert not heavy, heavy
embedder.embed(["text"] * 20)
"""
    child = run(program, MINDEX_CACHE_DIR=str(cache))

    assert (child.returncode, child.stdout, child.stderr) == (0, "", "")


def test_the_runtimes_telemetry_leaves_no_trace_in_the_home_folder(cache: Path, tmp_path: Path) -> None:
    home = tmp_path / "a home"
    home.mkdir()
    program = """
from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import create_embedder
create_embedder(ProviderSettings("local")).embed(["text"])
"""
    folders = dict.fromkeys(("HOME", "USERPROFILE", "LOCALAPPDATA", "XDG_CACHE_HOME", "XDG_DATA_HOME"), str(home))
    # Both switch it off automatically, and would hide that we forgot to.
    child = run(program, without=("CI", "ORT_DISABLE_TELEMETRY"), MINDEX_CACHE_DIR=str(cache), **folders)

    assert child.returncode == 0, child.stderr
    assert list(home.rglob("*")) == []


def test_the_ready_copy_is_made_once_and_then_used(cache: Path, embedder: LocalEmbedder) -> None:
    embedder.load()
    (copy,) = copies(cache)
    made = identity(copy)

    LocalEmbedder(cache_dir=cache).load()

    assert copies(cache) == [copy]
    assert identity(copy) == made
    assert list(cache.iterdir()) == [copy]


def test_the_ready_copy_spares_reading_the_model(cache: Path, embedder: LocalEmbedder, tmp_path: Path) -> None:
    embedder.load()
    weights = tmp_path / "mindex-minilm" / "model.onnx"
    weights.parent.mkdir()
    weights.write_bytes(bytes(built_in_files().weights.stat().st_size))

    assert with_weights(weights, cache).embed_query("a") == pytest.approx(embedder.embed_query("a"), abs=1e-6)


@pytest.mark.parametrize("damage", ["cut", "emptied", "scribbled", "garbage that claims to be sound"])
def test_a_damaged_copy_is_replaced(cache: Path, embedder: LocalEmbedder, own_cache: Path, damage: str) -> None:
    embedder.load()
    copy = Path(shutil.copy2(copies(cache)[0], own_cache))
    before = copy.stat()
    with copy.open("r+b") as file:
        if damage == "cut":
            file.truncate(before.st_size // 2)
        elif damage == "emptied":
            file.truncate(0)
        elif damage == "scribbled":
            file.seek(before.st_size // 2)
            file.write(b"scribble" * 100)
        else:
            file.write(b"scribble" * 100)
    if damage.startswith("garbage"):
        os.utime(copy, ns=(before.st_atime_ns, before.st_mtime_ns))

    vector = LocalEmbedder(cache_dir=own_cache).embed_query(ENGLISH)

    assert vector == pytest.approx(embedder.embed_query(ENGLISH), abs=1e-5)
    # The runtime does not write the same bytes each time: some copies are a few bytes longer than others.
    assert copy.stat().st_size == pytest.approx(before.st_size, abs=64)
    assert copy.stat().st_ino != before.st_ino
    assert list(own_cache.iterdir()) == [copy]


def test_processes_that_start_together_end_with_one_sound_copy(embedder: LocalEmbedder, own_cache: Path) -> None:
    program = """
from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import create_embedder
print(create_embedder(ProviderSettings("local")).embed_query("a")[:4].tolist())
"""
    environment = {**os.environ, "MINDEX_CACHE_DIR": str(own_cache)}
    children = [
        subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    answers = [child.communicate()[0] for child in children]

    assert len(set(answers)) == 1
    assert answers[0] == f"{embedder.embed_query('a')[:4].tolist()}\n"
    (copy,) = own_cache.iterdir()
    made = identity(copy)
    LocalEmbedder(cache_dir=own_cache).load()
    assert identity(copy) == made


def test_without_a_cache_folder_the_model_is_opened_directly(embedder: LocalEmbedder, tmp_path: Path) -> None:
    folder = tmp_path / "file in the folder's place"
    folder.write_text("")

    vector = LocalEmbedder(cache_dir=folder).embed_query(ENGLISH)

    assert vector == pytest.approx(embedder.embed_query(ENGLISH), abs=1e-5)


def test_copies_long_unused_are_swept_when_a_new_one_is_made(own_cache: Path) -> None:
    for name, age in (("old-ort-1.0.0.ort", 40), ("recent-ort-1.1.0.ort", 5), ("earlier.ort", 31), ("notes.txt", 400)):
        file = own_cache / name
        file.write_text("")
        then = file.stat().st_mtime - age * 24 * 60 * 60
        os.utime(file, (then, then))

    LocalEmbedder(cache_dir=own_cache).load()

    left = {file.name for file in own_cache.iterdir()} - {"recent-ort-1.1.0.ort", "notes.txt"}
    assert len(left) == 1
    assert left.pop().startswith("mindex-minilm-")


# ── failing ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("content", [None, b"", b"not a model"], ids=["missing", "empty", "damaged"])
def test_a_broken_model_file_is_an_error_with_the_next_step(tmp_path: Path, content: bytes | None) -> None:
    weights = tmp_path / "model.onnx"
    if content is not None:
        weights.write_bytes(content)
    embedder = with_weights(weights, tmp_path / "cache")

    with pytest.raises(EmbeddingError, match=r"pip install --force-reinstall mindex") as first:
        embedder.load()
    with pytest.raises(EmbeddingError) as second:
        embedder.embed_query("a")

    assert second.value is first.value
    assert not embedder.loaded
    assert not (tmp_path / "cache").exists()


def test_after_a_failure_the_model_is_not_tried_again(tmp_path: Path) -> None:
    weights = tmp_path / "model.onnx"
    embedder = with_weights(weights, tmp_path)
    with pytest.raises(EmbeddingError):
        embedder.load()
    weights.symlink_to(built_in_files().weights)

    with pytest.raises(EmbeddingError):
        embedder.embed(["a"])


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers", "numpy"])
def test_a_missing_package_is_an_error_with_the_next_step(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(EmbeddingError, match=rf"{package}.*pip install --force-reinstall"):
        LocalEmbedder().load()
