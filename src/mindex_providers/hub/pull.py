"""Pulls a model from the hub: chooses its files, downloads and checks them, tries the model, and records it."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath

from mindex.datatypes import Progress, Report, Role
from mindex.errors import ProviderError, UsageError
from mindex.providers.embed import onnx_folder
from mindex.providers.hub import (
    PRESETS,
    Preset,
    PulledModel,
    hub_name,
    is_repo,
    lock_file,
    preset,
    pulled_model,
    remove_unrecorded,
    write_record,
)
from mindex.providers.onnx.folder import SETTINGS, preferred_weights, pulled_folder
from mindex.providers.rerank import local as rerankers
from mindex.values import dataclass
from mindex_providers.hub.client import Hub, Listing

_CONFIG, _TOKENIZER = "config.json", "tokenizer.json"
_FOLDERS = (PurePosixPath("."), PurePosixPath("onnx"))  # where exports usually are
_MEGABYTE = 1_000_000
_NAMED = 12  # files in a message, at most


@dataclass(frozen=True, slots=True)
class Pulled:
    """What `pull` did: the record, and how many bytes were downloaded."""

    model: PulledModel
    downloaded: int


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the caller asked for. An empty revision is the recorded one, else the main branch."""

    name: str
    preset: Preset | None
    revision: str
    file: str

    @property
    def repo(self) -> str:
        return self.preset.repo if self.preset is not None else self.name

    def recorded(self) -> PulledModel | None:
        """Return the record of an earlier pull, unless another revision or other weights are wanted."""
        record = pulled_model(self.name)
        return record if record is not None and not self.revision and self.file in ("", record.weights) else None


def pull(name: str, *, revision: str = "", file: str = "", report: Report | None = None) -> Pulled:
    """Download a preset, or any `org/name` with an ONNX export, and record it.

    A model that was pulled before is compared with its record, and only what is missing or was changed is downloaded
    again. A `revision`, or another `file` of weights, replaces it. Raises UsageError for a name that no model can have,
    and ProviderError when the hub does not give the model, or mindex cannot use it.
    """
    wanted = _Wanted(hub_name(name), preset(name), revision, file)
    if wanted.preset is None and not is_repo(name):
        names = ", ".join(one.name for one in PRESETS)
        raise UsageError(f"cannot pull '{name}': it is not a model name", f"use org/name, or one of {names}")
    record = wanted.recorded()
    if record is not None and not record.wrong_files():
        return Pulled(record, 0)
    hub = Hub()
    with hub.lock(lock_file(wanted.name)):
        model = wanted.recorded() or _plan(hub, wanted)  # another process may have pulled it
        downloaded = _download(hub, model, report)
        if wanted.preset is None:
            model = replace(model, role=_role(model.folder / _CONFIG))
        _try(model)
        write_record(model)
    return Pulled(model, downloaded)


# ── which files ───────────────────────────────────────────────────────────────────────────────────────────────


def _plan(hub: Hub, wanted: _Wanted) -> PulledModel:
    """Return the record of a model that is not there yet, with the sizes and checksums that the hub names."""
    listing = hub.listing(wanted.repo, wanted.revision)
    weights = _weights(listing, wanted)
    tokenizer = _tokenizer(listing, wanted, weights)
    # Beside weights of more than 2 GB: `model.onnx_data`, `model.onnx.data`, `model.onnx_data_1`.
    data = [path for path in listing.paths if path.startswith((f"{weights}_data", f"{weights}.data"))]
    # The table of presets says all that these would.
    settings = [path for path in (_CONFIG, *SETTINGS) if path in listing.paths and wanted.preset is None]
    return PulledModel(
        wanted.name,
        wanted.preset.role if wanted.preset is not None else "embedding",
        wanted.repo,
        listing.revision,
        wanted.preset.licence if wanted.preset is not None else listing.licence,
        weights,
        tokenizer,
        tuple(hub.describe(wanted.repo, listing.revision, path) for path in (*settings, tokenizer, weights, *data)),
    )


def _weights(listing: Listing, wanted: _Wanted) -> str:
    exports = [path for path in map(PurePosixPath, listing.paths) if path.suffix == ".onnx"]
    if not exports:
        hint = "pull an ONNX export of it: their names often end with -ONNX, or begin with onnx-community/ or Xenova/"
        raise ProviderError(f"{wanted.repo} has no ONNX export", hint)
    if wanted.file:
        if PurePosixPath(wanted.file) not in exports:
            raise ProviderError(f"{wanted.repo} has no file {wanted.file}", f"its exports: {_names(exports)}")
        return wanted.file
    if wanted.preset is not None and PurePosixPath(wanted.preset.weights) in exports:
        return wanted.preset.weights
    found = preferred_weights([path for path in exports if path.parent in _FOLDERS]) or preferred_weights(exports)
    if found is None:
        message = f"{wanted.repo} has several exports ({_names(exports)})"
        raise ProviderError(message, "choose one with --file")
    return str(found)


def _tokenizer(listing: Listing, wanted: _Wanted, weights: str) -> str:
    for path in (PurePosixPath(_TOKENIZER), PurePosixPath(weights).parent / _TOKENIZER):
        if str(path) in listing.paths:
            return str(path)
    raise ProviderError(f"{wanted.repo} has no tokenizer.json", "pull an export of the same model that has one")


def _names(paths: Sequence[PurePosixPath]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return ", ".join(map(str, paths[:_NAMED])) + more


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _download(hub: Hub, model: PulledModel, report: Report | None) -> int:
    """Download what is missing or wrong, and return how many bytes that was."""
    missing = model.wrong_files()
    done = model.size - sum(file.size for file in missing)
    total = -(-model.size // _MEGABYTE)
    shown: Progress | None = None

    def show(path: str, arrived: int) -> None:
        nonlocal shown
        progress = Progress("pull", (done + arrived) // _MEGABYTE, total, path, "MB")
        if report is not None and progress != shown:  # thousands of blocks make one megabyte more
            report(progress)
            shown = progress

    for file in missing:
        hub.download(model.repo, model.revision, file, model.folder / file.path, partial(show, file.path))
        done += file.size
    return sum(file.size for file in missing)


def _role(config: Path) -> Role:
    """Return what a model is for: one that classifies pairs is a reranker."""
    try:
        found = json.loads(config.read_bytes())["architectures"]
    except (OSError, ValueError, KeyError, TypeError):
        return "embedding"
    classifies = isinstance(found, list) and any(str(one).endswith("ForSequenceClassification") for one in found)
    return "rerank" if classifies else "embedding"


def _try(model: PulledModel) -> None:
    """Open the model and run it. Files that mindex cannot use are removed. Raises ProviderError."""
    try:
        folder = pulled_folder(model)
        if model.role == "rerank":
            rerankers.open_folder(folder).load()
        else:
            onnx_folder.open_folder(folder)
    except ProviderError as error:
        remove_unrecorded(model.name)
        hint = "pull another export of it; --file chooses one of several in a repository"
        raise ProviderError(f"{model.repo} was downloaded, but cannot be used: {error.message}", hint) from error
