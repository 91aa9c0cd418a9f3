"""A folder with an ONNX model and its tokenizer, as models are published, and the settings that come with it."""

import json
import mmap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TypeVar

from mindex.datatypes import Role
from mindex.errors import ProviderError
from mindex.providers.hub import Preset, PulledModel, find_pulled, preset
from mindex.providers.model_files import at_path, checksum, is_path, read_facts
from mindex.providers.onnx.engine import ModelFiles
from mindex.providers.onnx.session import weights_beside
from mindex.providers.packaged_models import BUILT_IN, CALLED, packaged_models

P = TypeVar("P", bound=PurePath)

# The most exact first; for another one of several, the setting names the file itself.
_WEIGHTS = ("model", "model_fp32", "model_fp16", "model_quantized", "model_int8", "model_uint8", "model_q8", "model_q4")
_MAX_BYTES = 1_000_000
_SHA256_DIGITS = 64
_NOUNS = {"embedding": "model", "rerank": "reranker"}
# What sentence-transformers writes beside a model, and mindex reads.
SETTINGS = ("modules.json", "1_Pooling/config.json", "sentence_bert_config.json", "config_sentence_transformers.json")


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """Where the parts of one model are. `pulled` is its record if it is from the hub."""

    role: Role
    path: Path
    weights: Path
    tokenizer: Path
    hint: str
    pulled: PulledModel | None = None

    @property
    def parts(self) -> list[Path]:
        """Every file that decides the model's output."""
        settings = [file for file in (self.path / name for name in SETTINGS) if file.is_file()]
        return [self.weights, *weights_beside(self.weights), self.tokenizer, *settings]

    @property
    def preset(self) -> Preset | None:
        return preset(self.pulled.name) if self.pulled is not None else None

    def name(self, files: ModelFiles) -> str:
        """Return a name that other weights do not share."""
        return f"{self.pulled.name if self.pulled is not None else self.path.name}@{files.sha256[:8]}"

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

    def cached_facts(self) -> Mapping[str, object] | None:
        """Return what was found out about these files before; None if that is nothing, or one of them has changed."""
        facts = read_facts(self.role, self.parts)
        sha256 = (facts or {}).get("sha256")
        return facts if isinstance(sha256, str) and len(sha256) == _SHA256_DIGITS else None

    def read_facts(self) -> dict[str, object]:
        """Read all bytes of the files, for the checksum and how the weights were quantized.

        Raises ProviderError if the files of a pulled model are not as recorded.
        """
        if self.pulled is not None:
            self.pulled.check()
        sha256 = checksum([self.weights, *weights_beside(self.weights)])
        return {"sha256": sha256, "scales_by_run": _contains(self.weights, b"DynamicQuantize")}

    def files(self, facts: Mapping[str, object]) -> ModelFiles:
        scales_by_run = facts.get("scales_by_run") is not False
        called = CALLED[self.role]
        return ModelFiles(self.weights, str(facts["sha256"]), self.tokenizer, called, self.hint, scales_by_run)


@contextmanager
def model_folder(role: Role, name: str) -> Iterator[ModelFolder]:
    """Yield the model of this name: one that was pulled from the hub, a folder, or the .onnx file in it.

    Raises ProviderError that says what is missing.
    """
    if (pulled := find_pulled(role, name)) is not None:
        yield pulled_folder(pulled)
        return
    if not is_path(name):
        built_in = [BUILT_IN.name] if role == "embedding" else []
        names = ", ".join([*built_in, *(package.model.name for package in packaged_models(role))])
        message = f"the local provider has no {_NOUNS[role]} '{name}'"
        raise ProviderError(message, f"set {role}.model to one of {names}, to a folder, or to a pulled model")
    hint = f"let {role}.model name a folder with model.onnx and tokenizer.json"
    with at_path(name, hint) as path:
        yield _folder_at(path, role, hint)


def pulled_folder(pulled: PulledModel) -> ModelFolder:
    """Return where the parts of a model from the hub are. Raises ProviderError when one is missing."""
    weights, tokenizer = pulled.folder / pulled.weights, pulled.folder / pulled.tokenizer
    if not (weights.is_file() and tokenizer.is_file()):
        raise ProviderError(f"the files of the model {pulled.name} are gone from {pulled.folder}", pulled.hint)
    return ModelFolder(pulled.role, pulled.folder, weights, tokenizer, pulled.hint, pulled)


def _folder_at(path: Path, role: Role, hint: str) -> ModelFolder:
    if not path.exists():
        raise ProviderError(f"there is no folder {path}", hint)
    weights = _weights_in(path, role) if path.is_dir() else path
    if weights.suffix != ".onnx":
        raise ProviderError(f"{path} is not an ONNX model", hint)
    folder = weights.parent.parent if weights.parent.name == "onnx" else weights.parent
    for place in (folder, weights.parent):
        if (place / "tokenizer.json").is_file():
            return ModelFolder(role, folder, weights, place / "tokenizer.json", hint)
    message = f"the folder {folder} has a model, and no tokenizer.json"
    raise ProviderError(message, f"put its tokenizer.json into {folder}")


def preferred_weights(files: Sequence[P]) -> P | None:
    """Return the most exact of several ONNX files, or the only one; None when their names do not tell."""
    for name in _WEIGHTS:
        for file in files:
            if file.stem == name:
                return file
    return files[0] if len(files) == 1 else None


def _weights_in(folder: Path, role: Role) -> Path:
    found = [file for place in (folder, folder / "onnx") for file in sorted(place.glob("*.onnx")) if file.is_file()]
    if preferred := preferred_weights(found):
        return preferred
    if found:
        names = ", ".join(file.name for file in found[:5])
        message = f"the folder {folder} holds several models ({names})"
        raise ProviderError(message, f"let {role}.model name one of the files")
    raise ProviderError(f"the folder {folder} has no model.onnx", f"let {role}.model name a folder with an ONNX model")


def _contains(file: Path, searched: bytes) -> bool:
    """Whether the bytes occur in a file, which may be larger than memory."""
    with file.open("rb") as stream:
        if not file.stat().st_size:
            return False
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            return mapped.find(searched) >= 0
