"""Settings: one table of keys; flags > environment > project file (a few keys) > user file > defaults.

Every key `a.b` is also `MINDEX_A_B` in the environment. Each value remembers where it came from. If mindex replaces
another program, that program's variables count like the environment, below our own.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mindex.errors import ConfigError, UsageError
from mindex.project_file import PROJECT_KEYS, ProjectFile, find_project_file
from mindex.provider_table import BY_ROLE, EMBEDDING_PROVIDERS, SHORTEN_VECTORS, provider_names
from mindex.setting_values import (
    Value,
    flatten,
    one_of,
    parse_database,
    parse_flag,
    parse_number,
    parse_pairs,
    parse_text,
    parse_texts,
    parse_whole,
)
from mindex.user_folders import default_database, user_config
from mindex.values import dataclass, replace

if TYPE_CHECKING:
    from mindex.entry_points import Group

SecretsMode = Literal["redact", "strict", "off"]

# What an address may ask for in a file: Azure's older interface wants it, and it is not a key.
_VERSION = "api-version"


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table: what a key means, and which values it takes."""

    key: str
    default: Value
    parse: Callable[[object], Value]
    meaning: str
    secret: bool = False
    address: bool = False  # of a server: it may hold a login or a key
    # What parses a value that is written to a file, if it is stricter: a reader leaves out what another name asks for.
    parse_for_file: Callable[[object], Value] | None = None
    unset: str = ""  # what holds while nothing sets it, where that is not the default
    only_in_user_file: bool = False

    @property
    def in_project(self) -> bool:
        """Whether a project's file may set it, for its own folder."""
        return self.key in PROJECT_KEYS

    @property
    def variable(self) -> str:
        """The environment variable that sets it; '' if only the user file does."""
        return "" if self.only_in_user_file else "MINDEX_" + self.key.replace(".", "_").upper()


def _provider_in(group: "Group", known: Sequence[str]) -> Callable[[object], str]:
    """Return what parses the name of a provider. Those of extensions are looked up if the core has no such name."""

    def parse(value: object) -> str:
        if value in (*known, "none"):
            return str(value)
        from mindex.entry_points import names  # most providers are the core's

        others = [name for name in names(group) if name not in known]
        return one_of(*known, *others, "none")(value)

    return parse


# Folders that hold copies and machinery, not what people wrote.
DEFAULT_EXCLUDE = (".git/", ".hg/", ".svn/", "node_modules/", ".venv/", "venv/", "__pycache__/", ".tox/", ".cache/")

_SHORTENERS = ", ".join(SHORTEN_VECTORS)

