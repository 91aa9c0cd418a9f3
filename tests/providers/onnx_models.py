"""Folders with the smallest real ONNX models there are: a table of one row per word, run by the real ONNX Runtime."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

FLOAT, INT32, INT64 = 1, 6, 7
WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "cache", "redis", "night", "choir", "sings", "key", "door", "query", ":")
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


@dataclass(frozen=True, slots=True)
class Node:
    kind: str
    inputs: Sequence[str]
    output: str
    ints: Mapping[str, int | Sequence[int]] | None = None


def rows(width: int = 4, seed: int = 7) -> np.ndarray:
    """A row of numbers per word, the same in every run."""
    return np.random.default_rng(seed).normal(size=(len(WORDS), width)).astype(np.float32)


def embedder(folder: Path, table: np.ndarray | None = None, **options: object) -> Path:
    """A folder whose model answers with the table's row for each token."""
    table = rows() if table is None else table
    name = str(options.pop("output", "last_hidden_state"))
    lookup = Node("Gather", ["table", "input_ids"], "found")
    if name == "sentence_embedding":
        nodes = [lookup, *_masked_sum()]
        shape: list[object] = ["b", table.shape[1]]
    else:
        nodes = [Node("Gather", ["table", "input_ids"], name)]
        shape = ["b", "t", table.shape[1]]
    return _folder(folder, nodes, name, shape, table, **options)


def cross_encoder(folder: Path, table: np.ndarray, **options: object) -> Path:
    """A folder whose model adds up the table's rows of all tokens of a pair."""
    nodes = [Node("Gather", ["table", "input_ids"], "found"), *_masked_sum("logits")]
    return _folder(folder, nodes, "logits", ["b", table.shape[1]], table, **options)


def tokenizer(*, special: bool = True, words: Sequence[str] = WORDS) -> Tokenizer:
    made = Tokenizer(models.WordPiece({word: id_ for id_, word in enumerate(words)}, unk_token="[UNK]"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    if special:
        made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return made


def settings(folder: Path, files: Mapping[str, object]) -> Path:
    """Put JSON files beside a model."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content), encoding="utf-8")
    return folder


def _masked_sum(output: str = "sentence_embedding") -> list[Node]:
    return [
        Node("Cast", ["attention_mask"], "mask", {"to": FLOAT}),
        Node("Unsqueeze", ["mask", "last_axis"], "column"),
        Node("Mul", ["found", "column"], "kept"),
        Node("ReduceSum", ["kept", "middle_axis"], output, {"keepdims": 0}),
    ]


def _folder(
    folder: Path,
    nodes: Sequence[Node],
    output: str,
    shape: Sequence[object],
    table: np.ndarray,
    *,
    file: str = "model.onnx",
    inputs: Sequence[str] = INPUTS,
    whole: int = INT64,
    declared: Sequence[object] | None = None,
    words: Tokenizer | None = None,
) -> Path:
    constants = {"table": table, "last_axis": np.array([-1]), "middle_axis": np.array([1])}
    graph = b"".join(_field(1, _node(node)) for node in nodes) + _field(2, b"graph")
    used = {name for node in nodes for name in node.inputs}
    graph += b"".join(_field(5, _tensor(name, value)) for name, value in constants.items() if name in used)
    graph += b"".join(_field(11, _typed(name, whole, ["b", "t"])) for name in inputs)
    graph += _field(12, _typed(output, FLOAT, shape if declared is None else declared))
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_field(1, 8) + _field(7, graph) + _field(8, _field(1, b"") + _field(2, 13)))
    (tokenizer() if words is None else words).save(str(folder / "tokenizer.json"))
    return folder


# ── protocol buffers ──────────────────────────────────────────────────────────────────────────────────────────


def _node(node: Node) -> bytes:
    content = b"".join(_field(1, name.encode()) for name in node.inputs) + _field(2, node.output.encode())
    content += _field(4, node.kind.encode())
    for name, value in (node.ints or {}).items():
        assert isinstance(value, int)
        content += _field(5, _field(1, name.encode()) + _field(3, value) + _field(20, 2))
    return content


def _tensor(name: str, value: np.ndarray) -> bytes:
    kind = FLOAT if value.dtype == np.float32 else INT64
    return (
        b"".join(_field(1, size) for size in value.shape)
        + _field(2, kind)
        + _field(8, name.encode())
        + _field(9, value.tobytes())
    )


def _typed(name: str, kind: int, shape: Sequence[object]) -> bytes:
    sizes = (_field(1, size) if isinstance(size, int) else _field(2, str(size).encode()) for size in shape)
    tensor = _field(1, kind) + _field(2, b"".join(_field(1, size) for size in sizes))
    return _field(1, name.encode()) + _field(2, _field(1, tensor))


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _whole(number << 3) + _whole(value)
    return _whole(number << 3 | 2) + _whole(len(value)) + value


def _whole(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out += struct.pack("B", value & 127 | 128)
        value >>= 7
    return bytes(out) + struct.pack("B", value)
