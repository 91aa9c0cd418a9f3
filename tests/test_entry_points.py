"""Extensions: they are found by entry point, loaded by name, and a broken one breaks nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from mindex import entry_points
from mindex.cli.main import cli
from mindex.config import load_settings
from mindex.entry_points import (
    CORE,
    RELEASED,
    RELEASED_PACKAGES,
    disabled,
    installed,
    load,
    names,
    problems,
    released_module,
)
from mindex.errors import ConfigError
from mindex.provider_table import BY_ROLE, PROVIDERS
from tests.running import run_here

Install = Callable[..., Path]

NOTES_IMPORTER = """
from mindex.extension import Importer, foreign_id, memory_row

MINDEX_INTERFACE = 1


class Lines(Importer):
    name = "lines"

    def recognises(self, path):
        return path.suffix == ".lines"

    def read(self, path):
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            yield memory_row(f"line {number}", foreign_id("lines", number, line), line, 1_700_000_000_000)


importer = Lines()
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install an extension of one module into a separate folder, which is on the path of this and other processes."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.setenv("MINDEX_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "none")
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.syspath_prepend(str(site))
    before = set(sys.modules)

    def make(module: str, source: str, entries: Mapping[str, str]) -> Path:
        (site / f"{module}.py").write_text(textwrap.dedent(source), encoding="utf-8")
        info = site / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        lines = [
            f"[mindex.{key.partition('/')[0]}]\n{key.partition('/')[2]} = {value}\n" for key, value in entries.items()
        ]
        (info / "entry_points.txt").write_text("\n".join(lines))
        return site / f"{module}.py"

    yield make
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(site)):
            del sys.modules[name]


# ── names ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.extension("mindex_compat")
def test_every_name_that_is_released_is_registered_or_the_cores() -> None:
    registered = {(point.group, point.name): point.extension for point in installed()}
    for group, released in RELEASED.items():
        for name, package in released.items():
            if package != CORE:
                assert registered[group, name] == package


def test_the_table_of_released_commands_lists_every_command() -> None:
    own = {name for name, package in RELEASED["commands"].items() if package == CORE}
    assert own == set(cli.list_commands(None)) - {name for name in RELEASED["commands"] if name not in own}  # type: ignore[arg-type]


def test_the_providers_of_the_table_are_released_names() -> None:
    assert list(RELEASED["embedders"]) == list(BY_ROLE["embedding"])
    assert RELEASED["rerankers"]["llama-cpp"] == PROVIDERS["llama-cpp"].package == "mindex_providers"


@pytest.mark.extension("mindex_compat")
def test_released_names_come_first_and_in_their_order(install: Install) -> None:
    install("aaa", NOTES_IMPORTER, {"importers/aaa-lines": "aaa:importer"})
    assert names("importers") == (*RELEASED["importers"], "aaa-lines")


# ── loading ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_importer_of_an_extension_imports_and_detects(install: Install, tmp_path: Path) -> None:
    install("lines_extension", NOTES_IMPORTER, {"importers/lines": "lines_extension:importer"})
    (tmp_path / "old.lines").write_text("The boiler room is locked.\nThe key is at the desk.\n")
    named = run_here("--db", tmp_path / "a.db", "import", "--from", "lines", tmp_path / "old.lines", "--json")
    assert json.loads(named.out)["added"] == 2
    assert run_here("--db", tmp_path / "b.db", "import", tmp_path / "old.lines").code == 0
    assert "boiler" in run_here("--db", tmp_path / "b.db", "search", "boiler", "--mode", "keyword").out


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise ImportError('no wheel for this machine')", "ImportError: no wheel for this machine"),
        ("import sys\nsys.exit('bye')", "SystemExit: bye"),
        ("MINDEX_INTERFACE = 1", "AttributeError"),
        ("def importer(): ...", "does not say which interface it was written for"),
        ("MINDEX_INTERFACE = 2\nimporter = 0", "needs version 2 of the interface"),
    ],
)
def test_a_broken_extension_is_named_and_breaks_nothing_else(
    source: str, reason: str, install: Install, tmp_path: Path
) -> None:
    install("broken", source, {"importers/broken": "broken:importer"})
    db = tmp_path / "memory.db"
    notes = tmp_path / "notes.jsonl"
    assert run_here("--db", tmp_path / "other.db", "add", "The boiler room is locked.").code == 0
    assert run_here("--db", tmp_path / "other.db", "export", notes).code == 0
    assert run_here("--db", db, "import", notes).code == 0
    for command in (["status"], ["plugins"], ["doctor"]):
        shown = run_here("--db", db, *command)
        assert reason in shown.out and "the extension broken (broken 1.0)" in shown.out, command
        assert shown.code == (1 if command == ["doctor"] else 0)
    assert "extension_problems" in run_here("--db", db, "status", "--json").out
    refused = run_here("--db", db, "import", "--from", "broken", notes)
    assert refused.code == 1 and reason in refused.err