_S = Setting
# fmt: off
SETTINGS: tuple[Setting, ...] = (
    _S("db", "", parse_database, "database file or URL; default: a file in your data folder"),
    _S("db_read", "", parse_database, "URL of a read replica of a PostgreSQL database"),
    _S("agent", "main", parse_text, "agent whose entries are used; files are shared by all agents"),
    # Checked here, before anything is stored: an unknown reranker or language model is only left out.
    _S("embedding.provider", "local", _provider_in("embedders", EMBEDDING_PROVIDERS), provider_names("embedding")),
    _S("embedding.model", "", parse_text, "name, folder or file of the embedding model; default: the provider's own"),
    _S("embedding.url", "", parse_text, "URL of the embedding provider, if it is a server", address=True),
    _S("embedding.api_key", "", parse_text, "API key of the embedding provider; from the environment or keyring only",
       secret=True),
    _S("embedding.dimensions", 0, parse_whole(0), f"truncate vectors to this length ({_SHORTENERS}); 0: off"),
    _S("embedding.timeout", 30.0, parse_number(0.1), "seconds before the embedding provider counts as down"),
    _S("embedding.wait", 1.5, parse_number(0), "seconds that a query to a server waits for a model that is loading"),
    _S("rerank.provider", "none", parse_text, provider_names("rerank"),
       parse_for_file=_provider_in("rerankers", BY_ROLE["rerank"])),
    _S("rerank.model", "", parse_text, "name, file or folder of the reranker; default: the provider's own"),
    _S("rerank.url", "", parse_text, "URL of the reranker, if it is a server", address=True),
    _S("rerank.api_key", "", parse_text, "API key of the reranker; from the environment or keyring only", secret=True),
    _S("rerank.timeout", 8.0, parse_number(0.1), "seconds before an answer is returned without reranking"),
    _S("generation.provider", "none", parse_text, provider_names("generation"),
       parse_for_file=_provider_in("generators", BY_ROLE["generation"])),
    _S("generation.model", "", parse_text, "name or file of the language model"),
    _S("generation.url", "", parse_text, "URL of the language model, if it is a server", address=True),
    _S("generation.api_key", "", parse_text, "API key of the language model; from the environment or keyring only",
       secret=True),
    _S("generation.timeout", 30.0, parse_number(0.1), "seconds before the language model counts as down"),
    _S("generation.extract_facts", True, parse_flag, "extract facts from stored conversations"),
    _S("search.fusion", "judged", parse_text, "judged, blend, rrf, minmax, weighted or signals",
       parse_for_file=one_of("judged", "blend", "rrf", "minmax", "weighted", "signals")),
    _S("search.floor", 0.5, parse_number(0, 1), "minimum relevance of a confident hit"),
    _S("search.weak", True, parse_flag, "show hits below the floor, marked as weak"),
    _S("search.time", True, parse_flag, "rank hits from a time that the query names, such as `last week`, higher"),
    _S("search.candidates", 200, parse_whole(1), "number of candidates of each list, keyword and vector"),
    _S("search.weights.blend", 0.4, parse_number(0, 1), "share of the vector score in `blend`"),
    _S("search.weights.weighted", 0.7, parse_number(0, 1), "share of the vector score in `weighted`"),
    _S("search.weights.minmax", 0.6, parse_number(0, 1), "share of the vector score in `minmax`"),
    _S("search.weights.signals", 0.4, parse_number(0, 1), "share of the text score in `signals`"),
    _S("search.weights.importance", 0.3, parse_number(0, 1), "share of importance in `signals`"),
    _S("search.weights.recency", 0.2, parse_number(0, 1), "share of recency in `signals`"),
    _S("search.weights.frequency", 0.1, parse_number(0, 1), "share of the number of accesses in `signals`"),
    _S("search.weights.rrf", 60, parse_whole(1), "constant k of `rrf`"),
    _S("search.weights.pairs", 0.5, parse_number(0, 2), "weight of adjacent query words in the keyword score"),
    _S("search.weights.coverage", 0.5, parse_number(0, 2), "exponent of the matched share of the query"),
    _S("search.weights.rerank", 0.4, parse_number(0, 1),
       "share of the reranker; unset: 0.4 for the built-in one, 0.7 for others", unset="the model's own (0.4 or 0.7)"),
    _S("search.weights.expansion", 0.3, parse_number(0, 1), "weight of rewordings (`--expand`) relative to the query"),
    _S("boost.domain", 1.3, parse_number(0), "factor for chunks of the current file's domain"),
    _S("boost.instruction", 1.2, parse_number(0), "factor for chunks of *.instructions.md"),
    _S("boost.memory", 0.05, parse_number(0, 0.5), "maximum share by which importance, recency and use raise a score"),
    _S("index.max_bytes", 2 * 1024 * 1024, parse_whole(1), "larger files are skipped and reported"),
    _S("index.exclude", DEFAULT_EXCLUDE, parse_texts, "patterns that are never indexed, in .gitignore syntax"),
    _S("index.contextualize", False, parse_flag, "have a language model describe each chunk's place in its document"),
    _S("index.domains", {}, parse_pairs, "code path → domain, for --current-file"),
    _S("secrets.mode", "redact", one_of("redact", "strict", "off"),
       "redact: replace secrets; strict: reject texts that contain one; off: store them"),
    _S("secrets.rules", "", parse_text, "TOML file with more rules for secrets; in the user config only",
       only_in_user_file=True),
    _S("memory.grace_days", 30.0, parse_number(0), "days from the expiry of a memory until it is purged"),
    _S("memory.supersede", "update", one_of("update", "conflict"),
       "update: a memory with an update word supersedes the older value; conflict: both stay and are reported"),
    _S("memory.decay", 0.0, parse_number(0, 1), "share of its importance that a memory loses in a year; 0: none"),
    _S("access_log.days", 90.0, parse_number(0), "days to keep access-log rows"),
    _S("access_log.rows", 100_000, parse_whole(0), "maximum number of access-log rows"),
    _S("http.public_url", "", parse_text, "URL that clients use for the server, such as https://memory.example"),
    _S("http.authorization_server", "", parse_text, "URL of an OAuth 2 server whose tokens are also accepted"),
    _S("http.introspection_url", "", parse_text, "URL of that server's token introspection (RFC 7662)", address=True),
    _S("http.introspection_client", "", parse_text, "client name of this server at the introspection URL"),
    _S("http.introspection_secret", "", parse_text,
       "client password at the introspection URL; from the environment only", secret=True),
    _S("http.requests_per_minute", 3_000, parse_whole(0), "maximum requests per token and minute; 0: unlimited"),
    _S("http.max_body_bytes", 4 * 1024 * 1024, parse_whole(1_024), "maximum size of a request's body"),
    _S("http.body_seconds", 30.0, parse_number(0.1), "seconds within which the body of a request must arrive"),
    _S("http.shutdown_seconds", 10.0, parse_number(0), "seconds for running requests when the server stops"),
    _S("export.path", "", parse_text, "folder for exports of the memorizer tools; default: beside the database"),
    _S("workspace.path", "", parse_text, "folder of markdown files with a daily log, indexed and watched"),
    _S("workspace.auto_index", True, parse_flag, "keep the workspace indexed in `serve` and `watch`"),
    _S("daily_log.enabled", False, parse_flag, "write a line to the daily log for each new memory",
       unset="on with a workspace"),
    _S("plugins.disabled", (), parse_texts, "extensions that are not loaded; in the user config only",
       only_in_user_file=True),
)
# fmt: on
_BY_KEY = {setting.key: setting for setting in SETTINGS}
# Settings of earlier versions: a file that has one is read, with a note.
REMOVED = {
    "search.low_floor": "the first hits are always shown, and `search.weak = false` leaves weak ones out",
    "search.weights.neighbours": "what a turn adds to those beside it is part of the judgement",
}


