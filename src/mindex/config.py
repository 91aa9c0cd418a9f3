"""Settings: one table of keys; flags > environment > project file (safe keys only) > user file > defaults.

Every key `a.b` is also `MINDEX_A_B` in the environment. Each value remembers where it came from. While mindex stands in
for another program, that program's variables count like the environment, below our own.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from math import inf
from pathlib import Path
from typing import Literal, TypeVar

from mindex.errors import ConfigError
from mindex.provider_table import EMBEDDING_PROVIDERS, SHORTEN_VECTORS, provider_names
from mindex.values import dataclass

SecretsMode = Literal["redact", "strict", "off"]

PROJECT_FILE = ".mindex.toml"
# What an address may ask for in a file: Azure's older interface wants it, and it is no key.
_VERSION = "api-version"

_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")

T = TypeVar("T", int, float)
Value = str | int | float | bool | tuple[str, ...] | Mapping[str, str]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("a text is expected")
    return value


def _database(value: object) -> str:
    """A path or URL. One with a password is refused here, before any command can print it."""
    text = _text(value)
    if "://" in text:
        from mindex.database_url import refuse_password  # most databases are files

        refuse_password(text)
    return text


def _flag(value: object) -> bool:
    word = str(value).lower()
    if word not in (*_YES, *_NO):
        raise ValueError("true or false is expected")
    return word in _YES


def _one_of(*choices: str) -> Callable[[object], str]:
    def parse(value: object) -> str:
        if value not in choices:
            raise ValueError(f"one of {', '.join(choices)} is expected, not '{value}'")
        return str(value)

    return parse


def _converted(kind: type[T], expected: str, least: float, most: float, limits: str, value: object) -> T:
    """The value as a number of this kind: one of the file, or its text."""
    if isinstance(value, bool) or not isinstance(value, int | kind | str):
        raise ValueError(f"{expected} is expected")
    try:
        number = kind(value)
    except ValueError:
        raise ValueError(f"{expected} is expected, not '{value}'") from None
    if not least <= number <= most:
        raise ValueError(f"{limits} is expected")
    return number


def _whole(least: int) -> Callable[[object], int]:
    return partial(_converted, int, "a whole number", least, inf, f"at least {least}")


def _number(least: float, most: float = inf) -> Callable[[object], float]:
    return partial(_converted, float, "a number", least, most, f"a number from {least:g} to {most:g}")


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return tuple(value)
    raise ValueError("a list of texts is expected")


def _pairs(value: object) -> Mapping[str, str]:
    """A table, or `src/Caching=caching,src/Auth=security` from the environment."""
    if isinstance(value, str):
        pairs = dict(part.split("=", 1) for part in value.split(",") if "=" in part)
        return {key.strip(): domain.strip() for key, domain in pairs.items()}
    if isinstance(value, dict) and all(isinstance(part, str) for part in value.values()):
        return {str(key): domain for key, domain in value.items()}
    raise ValueError("a table of texts is expected")


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table: what a key means, and which values it takes."""

    key: str
    default: Value
    parse: Callable[[object], Value]
    meaning: str
    # A project's file comes with the project, so it may only say what cannot reach beyond it.
    in_project: bool = False
    secret: bool = False
    address: bool = False  # of a server: it may hold a login or a key
    unset: str = ""  # what holds while nothing sets it, where that is not the default

    @property
    def variable(self) -> str:
        return "MINDEX_" + self.key.replace(".", "_").upper()


# Folders that hold copies and machinery, not what people wrote.
DEFAULT_EXCLUDE = (".git/", ".hg/", ".svn/", "node_modules/", ".venv/", "venv/", "__pycache__/", ".tox/", ".cache/")

_ProjectSetting = partial(Setting, in_project=True)
_SHORTENERS = ", ".join(SHORTEN_VECTORS)

