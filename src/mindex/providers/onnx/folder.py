"""A folder with an ONNX model and its tokenizer, as models are published, and the settings that come with it."""

import json
import mmap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TypeVar

from mindex.errors import ProviderError
from mindex.providers.hub.pulled import PulledModel
from mindex.providers.model_files import at_path, checksum
from mindex.providers.onnx.engine import ModelFiles
from mindex.providers.onnx.session import weights_beside

P = TypeVar("P", bound=PurePath)

# The most exact first; for another one of several, the setting names the file itself.
_WEIGHTS = ("model", "model_fp32", "model_fp16", "model_quantized", "model_int8", "model_uint8", "model_q8", "model_q4")
_MAX_BYTES = 1_000_000
_SHA256_DIGITS = 64
# What sentence-transformers writes beside a model, and mindex reads.
SETTINGS = ("modules.json", "1_Pooling/config.json", "sentence_bert_config.json", "config_sentence_transformers.json")


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """Where the parts of one model are."""

    path: Path
    weights: Path
    tokenizer: Path
    hint: str

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def files(self) -> list[Path]:
        """Every file that decides the model's output."""
        settings = [file for file in (self.path / name for name in SETTINGS) if file.is_file()]
        return [self.weights, *weights_beside(self.weights), self.tokenizer, *settings]

    def setting(self, file: str) -> object:
        """Return the value of one of the folder's own JSON files; None if the file does not exist."""
        path = self.path / file
        try:
            with path.open("rb") as stream:
                found: object = json.loads(stream.read(_MAX_BYTES))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise ProviderError(f"{path} cannot be read ({error})", self.hint) from error
        return found

    def settings(self, file: str) -> Mapping[str, object]:
        found = self.setting(file)
        return found if isinstance(found, dict) else {}

    def known_files(self, called: str, cached: Mapping[str, object] | None) -> ModelFiles | None:
        """Return the model's files by what the cache holds of them; None if that does not suffice."""
        sha256 = (cached or {}).get("sha256")
        if cached is None or not isinstance(sha256, str) or len(sha256) != _SHA256_DIGITS:
            return None
        scales_by_run = cached.get("scales_by_run") is not False
        return ModelFiles(self.weights, sha256, self.tokenizer, called, self.hint, scales_by_run)

    def read_files(self, called: str) -> ModelFiles:
        """Return the model's files after reading all their bytes, for the checksum and how it was quantized."""
        sha256 = checksum([self.weights, *weights_beside(self.weights)])
        scales_by_run = _contains(self.weights, b"DynamicQuantize")
        return ModelFiles(self.weights, sha256, self.tokenizer, called, self.hint, scales_by_run)


@contextmanager
def model_folder(name: str, setting: str) -> Iterator[ModelFolder]:
    """Yield the model at a path: a folder, or the .onnx file in it. Raises ProviderError that says what is missing."""
    hint = f"let {setting} name a folder with model.onnx and tokenizer.json"
    with at_path(name, hint) as path:
        yield _folder_at(path, setting, hint)


def pulled_folder(pulled: PulledModel) -> ModelFolder:
    """Return where the parts of a model from the hub are. Raises ProviderError when one is missing."""
    folder = ModelFolder(pulled.folder, pulled.folder / pulled.weights, pulled.folder / pulled.tokenizer, pulled.hint)
    if not (folder.weights.is_file() and folder.tokenizer.is_file()):
        raise ProviderError(f"the files of the model {pulled.name} are gone from {pulled.folder}", pulled.hint)
    return folder


def _folder_at(path: Path, setting: str, hint: str) -> ModelFolder:
    if not path.exists():
        raise ProviderError(f"there is no folder {path}", hint)
    weights = _weights_in(path, setting) if path.is_dir() else path
    if weights.suffix != ".onnx":
        raise ProviderError(f"{path} is not an ONNX model", hint)
    folder = weights.parent.parent if weights.parent.name == "onnx" else weights.parent
    for place in (folder, weights.parent):
        if (place / "tokenizer.json").is_file():
            return ModelFolder(folder, weights, place / "tokenizer.json", hint)
    message = f"the folder {folder} has a model, and no tokenizer.json"
    raise ProviderError(message, f"put its tokenizer.json into {folder}")


def preferred_weights(files: Sequence[P]) -> P | None:
    """Return the most exact of several ONNX files, or the only one; None when their names do not tell."""
    for name in _WEIGHTS:
        for file in files:
            if file.stem == name:
                return file
    return files[0] if len(files) == 1 else None


def _weights_in(folder: Path, setting: str) -> Path:
    found = [file for place in (folder, folder / "onnx") for file in sorted(place.glob("*.onnx")) if file.is_file()]
    if preferred := preferred_weights(found):
        return preferred
    if found:
        names = ", ".join(file.name for file in found[:5])
        message = f"the folder {folder} holds several models ({names})"
        raise ProviderError(message, f"let {setting} name one of the files")
    raise ProviderError(f"the folder {folder} has no model.onnx", f"let {setting} name a folder with an ONNX model")


def _contains(file: Path, searched: bytes) -> bool:
    """Whether the bytes occur in a file, which may be larger than memory."""
    with file.open("rb") as stream:
        if not file.stat().st_size:
            return False
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            return mapped.find(searched) >= 0
