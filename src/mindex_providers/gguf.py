"""GGUF files: what a model says of itself in the head, read without llama.cpp, which may abort on a broken file."""

import os
import struct
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from mindex.errors import ProviderError
from mindex.providers.cache_files import dataclass_of
from mindex.providers.model_files import at_path, checksum, read_facts, write_facts

_MAGICS = [struct.pack("<4sI", b"GGUF", version) for version in (2, 3)]
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9
_MAX_TEXT = 1 << 20  # bytes; chat templates and licences have some ten thousand
_POOLING = {1: "mean", 2: "cls", 3: "last"}
_MEAN = 1
_MIN_TOKENS = 16
_USUAL_TOKENS = 512  # of a model whose file does not say


@dataclass(frozen=True, slots=True)
class GgufModel:
    """A GGUF file and what it says of itself. The fields are kept in the cache folder by these names."""

    path: str
    sha256: str
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
        model = dataclass_of((read_facts("gguf", [path]) or {}).get("model"), GgufModel)
        if model is None:
            model = _read_model(path, hint)
            write_facts("gguf", [path], {"model": asdict(model)})
        return model


def _read_model(path: Path, hint: str) -> GgufModel:
    with path.open("rb") as file:
        if file.read(8) not in _MAGICS:
            raise ProviderError(f"{path} is not a GGUF file of version 2 or 3", hint)
        try:
            tensor_count, value_count = _number(file, "Q"), _number(file, "Q")
            values = {_text(file): _value(file, _number(file, "I")) for _ in range(value_count)}
            tensors = [_tensor_name(file) for _ in range(tensor_count)]
        except (KeyError, OverflowError, RecursionError, ValueError, struct.error):
            values, tensors = {}, []
    architecture = values.get("general.architecture")

    def number(key: str) -> int:
        value = values.get(f"{architecture}.{key}", 0)
        return value if isinstance(value, int) else 0

    tokens = values.get(f"{architecture}.context_length", _USUAL_TOKENS)
    if not tensors or not isinstance(tokens, int) or tokens < _MIN_TOKENS:
        raise ProviderError(f"{path} is a damaged GGUF file", hint)
    pooling = number("pooling_type")
    return GgufModel(
        str(path),
        checksum([path]),
        tokens=tokens,
        dimensions=number("embedding_length"),
        pooling=pooling if pooling in _POOLING else _MEAN,
        # A classification head gives a text a score.
        judges=any(name.startswith("cls.") for name in tensors),
        # A model that reads each token with those after it in view cannot write.
        writes=values.get(f"{architecture}.attention.causal") is not False,
    )


# ── the head: values by key, then the tensors ─────────────────────────────────────────────────────────────────


def _value(file: BinaryIO, kind: int) -> object:
    """Read a value; None for a list, which is skipped. Raises KeyError for an unknown kind."""
    if kind == _TEXT:
        return _text(file)
    if kind != _LIST:
        return _number(file, _SCALARS[kind])
    kind, count = _number(file, "I"), _number(file, "Q")
    if kind in _SCALARS:
        file.seek(struct.calcsize(_SCALARS[kind]) * count, os.SEEK_CUR)
    else:
        for _ in range(count):
            _value(file, kind)
    return None


def _tensor_name(file: BinaryIO) -> str:
    name = _text(file)
    file.seek(8 * _number(file, "I") + 12, os.SEEK_CUR)  # its dimensions, type and place
    return name


def _text(file: BinaryIO) -> str:
    length = _number(file, "Q")
    if length > _MAX_TEXT:
        raise ValueError(length)
    return file.read(length).decode("utf-8", "replace")


def _number(file: BinaryIO, form: str) -> int:
    """Read a number. Raises struct.error at the end of the file."""
    number: int = struct.unpack(f"<{form}", file.read(struct.calcsize(form)))[0]
    return number
