"""Every command of the command line, as text and as JSON: arguments, exit code, stdout and stderr."""

from __future__ import annotations

import pytest

from tests.golden.compare import Golden
from tests.golden.record import COMPUTED, masked
from tests.golden.scripts import Command, cases
from tests.golden.workspace import Workspace

CASES = cases("cli")
MODEL_CASES = cases("model")
CHAT_CASES = cases("chat")
# `--json` does not change a help text, is part of the scripts for `--format`, and embedding twice takes too long.
TEXT_ONLY = ("help/", "format/", "reembed/")


def recorded(case: str, lines: list[str], workspace: Workspace) -> str:
    text = workspace.transcript(lines)
    return text if case.startswith(TEXT_ONLY) else f"{text}\n{workspace.transcript(lines, '--json')}"


# Hits that are nearly equal, or a relevance that is shown: PostgreSQL estimates how often a phrase occurs, so BM25
# differs by a few hundredths there.
NEARLY_TIED = frozenset(
    {"search/view-full", "search/view-compact", "search/view-compact-flag", "search/view-digest", "search/view-dual"}
    | {"search/offset", "search/explain", "search/floor", "search/kind", "search/strict-fallback", "search/budgets"}
    | {"format/csv", "search/error-code"}
)
# Those, what a database that is not shared answers, and backups of files.
OF_SQLITE = {*NEARLY_TIED, "admin/not-shared", "health/backup"}


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.sqlite_only) if case in OF_SQLITE else case for case in CASES]
)
def test_output(case: str, workspace: Workspace, golden: Golden) -> None:
    golden.check(f"cli/{case}", recorded(case, CASES[case], workspace))


@pytest.mark.model
@pytest.mark.parametrize("case", MODEL_CASES)
def test_output_with_a_model(case: str, workspace_with_model: Workspace, golden: Golden) -> None:
    golden.check(f"model/{case}", masked(recorded(case, MODEL_CASES[case], workspace_with_model), COMPUTED))


@pytest.mark.server
@pytest.mark.parametrize("case", CHAT_CASES)
def test_output_with_a_language_model(case: str, workspace_with_chat: Workspace, golden: Golden) -> None:
    golden.check(f"chat/{case}", recorded(case, CHAT_CASES[case], workspace_with_chat))


def test_every_command_has_a_case(workspace: Workspace) -> None:
    listed = workspace.transcript(["--help"]).split("Files:\n")[1]
    commands = {line.split()[0] for line in listed.splitlines() if line.startswith("  ") and line[2] != " "}
    in_cases = {Command.parse(line).arguments[0] for lines in CASES.values() for line in lines if line[:1] not in ":"}
    assert commands <= in_cases
