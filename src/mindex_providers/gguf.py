"""GGUF files: what a model says of itself in the head, read without llama.cpp, which may abort on a broken file."""

import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from mindex.errors import ProviderError
from mindex.providers.provider_parts import at_path, checksum, dataclass_of, read_facts, write_facts

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_MAX_VALUES = 10_000
_MAX_TENSORS = 100_000
_MAX_DIMENSIONS = 4
_MAX_NAME = 1_000
# Longer texts are chat templates and licences, which are skipped.
_MAX_TEXT = 1_000
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9
_POOLING = {1: "mean", 2: "cls", 3: "last"}
_MEAN = 1
_MIN_TOKENS = 16
_USUAL_TOKENS = 512  # of a model whose file does not say


@dataclass(frozen=True, slots=True)
class GgufModel:
    """A GGUF file and what it says of itself. The fields are kept in the cache folder by these names."""

    path: str
    sha256: str
    architecture: str
    tokens: int
    dimensions: int
    pooling: int
    judges: bool  # it has a head that scores texts: a reranker
    writes: bool

    @property
    def title(self) -> str:
        return Path(self.path).stem

    @property
    def name(self) -> str:
        """The file's name and the beginning of its checksum: another file of the same name is another model."""
        return f"{self.title}@{self.sha256[:8]}"

    @property
    def pooling_name(self) -> str:
        return _POOLING[self.pooling]


def describe(name: str, setting: str) -> GgufModel:
    """Return the model at a path; cheap from the second time on. Raises ProviderError that says what is wrong with it.

    `setting` is the setting that named the path.
    """
    hint = f"let {setting} name a GGUF file"
    if not name:
        raise ProviderError("llama-cpp needs a model", hint)
    with at_path(name, hint) as path:
        if not path.is_file():
            raise ProviderError(f"there is no file {path}", hint)
        model = dataclass_of(read_facts("gguf", [path]), GgufModel)
        if model is None:
            model = _read_model(path, hint)
            write_facts("gguf", [path], {"model": asdict(model)})
        return model


def _read_model(path: Path, hint: str) -> GgufModel:
    head = read_head(path, hint)
    pooling, tokens = head.number("pooling_type"), head.number("context_length")
    if tokens is not None and tokens < _MIN_TOKENS:
        raise ProviderError(f"{path} is a damaged GGUF file", hint)
    return GgufModel(
        str(path),
        checksum([path]),
        head.architecture,
        tokens=tokens or _USUAL_TOKENS,
        dimensions=head.number("embedding_length") or 0,
        pooling=pooling if pooling in _POOLING else _MEAN,
        # A classification head gives a text a score.
        judges=any(name.startswith("cls.") for name in head.tensors),
        # A model that reads each token with those after it in view cannot write.
        writes=head.values.get(f"{head.architecture}.attention.causal") is not False,
    )


# ── the head ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class GgufHead:
    """Values by key, without lists and long texts, and the names of the tensors."""

    values: Mapping[str, object]
    tensors: frozenset[str]

    @property
    def architecture(self) -> str:
        return str(self.values.get("general.architecture", ""))

    def number(self, key: str) -> int | None:
        """Return a number that belongs to the architecture; None if there is none."""
        value = self.values.get(f"{self.architecture}.{key}")
        return value if isinstance(value, int) else None


def read_head(path: Path, hint: str) -> GgufHead:
    """Raises ProviderError if the file cannot be read, is not a GGUF file, or ends too early."""
    try:
        with path.open("rb") as file:
            return _Reader(file, path.stat().st_size).head()
    except OSError as error:
        raise ProviderError(f"the model {path} cannot be read ({error.strerror or error})", hint) from error
    except _Malformed as error:
        raise ProviderError(f"{path} {error}", hint) from error


class _Malformed(Exception):
    """What is wrong with the file, as the end of a sentence."""


class _Reader:
    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size

    def head(self) -> GgufHead:
        if self._file.read(len(_MAGIC)) != _MAGIC:
            raise _Malformed("is not a GGUF file")
        version = self._number("I")
        if version not in _VERSIONS:
            raise _Malformed(f"is a GGUF file of the unsupported version {version}")
        tensors, values = self._number("Q"), self._number("Q")
        if tensors > _MAX_TENSORS or values > _MAX_VALUES:
            raise _Malformed("is a damaged GGUF file")
        found = {self._name(): self._value(self._number("I")) for _ in range(values)}
        names: set[str] = set()
        last = 0
        for _ in range(tensors):
            names.add(self._name())
            self._skip(8 * self._at_most(self._number("I"), _MAX_DIMENSIONS) + 4)
            last = max(last, self._number("Q"))
        if self._file.tell() + last > self._size or not names:
            raise _Malformed("is a GGUF file that ends too early")
        return GgufHead(found, frozenset(names))

    def _value(self, kind: int) -> object:
        if kind in _SCALARS:
            return self._number(_SCALARS[kind])
        if kind == _TEXT:
            length = self._at_most(self._number("Q"), self._size)
            if length <= _MAX_TEXT:
                return self._bytes(length).decode("utf-8", "replace")
            self._skip(length)
            return None
        if kind == _LIST:
            self._skip_list(self._number("I"), self._number("Q"))
            return None
        raise _Malformed("is a damaged GGUF file")

    def _skip_list(self, kind: int, count: int) -> None:
        self._at_most(count, self._size)
        if kind in _SCALARS:
            self._skip(struct.calcsize(_SCALARS[kind]) * count)
        elif kind == _TEXT:
            for _ in range(count):
                self._skip(self._number("Q"))
        else:
            raise _Malformed("is a damaged GGUF file")

    def _name(self) -> str:
        return self._bytes(self._at_most(self._number("Q"), _MAX_NAME)).decode("utf-8", "replace")

    def _number(self, form: str) -> int:
        number: int = struct.unpack(f"<{form}", self._bytes(struct.calcsize(form)))[0]
        return number

    def _bytes(self, count: int) -> bytes:
        found = self._file.read(count)
        if len(found) != count:
            raise _Malformed("is a GGUF file that ends too early")
        return found

    def _skip(self, count: int) -> None:
        if self._file.tell() + count > self._size:
            raise _Malformed("is a GGUF file that ends too early")
        self._file.seek(count, 1)

    def _at_most(self, count: int, most: int) -> int:
        if count > most:
            raise _Malformed("is a damaged GGUF file")
        return count
