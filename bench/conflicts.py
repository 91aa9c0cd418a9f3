"""Print precision and recall of the conflict rules on tests/entries/conflict_pairs.tsv, as docs/quality.md shows them.

Both texts of a pair are added to a memory, each pair for its own agent, and the answer to the second `add` is
read; pairs that do not conflict are added in both orders, and neither order may report a conflict. Rules and word lists
were chosen on the half `dev`; `--errors` prints what goes wrong there, and nothing of the other half.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from mindex import Memory
from mindex.entries.conflict_rules import find_conflict

PAIRS = Path(__file__).parent.parent / "tests" / "entries" / "conflict_pairs.tsv"
HALVES = ("dev", "held out")
OUTCOMES = {
    ("conflict", True): "found",
    ("conflict", False): "missed",
    ("different", True): "false",
    ("different", False): "right",
}


class Pair(NamedTuple):
    label: str  # conflict or different
    category: str
    older: str
    newer: str

    @property
    def half(self) -> str:
        return HALVES[hashlib.sha256(f"{self.older}\t{self.newer}".encode()).digest()[0] % 2 == 0]


def read_pairs() -> list[Pair]:
    return [Pair(*line.split("\t")) for line in PAIRS.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--errors", action="store_true", help="print the errors of the half that rules are chosen on")
    parser.add_argument("--provider", default="local", help="the embedder: local, or none for a search by words alone")
    parser.add_argument("--texts", type=Path, metavar="FILE", help="instead: compare all texts of a corpus.jsonl")
    options = parser.parse_args()
    if options.texts:
        compare_all(options.texts)
        return
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory(Path(folder) / "memory.db", options={"embedding.provider": options.provider}) as memory,
    ):
        for number, pair in enumerate(read_pairs()):
            why = conflict(memory, f"p{number}", pair.older, pair.newer)
            if pair.label == "different" and not why:
                why = conflict(memory, f"r{number}", pair.newer, pair.older)
            outcome = OUTCOMES[pair.label, bool(why)]
            for group in (pair.half, f"{pair.half}, {pair.label}: {pair.category}"):
                counts[group][outcome] += 1
            if options.errors and pair.half == "dev" and outcome in ("missed", "false"):
                print(f"{outcome}: {pair.older} | {pair.newer} | {why}")
    for group in sorted(counts):
        print(row(group, counts[group]))


def compare_all(corpus: Path) -> None:
    """Print each two texts of a corpus that are reported as a conflict; such pairs are seldom real conflicts."""
    texts = [json.loads(line)["text"] for line in corpus.read_text(encoding="utf-8").splitlines()]
    found = [(a, b, why) for a, b in combinations(texts, 2) if (why := find_conflict(a, b))]
    for a, b, why in found:
        print(f"{a} | {b} | {why}")
    print(f"{len(found)} of {len(texts) * (len(texts) - 1) // 2:,} pairs are called a conflict")


def conflict(memory: Memory, agent: str, older: str, newer: str) -> str:
    memory.add(older, agent=agent)
    conflicts = memory.add(newer, agent=agent).conflicts
    return conflicts[0].why if conflicts else ""


def row(group: str, count: Counter[str]) -> str:
    found, missed, false, right = (count[outcome] for outcome in OUTCOMES.values())
    parts = [f"{group:36}"]
    if found + missed:
        parts.append(f"recall {found / (found + missed):.3f} ({found} of {found + missed})")
    if false + right:
        parts.append(f"{false} of {false + right} called a conflict wrongly")
    if found and false + right:
        parts.append(f"precision {found / (found + false):.3f}")
    return "  ".join(parts)


if __name__ == "__main__":
    main()