def test_a_broken_command_is_listed_in_the_help_with_its_error(install: Install) -> None:
    install("broken", "MINDEX_INTERFACE = 1\nraise ValueError('oops')", {"commands/fax": "broken:fax"})
    shown = run_here("--help")
    assert shown.code == 0 and "Extensions:" in shown.out and "cannot load the command 'fax'" in shown.out
    assert "ValueError: oops" in run_here("fax").err


def test_a_command_of_an_extension_runs_and_is_listed(install: Install) -> None:
    source = """
        import click
        MINDEX_INTERFACE = 1
        @click.command(short_help="Send a memory by fax.")
        def fax():
            click.echo("beep")
    """
    install("fax_machine", source, {"commands/fax": "fax_machine:fax"})
    assert run_here("fax").out == "beep\n"
    assert "Send a memory by fax." in run_here("--help").out
    assert "did you mean `mindex fax`" in run_here("faxe").err


def test_two_extensions_that_claim_one_name_are_an_error_that_names_both(install: Install, tmp_path: Path) -> None:
    for name in ("first", "second"):
        install(name, NOTES_IMPORTER, {"importers/lines": f"{name}:importer"})
    with pytest.raises(ConfigError, match=r"the importer 'lines' is claimed by first and second; .*--disable second"):
        load("importers", "lines")
    assert run_here("plugins", "--disable", "second").code == 0
    assert load("importers", "lines").name == "lines"


def test_an_extension_cannot_take_a_name_of_the_core(install: Install, tmp_path: Path) -> None:
    install("greedy", NOTES_IMPORTER, {"importers/jsonl": "greedy:importer", "commands/search": "greedy:importer"})
    assert [error.message for error in problems(own=False)] == [
        "the importer 'jsonl' is claimed by mindex and greedy",
        "the command 'search' is claimed by mindex and greedy",
    ]
    assert run_here("--db", tmp_path / "memory.db", "search", "--help").code == 0


def test_an_embedder_of_an_extension_is_a_value_of_the_setting(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("vectors", "MINDEX_INTERFACE = 1\ndef create(settings): ...", {"embedders/vectors": "vectors:create"})
    assert run_here("config", "set", "embedding.provider", "vectors").code == 0
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "vectorz")
    assert (
        "one of local, ollama" in run_here("config").err and "llama-cpp, groq, vectors, none" in run_here("config").err
    )


# ── turning off and on ────────────────────────────────────────────────────────────────────────────────────────


def test_a_disabled_extension_is_not_loaded(install: Install, tmp_path: Path) -> None:
    install("lines_extension", NOTES_IMPORTER, {"importers/lines": "lines_extension:importer"})
    assert run_here("plugins", "--disable", "lines_extension").code == 0
    assert "lines" not in names("importers") and disabled() == {"lines_extension"}
    assert "lines_extension" not in sys.modules
    with pytest.raises(ConfigError, match=r"which is disabled; enable it with .* --enable lines_extension`"):
        load("importers", "lines")
    shown = json.loads(run_here("plugins", "--json").out)["plugins"]
    assert {one["name"]: one["enabled"] for one in shown}["lines_extension"] is False
    assert run_here("plugins", "--enable", "lines_extension").code == 0
    assert load("importers", "lines").name == "lines"


