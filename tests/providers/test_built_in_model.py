"""The built-in model: its files, its integer graph, and the choice between the two."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from mindex.embedding.canary import SENTENCE, CanaryEmbedder
from mindex.memory import Memory
from mindex.providers.embed.local import LocalEmbedder
from mindex.providers.onnx import session
from mindex.providers.onnx.session import import_runtime, is_better, open_session
from mindex.providers.packaged_models import BUILT_IN, BUILT_IN_FOLDER, BUILT_IN_SIZE, built_in_files
from tests.conftest import HANDBOOK
from tests.providers import onnx_models

pytestmark = pytest.mark.model

DOCS = Path(__file__).parents[2] / "docs"
QUESTION = "Which port does the staging database listen on?"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("forms")


@pytest.fixture(scope="module")
def in_float(cache: Path) -> LocalEmbedder:
    return LocalEmbedder(files=lambda: replace(built_in_files(), int8_graph=None), cache_dir=cache / "float")


@pytest.fixture(scope="module")
def in_int8(cache: Path) -> LocalEmbedder:
    """Opened with the integer graph, even if this processor is slower with it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "_gains_by", lambda *_: True)
        embedder = LocalEmbedder(cache_dir=cache / "int8")
        embedder.load()
    (copy,) = (cache / "int8").iterdir()
    assert copy.name.endswith("-int8.ort")
    return embedder


def texts() -> list[str]:
    paragraphs = [part for page in sorted(HANDBOOK.rglob("*.md")) for part in page.read_text().split("\n\n")]
    return [SENTENCE, QUESTION, "", "a", "缓存每天晚上都会被清空", "word " * 400, *paragraphs[:40]]


def long_texts() -> list[str]:
    """Documents in pieces of 1,000 characters: most fill the model's window."""
    pages = [page.read_text(encoding="utf-8") for page in sorted(DOCS.glob("*.md"))]
    return [page[start : start + 1000] for page in pages for start in range(0, len(page) - 999, 1000)][:60]


# ── the files ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_checksum_and_the_size_are_those_of_the_files() -> None:
    assert hashlib.sha256(built_in_files().weights.read_bytes()).hexdigest() == BUILT_IN.sha256
    assert sum(file.stat().st_size for file in BUILT_IN_FOLDER.iterdir()) == BUILT_IN_SIZE


def test_both_graphs_share_one_copy_of_the_weights() -> None:
    files = built_in_files()

    assert files.int8_graph is not None
    assert files.int8_graph.stat().st_size < files.weights.stat().st_size / 50
    assert BUILT_IN_SIZE < 26_000_000


