"""Rows that compare this version of mindex with another one: `python bench/speed.py --only … --against PYTHON`.

Each side is a process of a separate interpreter. It uses only what every version has: the command and `Memory`. The two
take turns, each with its own database and caches, and medians of the CPU time of a process are compared.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import corpus
from budgets import budget_against
from ground import Ground
from measure import Row, child_output, told

# Each prints one number. argv: folder of texts, database, questions.
_BEGIN = """
import json, sys, time
from mindex import Memory
folder, database, questions = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
memory = Memory(database)
"""
_CPU = "print(time.process_time() - begun); memory.close()"
_SUBJECTS = {
    "embed-rate": f"""{_BEGIN}
memory.index(folder, embed=False); memory.add("warm up the model")
begun = time.process_time(); memory.maintenance.backfill(); {_CPU}""",
    "index-rate": f"""{_BEGIN}
memory.add("warm up the model")
begun = time.process_time(); memory.index(folder); {_CPU}""",
    "cold-hybrid": """
import json, sys, time
sys.argv = ["mindex", "--db", sys.argv[2], "search", json.loads(sys.argv[3])[0]]
from mindex.cli.main import main
try:
    main()
except SystemExit:
    pass
print(); print(time.process_time())""",
    "resident": f"""{_BEGIN}
for question in questions: memory.search(question)
print(next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS"))); memory.close()""",
}
_FRESH = ("embed-rate", "index-rate")  # each turn fills a new database
_BUDGET = "budget-10k"
NAMES = (*_SUBJECTS, _BUDGET)
_MOST = 1.05


def against(ground: Ground, names: Sequence[str], python: Path) -> list[Row]:
    """A row for each name: this version over the other one, by turns."""
    rounds = ground.sizes.rounds
    lots = [_written(ground, ground.texts[turn::rounds], str(turn), ground.sizes.chunks) for turn in range(rounds)]
    # New ones for each turn: a database keeps the vectors of those that it was asked.
    asked = corpus.questions(ground.texts, ground.sizes.searches * rounds)
    questions = [asked[turn::rounds] for turn in range(rounds)]
    sides = [
        Side("this", Path(sys.executable), ground.scratch("this-version")),
        Side("other", python.absolute(), ground.scratch("other-version")),
    ]
    rows = [_row(name, sides, lots, questions) for name in names if name != _BUDGET]
    if _BUDGET in names:
        folder = _written(ground, ground.texts, _BUDGET, ground.sizes.small)
        rows.append(budget_against(ground, {side.name: side.python for side in sides}, folder, asked))
    return rows


@dataclass(frozen=True, slots=True)
class Side:
    """One version: its interpreter, and the folder of its databases and caches."""

    name: str
    python: Path
    work: Path

    def run(self, name: str, folder: Path, questions: Sequence[str], turn: int) -> float:
        database = self.work / (f"{name}-{turn}.db" if name in _FRESH else "memory.db")
        if name not in _FRESH and not database.exists():
            child_output([str(self.python), "-m", "mindex", "--db", str(database), "index", str(folder)], self.work)
        arguments = [str(folder), str(database), json.dumps(questions)]
        return float(child_output([str(self.python), "-c", _SUBJECTS[name], *arguments], self.work).split()[-1])


def _written(ground: Ground, texts: Sequence[corpus.Text], name: str, most: int) -> Path:
    """A folder of texts with about this number of chunks."""
    folder = ground.scratch(f"versions-{name}") / "files"
    taken: list[corpus.Text] = []
    chunks = 0
    for text in texts:
        if chunks >= most:
            break
        taken.append(text)
        chunks += len(corpus.passages([text]))
    corpus.write_folder(taken, folder, 1_700_000_000)
    return folder


def _row(name: str, sides: Sequence[Side], lots: Sequence[Path], questions: Sequence[Sequence[str]]) -> Row:
    runs: dict[str, list[float]] = {side.name: [] for side in sides}
    for turn, folder in enumerate(lots):
        for side in sides if turn % 2 == 0 else reversed(sides):
            runs[side.name].append(side.run(name, folder, questions[turn], turn))
    medians = {side: statistics.median(taken) for side, taken in runs.items()}
    ratio = medians["this"] / medians["other"]
    unit = _megabytes if name == "resident" else told
    spread = ", ".join(f"{side} {unit(min(taken))}–{unit(max(taken))}" for side, taken in runs.items())
    return Row(
        name=name,
        measured=f"this version: {unit(medians['this'])}",
        baseline=f"the other version: {unit(medians['other'])}",
        ratio=f"{ratio:.2f}×",
        target=f"≤ {_MOST}×",
        ok=ratio <= _MOST,
        note=f"{'memory' if name == 'resident' else 'CPU time'} of a process, medians of {len(lots)} turns; {spread}",
        numbers={"ratio": ratio, **medians},
    )


def _megabytes(kilobytes: float) -> str:
    return f"{kilobytes / 1024:.0f} MB"
