"""Set and remove settings in the user file. Comments and order of the file stay as they are."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from mindex.clients import toml_edit
from mindex.config import Configured, check_file_value, setting_named
from mindex.errors import ConfigError, UsageError
from mindex.redaction.redactor import Redactor
from mindex.temporary_files import replaced_file
from mindex.user_folders import user_config

_BOM = "\ufeff"
_PRIVATE = 0o600


def set_setting(key: str, text: str) -> Configured:
    """Write a value, given as in the environment, to the user file.

    Raises UsageError for an unknown key and for a secret, ConfigError for a value or file that is not valid.
    """
    setting, path = setting_named(key), user_config()
    if kinds := Redactor().kinds_in(text):
        raise UsageError(
            f"the value of {key} contains a secret ({', '.join(kinds)})", f"set {setting.variable} instead"
        )
    value = check_file_value(setting, text)
    if key == "secrets.rules":
        Redactor(rules=text).check_rules()
    held = list(value) if isinstance(value, tuple) else value
    _edit(path, lambda before: toml_edit.set_key(before, key.split("."), held))
    return Configured(setting, value, str(path))


def unset_setting(key: str) -> bool:
    """Remove a key from the user file, also an unknown one. Returns whether the file contained it."""
    path = user_config()
    return path.exists() and _edit(path, lambda before: toml_edit.remove_key(before, key.split(".")))


def _edit(path: Path, change: Callable[[str], str]) -> bool:
    """Replace the text of a file, which need not exist. Returns whether it changed."""
    target = Path(os.path.realpath(path))
    try:
        raw = target.read_bytes() if target.exists() else b""
        before = raw.decode()
        after = _BOM * before.startswith(_BOM) + change(before.removeprefix(_BOM))
        if after == before:
            return False
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else _PRIVATE
        target.parent.mkdir(parents=True, exist_ok=True)
        with replaced_file(target) as file:
            file.write(after.encode())
            Path(file.name).chmod(mode)
    except ValueError as error:  # not UTF-8, not TOML, or in a form that is not edited
        raise ConfigError(f"cannot change {path}: {error}", "edit the file by hand") from None
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror or error}", "check its permissions") from None
    return True