def test_the_vectors_are_those_of_the_weights_file_run_alone(in_float: LocalEmbedder) -> None:
    runtime = import_runtime().InferenceSession(str(built_in_files().weights))
    tokenizer = Tokenizer.from_file(str(BUILT_IN_FOLDER / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    pieces = long_texts()[:20]
    expected = []
    for piece in pieces:
        ids = np.array([tokenizer.encode(piece).ids])
        arrays = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        hidden = runtime.run(["last_hidden_state"], arrays)[0][0].mean(axis=0)
        expected.append(hidden / np.linalg.norm(hidden))

    assert (in_float.embed(pieces) * np.stack(expected)).sum(axis=1).min() > 0.9999


# ── both graphs ───────────────────────────────────────────────────────────────────────────────────────────────


def test_both_graphs_give_the_same_vectors_of_long_texts(in_float: LocalEmbedder, in_int8: LocalEmbedder) -> None:
    cosines = (in_float.embed(long_texts()) * in_int8.embed(long_texts())).sum(axis=1)

    assert len(cosines) == 60
    assert cosines.mean() > 0.998
    assert cosines.min() > 0.995


def test_both_graphs_give_the_same_vectors_of_short_and_strange_texts(
    in_float: LocalEmbedder, in_int8: LocalEmbedder
) -> None:
    cosines = (in_float.embed(texts()) * in_int8.embed(texts())).sum(axis=1)

    assert cosines.mean() > 0.999
    assert cosines.min() > 0.99  # the empty text has two tokens


def test_a_text_has_the_same_vector_in_every_batch(in_int8: LocalEmbedder) -> None:
    alone = np.stack([in_int8.embed([text])[0] for text in texts()])

    assert np.abs(in_int8.embed(texts()) - alone).max() < 1e-5


def test_a_memory_made_with_one_graph_is_continued_with_the_other(
    in_float: LocalEmbedder, in_int8: LocalEmbedder, tmp_path: Path
) -> None:
    facts = ["The staging database listens on port 5433.", "Anna waters the plants on Mondays."]
    with Memory(tmp_path / "memory.db") as memory:
        memory.models.use(CanaryEmbedder(in_float, memory.store))
        ids = [memory.add(fact).id for fact in facts]
    with Memory(tmp_path / "memory.db") as memory:
        memory.models.use(CanaryEmbedder(in_int8, memory.store))
        (answer, *_) = memory.search(QUESTION, mode="vector").hits
        added = memory.add("The production database listens on port 5432.")

        assert answer.record.id == ids[0]
        assert not added.notes
        assert memory.status().embedding.pending == 0
        assert len(memory.store.vectors.spaces()) == 1


# ── the choice ────────────────────────────────────────────────────────────────────────────────────────────────


class Twice:
    """A session that takes twice as long."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def run(self, *arguments: Any) -> Any:
        self._session.run(*arguments)
        return self._session.run(*arguments)


@pytest.fixture(scope="module")
def other_vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph that is fast and wrong."""
    table = np.random.default_rng(1).normal(size=(30_522, 384)).astype(np.float32)
    return onnx_models.embedder(tmp_path_factory.mktemp("other"), table) / "model.onnx"


@pytest.fixture(scope="module")
def exact() -> Any:
    options = import_runtime().SessionOptions()
    options.intra_op_num_threads = 1
    return import_runtime().InferenceSession(str(built_in_files().weights), options)


def test_a_graph_is_better_if_it_gives_the_same_vectors_in_less_time(exact: Any) -> None:
    assert is_better(exact, Twice(exact))  # type: ignore[arg-type]
    assert not is_better(Twice(exact), exact)  # type: ignore[arg-type]


def test_a_graph_with_other_vectors_is_not_better_however_fast(exact: Any, other_vectors: Path) -> None:
    assert not is_better(import_runtime().InferenceSession(str(other_vectors)), exact)


@pytest.mark.parametrize("case", ["other vectors", "not a model", "missing", "without its weights"])
def test_if_int8_does_not_serve_the_copy_computes_in_float(
    case: str, in_float: LocalEmbedder, other_vectors: Path, tmp_path: Path
) -> None:
    graph = tmp_path / "graph.onnx"
    if case == "other vectors":
        graph = other_vectors
    elif case == "not a model":
        graph.write_bytes(b"not a model")
    elif case == "without its weights":
        shutil.copy(BUILT_IN_FOLDER / "model-int8.onnx", graph)

    files = replace(built_in_files(), int8_graph=graph)
    vector = LocalEmbedder(files=lambda: files, cache_dir=tmp_path / "cache").embed_query(QUESTION)

    assert vector == pytest.approx(in_float.embed_query(QUESTION), abs=1e-5)
    (copy,) = (tmp_path / "cache").iterdir()
    assert not copy.name.endswith("-int8.ort")


def test_the_choice_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[Path] = []
    gains_by = session._gains_by

    def counted(graph: Path, model: Path) -> bool:
        compared.append(graph)
        return gains_by(graph, model)

    monkeypatch.setattr(session, "_gains_by", counted)
    files = built_in_files()
    for _ in range(2):
        open_session(files.weights, files.sha256, tmp_path, int8_graph=files.int8_graph)

    assert compared == [files.int8_graph]
    assert len(list(tmp_path.iterdir())) == 1


def test_another_integer_graph_gets_its_own_choice(other_vectors: Path, tmp_path: Path) -> None:
    files = built_in_files()
    for graph in (files.int8_graph, other_vectors):
        open_session(files.weights, files.sha256, tmp_path, int8_graph=graph)

    assert len(list(tmp_path.iterdir())) == 2
