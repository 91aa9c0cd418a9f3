"""Hub models that are known by a short name: where their ONNX files are, and how each of them reads texts.

Nothing of them is downloaded before `mindex models pull` asks for it.
"""

import re

from mindex.datatypes import Role
from mindex.providers.model_files import model_tables
from mindex.values import dataclass

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