SETTINGS: tuple[Setting, ...] = (
    Setting("db", "", _database, "the database, a file or a URL; default: a file in the user's data folder"),
    Setting("agent", "main", _text, "whose words are searched beside the shared files"),
    # Checked here, before anything is stored: an unknown reranker or language model is only left out.
    Setting("embedding.provider", "local", _one_of(*EMBEDDING_PROVIDERS, "none"), provider_names("embedding")),
    Setting("embedding.model", "", _text, "the model's name or folder; default: the provider's own"),
    Setting("embedding.url", "", _text, "address of a provider that is a server", address=True),
    Setting("embedding.api_key", "", _text, "its key; from the environment or the keyring only", secret=True),
    Setting("embedding.dimensions", 0, _whole(0), f"shorten the vectors to so many ({_SHORTENERS}); 0: do not"),
    Setting("embedding.timeout", 30.0, _number(0.1), "seconds before a provider counts as down"),
    Setting("embedding.wait", 1.5, _number(0), "seconds a server's query waits for a model that is still loading"),
    Setting("rerank.provider", "none", _text, provider_names("rerank")),
    Setting("rerank.model", "", _text, "the reranker's name, file or folder; default: the provider's own"),
    Setting("rerank.url", "", _text, "address of a reranker that is a server", address=True),
    Setting("rerank.api_key", "", _text, "its key; from the environment or the keyring only", secret=True),
    Setting("rerank.timeout", 8.0, _number(0.1), "seconds before an answer goes out without reranking"),
    Setting("generation.provider", "none", _text, provider_names("generation")),
    Setting("generation.model", "", _text, "the language model's name or file"),
    Setting("generation.url", "", _text, "address of a language model that is a server", address=True),
    Setting("generation.api_key", "", _text, "its key; from the environment or the keyring only", secret=True),
    Setting("generation.timeout", 30.0, _number(0.1), "seconds before a language model counts as down"),
    Setting("generation.extract_facts", True, _flag, "whether facts are taken out of conversations that are told"),
    _ProjectSetting("search.fusion", "blend", _text, "blend, rrf, minmax, weighted or signals"),
    _ProjectSetting("search.floor", 0.3, _number(0, 1), "the least relevance of a confident hit"),
    _ProjectSetting("search.low_floor", 0.01, _number(0, 1), "the least relevance of a weak hit, which may help"),
    _ProjectSetting("search.weak", True, _flag, "whether hits below the floor are shown, marked as weak"),
    _ProjectSetting("search.candidates", 200, _whole(1), "how many each half of a search brings"),
    _ProjectSetting("search.weights.blend", 0.5, _number(0, 1), "share of the vector half in `blend`"),
    _ProjectSetting("search.weights.weighted", 0.7, _number(0, 1), "share of the vector half in `weighted`"),
    _ProjectSetting("search.weights.minmax", 0.6, _number(0, 1), "share of the vector half in `minmax`"),
    _ProjectSetting("search.weights.signals", 0.4, _number(0, 1), "share of the text in `signals`"),
    _ProjectSetting(
        "search.weights.importance", 0.3, _number(0, 1), "weight of importance beside the text in `signals`"
    ),
    _ProjectSetting("search.weights.recency", 0.2, _number(0, 1), "weight of recency beside it"),
    _ProjectSetting("search.weights.frequency", 0.1, _number(0, 1), "weight of the number of accesses beside it"),
    _ProjectSetting("search.weights.rrf", 60, _whole(1), "the constant k of `rrf`"),
    _ProjectSetting("search.weights.pairs", 0.5, _number(0, 2), "what words side by side add to `blend`"),
    _ProjectSetting("search.weights.coverage", 0.5, _number(0, 2), "power of the share of the question held"),
    _ProjectSetting("search.weights.neighbours", 0.2, _number(0, 1), "share handed on to exchanges beside"),
    _ProjectSetting(
        "search.weights.rerank",
        0.4,
        _number(0, 1),
        "share of the reranker; unset: 0.4 for the built-in one, 0.7 for others",
        unset="the model's own (0.4 or 0.7)",
    ),
    _ProjectSetting("search.weights.expansion", 0.3, _number(0, 1), "what a question's variants count beside it"),
    _ProjectSetting("boost.domain", 1.3, _number(0), "factor for chunks of the current file's domain"),
    _ProjectSetting("boost.instruction", 1.2, _number(0), "factor for chunks of *.instructions.md"),
    _ProjectSetting("boost.memory", 0.05, _number(0, 0.5), "how far a memory's standing may move it, up or down"),
    _ProjectSetting("index.max_bytes", 2 * 1024 * 1024, _whole(1), "larger files are skipped and reported"),
    _ProjectSetting("index.exclude", DEFAULT_EXCLUDE, _texts, "what is never indexed, as in .gitignore"),
    Setting("index.contextualize", False, _flag, "whether a language model places each chunk in its document"),
    _ProjectSetting("index.domains", {}, _pairs, "code path → domain"),
    Setting(
        "secrets.mode", "redact", _one_of("redact", "strict", "off"), "what happens to secrets: redact, strict, off"
    ),
    Setting("memory.grace_days", 30.0, _number(0), "days after its expiry that a memory is removed for good"),
    Setting("memory.decay", 0.0, _number(0, 1), "share of its importance that a memory loses in a year, 0: none"),
    Setting("access_log.days", 90.0, _number(0), "how long it is kept which record was returned"),
    Setting("access_log.rows", 100_000, _whole(0), "how many such rows are kept"),
    Setting("export.path", "", _text, "where the memorizer tools export to; default: beside the database"),
    Setting("workspace.path", "", _text, "a folder of notes with a daily log, indexed and watched"),
    Setting("workspace.auto_index", True, _flag, "whether `serve` and `watch` keep the workspace indexed"),
    Setting(
        "daily_log.enabled",
        False,
        _flag,
        "a line in the daily log for each memory; on where there is a workspace",
        unset="on with a workspace",
    ),
)
_BY_KEY = {setting.key: setting for setting in SETTINGS}


