"""Where mindex keeps its files for this user: settings, databases, caches."""

import os
import sys
from pathlib import Path
from typing import Literal


def user_config() -> Path:
    return _user_folder("config") / "config.toml"


def default_database() -> Path:
    return _user_folder("data") / "memory.db"


def cache_folder() -> Path:
    named = os.environ.get("MINDEX_CACHE_DIR")
    return Path(named) if named else _user_folder("cache")


def _user_folder(kind: Literal["config", "data", "cache"]) -> Path:
    """As platformdirs has it. Linux's rule is short, and importing platformdirs takes longer than asking a question."""
    home = Path(os.environ.get("HOME", ""))
    if sys.platform == "linux" and home.is_absolute() and not hasattr(sys, "getandroidapilevel"):
        named = Path(os.environ.get(f"XDG_{kind.upper()}_HOME", ""))
        usual = {"config": ".config", "data": ".local/share", "cache": ".cache"}
        return (named if named.is_absolute() else home / usual[kind]) / "mindex"
    import platformdirs  # takes longer to import than a search takes

    dirs = platformdirs.PlatformDirs("mindex", appauthor=False)
    return {"config": dirs.user_config_path, "data": dirs.user_data_path, "cache": dirs.user_cache_path}[kind]
