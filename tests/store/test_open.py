"""Which engine a path or a URL opens."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mindex.errors import ConfigError
from mindex.memory import Memory
from mindex.store import open as opening
from mindex.store.base import Engine, OpenOptions, Store
from mindex.store.open import open_store, register_engine
from tests.running import run_here


def test_a_path_opens_a_sqlite_file(tmp_path: Path) -> None:
    store = open_store(tmp_path / "memory.db")
    assert (tmp_path / "memory.db").is_file()
    assert store.folder == tmp_path
    store.close()


def test_an_unknown_scheme_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no engine for mysql:// is installed; .* postgresql://.* or azure://"):
        Memory("mysql://localhost/team")


_WITHOUT_PSYCOPG = """
import sys
sys.modules["psycopg"] = None
from mindex.cli.main import main
main(["--db", "postgresql://localhost/team", "status"])
"""


@pytest.mark.extension("mindex_postgres")
def test_postgresql_without_its_packages_says_what_to_install() -> None:
    ran = subprocess.run([sys.executable, "-c", _WITHOUT_PSYCOPG], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "PostgreSQL needs two more packages; pip install 'mindex[postgres]'" in ran.stderr


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:s3cret@db.example/team",
        "postgresql://:s3cret@db.example/team",
        "postgresql://db.example/team?user=ada&password=s3cret",
        "postgresql://db.example/team?sslpassword=s3cret",
        "postgresql://ada:s3cret/with@all@db.example/team",
        "postgresql://ada:s3cret?x@db.example/team",
        "postgres://ada:s3cret#x@db.example/team",
    ],
)
@pytest.mark.parametrize("command", [["search", "tea"], ["config"], ["paths"], ["status", "--json"]])
def test_a_password_in_the_url_is_refused_and_printed_by_no_command(
    url: str, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINDEX_DB", url)
    from_variable = run_here(*command)
    monkeypatch.delenv("MINDEX_DB")
    for ran in (from_variable, run_here("--db", url, *command)):
        assert ran.code != 0 and "s3cret" not in ran.out + ran.err
        assert "service file, ~/.pgpass or PGPASSWORD" in ran.out + ran.err
    with pytest.raises(ConfigError) as raised:
        open_store(url)
    assert "s3cret" not in str(raised.value)


def test_a_registered_engine_opens_its_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_ENGINES", {})
    opened: list[tuple[str, OpenOptions]] = []

    def opener(url: str, options: OpenOptions) -> Store:
        opened.append((url, options))
        return open_store(tmp_path / "memory.db", cache_rows=options.cache_rows, logs_access=options.logs_access)

    register_engine("toy", Engine(opener))
    with Memory("toy://somewhere", options={"embedding.provider": "none"}) as memory:
        memory.add("The harbour has three cranes")
    assert opened == [("toy://somewhere", OpenOptions(10_000))]
