"""Finds extensions through Python's entry points, and loads one when its name is used.

An extension is a top-level package or module that an installed distribution registers. The scan of the installed
distributions is cached until a folder of `sys.path` changes. `mindex.extension` is what extensions import.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from logging import getLogger
from pathlib import Path
from typing import Any, Literal, get_args

from mindex.errors import ConfigError
from mindex.ids import short_hash
from mindex.provider_table import BY_ROLE, PROVIDERS
from mindex.setting_values import parse_texts
from mindex.user_folders import cache_folder, user_config
from mindex.values import dataclass

# The version of `mindex.extension`, and the oldest one for which extensions still work (docs/extending.md).
INTERFACE, OLDEST_INTERFACE = 1, 1

Group = Literal["stores", "tools", "importers", "embedders", "rerankers", "generators", "commands"]
GROUPS: tuple[Group, ...] = get_args(Group)
_WHAT: Mapping[Group, str] = {
    "stores": "the database scheme",
    "tools": "the tools",
    "importers": "the importer",
    "embedders": "the embedding provider",
    "rerankers": "the reranking provider",
    "generators": "the provider of language models",
    "commands": "the command",
}
CORE = "mindex"
_COMPAT, _POSTGRES = "mindex_compat", "mindex_postgres"
_CORE_COMMANDS = (
    "index watch search get list tags types web add update forget restore purge history undo timeline consolidate stats"
    " conversation profile contact project skill setup install serve token hook pause resume export import copy sync"
    " models reembed backfill status doctor scan optimize backup restore-backup config paths plugins completion"
    " help"
)


def _providers(role: Literal["embedding", "rerank", "generation"]) -> Mapping[str, str]:
    return {name: PROVIDERS[name].package or CORE for name in BY_ROLE[role]}


# Every name that a full installation has, in the order in which lists show them, and the package that serves it.
# These names belong to their packages; other extensions add to them.
RELEASED: Mapping[Group, Mapping[str, str]] = {
    "stores": {"postgresql": _POSTGRES, "postgres": _POSTGRES, "azure": "mindex_azure"},
    "tools": {
        "native": CORE,
        **dict.fromkeys(
            "memory-exchange memory-mcp mudpuppy memorizer anthropic openai memory-search".split(), _COMPAT
        ),
    },
    "importers": {
        "jsonl": CORE,
        "markdown": CORE,
        **dict.fromkeys(
            "memory-exchange memory-mcp mudpuppy memory-search memorizer reference-memory".split(), _COMPAT
        ),
        "claude-code": CORE,
        "notes": CORE,
    },
    "embedders": _providers("embedding"),
    "rerankers": _providers("rerank"),
    "generators": _providers("generation"),
    "commands": {
        **dict.fromkeys(_CORE_COMMANDS.split(), CORE),
        "eval": "mindex_eval",
        "admin": _POSTGRES,
        "ms": _COMPAT,
    },
}
RELEASED_PACKAGES = tuple(sorted({package for names in RELEASED.values() for package in names.values()} - {CORE}))


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """A name that an installed distribution registers in one of the groups."""

    group: Group
    name: str
    value: str  # `package.module:attribute`
    distribution: str  # its name and version

    @property
    def extension(self) -> str:
        return self.value.partition(":")[0].partition(".")[0].strip()

    @property
    def text(self) -> str:
        return f"{_WHAT[self.group]} '{self.name}'"


def installed() -> tuple[EntryPoint, ...]:
    """Return every entry point of the installed distributions, also those of disabled extensions."""
    return _scan(_folders())


def names(group: Group) -> tuple[str, ...]:
    """Return the names that can be used in a group: those of this installation's own packages first."""
    released = RELEASED[group]
    found = {point.name for point in _enabled() if point.group == group}
    own = (name for name, package in released.items() if package == CORE or name in found)
    return (*own, *sorted(found - released.keys()))


def is_registered(group: Group, name: str) -> bool:
    return any(point.group == group and point.name == name for point in installed())


def load(group: Group, name: str) -> Any:
    """Import the object of a name. Raises ConfigError if it is missing, disabled, claimed twice or broken."""
    claims = [point for point in installed() if (point.group, point.name) == (group, name)]
    enabled = [point for point in claims if point.extension not in disabled()]
    extensions = sorted({point.extension for point in enabled})
    if len(extensions) > 1:
        raise _claimed_twice(enabled[0], extensions)
    if enabled:
        return _load(enabled[0])
    if claims:
        extension = claims[0].extension
        raise ConfigError(
            f"{claims[0].text} belongs to the extension {extension}, which is disabled",
            f"enable it with `mindex plugins --enable {extension}`",
        )
    if package := RELEASED[group].get(name):
        raise lacks(package)
    raise ConfigError(f"no extension provides {_WHAT[group]} '{name}'", "`mindex plugins` lists what is installed")


def lacks(package: str) -> ConfigError:
    """The error for one of mindex's own packages that is not installed."""
    return ConfigError(f"this installation lacks {package}", "install mindex again, with all of its packages")