@dataclass(frozen=True, slots=True)
class ForeignVariable:
    """An environment variable of another program, and the key that it sets."""

    name: str
    key: str
    provider: str = ""  # it counts only while this is the provider of the key's role; '': always
    value: Callable[[str], str] = str  # what the key gets for what the variable holds


@dataclass(frozen=True, slots=True)
class Configured:
    """A setting's value and where it came from: default, user file, project file, environment or flag."""

    setting: Setting
    value: Value
    origin: str


class Settings:
    """Values of all settings, read once."""

    def __init__(self, values: Mapping[str, Configured], notes: tuple[str, ...] = ()) -> None:
        self._values = values
        self.notes = notes

    def __iter__(self) -> Iterator[Configured]:
        return iter(self._values[setting.key] for setting in SETTINGS)

    def text(self, key: str) -> str:
        return str(self._values[key].value)

    def whole(self, key: str) -> int:
        return int(self._values[key].value)  # type: ignore[arg-type]  # the table parsed it

    def number(self, key: str) -> float:
        return float(self._values[key].value)  # type: ignore[arg-type]  # the table parsed it

    def flag(self, key: str) -> bool:
        return bool(self._values[key].value)

    def origin(self, key: str) -> str:
        """Return where the value comes from: `default`, a file's path, a variable's name, or `flag`."""
        return self._values[key].origin

    def said(self, key: str) -> bool:
        """Return whether a file, a variable or a flag sets the value, be it to the default."""
        return self._values[key].origin != "default"

    def texts(self, key: str) -> tuple[str, ...]:
        return self._values[key].value  # type: ignore[return-value]  # the table parsed it

    def pairs(self, key: str) -> Mapping[str, str]:
        return self._values[key].value  # type: ignore[return-value]  # the table parsed it

    @cached_property
    def database(self) -> str:
        """The path of a database file, or the URL of another engine's database."""
        db = self.text("db")
        return db if "://" in db else str(Path(db).expanduser() if db else default_database())

    @property
    def secrets_mode(self) -> SecretsMode:
        return self.text("secrets.mode")  # type: ignore[return-value]  # the table parsed it

    @property
    def workspace(self) -> Path | None:
        path = self.text("workspace.path")
        return Path(path).expanduser() if path else None

    @property
    def keeps_daily_log(self) -> bool:
        """Return whether a daily log is written: with a workspace it is, unless a setting says otherwise."""
        enabled = not self.said("daily_log.enabled") or self.flag("daily_log.enabled")
        return self.workspace is not None and enabled


