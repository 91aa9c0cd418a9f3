"""docs/extending.md and its examples: what it shows is in files that these tests install and use."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import indent

import pytest

from mindex.entry_points import GROUPS
from mindex.memory import Memory
from tests.mcp.handshakes import INITIALIZED, initialize, request
from tests.running import run_here
from tests.test_docs import PAGES, fences
from tests.test_entry_points import Install
from tests.test_entry_points import install as install  # a fixture

ROOT = Path(__file__).parent.parent
PLUGIN, MODULES = ROOT / "examples" / "plugin", ROOT / "examples" / "entry_points"
SOURCES = [*PLUGIN.rglob("*.py"), *MODULES.glob("*.py")]
PAGE = PAGES["docs/extending.md"].partition("<!-- Written by scripts/reference")[0]  # the reference follows

BOOKMARKS = """<!DOCTYPE NETSCAPE-Bookmark-file-1>
<DL><p>
<DT><A HREF="https://sqlite.example/wal" ADD_DATE="1700000000">Write-ahead logging</A>
<DT><A HREF="https://bread.example/rye">Rye bread</A>
<DT><A HREF="javascript:alert(1)">A script</A>
</DL>
"""


# ── the page ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_example_of_the_page_is_in_a_file_that_is_used_here() -> None:
    files = [*SOURCES, PLUGIN / "pyproject.toml", Path(__file__)]
    written = [path.read_text(encoding="utf-8") for path in files]
    shown = fences(PAGE, "py")
    shown += re.findall(r"^    ```\w+\n(.*?)^    ```$", PAGE.replace("```sh", "~~~"), re.MULTILINE | re.DOTALL)
    assert len(shown) >= len(GROUPS)
    for block in shown:
        text = "\n".join(line.removeprefix("    ") if block.startswith("    ") else line for line in block.splitlines())
        assert any(text in one or indent(text, "    ") in one for one in written), text


def test_the_page_explains_every_entry_point() -> None:
    assert [group for group in GROUPS if f"| `mindex.{group}` |" not in PAGE] == []


def test_the_examples_import_the_public_names_alone() -> None:
    imported = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            imported.update(name for name in names if name.partition(".")[0] == "mindex")
    assert imported == {"mindex", "mindex.extension"}


def test_the_plugin_is_short() -> None:
    files = [PLUGIN / "pyproject.toml", *PLUGIN.rglob("*.py")]
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files) < 150


# ── the package, in a separate environment ─────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def mindex_with_plugin() -> Path:
    """The interpreter of an environment with mindex and the example, which is built and installed again."""
    code = (
        "import _environment as e; folder = e.ensure('.venv-plugin', (*e.FROM_LOCK, 'requirements/lean.lock'),"
        " ('--no-deps', 'numpy>=2.0'), ('--no-deps', '-e', '.')); print(e.program(folder, 'python'))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "scripts")}
    made = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    python = Path(made.stdout.splitlines()[-1])
    install = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall", PLUGIN]
    installed = subprocess.run(install, capture_output=True, text=True, check=False)
    assert installed.returncode == 0, installed.stderr
    return python


@pytest.mark.slow
@pytest.mark.serial
def test_the_plugin_is_installed_and_used(mindex_with_plugin: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": "", "MINDEX_EMBEDDING_PROVIDER": "trigrams"}

    def run(*arguments: str | Path) -> str:
        command = [mindex_with_plugin, "-m", "mindex", "--db", tmp_path / "memory.db", *arguments]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, encoding="utf-8", check=False)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    plugins = {one["name"]: one for one in json.loads(run("plugins", "--json"))["plugins"]}
    provides = ["commands bookmarks", "embedders trigrams", "importers bookmarks"]
    assert sorted(plugins["mindex_bookmarks"]["provides"]) == provides
    (tmp_path / "bookmarks.html").write_text(BOOKMARKS, encoding="utf-8")
    imported = json.loads(run("import", tmp_path / "bookmarks.html", "--json"))
    assert (imported["added"], len(imported["skipped"])) == (2, 1), imported
    assert json.loads(run("import", tmp_path / "bookmarks.html", "--json"))["added"] == 0
    assert run("bookmarks", "logging") == "https://sqlite.example/wal\n"
    assert json.loads(run("bookmarks", "rye bread", "--json")) == {"addresses": ["https://bread.example/rye"]}
    status = json.loads(run("status", "--json"))
    assert status["tier"] == "hybrid" and status["embedding"]["pending"] == 0
    by_vector = json.loads(run("search", "loging", "--mode", "vector", "--json"))  # no word of it is stored
    assert "logging" in by_vector["results"][0]["text"]
    assert all(check["ok"] for check in json.loads(run("doctor", "--json"))["checks"])


def test_an_embedder_is_tested_by_the_library(install: Install, tmp_path: Path) -> None:
    source = (PLUGIN / "src" / "mindex_bookmarks" / "embedder.py").read_text("utf-8")
    install("trigrams", f"{source}\n\nMINDEX_INTERFACE = 1\n", {"embedders/trigrams": "trigrams:create"})
    with Memory(tmp_path / "memory.db", options={"embedding.provider": "trigrams"}) as memory:
        memory.add("Write-ahead logging")
        assert memory.search("loging", mode="vector").hits


# ── the modules ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_store_opens_the_urls_of_its_scheme(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("shelf", (MODULES / "shelf.py").read_text("utf-8"), {"stores/shelf": "shelf:engine"})
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert run_here("--db", "shelf://notes", "add", "The boiler room is locked.").code == 0
    assert "boiler" in run_here("--db", "shelf://notes", "search", "boiler").out
    assert (tmp_path / "shelf" / "notes.db").exists()
    assert "'a b' is not the name of a database" in run_here("--db", "shelf://a b", "add", "x").err


def test_a_reranker_orders_the_hits(install: Install, tmp_path: Path) -> None:
    install("overlap", (MODULES / "overlap.py").read_text("utf-8"), {"rerankers/overlap": "overlap:create"})
    db = tmp_path / "memory.db"
    for text in ("The key of the boiler room", "The key of the boiler room is at the desk of the harbour master"):
        assert run_here("--db", db, "add", text).code == 0
    assert run_here("config", "set", "rerank.provider", "overlap").code == 0
    found = json.loads(run_here("--db", db, "search", "boiler key at the desk", "--explain", "--json").out)
    assert [hit["explain"]["rerank"] for hit in found["results"]] == [5.0, 3.0]


def test_a_language_model_is_a_program(install: Install, tmp_path: Path) -> None:
    install("program", (MODULES / "program.py").read_text("utf-8"), {"generators/program": "program:create"})
    script = tmp_path / "model.py"
    script.write_text('print(\'{"lexical": ["boiler room"], "semantic": [], "answer": ""}\')')
    assert run_here("config", "set", "generation.provider", "program").code == 0
    assert run_here("config", "set", "generation.model", f"'{sys.executable}' '{script}'").code == 0
    db = tmp_path / "memory.db"
    assert run_here("--db", db, "add", "The boiler room is locked.").code == 0
    found = run_here("--db", db, "search", "heating room", "--expand")
    assert "also looked for: " in found.out and "boiler room" in found.out


@pytest.mark.slow
def test_tools_are_served(install: Install, tmp_path: Path) -> None:
    install("librarian", (MODULES / "librarian.py").read_text("utf-8"), {"tools/librarian": "librarian:tools"})
    db = tmp_path / "memory.db"
    assert run_here("--db", db, "add", "The boiler room is locked.").code == 0
    call = request("tools/call", 2, {"name": "find_page", "arguments": {"question": "boiler"}})
    command = [sys.executable, "-m", "mindex", "--db", db, "serve", "--tools", "librarian"]
    replies = {}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None and server.stdout is not None
        for message in (initialize(), INITIALIZED, call):
            server.stdin.write(json.dumps(message) + "\n")
            server.stdin.flush()
            if "id" in message:
                replies[message["id"]] = json.loads(server.stdout.readline())["result"]
        server.stdin.close()
    assert "find_page" in replies[1]["instructions"]
    assert replies[2]["structuredContent"]["text"] == "The boiler room is locked."