def released_module(name: str) -> Any:
    """Import a module of a package that is released with the core. Raises ConfigError if that is not installed."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        raise lacks(name.partition(".")[0]) from None


def disabled() -> frozenset[str]:
    """Return the extensions that `plugins.disabled` names: in the user file, the only place where it counts."""
    path = user_config()
    try:
        return _disabled(path, path.stat().st_mtime_ns)
    except OSError:
        return frozenset()


def problems(*, own: bool = True) -> tuple[ConfigError, ...]:
    """Load every enabled extension, or all but mindex's own, and return the errors of those that cannot be used."""
    found: dict[str, ConfigError] = {}
    for point in _enabled():
        if not own and point.extension in RELEASED_PACKAGES:
            continue
        try:
            if RELEASED[point.group].get(point.name) == CORE:
                raise _claimed_twice(point, (CORE, point.extension))
            load(point.group, point.name)
        except ConfigError as error:
            found[str(error)] = error
    return tuple(found.values())


def loaded_or_logged(group: Group) -> Iterator[tuple[str, Any]]:
    """Yield the object of each name of a group, without the core's; one that cannot be used is logged."""
    for name in names(group):
        if RELEASED[group].get(name) == CORE:
            continue
        try:
            yield name, load(group, name)
        except ConfigError as error:
            getLogger(__name__).warning("%s", error)


def _claimed_twice(point: EntryPoint, extensions: Sequence[str]) -> ConfigError:
    strangers = [name for name in extensions if name not in (CORE, *RELEASED_PACKAGES)]
    return ConfigError(
        f"{point.text} is claimed by {' and '.join(extensions)}",
        f"turn one of them off with `mindex plugins --disable {(strangers or extensions)[-1]}`",
    )


def _load(point: EntryPoint) -> Any:
    module, _, attribute = point.value.partition(":")
    try:
        found: Any = import_module(module.strip())
        version = getattr(sys.modules[point.extension], "MINDEX_INTERFACE", None)
        if not isinstance(version, int) or not OLDEST_INTERFACE <= version <= INTERFACE:
            needs = "does not say which" if version is None else f"needs version {version} of the"
            raise ConfigError(
                f"the extension {point.extension} ({point.distribution}) {needs} interface"
                + (" it was written for" if version is None else ""),
                f"this mindex has version {INTERFACE}: install a release of the extension that fits",
            )
        for part in filter(None, attribute.strip().split(".")):
            found = getattr(found, part)
    except ConfigError:
        raise
    except (Exception, SystemExit) as error:  # a third party's module may raise anything
        if getattr(error, "name", "") == point.extension in RELEASED_PACKAGES:  # its folder was deleted
            raise lacks(point.extension) from None
        raise ConfigError(
            f"cannot load {point.text} of the extension {point.extension} ({point.distribution}):"
            f" {type(error).__name__}: {error}",
            f"repair it, or turn it off with `mindex plugins --disable {point.extension}`",
        ) from error
    return found


def _enabled() -> tuple[EntryPoint, ...]:
    return tuple(point for point in installed() if point.extension not in disabled())


@cache
def _disabled(user_file: Path, _: int) -> frozenset[str]:
    import tomllib  # most have no such file

    try:
        table = tomllib.loads(user_file.read_text(encoding="utf-8-sig")).get("plugins", {})
        return frozenset(parse_texts(table.get("disabled", [])))
    except (OSError, ValueError, AttributeError):  # `load_settings` reports what is wrong
        return frozenset()


def _folders() -> tuple[tuple[str, int], ...]:
    """Return the folders of `sys.path` with their times. The working folder is none of them: it may be a stranger's."""
    here = ""
    with suppress(OSError):  # it was deleted
        here = str(Path.cwd())
    found = []
    for folder in dict.fromkeys(sys.path):
        if Path(folder).is_absolute() and folder != here:
            with suppress(OSError):
                found.append((folder, Path(folder).stat().st_mtime_ns))
    return tuple(found)


@cache
def _scan(folders: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    key = [list(folder) for folder in folders]
    path = cache_folder() / f"entry-points-{short_hash(*(folder for folder, _ in folders))}.json"
    with suppress(OSError, ValueError, TypeError, KeyError):
        held = json.loads(path.read_bytes())
        if held["folders"] == key:
            return tuple(EntryPoint(*row) for row in held["entry_points"])
    found = tuple(_read(folder for folder, _ in folders))
    rows = [[point.group, point.name, point.value, point.distribution] for point in found]
    from mindex.temporary_files import replaced_file  # only if something was installed

    with suppress(OSError):  # a cache that cannot be written costs the next process 50 ms
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced_file(path) as file:
            file.write(json.dumps({"folders": key, "entry_points": rows}).encode())
    return found


def _read(folders: Iterator[str]) -> Iterator[EntryPoint]:
    from importlib.metadata import distributions  # 20 ms, and only if something was installed

    seen: set[str] = set()
    for found in distributions(path=list(folders)):
        name = str(found.metadata["Name"] or "").lower().replace("_", "-")
        if name in seen:  # the first one on the path is the one that is imported
            continue
        seen.add(name)
        for point in found.entry_points if "mindex." in (found.read_text("entry_points.txt") or "") else ():
            package, _, group = point.group.partition(".")
            if package == CORE and group in GROUPS:
                yield EntryPoint(group, point.name, point.value, f"{found.metadata['Name']} {found.version}")
