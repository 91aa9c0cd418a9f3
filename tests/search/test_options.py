"""The table of search options agrees with every interface, and with what is written from it."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

from mindex.cli.retrieval import list_command, search_command
from mindex.datatypes import Query
from mindex.mcp.native.retrieval import SearchTools
from mindex.memory import Memory
from mindex.search.option_types import Scope, SearchOptions
from mindex.search.options import SEARCH_OPTIONS
from mindex.search.service import SearchService
from mindex.web.api import OPERATIONS

ROOT = Path(__file__).parent.parent.parent
LIBRARY = {one.name: one for one in SEARCH_OPTIONS if one.in_library}


def test_the_source_has_what_the_tables_say() -> None:
    # In a separate process: the script changes the import path.
    code = "import json, runpy; print(json.dumps(runpy.run_path('scripts/reference')['sources']()))"
    printed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True).stdout
    for name, text in json.loads(printed).items():
        assert (ROOT / name).read_text(encoding="utf-8") == text, f"{name} is out of date: run scripts/reference"


def test_help_of_search_documents_every_option() -> None:
    documented = inspect.getdoc(Memory.search) or ""
    assert [name for name in LIBRARY if f"\n    {name} (" not in documented] == []
    assert [one.help for one in LIBRARY.values() if one.help[:60] not in documented] == []


def test_the_library_takes_the_options_with_their_defaults() -> None:
    assert set(SearchOptions.__annotations__) == set(LIBRARY)
    assert set(Scope.__annotations__) == {one.name for one in LIBRARY.values() if one.scope}
    taken = inspect.signature(SearchService.search).parameters
    own = {one.name: one.default for one in LIBRARY.values() if not one.scope}
    assert {name: taken[name].default for name in own} == own
    defaults = {one.name: one.default for one in fields(Query)}
    shared = own.keys() & defaults.keys() - {"guidance"}
    assert {name: defaults[name] for name in shared} == {name: own[name] for name in shared}


def test_commands_requests_and_tools_take_the_options_that_the_table_gives_them() -> None:
    flags = {one.name for one in SEARCH_OPTIONS if one.flags}
    assert {str(one.name) for one in search_command.params} == flags | {"words", "form"}
    scope = {one.name for one in SEARCH_OPTIONS if one.flags and one.scope}
    assert {str(one.name) for one in list_command.params} == scope | {"limit", "offset", "view", "form", "conflicts"}
    (search,) = (one for one in OPERATIONS if one.name == "search")
    assert {one.name for one in search.options} == {
        "q",
        *(one.name for one in SEARCH_OPTIONS if one.parameter),
    }
    arguments = {one.argument for one in SEARCH_OPTIONS if one.argument}
    assert set(inspect.signature(SearchTools.search).parameters) == arguments | {"self", "context", "query"}


def test_the_four_ways_to_rank_can_be_set_over_http() -> None:
    (search,) = (one for one in OPERATIONS if one.name == "search")
    assert {"rerank", "expand", "fusion", "current_file"} <= {one.parameter for one in search.options}
