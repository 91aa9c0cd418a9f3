"""ONNX files without the package `onnx`, which takes 31 MB: read a model's weights, write a graph.

A file is a protobuf message; the numbers below are those of its fields in onnx.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Shape = tuple[int | str, ...]  # a name for a dimension that varies
MICROSOFT = "com.microsoft"  # operators that only ONNX Runtime has

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
# onnx.proto's numbers of the types that are used here, by numpy's names.
_TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7}
_IR_VERSION = 8  # of 2021: every ONNX Runtime that mindex allows reads it
_OPSET = 17
_FLOAT, _INT, _INTS = 1, 2, 7  # kinds of attributes


def read_weights(file: Path) -> dict[str, NDArray[Any]]:
    """Return the initializers of a model by name, in the order of the file, without those of other types.

    Expects a whole file whose checksum was compared. Weights that lie beside the file are not read.
    """
    names = {number: name for name, number in _TYPES.items()}
    weights: dict[str, NDArray[Any]] = {}
    (graph,) = _all(memoryview(file.read_bytes()), 7)
    for tensor in _all(graph, 5):
        fields = dict(_fields(tensor))
        if (name := names.get(fields[2])) and 9 in fields:
            array = np.frombuffer(fields[9], dtype=np.dtype(name).newbyteorder("<"))
            weights[bytes(fields[8]).decode()] = array.reshape(_dimensions(tensor))
    return weights


class Graph:
    """A graph under construction. Values are named by what `constant` and `op` return."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._weights: list[bytes] = []
        self._names: dict[bytes, str] = {}

    def constant(self, array: NDArray[Any]) -> str:
        """Add a weight, once for equal ones, and return its name."""
        little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        body = b"".join(_number(1, size) for size in array.shape) + _number(2, _TYPES[array.dtype.name])
        body += _bytes(9, little.tobytes())
        if body not in self._names:
            self._names[body] = f"w{len(self._weights)}"
            self._weights.append(body + _text(8, self._names[body]))
        return self._names[body]

    def op(
        self, kind: str, *inputs: str, domain: str = "", output: str = "", **attributes: float | int | tuple[int, ...]
    ) -> str:
        """Add an operator with one output and return that output's name. An input '' is left out."""
        output = output or f"v{len(self._nodes)}"
        node = b"".join(_text(1, name) for name in inputs) + _text(2, output) + _text(4, kind)
        node += b"".join(_bytes(5, _attribute(name, value)) for name, value in attributes.items())
        self._nodes.append(node + _text(7, domain))
        return output

    def serialize(self, inputs: Mapping[str, Shape], outputs: Mapping[str, Shape]) -> bytes:
        """Return the bytes of the model, whose inputs are int64 and whose outputs are float32."""
        graph = b"".join(_bytes(1, node) for node in self._nodes) + _text(2, "mindex")
        graph += b"".join(_bytes(5, weight) for weight in self._weights)
        graph += b"".join(_bytes(11, _value(name, "int64", shape)) for name, shape in inputs.items())
        graph += b"".join(_bytes(12, _value(name, "float32", shape)) for name, shape in outputs.items())
        opsets = _bytes(8, _text(1, "") + _number(2, _OPSET)) + _bytes(8, _text(1, MICROSOFT) + _number(2, 1))
        return _number(1, _IR_VERSION) + _bytes(7, graph) + opsets


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # a negative number is written as its two's complement
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | _BYTES) + _varint(len(value)) + value


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _attribute(name: str, value: float | tuple[int, ...]) -> bytes:
    if isinstance(value, tuple):
        return _text(1, name) + b"".join(_number(8, one) for one in value) + _number(20, _INTS)
    if isinstance(value, float):
        return _text(1, name) + _varint(2 << 3 | _FIXED32) + struct.pack("<f", value) + _number(20, _FLOAT)
    return _text(1, name) + _number(3, value) + _number(20, _INT)


def _value(name: str, kind: str, shape: Shape) -> bytes:
    sizes = (_number(1, size) if isinstance(size, int) else _text(2, size) for size in shape)
    dimensions = b"".join(_bytes(1, size) for size in sizes)
    return _text(1, name) + _bytes(2, _bytes(1, _number(1, _TYPES[kind]) + _bytes(2, dimensions)))


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────


def _fields(message: memoryview) -> Iterator[tuple[int, Any]]:
    """Yield the number and value of each field: an int, or the bytes of it."""
    at = 0
    while at < len(message):
        key, at = _read_varint(message, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _read_varint(message, at)
            yield key >> 3, value
            continue
        size = {_FIXED64: 8, _FIXED32: 4}.get(kind, 0)
        if kind == _BYTES:
            size, at = _read_varint(message, at)
        yield key >> 3, message[at : at + size]
        at += size


def _read_varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _all(message: memoryview, field: int) -> list[memoryview]:
    return [value for number, value in _fields(message) if number == field]


def _dimensions(tensor: memoryview) -> list[int]:
    """Repeated numbers stand one by one or, packed, in one field of bytes."""
    sizes: list[int] = []
    for value in _all(tensor, 1):
        if isinstance(value, int):
            sizes.append(value)
            continue
        at = 0
        while at < len(value):
            size, at = _read_varint(value, at)
            sizes.append(size)
    return sizes
