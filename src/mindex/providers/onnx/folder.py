"""A folder that holds an ONNX model and its tokenizer, as models are handed around, and what it says of itself."""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mindex.errors import ProviderError
from mindex.providers.model_files import at_path, checksum
from mindex.providers.onnx.engine import ModelFiles
from mindex.providers.onnx.session import weights_beside

# The most faithful first; whoever wants another one of several names the file itself.
_WEIGHTS = ("model", "model_fp32", "model_fp16", "model_quantized", "model_int8", "model_uint8", "model_q8", "model_q4")
_MOST_BYTES = 1_000_000
_SETTINGS = (
    "modules.json",
    "1_Pooling/config.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
)


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
        """Every file that decides what the model answers."""
        settings = [file for file in (self.path / name for name in _SETTINGS) if file.is_file()]
        return [self.weights, *weights_beside(self.weights), self.tokenizer, *settings]

    def setting(self, file: str) -> object:
        """What one of the folder's own JSON files says; None where there is none."""
        path = self.path / file
        try:
            with path.open("rb") as stream:
                found: object = json.loads(stream.read(_MOST_BYTES))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise ProviderError(f"{path} cannot be read ({error})", self.hint) from error
        return found

    def settings(self, file: str) -> Mapping[str, object]:
        found = self.setting(file)
        return found if isinstance(found, dict) else {}

    def examine(self, called: str) -> ModelFiles:
        """Read the model's bytes once, for what only they tell."""
        return ModelFiles(
            self.weights,
            checksum([self.weights, *weights_beside(self.weights)]),
            self.tokenizer,
            called,
            self.hint,
            scales_by_run=_holds(self.weights, b"DynamicQuantize"),
        )


def is_path(name: str) -> bool:
    """Whether a model is named by its place. A bare name never is: the folder we run in may be anybody's."""
    return any(mark in name for mark in "/\\~") or Path(name).is_absolute()


@contextmanager
def model_folder(given: str, setting: str) -> Iterator[ModelFolder]:
    """The model at a path: a folder, or the .onnx file inside it. Raises ProviderError that says what is missing."""
    hint = f"let {setting} name a folder with model.onnx and tokenizer.json"
    with at_path(given, hint) as path:
        yield _found(path, setting, hint)


def _found(path: Path, setting: str, hint: str) -> ModelFolder:
    if not path.exists():
        raise ProviderError(f"there is no folder {path}", hint)
    weights = _the_one(path, setting) if path.is_dir() else path
    if weights.suffix != ".onnx":
        raise ProviderError(f"{path} is no ONNX model", hint)
    folder = weights.parent.parent if weights.parent.name == "onnx" else weights.parent
    for place in (folder, weights.parent):
        if (place / "tokenizer.json").is_file():
            return ModelFolder(folder, weights, place / "tokenizer.json", hint)
    raise ProviderError(
        f"the folder {folder} has a model, and no tokenizer.json", f"put its tokenizer.json into {folder}"
    )


def _the_one(folder: Path, setting: str) -> Path:
    found = [file for place in (folder, folder / "onnx") for file in sorted(place.glob("*.onnx")) if file.is_file()]
    for name in _WEIGHTS:
        for file in found:
            if file.stem == name:
                return file
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(file.name for file in found[:5])
        raise ProviderError(
            f"the folder {folder} holds several models ({names})", f"let {setting} name one of the files"
        )
    raise ProviderError(f"the folder {folder} has no model.onnx", f"let {setting} name a folder with an ONNX model")


def _holds(file: Path, words: bytes) -> bool:
    """Whether the bytes occur in a file, which may be larger than memory."""
    with file.open("rb") as stream:
        if not file.stat().st_size:
            return False
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            return mapped.find(words) >= 0