def load_settings(
    flags: Mapping[str, object] | None = None,
    *,
    foreign: Sequence[ForeignVariable] = (),
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    user_file: Path | None = None,
) -> Settings:
    """Read every source; later ones win. Unknown keys and bad values are errors that name the file and the key.

    `foreign` are the variables of a program that mindex stands in for; they come between the files and our own ones.
    """
    environment = os.environ if environment is None else environment
    values = {setting.key: Configured(setting, setting.default, "default") for setting in SETTINGS}
    notes: list[str] = []
    for path, is_project in ((user_file or user_config(), False), (_project_file(folder or Path.cwd()), True)):
        if path is not None and path.is_file():
            _apply_file(path, is_project, values, notes)
    for variable in foreign:
        held = environment.get(variable.name, "").strip()
        if held and _counts(variable, values, environment, flags or {}):
            setting = _BY_KEY[variable.key]
            value = _parsed(setting, variable.value(held), variable.name)
            values[setting.key] = Configured(setting, value, variable.name)
    for setting in SETTINGS:
        if setting.variable in environment:
            origin = setting.variable
            values[setting.key] = Configured(setting, _parsed(setting, environment[origin], origin), origin)
    for key, raw in (flags or {}).items():
        if raw is not None:
            values[key] = Configured(_BY_KEY[key], _parsed(_BY_KEY[key], raw, f"--{key}"), "flag")
    provider, dimensions = str(values["embedding.provider"].value), values["embedding.dimensions"].value
    if dimensions and provider not in ("none", *SHORTEN_VECTORS):  # checked before anything is stored
        raise cannot_shorten(provider, dimensions)
    if values["daily_log.enabled"].value and not values["workspace.path"].value:
        notes.append("daily_log.enabled does nothing: there is no workspace.path to write the log into")
    return Settings(values, tuple(notes))


def _counts(
    variable: ForeignVariable,
    values: Mapping[str, Configured],
    environment: Mapping[str, str],
    flags: Mapping[str, object],
) -> bool:
    """Whether the provider that a variable is for is the one of its role: `OLLAMA_HOST` says nothing about another."""
    if not variable.provider:
        return True
    role = _BY_KEY[variable.key.partition(".")[0] + ".provider"]
    chosen = flags.get(role.key) or environment.get(role.variable) or values[role.key].value
    return chosen == variable.provider


def _apply_file(path: Path, is_project: bool, values: dict[str, Configured], notes: list[str]) -> None:
    """Replace values by those of a file, and add a note for each one that it may not set."""
    for key, raw in _flatten(_read(path)):
        setting = _BY_KEY.get(key)
        if setting is None:
            raise ConfigError(f"unknown setting '{key}' in {path}", "`mindex config` lists the settings")
        keys_belong = f"keys belong in the environment ({setting.variable})"
        if setting.secret:
            notes.append(f"{key} in {path} is ignored: {keys_belong}")
        elif is_project and not setting.in_project:
            notes.append(f"{key} in {path} is ignored: a project may not set it")
        else:
            value = _parsed(setting, raw, str(path))
            if setting.address and (bare := bare_address(str(value), keeps=_VERSION)) not in (value, None):
                value = str(bare)
                notes.append(f"{key} in {path} holds a login or a key, which is ignored: {keys_belong}")
            values[key] = Configured(setting, value, str(path))


def _parsed(setting: Setting, raw: object, where: str) -> Value:
    try:
        return setting.parse(raw)
    except ValueError as error:
        raise ConfigError(f"{setting.key} in {where} is wrong: {error}", f"it means: {setting.meaning}") from None


def cannot_shorten(provider: str, dimensions: object) -> ConfigError:
    message = f"the provider {provider} cannot be asked for {dimensions} dimensions"
    return ConfigError(message, f"set embedding.dimensions to 0, or embedding.provider to one of {_SHORTENERS}")


def bare_address(url: str, keeps: str = "") -> str | None:
    """An address without its login and its query, which may be keys; of the query stays what is named so.

    Returns None for a malformed address: any part of it may be a password.
    """
    from urllib.parse import urlsplit  # most have no server

    try:
        urlsplit(url if "://" in url else f"http://{url}").port  # noqa: B018 - reading it is what checks it
    except ValueError:
        return None
    address, mark, query = url.partition("?")
    start, slashes, rest = address.rpartition("://")
    host, slash, path = rest.partition("/")
    kept = "&".join(part for part in query.partition("#")[0].split("&") if keeps and part.startswith(f"{keeps}="))
    return f"{start}{slashes}{host.rpartition('@')[2]}{slash}{path}" + (f"{mark}{kept}" if kept else "")


def _read(path: Path) -> dict[str, object]:
    import tomllib  # most have no such file

    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}", "mend the file or remove it") from error


def _flatten(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in table.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and key not in _BY_KEY:
            yield from _flatten(value, f"{key}.")
        else:
            yield key, value


def _project_file(folder: Path) -> Path | None:
    """The nearest `.mindex.toml` at or above the working folder."""
    candidates = (parent / PROJECT_FILE for parent in (folder, *folder.parents))
    return next((file for file in candidates if file.is_file()), None)


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
