"""The row `budget-10k`: what fitting an answer to a token budget costs, alone and against another version."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from client import Server
from ground import Ground
from measure import Row, Timings, Took, child_output, timed, told
from mindex.memory import Memory
from mindex.present.to_json import compact_json
from mindex.search_view import search_view

BUDGETS = (250, 500, 1_000, 2_000)  # by turns
_LOT = 7  # of the questions; the next one is for the baseline
_SHARE, _MOST = 0.25, 1.3


def budget_search(ground: Ground) -> Row:
    """Passages for a budget, as text and as JSON, over a search that presents nothing."""
    questions = list(zip(ground.questions(_LOT), ground.questions(_LOT + 1), strict=True))
    with ground.memory(ground.sizes.small) as memory:
        runs = [
            (_fitted(memory, fitted, turn), _plain(memory, plain)) for turn, (fitted, plain) in enumerate(questions)
        ]
    fitted, plain = Timings([run[0] for run in runs]), Timings([run[1] for run in runs])
    ratio = fitted.cpu_over(plain)
    return Row(
        name="budget-10k",
        measured=f"hybrid search of {ground.sizes.small:,} records and its passages: {told(fitted.cpu)} of CPU time",
        baseline=f"the search alone: {told(plain.cpu)}",
        ratio=f"{ratio:.2f}×",
        target=f"≤ {1 + _SHARE}×",
        ok=ratio <= 1 + _SHARE,
        note=f"CPU time, medians of {len(runs)} new questions a side; budgets of {_named(BUDGETS)} tokens by turns",
        numbers={"ratio": ratio},
    )


def _fitted(memory: Memory, question: str, turn: int) -> Took:
    def work() -> None:
        _, shown = search_view(memory, question, "passages", budget=BUDGETS[turn % len(BUDGETS)])
        shown.text()
        compact_json(shown)

    return timed(work)


def _plain(memory: Memory, question: str) -> Took:
    return timed(lambda: memory.search(question))


def budget_against(ground: Ground, pythons: Mapping[str, Path], folder: Path, questions: Sequence[str]) -> Row:
    """This version's search with a budget over the other one's without, each through its own MCP server.

    The other version indexes the files, and this one uses a copy of its database.
    """
    works = {side: ground.scratch(f"budget-{side}") for side in pythons}
    index = [str(pythons["other"]), "-m", "mindex", "--db", "memory.db", "index", str(folder)]
    child_output(index, works["other"])
    shutil.copy(works["other"] / "memory.db", works["this"] / "memory.db")
    servers = {
        side: Server([str(python), "-m", "mindex", "--db", str(works[side] / "memory.db"), "serve"], works[side])
        for side, python in pythons.items()
    }
    taken = dict.fromkeys(servers, 0.0)
    with servers["this"], servers["other"]:
        for server in servers.values():
            server.initialize()
            for question in ground.questions(9, 3):
                server.call("search", query=question)
        for turn, question in enumerate(questions):
            for side in servers if turn % 2 == 0 else reversed(servers):
                budget = {"budget": BUDGETS[turn // 2 % len(BUDGETS)]} if side == "this" else {}
                before = servers[side].cpu()
                found = servers[side].call("search", query=question, **budget)
                taken[side] += servers[side].cpu() - before
                if found.get("tier", "hybrid") != "hybrid":
                    raise RuntimeError(f"{side} version searched by {found['tier']} only")
    ratio = taken["this"] / taken["other"]
    each = {side: told(seconds / len(questions)) for side, seconds in taken.items()}
    return Row(
        name="budget-10k",
        measured=f"this version, search with a budget over MCP: {each['this']}",
        baseline=f"the other version, search without one: {each['other']}",
        ratio=f"{ratio:.2f}×",
        target=f"≤ {_MOST}×",
        ok=ratio <= _MOST,
        note=f"CPU time of a server, mean of {len(questions)} questions; budgets of {_named(BUDGETS)} tokens by turns",
        numbers={"ratio": ratio, **{side: seconds / len(questions) for side, seconds in taken.items()}},
    )


def _named(budgets: Sequence[int]) -> str:
    return f"{', '.join(f'{budget:,}' for budget in budgets[:-1])} and {budgets[-1]:,}"
