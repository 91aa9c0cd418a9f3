"""GGUF files made of ONNX models, so that llama.cpp can be held to what ONNX Runtime answers.

Reads the weights of a BERT whose matrices are stored as bytes with a scale, and writes them as llama.cpp wants them.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_CLS, _RANK = 2, 4
_TYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 6: np.int32, 7: np.int64}
_U32, _I32, _F32, _BOOL, _TEXT, _LIST = 4, 5, 6, 7, 8, 9
_PARTS = {
    "attention/self/query": ("attn_q", "attention.self.query.bias"),
    "attention/self/key": ("attn_k", "attention.self.key.bias"),
    "attention/self/value": ("attn_v", "attention.self.value.bias"),
    "attention/output/dense": ("attn_output", "attention.output.dense.bias"),
    "intermediate/dense": ("ffn_up", "intermediate.dense.bias"),
    "output/dense": ("ffn_down", "output.dense.bias"),
}
_NORMS = {"attention.output.LayerNorm": "attn_output_norm", "output.LayerNorm": "layer_output_norm"}


@dataclass(frozen=True, slots=True)
class Entry:
    """A value in the head of a GGUF file."""

    kind: int
    value: Any


def bert_gguf(folder: Path, target: Path, *, heads: int = 12) -> Path:
    """The BERT in a folder as a GGUF file: a reranker where it has a classifier, else an embedder."""
    nodes, weights = _onnx(folder / "model.onnx")
    prefix = "bert." if any(name.startswith("bert.") for name in weights) else ""
    judges = "classifier.bias" in weights
    tensors = dict(_tensors(nodes, weights, prefix))
    if judges:
        tensors["cls.weight"] = _matrix(weights, f"{prefix}pooler.dense.weight").T
        tensors["cls.bias"] = weights[f"{prefix}pooler.dense.bias"]
        tensors["cls.output.weight"] = _matrix(weights, "classifier.weight").T
        tensors["cls.output.bias"] = weights["classifier.bias"]
    layers = 1 + max(int(name.split(".")[1]) for name in tensors if name.startswith("blk."))
    width = tensors["token_embd.weight"].shape[1]
    head = {
        "general.architecture": Entry(_TEXT, "bert"),
        "general.name": Entry(_TEXT, folder.name),
        "bert.block_count": Entry(_U32, layers),
        "bert.context_length": Entry(_U32, 512),
        "bert.embedding_length": Entry(_U32, width),
        "bert.feed_forward_length": Entry(_U32, tensors["blk.0.ffn_up.weight"].shape[0]),
        "bert.attention.head_count": Entry(_U32, heads),
        "bert.attention.layer_norm_epsilon": Entry(_F32, 1e-12),
        "bert.attention.causal": Entry(_BOOL, False),
        "bert.pooling_type": Entry(_U32, _RANK if judges else _CLS),
        **_vocabulary(folder / "tokenizer.json"),
    }
    write_gguf(target, head, tensors)
    return target


def write_gguf(target: Path, head: Mapping[str, Entry], tensors: Mapping[str, np.ndarray]) -> None:
    """Matrices of more than two rows as float16, the rest as float32."""
    stored = {name: _stored(tensor) for name, tensor in tensors.items()}
    content = b"GGUF" + struct.pack("<IQQ", 3, len(stored), len(head))
    for key, entry in head.items():
        content += _text(key) + struct.pack("<I", entry.kind) + _value(entry)
    offset = 0
    for name, tensor in stored.items():
        dimensions = tensor.shape[::-1]
        content += _text(name) + struct.pack(f"<I{len(dimensions)}Q", len(dimensions), *dimensions)
        content += struct.pack("<IQ", 1 if tensor.dtype == np.float16 else 0, offset)
        offset += -(-tensor.nbytes // 32) * 32
    with target.open("wb") as file:
        file.write(content + bytes(-len(content) % 32))
        for tensor in stored.values():
            file.write(np.ascontiguousarray(tensor).tobytes())
            file.write(bytes(-tensor.nbytes % 32))


def _stored(tensor: np.ndarray) -> np.ndarray:
    small = tensor.ndim == 1 or min(tensor.shape) <= 2
    return tensor.astype(np.float32 if small else np.float16)


def _value(entry: Entry) -> bytes:
    if entry.kind == _TEXT:
        return _text(entry.value)
    if entry.kind == _LIST:
        kind, values = entry.value
        return struct.pack("<IQ", kind, len(values)) + b"".join(_value(Entry(kind, value)) for value in values)
    return struct.pack({_U32: "<I", _I32: "<i", _F32: "<f", _BOOL: "<?"}[entry.kind], entry.value)


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _vocabulary(tokenizer: Path) -> dict[str, Entry]:
    ids: dict[str, int] = json.loads(tokenizer.read_text(encoding="utf-8"))["model"]["vocab"]
    tokens = sorted(ids, key=lambda token: ids[token])
    special = {token for token in tokens if token.startswith("[") and token.endswith("]") and len(token) > 2}

    def spelt(token: str) -> str:
        return token if token in special else token[2:] if token.startswith("##") else f"▁{token}"

    return {
        "tokenizer.ggml.model": Entry(_TEXT, "bert"),
        "tokenizer.ggml.tokens": Entry(_LIST, (_TEXT, [spelt(token) for token in tokens])),
        "tokenizer.ggml.token_type": Entry(_LIST, (_I32, [3 if token in special else 1 for token in tokens])),
        "tokenizer.ggml.token_type_count": Entry(_U32, 2),
        "tokenizer.ggml.bos_token_id": Entry(_U32, ids["[CLS]"]),
        "tokenizer.ggml.eos_token_id": Entry(_U32, ids["[SEP]"]),
        "tokenizer.ggml.cls_token_id": Entry(_U32, ids["[CLS]"]),
        "tokenizer.ggml.seperator_token_id": Entry(_U32, ids["[SEP]"]),
        "tokenizer.ggml.unknown_token_id": Entry(_U32, ids["[UNK]"]),
        "tokenizer.ggml.padding_token_id": Entry(_U32, ids["[PAD]"]),
    }


def _tensors(
    nodes: list[tuple[str, list[str]]], weights: Mapping[str, np.ndarray], prefix: str
) -> Iterator[tuple[str, np.ndarray]]:
    for name, called in (("word", "token_embd"), ("position", "position_embd"), ("token_type", "token_types")):
        yield f"{called}.weight", _matrix(weights, f"{prefix}embeddings.{name}_embeddings.weight")
    for part in ("weight", "bias"):
        yield f"token_embd_norm.{part}", weights[f"{prefix}embeddings.LayerNorm.{part}"]
    for node, inputs in nodes:
        _, marker, rest = node.partition("encoder/layer.")
        layer, _, place = rest.partition("/")
        for part, (called, bias) in _PARTS.items():
            if marker and place.startswith(f"{part}/MatMul"):
                yield f"blk.{layer}.{called}.weight", _matrix(weights, inputs[1].removesuffix("_quantized")).T
                yield f"blk.{layer}.{called}.bias", weights[f"{prefix}encoder.layer.{layer}.{bias}"]
    for name, values in weights.items():
        _, marker, rest = name.partition("encoder.layer.")
        layer, _, place = rest.partition(".")
        norm, _, part = place.rpartition(".")
        if marker and norm in _NORMS:
            yield f"blk.{layer}.{_NORMS[norm]}.{part}", values


def _matrix(weights: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    """A matrix as numbers, from bytes, their zero and their scale."""
    stored, zero = weights[f"{name}_quantized"], weights[f"{name}_zero_point"]
    matrix: np.ndarray = (stored.astype(np.float32) - zero.astype(np.float32)) * weights[f"{name}_scale"]
    return matrix


# ── ONNX ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _onnx(file: Path) -> tuple[list[tuple[str, list[str]]], dict[str, np.ndarray]]:
    """The graph's nodes, by name and inputs, where they multiply bytes; and its weights."""
    graph = next(value for number, value in _fields(file.read_bytes()) if number == 7)
    nodes, weights = [], {}
    for number, value in _fields(graph):
        if number == 1:
            parts = [(part, bytes(one).decode()) for part, one in _fields(value) if part in (1, 3, 4)]
            if (4, "MatMulInteger") in parts:
                name = next(one for part, one in parts if part == 3)
                nodes.append((name, [one for part, one in parts if part == 1]))
        elif number == 5:
            name, tensor = _tensor(value)
            weights[name] = tensor
    return nodes, weights