def test_only_the_user_file_turns_extensions_off(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("lines_extension", NOTES_IMPORTER, {"importers/lines": "lines_extension:importer"})
    (tmp_path / ".mindex.toml").write_text('[plugins]\ndisabled = ["lines_extension"]\n')
    monkeypatch.chdir(tmp_path)
    assert "plugins.disabled" in run_here("config").err
    assert "lines" in names("importers")
    monkeypatch.setenv("MINDEX_PLUGINS_DISABLED", "lines_extension")
    assert "lines" in names("importers") and "plugins.disabled           []" in run_here("config").out
    with pytest.raises(ConfigError, match=r"cannot set plugins\.disabled: it is read from the user config only"):
        load_settings({"plugins.disabled": "lines_extension"})


def test_a_project_cannot_load_an_extension(install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by its settings, and not by what looks like an installed distribution in its folder."""
    project = tmp_path / "project"
    info = project / "evil-1.0.dist-info"
    info.mkdir(parents=True)
    (project / "evil.py").write_text("open('loaded', 'w').close()")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[mindex.commands]\nevil = evil:main\n[mindex.importers]\nevil = evil:main\n"
    )
    (project / ".mindex.toml").write_text('[embedding]\nprovider = "evil"\n[plugins]\nload = ["evil"]\n')
    environment = {**os.environ, "MINDEX_EMBEDDING_PROVIDER": "none"}
    for command in (["plugins"], ["evil"], ["--help"], ["import", "evil.py"], ["status"]):
        run = [sys.executable, "-m", "mindex", "--db", str(tmp_path / "memory.db"), *command]
        done = subprocess.run(run, cwd=project, env=environment, capture_output=True, text=True, check=False)
        assert "evil:" not in done.stdout
    assert not (project / "loaded").exists()


# ── what is missing ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_points, "installed", lambda: ())
    with pytest.raises(ConfigError, match="this installation lacks mindex_postgres"):
        load("stores", "postgresql")
    with pytest.raises(ConfigError, match="this installation lacks mindex_fax"):
        released_module("mindex_fax.machine")
    assert names("tools") == ("native",)


# Imports the whole core and prints its help where one package cannot be found.
_WITHOUT = """
import importlib, pkgutil, sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == sys.argv[1]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
import mindex
for module in pkgutil.walk_packages(mindex.__path__, "mindex."):
    if module.name != "mindex.__main__":
        importlib.import_module(module.name)
from mindex.cli.main import main
main(["plugins"])
"""


@pytest.mark.slow
@pytest.mark.parametrize("package", RELEASED_PACKAGES)
def test_the_core_is_imported_without_each_extension_and_names_it(package: str) -> None:
    done = subprocess.run([sys.executable, "-c", _WITHOUT, package], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"this installation lacks {package}" in done.stdout


# ── the cache ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_extension_that_is_installed_or_removed_is_noticed(install: Install, tmp_path: Path) -> None:
    assert "lines" not in names("importers")
    module = install("lines_extension", NOTES_IMPORTER, {"importers/lines": "lines_extension:importer"})
    assert "lines" in names("importers")
    for file in (module.parent / "lines_extension-1.0.dist-info").iterdir():
        file.unlink()
    (module.parent / "lines_extension-1.0.dist-info").rmdir()
    assert "lines" not in names("importers")


def test_a_cache_that_cannot_be_read_or_written_is_done_without(install: Install, tmp_path: Path) -> None:
    install("lines_extension", NOTES_IMPORTER, {"importers/lines": "lines_extension:importer"})
    assert "lines" in names("importers")
    (cache,) = (tmp_path / "cache").glob("entry-points-*.json")
    for content in ("", "[]", '{"folders": 1}', '{"folders": null, "entry_points": [[1]]}'):
        cache.write_text(content)
        entry_points._scan.cache_clear()
        assert "lines" in names("importers")


@pytest.mark.serial
def test_with_its_cache_a_scan_costs_at_most_5_ms_of_cpu() -> None:
    installed()
    times = []
    for _ in range(20):
        entry_points._scan.cache_clear()
        started = time.process_time()
        installed()
        times.append(time.process_time() - started)
    assert sorted(times)[len(times) // 2] < 0.005