@dataclass(frozen=True, slots=True)
class ForeignVariable:
    """An environment variable of another program, or a value in a file of it, and the key that it sets."""

    name: str
    key: str
    provider: str = ""  # it counts only while this is the provider of the key's role; '': always
    value: Callable[[str], str] = str  # what the key gets for what the variable holds
    held: str = ""  # in a file, which is the name then; it counts if nothing else sets the key


@dataclass(frozen=True, slots=True)
class Configured:
    """A setting's value and where it came from: default, user file, project file, environment or flag."""

    setting: Setting
    value: Value
    origin: str


class Settings:
    """Values of all settings, read once."""

    def __init__(
        self, values: Mapping[str, Configured], notes: tuple[str, ...] = (), project: ProjectFile | None = None
    ) -> None:
        self._values = values
        self.notes = notes
        self._project = project

    def __iter__(self) -> Iterator[Configured]:
        return iter(self._values[setting.key] for setting in SETTINGS)

    def with_values(self, values: Mapping[str, Value], origin: str) -> "Settings":
        """Return these settings with other values for some keys."""
        replaced = {key: Configured(_BY_KEY[key], value, origin) for key, value in values.items()}
        return Settings({**self._values, **replaced}, self.notes, self._project)

    def as_in_project(self) -> "Settings":
        """Return the settings that apply to files of the current project, for display.

        Indexing reads the project file of each collection instead, because a command may index another project.
        """
        if self._project is None:
            return self
        exclude, limit = self.texts("index.exclude"), self.whole("index.max_bytes")
        narrowed: dict[str, Value] = {
            "index.exclude": (*exclude, *self._project.exclude),
            "index.max_bytes": self._project.max_bytes(limit),
        }
        changed = {key: value for key, value in narrowed.items() if value != self._values[key].value}
        return self.with_values(changed, str(self._project.path))

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

    def is_set(self, key: str) -> bool:
        """Return whether a file, a variable or a flag sets the value, even if to the default."""
        return self._values[key].origin != "default"

    def texts(self, key: str) -> tuple[str, ...]:
        return self._values[key].value  # type: ignore[return-value]  # the table parsed it

    def pairs(self, key: str) -> Mapping[str, str]:
        return self._values[key].value  # type: ignore[return-value]  # the table parsed it

    @cached_property
    def database(self) -> str:
        """Path of a database file, or URL of another engine's database."""
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
        """Return whether a daily log is written: if there is a workspace, unless `daily_log.enabled` is off."""
        enabled = not self.is_set("daily_log.enabled") or self.flag("daily_log.enabled")
        return self.workspace is not None and enabled


def load_settings(
    flags: Mapping[str, object] | None = None,
    *,
    foreign: Sequence[ForeignVariable] = (),
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    user_file: Path | None = None,
) -> Settings:
    """Read every source; later sources override earlier ones. Returns the settings with their notes.

    Raises ConfigError for an unknown key or an invalid value, and names the file and the key. In a project's file,
    these are only notes, because a stranger may have written it. `foreign` are the variables of a program that mindex
    replaces: they override the files, and variables of mindex override them.
    """
    environment = os.environ if environment is None else environment
    values = {setting.key: Configured(setting, setting.default, "default") for setting in SETTINGS}
    notes: list[str] = []
    user_path = user_file or user_config()
    if user_path.is_file():
        _apply_file(user_path, values, notes)
    project = find_project_file(folder or _working_folder())
    if project is not None:
        notes += project.notes
        if "index.domains" in project.values:  # names paths of code in this project
            domains = project.values["index.domains"]
            values["index.domains"] = Configured(_BY_KEY["index.domains"], domains, str(project.path))
    for variable in foreign:
        _apply_foreign(variable, values, notes, environment, flags or {})
    for setting in SETTINGS:
        if setting.variable in environment:
            origin = setting.variable
            values[setting.key] = Configured(setting, _parsed(setting, environment[origin], origin), origin)
    for key, raw in (flags or {}).items():
        if raw is not None:
            values[key] = Configured(_BY_KEY[key], _of_flag(_BY_KEY[key], raw), "flag")
    provider, dimensions = str(values["embedding.provider"].value), values["embedding.dimensions"].value
    if dimensions and provider not in ("none", *SHORTEN_VECTORS):  # checked before anything is stored
        raise cannot_shorten(provider, dimensions)
    if values["daily_log.enabled"].value and not values["workspace.path"].value:
        notes.append("daily_log.enabled has no effect: workspace.path is not set")
    return Settings(values, tuple(notes), project)


