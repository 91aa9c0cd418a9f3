"""Models of the Hugging Face hub: which are known by a short name, and which were pulled.

The files of a pulled model are in `CACHE/hub/NAME@REVISION/`, its record is `CACHE/hub/NAME.json`, written when every
file was complete and right. Reading a record needs no network and no library of the hub.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from mindex.datatypes import Role
from mindex.errors import ProviderError
from mindex.providers.model_files import model_tables
from mindex.temporary_files import replaced_file
from mindex.user_folders import cache_folder
from mindex.values import dataclass

_REVISION_DIGITS = 8
_SHA256_DIGITS = 64
_BLOCK = 1 << 20
_PURPOSES: dict[Role, str] = {"embedding": "embedding", "rerank": "reranking"}
_WORD = "[A-Za-z0-9_][A-Za-z0-9._-]*"
_REPO = re.compile(f"{_WORD}/{_WORD}")


@dataclass(frozen=True, slots=True)
class Preset:
    """One row of the table `hub` in `models.toml`. A reranker has no prefixes, no pooling and no dimensions."""

    name: str
    role: Role
    repo: str  # that has the ONNX export
    weights: str  # the file in it; `pull --file` takes another one
    licence: str
    megabytes: int  # of weights and tokenizer, about
    window: int  # tokens that it reads
    dimensions: int = 0
    query_prefix: str = ""
    text_prefix: str = ""
    pooling: str = ""
    also: tuple[str, ...] = ()  # repositories of the same model that have no ONNX export


PRESETS = tuple(Preset(**{**row, "also": tuple(row.get("also", ()))}) for row in model_tables()["hub"])


def preset(name: str) -> Preset | None:
    """Return the preset of this name, or of this repository; None when there is none. Case does not matter."""
    wanted = name.lower()
    return next((one for one in PRESETS if wanted in map(str.lower, (one.name, one.repo, *one.also))), None)


def is_repo(name: str) -> bool:
    """Whether a name has the form `org/name` of a repository at the hub."""
    return _REPO.fullmatch(name) is not None


def hub_name(name: str) -> str:
    """Return the name by which a model is pulled, kept and used: that of its preset, else `org/name` as given."""
    known = preset(name)
    return known.name if known is not None else name


# ── pulled models ─────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class PulledFile:
    """A file of a model, as the hub described it."""

    path: str  # in the repository
    size: int
    checksum: str  # the SHA-256 of a large file (64 digits), git's object id of a small one (40)

    def is_at(self, path: Path) -> bool:
        """Whether this file is at a path, complete and unchanged. Reads every byte of it."""
        try:
            if path.stat().st_size != self.size:
                return False
            digest = hashlib.sha256()
            if len(self.checksum) != _SHA256_DIGITS:
                digest = hashlib.sha1(f"blob {self.size}\0".encode(), usedforsecurity=False)
            with path.open("rb") as stream:
                while block := stream.read(_BLOCK):
                    digest.update(block)
        except OSError:
            return False
        return digest.hexdigest() == self.checksum


@dataclass(frozen=True, slots=True)
class PulledModel:
    """The record of a model: from where it came, and every file of it."""

    name: str
    role: Role
    repo: str
    revision: str  # the commit
    licence: str
    weights: str
    tokenizer: str
    files: tuple[PulledFile, ...]

    @property
    def folder(self) -> Path:
        return hub_folder() / f"{_file_name(self.name)}@{self.revision[:_REVISION_DIGITS]}"

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def hint(self) -> str:
        return f"run `mindex models pull {self.name}`"

    def wrong_files(self) -> list[PulledFile]:
        """Return the files that are missing or have another content than was recorded."""
        return [file for file in self.files if not file.is_at(self.folder / file.path)]

    def check(self) -> None:
        """Raise ProviderError when a file is missing or was changed."""
        if wrong := self.wrong_files():
            names = ", ".join(file.path for file in wrong)
            message = f"the model {self.name} is not as it was pulled: missing or changed is {names}"
            raise ProviderError(message, self.hint)


def hub_folder() -> Path:
    return cache_folder() / "hub"


def lock_file(name: str) -> Path:
    """Return the file that a process locks while it pulls a model."""
    return hub_folder() / f"{_file_name(name)}.lock"


def pulled_model(name: str) -> PulledModel | None:
    """Return the record of a model that was pulled under this name; None when none was, or it cannot be read."""
    known = preset(name)
    if known is None and not is_repo(name):
        return None
    return _read(_record_file(known.name if known is not None else name))


def find_pulled(role: Role, name: str) -> PulledModel | None:
    """Return the pulled model that serves a role under this name; None when the name is none of the hub's.

    Raises ProviderError for a model of the hub that was not pulled, and for one that serves another role.
    """
    pulled, known = pulled_model(name), preset(name)
    found = pulled.role if pulled is not None else known.role if known is not None else role
    if found != role:
        raise ProviderError(f"the model {name} is for {_PURPOSES[found]}", f"let {found}.model name it")
    if pulled is None and (known is not None or (is_repo(name) and not Path(name).exists())):
        raise ProviderError(f"the model {name} is not on this machine", f"run `mindex models pull {name}` to get it")
    return pulled


def pulled_models() -> Iterator[PulledModel]:
    """Yield every record, by name."""
    for file in sorted(hub_folder().glob("*.json")):
        if found := _read(file):
            yield found


def write_record(model: PulledModel) -> None:
    """Record a model whose files are complete, in place of an earlier record. Raises OSError."""
    with replaced_file(_record_file(model.name)) as file:
        file.write(json.dumps(asdict(model), indent=1).encode())
    remove_unrecorded(model.name)


def remove_unrecorded(name: str) -> None:
    """Remove the files of a model that its record does not name: of other revisions, other weights, or unusable."""
    record = pulled_model(name)
    kept = {record.folder / file.path for file in record.files} if record is not None else set()
    for folder in hub_folder().glob(f"{_file_name(name)}@*"):
        if record is None or folder != record.folder:
            shutil.rmtree(folder, ignore_errors=True)  # another process may have a file open, on Windows
            continue
        for path in folder.rglob("*"):
            if path.is_file() and path not in kept:
                path.unlink(missing_ok=True)


def _record_file(name: str) -> Path:
    return hub_folder() / f"{_file_name(name)}.json"


def _file_name(name: str) -> str:
    return name.replace("/", "--")


def _read(path: Path) -> PulledModel | None:
    try:
        values = json.loads(path.read_bytes())
        files = tuple(PulledFile(**file) for file in values.pop("files"))
        return PulledModel(**values, files=files)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