def _tensor(message: bytes) -> tuple[str, np.ndarray]:
    shape: list[int] = []
    name, kind, raw = "", 1, b""
    for number, value in _fields(message):
        if number == 1:
            shape += [value] if isinstance(value, int) else list(_numbers(value))
        elif number == 2:
            kind = value
        elif number == 4:
            raw += bytes(value)
        elif number == 5:
            raw += np.array(list(_numbers(value)), dtype=np.int64).astype(_TYPES[kind]).tobytes()
        elif number == 8:
            name = bytes(value).decode()
        elif number == 9:
            raw = bytes(value)
    return name, np.frombuffer(raw, _TYPES[kind]).reshape(shape)


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Number and value of each field of a protocol buffer."""
    view, place = memoryview(message), 0
    while place < len(view):
        key, place = _number(view, place)
        if key & 7 == 0:
            value, place = _number(view, place)
            yield key >> 3, value
            continue
        length, place = (4, place) if key & 7 == 5 else (8, place) if key & 7 == 1 else _number(view, place)
        yield key >> 3, view[place : place + length]
        place += length


def _numbers(packed: memoryview) -> Iterator[int]:
    place = 0
    while place < len(packed):
        value, place = _number(packed, place)
        yield value


def _number(view: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = view[place]
        place += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, place
