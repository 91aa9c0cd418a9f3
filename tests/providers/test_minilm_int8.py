"""The built-in model in int8: the vectors of its other form in less time, and that form where nothing is gained."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mindex.embedding.canary import SENTENCE, CanaryEmbedder
from mindex.memory import Memory
from mindex.providers.embed.local import LocalEmbedder, minilm_files
from mindex.providers.model_files import checksum
from mindex.providers.onnx.comparison import is_better
from mindex.providers.onnx.minilm_int8 import int8_graph
from mindex.providers.onnx.onnx_file import Graph, read_weights
from mindex.providers.onnx.session import import_runtime, open_session
from tests.conftest import HANDBOOK

pytestmark = pytest.mark.model

QUESTION = "Which port does the staging database listen on?"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("forms")


@pytest.fixture(scope="module")
def in_float(cache: Path) -> LocalEmbedder:
    return LocalEmbedder(files=lambda: replace(minilm_files(), int8_graph=None), cache_dir=cache / "float")


@pytest.fixture(scope="module")
def in_int8(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> LocalEmbedder:
    """Opened from the graph's own file: whatever this processor gains."""
    file = tmp_path_factory.mktemp("int8") / "model.onnx"
    file.write_bytes(int8_graph(minilm_files().weights))
    files = replace(minilm_files(), weights=file, sha256=checksum([file]), int8_graph=None)
    return LocalEmbedder(files=lambda: files, cache_dir=cache / "int8")


def texts() -> list[str]:
    paragraphs = [part for page in sorted(HANDBOOK.rglob("*.md")) for part in page.read_text().split("\n\n")]
    return [SENTENCE, QUESTION, "", "a", "缓存每天晚上都会被清空", "word " * 400, *paragraphs[:40]]


def test_both_forms_give_the_same_vectors(in_float: LocalEmbedder, in_int8: LocalEmbedder) -> None:
    cosines = (in_float.embed(texts()) * in_int8.embed(texts())).sum(axis=1)

    assert cosines.mean() > 0.999
    assert cosines.min() > 0.995


def test_a_text_has_the_same_vector_whatever_is_in_its_batch(in_int8: LocalEmbedder) -> None:
    alone = np.stack([in_int8.embed([text])[0] for text in texts()])

    assert np.abs(in_int8.embed(texts()) - alone).max() < 1e-5


def test_a_memory_made_with_one_form_goes_on_with_the_other(
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


def other_vectors(_: Path) -> bytes:
    """A graph that is fast and wrong."""
    graph = Graph()
    vectors = graph.constant(np.random.default_rng(1).normal(size=(30_522, 384)).astype(np.float32))
    graph.op("Gather", vectors, "input_ids", output="last_hidden_state")
    inputs = dict.fromkeys(("input_ids", "attention_mask", "token_type_ids"), ("batch", "sequence"))
    return graph.serialize(inputs, {"last_hidden_state": ("batch", "sequence", 384)})


@pytest.fixture(scope="module")
def exact() -> Any:
    options = import_runtime().SessionOptions()
    options.intra_op_num_threads = 1
    return import_runtime().InferenceSession(str(minilm_files().weights), options)


def test_a_form_is_better_if_it_gives_the_same_vectors_in_less_time(exact: Any) -> None:
    assert is_better(exact, Twice(exact))  # type: ignore[arg-type]
    assert not is_better(Twice(exact), exact)  # type: ignore[arg-type]


def test_a_form_with_other_vectors_is_not_better_however_fast(exact: Any) -> None:
    assert not is_better(import_runtime().InferenceSession(other_vectors(Path())), exact)


@pytest.mark.parametrize("case", ["other vectors", "no model", "error"])
def test_where_int8_does_not_serve_the_copy_computes_in_float(
    case: str, in_float: LocalEmbedder, tmp_path: Path
) -> None:
    def graph(file: Path) -> bytes:
        if case == "error":
            raise KeyError("val_49_q")
        return other_vectors(file) if case == "other vectors" else b"no model"

    files = replace(minilm_files(), int8_graph=graph)
    vector = LocalEmbedder(files=lambda: files, cache_dir=tmp_path).embed_query(QUESTION)

    assert vector == pytest.approx(in_float.embed_query(QUESTION), abs=1e-5)
    (copy,) = tmp_path.iterdir()
    assert not copy.name.endswith("-int8.ort")


def test_the_choice_is_made_once(tmp_path: Path) -> None:
    calls: list[Path] = []

    def graph(file: Path) -> bytes:
        calls.append(file)
        return int8_graph(file)

    files = minilm_files()
    for _ in range(2):
        open_session(files.weights, files.sha256, tmp_path, int8_graph=graph)

    assert calls == [files.weights]
    assert len(list(tmp_path.iterdir())) == 1


# ── ONNX files ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["float32", "uint8", "int8", "int32", "int64"])
def test_weights_that_are_written_are_read_again(kind: str, tmp_path: Path) -> None:
    graph = Graph()
    arrays = [np.arange(6).astype(kind).reshape(shape) for shape in ((6,), (2, 3), (1, 2, 3))]
    names = [graph.constant(array) for array in (*arrays, np.array(200 if kind == "uint8" else -1).astype(kind))]
    file = tmp_path / "model.onnx"
    file.write_bytes(graph.serialize({}, {}))

    read = read_weights(file)

    assert list(read) == names
    for name, array in zip(names, arrays, strict=False):
        assert read[name].dtype == array.dtype
        assert np.array_equal(read[name], array)
    assert read[names[-1]].shape == ()


def test_equal_weights_are_stored_once() -> None:
    graph = Graph()

    assert graph.constant(np.ones(3)[:2].astype("float32")) == graph.constant(np.ones(2, dtype=np.float32))
    assert graph.constant(np.ones((1, 2), dtype=np.float32)) != graph.constant(np.ones(2, dtype=np.float32))
