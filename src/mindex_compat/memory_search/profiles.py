"""`ms config` and `ms mode`: memory-search's names of settings, and profiles of settings for its commands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mindex.config import load_settings
from mindex.errors import NotFoundError, UsageError
from mindex.user_folders import default_database
from mindex_compat.memory_search.state_files import read_state, write_state

_STATE = "modes"

# Its keys → settings of mindex. `topK` and `chunkSize` have no counterpart: a limit is an option of a search.
SETTINGS: Mapping[str, str] = {
    "embeddingModel": "embedding.model",
    "embeddingEndpoint": "embedding.url",
    "embeddingProvider": "embedding.provider",
    "rerankerModel": "rerank.model",
    "rerankerEndpoint": "rerank.url",
    "rerankerProvider": "rerank.provider",
    "contextModel": "generation.model",
    "contextEndpoint": "generation.url",
    "contextProvider": "generation.provider",
    "contextualize": "index.contextualize",
    "ignorePaths": "index.exclude",
    "candidates": "search.candidates",
}
# Keys are taken from the environment, where they are not written to a file.
_SECRETS: Mapping[str, str] = {
    "apiKey": "MINDEX_EMBEDDING_API_KEY",
    "rerankerApiKey": "MINDEX_RERANK_API_KEY",
    "contextApiKey": "MINDEX_GENERATION_API_KEY",
}


def setting_of(key: str) -> str:
    """Return the setting of mindex for a key of memory-search, or of mindex. Raises UsageError for an unknown one."""
    if key in _SECRETS:
        raise UsageError(f"{key} is a secret and is not kept in a file", f"set {_SECRETS[key]} in the environment")
    if key in ("indexPath", "index"):
        raise UsageError(f"{key} is not a setting here", "use `mindex ms --index NAME` or `mindex --db FILE ms`")
    if key in ("paths", "sources", "collections"):
        raise UsageError(f"{key} is not a setting here", "use `mindex ms collection add DIR`")
    if "." in key:
        return key
    if key not in SETTINGS:
        raise UsageError(f"unknown key '{key}'", f"use one of {', '.join(SETTINGS)}, or a key of `mindex config`")
    return SETTINGS[key]


class Modes:
    """Named profiles of settings, one of which may be active, in a file beside the default database."""

    def all(self) -> dict[str, dict[str, str]]:
        modes = read_state(_STATE).get("modes")
        return modes if isinstance(modes, dict) else {}

    @property
    def active(self) -> str:
        return str(read_state(_STATE).get("active") or "")

    def options(self) -> Mapping[str, object]:
        """Return the settings of the active mode."""
        return self.all().get(self.active, {})

    def create(self, name: str, values: Mapping[str, str]) -> None:
        """Store a mode. Raises UsageError for a key or a value that is not valid."""
        given = {setting_of(key): value for key, value in values.items()}
        if not name.strip() or not given:
            raise UsageError("a mode needs a name and settings", "write `mindex ms mode create NAME --set KEY=VALUE`")
        load_settings(given)
        write_state(_STATE, {"active": self.active, "modes": {**self.all(), name: given}})

    def activate(self, name: str) -> None:
        """Use a mode from now on; '' uses none. Raises NotFoundError."""
        if name:
            self.named(name)
        write_state(_STATE, {"active": name, "modes": self.all()})

    def named(self, name: str) -> Mapping[str, str]:
        modes = self.all()
        if name not in modes:
            known = (
                f"there are {', '.join(modes)}" if modes else "`mindex ms mode create NAME --set KEY=VALUE` makes one"
            )
            raise NotFoundError(f"unknown mode '{name}'", known)
        return modes[name]


def index_named(name: str) -> Path:
    """Return the database of a named index. Raises UsageError for a name with other than letters, digits, - and _."""
    if not name.replace("-", "").replace("_", "").isalnum():
        raise UsageError(f"'{name}' is not the name of an index", "use letters, digits, - and _")
    return default_database().parent / "indexes" / f"{name}.db"