def _apply_foreign(
    variable: ForeignVariable,
    values: dict[str, Configured],
    notes: list[str],
    environment: Mapping[str, str],
    flags: Mapping[str, object],
) -> None:
    held = environment.get(variable.name, "").strip()
    if variable.held and values[variable.key].origin == "default":
        held = variable.held
        notes.append(f"{variable.name} sets {variable.key} to {held}")
    if held and _counts(variable, values, environment, flags):
        setting = _BY_KEY[variable.key]
        value = _parsed(setting, variable.value(held), variable.name)
        values[setting.key] = Configured(setting, value, variable.name)


def _of_flag(setting: Setting, raw: object) -> Value:
    """Return the parsed value of a flag. Raises ConfigError for a setting of the user file alone."""
    if setting.only_in_user_file:
        change = f"change it with `mindex config set {setting.key} VALUE`"
        raise ConfigError(f"an option cannot set {setting.key}: it is read from the user config only", change)
    return _parsed(setting, raw, f"--{setting.key}")


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


def _apply_file(path: Path, values: dict[str, Configured], notes: list[str]) -> None:
    """Replace values by those of a file, and add a note for each one that it may not set."""
    for key, raw in flatten(_read(path), {**_BY_KEY, **REMOVED}):
        if key in REMOVED:
            notes.append(f"{path}: {key} is ignored: {REMOVED[key]}; remove it with `mindex config unset {key}`")
            continue
        setting = _BY_KEY.get(key)
        if setting is None:
            raise ConfigError(
                f"unknown setting '{key}' in {path}", f"{_similar_keys(key)}remove it with `mindex config unset {key}`"
            )
        keys_belong = f"keys belong in the environment ({setting.variable})"
        if setting.secret:
            notes.append(f"{key} in {path} is ignored: {keys_belong}")
        else:
            value = _parsed(setting, raw, str(path))
            if setting.address and (bare := bare_address(str(value), keeps=_VERSION)) not in (value, None):
                value = str(bare)
                notes.append(f"{key} in {path} contains a login or a key, which is ignored: {keys_belong}")
            values[key] = Configured(setting, value, str(path))


def setting_named(key: str) -> Setting:
    """Return the setting with this key. Raises UsageError if there is none."""
    setting = _BY_KEY.get(key)
    if setting is None:
        raise UsageError(f"unknown setting '{key}'", f"{_similar_keys(key)}`mindex config` lists all settings")
    return setting


def _similar_keys(key: str) -> str:
    from difflib import get_close_matches  # only an error needs it

    similar = get_close_matches(key, _BY_KEY, n=1, cutoff=0.7)
    return f"did you mean '{similar[0]}'? " if similar else ""


def check_file_value(setting: Setting, raw: object) -> Value:
    """Return the parsed value of a setting that goes into a file.

    Raises UsageError for a secret or an address with one, ConfigError for a value that is not valid.
    """
    value = _parsed(replace(setting, parse=setting.parse_for_file or setting.parse), raw, "")
    if setting.secret or (setting.address and bare_address(str(value), keeps=_VERSION) not in (value, None)):
        raise UsageError(f"{setting.key} is a secret, or contains one", f"set the variable {setting.variable} instead")
    return value


def _parsed(setting: Setting, raw: object, where: str) -> Value:
    try:
        return setting.parse(raw)
    except ValueError as error:
        place = f" in {where}" if where else ""
        hint = f"correct {setting.key}: {setting.meaning}"
        raise ConfigError(f"invalid value for {setting.key}{place}: {error}", hint) from None


def cannot_shorten(provider: str, dimensions: object) -> ConfigError:
    message = f"the provider {provider} cannot shorten vectors to {dimensions} dimensions"
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
        raise ConfigError(f"cannot read {path}: {error}", "fix the file or delete it") from error


def _working_folder() -> Path:
    try:
        return Path.cwd()
    except OSError:  # it was deleted
        return Path("/")
