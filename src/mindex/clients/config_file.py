"""One agent's configuration file: read with its byte order mark and line ends, edited, checked, saved with a backup.

A file that cannot be parsed, or may not be written, or in which anything else would change, is refused with a
ConfigError and stays as it is.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import cast

from mindex.clients import json_edit, toml_edit
from mindex.clients.clients import SERVER_NAME, Client
from mindex.errors import ConfigError
from mindex.temporary_files import replaced_file
from mindex.user_folders import default_database
from mindex.values import dataclass

_BOM = b"\xef\xbb\xbf"
_PRIVATE, _SHARED = 0o600, 0o644  # of a new file: of the user's, of a project's


class ChangedMeanwhileError(Exception):
    """Another program wrote the file after it was read."""


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """The file of one agent as it was read. `raw` is None if the file does not exist."""

    agent: Client
    path: Path
    raw: bytes | None
    shared: bool = False  # it belongs to a project

    @property
    def text(self) -> str:
        """The text. Raises ConfigError when it is not UTF-8."""
        try:
            return (self.raw or b"").removeprefix(_BOM).decode()
        except UnicodeDecodeError:
            raise ConfigError(f"{self.path} is not UTF-8 text") from None

    @property
    def entry(self) -> dict[str, object] | None:
        """The entry of mindex, or None. Raises ConfigError when the file cannot be parsed."""
        servers = self._data().get(self.agent.container)
        entry = servers.get(SERVER_NAME) if isinstance(servers, dict) else None
        return entry if isinstance(entry, dict) else None

    def with_entry(self, entry: Mapping[str, object]) -> str:
        """Return the text with the entry; members that the entry does not name are kept. Raises ConfigError."""
        wanted = self._data()
        servers = wanted.setdefault(self.agent.container, {})
        if isinstance(servers, dict):
            servers[SERVER_NAME] = {**(self.entry or {}), **entry}
        return self._edited("set_member", wanted, entry)

    def without_entry(self) -> str:
        """Return the text without the entry. Raises ConfigError."""
        wanted = self._data()
        servers = wanted.get(self.agent.container)
        if isinstance(servers, dict):
            servers.pop(SERVER_NAME, None)
        return self._edited("remove_member", wanted)

    def snippet(self, entry: Mapping[str, object]) -> str:
        """Return the text that a file with this entry alone holds."""
        return ConfigFile(self.agent, self.path, None).with_entry(entry).rstrip("\n")

    def encoded(self, text: str) -> bytes:
        return (_BOM if (self.raw or b"").startswith(_BOM) else b"") + text.encode()

    def save(self, raw: bytes | None) -> None:
        """Replace the file by this content; None removes it. A link is followed.

        Raises ConfigError when it may not be written, ChangedMeanwhileError when it is not what was read any more.
        """
        target = Path(os.path.realpath(self.path))
        mode = _SHARED if self.shared else _PRIVATE
        try:
            if self.raw is not None:
                mode = stat.S_IMODE(target.stat().st_mode)
                # Root may write anything, so for root the mode decides.
                if not os.access(target, os.W_OK) or not mode & 0o222:
                    raise ConfigError(f"{self.path} is read-only")
            if raw is None:
                self._refuse_changed()
                target.unlink()
                return
            target.parent.mkdir(parents=True, exist_ok=True)
            with replaced_file(target) as file:
                file.write(raw)
                file.flush()
                Path(file.name).chmod(mode)
                self._refuse_changed()
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be written ({error.strerror or error})") from None

    def _refuse_changed(self) -> None:
        if read_config(self.agent, self.path).raw != self.raw:
            raise ChangedMeanwhileError

    def _data(self) -> dict[str, object]:
        editor = _editor(self.path)
        try:
            return cast("dict[str, object]", editor.parse(self.text))
        except ValueError as error:
            raise ConfigError(f"{self.path} cannot be parsed ({error})") from None

    def _edited(self, action: str, wanted: Mapping[str, object], *values: object) -> str:
        """Return the edited text. Raises ConfigError unless it holds exactly what is wanted."""
        editor = _editor(self.path)
        try:
            text = str(getattr(editor, action)(self.text, (self.agent.container, SERVER_NAME), *values))
            if editor.parse(text) != wanted:
                raise ValueError("mindex cannot edit this syntax")
        except ValueError as error:
            raise ConfigError(f"{self.path} cannot be changed ({error})") from None
        return text


def read_config(agent: Client, path: Path, *, shared: bool = False) -> ConfigFile:
    """Read the file, if there is one. Raises ConfigError when it cannot be read."""
    try:
        return ConfigFile(agent, path, path.read_bytes(), shared)
    except FileNotFoundError:
        return ConfigFile(agent, path, None, shared)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror or error})") from None


def backup_path(agent: Client, path: Path) -> Path:
    """Return where the file is kept as it was: not beside it, where a project would have it committed."""
    digest = hashlib.sha256(str(path.absolute()).encode(errors="surrogateescape")).hexdigest()[:12]
    return default_database().parent / "agent-backups" / f"{agent.name}-{digest}{path.suffix}"


def write_backup(target: Path, raw: bytes) -> None:
    """Keep the former content, readable by its owner only. Raises ConfigError."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with replaced_file(target) as file:
            file.write(raw)
    except OSError as error:
        raise ConfigError(f"its backup {target} cannot be written ({error.strerror or error})") from None


def _editor(path: Path) -> ModuleType:
    return toml_edit if path.suffix == ".toml" else json_edit
