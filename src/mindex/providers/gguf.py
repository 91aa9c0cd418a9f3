"""The head of a GGUF file: what a model says of itself, read without llama.cpp, which may abort on a broken one."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from mindex.errors import ProviderError

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_MOST_VALUES = 10_000
_MOST_TENSORS = 100_000
_MOST_DIMENSIONS = 4
_MOST_NAME = 1_000
# Longer texts are chat templates and licences, which are skipped.
_MOST_TEXT = 1_000
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9


@dataclass(frozen=True, slots=True)
class GgufHead:
    """Values by key, without lists and long texts, and the names of the tensors."""

    values: Mapping[str, object]
    tensors: frozenset[str]

    @property
    def architecture(self) -> str:
        return str(self.values.get("general.architecture", ""))

    def number(self, key: str) -> int | None:
        """A number that the architecture has."""
        value = self.values.get(f"{self.architecture}.{key}")
        return value if isinstance(value, int) else None

    @property
    def reads_both_ways(self) -> bool:
        """Whether each word is read with those behind it in view; such a model cannot write."""
        return self.values.get(f"{self.architecture}.attention.causal") is False

    @property
    def judges(self) -> bool:
        """Whether it has a head that gives a text a score."""
        return any(name.startswith("cls.") for name in self.tensors)


def read_head(path: Path, hint: str) -> GgufHead:
    """Raises ProviderError when the file cannot be read, is no GGUF, or ends too early."""
    try:
        with path.open("rb") as file:
            return _Reader(file, path.stat().st_size).head()
    except OSError as error:
        raise ProviderError(f"the model {path} cannot be read ({error.strerror or error})", hint) from error
    except _NotSound as error:
        raise ProviderError(f"{path} {error}", hint) from error


class _NotSound(Exception):
    """What is wrong with the file, as the end of a sentence."""


class _Reader:
    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size

    def head(self) -> GgufHead:
        if self._file.read(len(_MAGIC)) != _MAGIC:
            raise _NotSound("is no GGUF file")
        version = self._number("I")
        if version not in _VERSIONS:
            raise _NotSound(f"is a GGUF file of version {version}, which nobody reads any more, or not yet")
        tensors, values = self._number("Q"), self._number("Q")
        if tensors > _MOST_TENSORS or values > _MOST_VALUES:
            raise _NotSound("is a damaged GGUF file")
        found = {self._name(): self._value(self._number("I")) for _ in range(values)}
        names: set[str] = set()
        last = 0
        for _ in range(tensors):
            names.add(self._name())
            self._skip(8 * self._at_most(self._number("I"), _MOST_DIMENSIONS) + 4)
            last = max(last, self._number("Q"))
        if self._file.tell() + last > self._size or not names:
            raise _NotSound("is a GGUF file that ends too early")
        return GgufHead(found, frozenset(names))

    def _value(self, kind: int) -> object:
        if kind in _SCALARS:
            return self._number(_SCALARS[kind])
        if kind == _TEXT:
            length = self._at_most(self._number("Q"), self._size)
            if length <= _MOST_TEXT:
                return self._bytes(length).decode("utf-8", "replace")
            self._skip(length)
            return None
        if kind == _LIST:
            self._skip_list(self._number("I"), self._number("Q"))
            return None
        raise _NotSound("is a damaged GGUF file")

    def _skip_list(self, kind: int, count: int) -> None:
        self._at_most(count, self._size)
        if kind in _SCALARS:
            self._skip(struct.calcsize(_SCALARS[kind]) * count)
        elif kind == _TEXT:
            for _ in range(count):
                self._skip(self._number("Q"))
        else:
            raise _NotSound("is a damaged GGUF file")

    def _name(self) -> str:
        return self._bytes(self._at_most(self._number("Q"), _MOST_NAME)).decode("utf-8", "replace")

    def _number(self, form: str) -> int:
        number: int = struct.unpack(f"<{form}", self._bytes(struct.calcsize(form)))[0]
        return number

    def _bytes(self, count: int) -> bytes:
        found = self._file.read(count)
        if len(found) != count:
            raise _NotSound("is a GGUF file that ends too early")
        return found

    def _skip(self, count: int) -> None:
        if self._file.tell() + count > self._size:
            raise _NotSound("is a GGUF file that ends too early")
        self._file.seek(count, 1)

    def _at_most(self, count: int, most: int) -> int:
        if count > most:
            raise _NotSound("is a damaged GGUF file")
        return count
