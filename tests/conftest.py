"""Shared ground: every test has its own settings, database and cache; none reads the user's."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socketserver
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from mindex.memory import Memory
from tests.databases import Databases, PostgresDatabases, SqliteDatabases
from tests.guard import sitecustomize as guard
from tests.postgres_server import PostgresServer

if TYPE_CHECKING:  # `scripts/core` runs the tests of the core without extensions and their tests
    from tests.mindex_azure.azure_search_server import AzureSearchServer

HANDBOOK = Path(__file__).parent.parent / "examples" / "handbook"

# A law that holds is not broken by a machine that is busy while it is checked.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("unhurried"), max_examples=20)  # for scripts/check
settings.load_profile("unhurried")

# A shell starts what it runs in the background with Ctrl-C ignored, and so would every process of a test be.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# ── which tests run where ─────────────────────────────────────────────────────────────────────────────────────

# Every test that uses one of these fixtures is marked `model`.
_MODEL_FIXTURES = {"handbook_memory", "with_model"}
# Every test that uses a fixture of one of these types is marked `server`.
_SERVER_TYPES = ("ModelServer", "ChatServer", "HubServer", "Judge", "PostgresServer", "AzureSearchServer")
# Every test below one of these folders is marked `slow`: it starts processes and kills them, or many commands run.
_SLOW_FOLDERS = {Path(__file__).parent / name for name in ("mindex_eval", "faults", "golden")}
# Every test below one of these folders keeps its memory where `--store` says.
_STORE_FOLDERS = {Path(__file__).parent / name for name in ("cli", "mcp", "mindex_compat/dialects", "golden")}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part",
        choices=("all", "parallel", "serial"),
        default="all",
        help="run only the tests that may run beside others, or only those marked `serial`",
    )
    parser.addoption(
        "--store",
        choices=("sqlite", "postgres"),
        help="sqlite: leave out the tests of PostgreSQL, but for a few; postgres: run these tests, and on PostgreSQL"
        " those of the command line, the MCP server and its dialects",
    )
    # Options must be known before the tests are collected, so the one of `tests/golden` is here.
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden/expected")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that their folder or their fixtures give away, then choose the part of them that is asked for."""
    for item in items:
        if _SLOW_FOLDERS.intersection(item.path.parents):
            item.add_marker("slow")
        if _MODEL_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("model")
        if any(name in returned for returned in _types_of_fixtures(item) for name in _SERVER_TYPES):
            item.add_marker("server")
        for mark in item.iter_markers("extension"):
            if find_spec(mark.args[0]) is None:
                item.add_marker(pytest.mark.skip(f"this copy of the project lacks {mark.args[0]}"))
    part, store = config.getoption("part"), config.getoption("store")
    chosen: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        (chosen if _in_part(item, part) and _for_store(item, store) else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = chosen


def _in_part(item: pytest.Item, part: str) -> bool:
    return part == "all" or (part == "serial") == bool(item.get_closest_marker("serial"))


def _for_store(item: pytest.Item, store: str | None) -> bool:
    """Whether a test runs with this `--store`."""
    of_postgres = "postgres_server" in getattr(item, "fixturenames", ()) or item.get_closest_marker("postgres")
    if store == "sqlite":
        return not of_postgres or item.get_closest_marker("smoke") is not None
    if store == "postgres" and not of_postgres:
        return bool(_STORE_FOLDERS.intersection(item.path.parents)) and not item.get_closest_marker("sqlite_only")
    return True


def _types_of_fixtures(item: pytest.Item) -> Iterator[str]:
    fixtures: dict[str, Sequence[Any]] = item._fixtureinfo.name2fixturedefs if isinstance(item, pytest.Function) else {}
    for found in fixtures.values():
        yield str(found[-1].func.__annotations__.get("return", ""))


# ── nothing is opened that a test is not marked for ───────────────────────────────────────────────────────────

os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(Path(guard.__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
)
_report = Path(tempfile.gettempdir()) / f"mindex-tests-{os.getpid()}"
_report.unlink(missing_ok=True)  # left by a process that was killed and had the same id
_bind = socketserver.TCPServer.server_bind


def _checked_bind(server: socketserver.TCPServer) -> None:
    guard.check("server", type(server).__name__)
    _bind(server)


socketserver.TCPServer.server_bind = _checked_bind  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    marks = {mark.name for mark in item.iter_markers()}
    lacking = set() if marks & {"slow", "serial"} else {"model", "server"} - marks
    os.environ |= {guard.FORBIDDEN: " ".join(lacking), guard.REPORT: str(_report)}
    try:
        return (yield)
    finally:
        del os.environ[guard.FORBIDDEN], os.environ[guard.REPORT]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Fail the test also when it was a thread or another process that opened something."""
    try:
        return (yield)
    finally:
        if opened := guard.opened():
            _report.unlink()
            pytest.fail(opened, pytrace=False)


# ── what every test has ───────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(autouse=True)
def private_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("MINDEX_") and name != "MINDEX_CACHE_DIR"]:
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    for variable in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "LOCALAPPDATA", "APPDATA", "USERPROFILE"):
        monkeypatch.setenv(variable, str(home))


@pytest.fixture(scope="session", autouse=True)
def shared_model_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The optimised model is built once per process that runs tests, not once per test."""
    os.environ["MINDEX_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    yield


@pytest.fixture(autouse=True)
def nobody_is_known(shared_model_cache: None) -> None:
    """What one test's server was like, or how it failed, says nothing of the next one that is given its port."""
    for kind in ("breakers", "cards", "canaries", "addresses"):
        shutil.rmtree(Path(os.environ["MINDEX_CACHE_DIR"]) / kind, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL server, for all tests of this process."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def postgres_database(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of an empty schema of a test's own."""
    with postgres_server.schema() as url:
        yield url


@pytest.fixture(scope="session")
def azure_search_server() -> Iterator[AzureSearchServer]:
    """A server with the wire format of Azure AI Search, for all tests of this process."""
    from tests.mindex_azure.azure_search_server import AzureSearchServer

    with AzureSearchServer() as server:
        yield server


_AZURE_ENDPOINT = os.environ.get("AZURE_SEARCH_ENDPOINT", "")  # a real service, if there is one
_azure_names = itertools.count(1)


@pytest.fixture
def azure_database(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of an index that does not exist yet: of the service that the environment names, or of the test server."""
    if not _AZURE_ENDPOINT:
        yield request.getfixturevalue("azure_index")
        return
    name = f"mindex-test-{os.getpid()}-{next(_azure_names)}"
    yield f"azure:///{name}"
    from tests.mindex_azure.azure_search_server import remove_index

    remove_index(name)


@pytest.fixture
def azure_index(azure_search_server: AzureSearchServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of an index that does not exist yet."""
    from tests.mindex_azure.azure_search_server import KEY

    monkeypatch.setenv("AZURE_SEARCH_ENDPOINT", azure_search_server.endpoint)
    monkeypatch.setenv("AZURE_SEARCH_API_KEY", KEY)
    with azure_search_server.index() as name:
        yield f"azure:///{name}"


@pytest.fixture(scope="session")
def databases(request: pytest.FixtureRequest) -> Databases:
    """Makes memories where `--store` says."""
    if request.config.getoption("store") == "postgres":
        return PostgresDatabases(request.getfixturevalue("postgres_server"))
    return SqliteDatabases()


@pytest.fixture
def database(databases: Databases, tmp_path: Path) -> Iterator[str]:
    """The path or URL of an empty database of a test's own."""
    made = databases.new(tmp_path / "memory.db")
    yield made
    databases.drop(made)


@pytest.fixture
def handbook(tmp_path: Path) -> Path:
    """A copy of the example handbook that a test may change."""
    return Path(shutil.copytree(HANDBOOK, tmp_path / "handbook"))


@pytest.fixture
def keyword_memory(tmp_path: Path) -> Iterator[Memory]:
    """A memory without a model: fast, and the same everywhere."""
    with Memory(tmp_path / "memory.db", options={"embedding.provider": "none"}) as memory:
        yield memory


@pytest.fixture(scope="session")
def handbook_memory(tmp_path_factory: pytest.TempPathFactory, databases: Databases) -> Iterator[Memory]:
    """The handbook, indexed with the real model. Shared: tests must not write to it."""
    folder = tmp_path_factory.mktemp("shared")
    root = shutil.copytree(HANDBOOK, folder / "handbook")
    with Memory(databases.new(folder / "memory.db")) as memory:
        memory.index(root)
        yield memory


def write(root: Path, files: dict[str, str]) -> Path:
    """Make files below a folder."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root
