"""Assembles the training rows from the parts, filters contamination, prints counts and licences.

Filter against every dev and held-out set: a row is dropped if one of its texts shares a run of WORD_RUN words
(questions: QUESTION_RUN; CHARACTER_RUN characters for scripts without spaces) with a test text or test question, or if
a question equals a test question. The filter by cosine is in prepare.py, which computes the vectors anyway.

    python build_data.py --parts parts --old data/generated.jsonl.xz --tests DEV HELDOUT --out all.jsonl.xz
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from rows import Row, read_rows, write_rows

WORD_RUN = {"F": 7, "P": 7, "T": 8, "S": 10}  # consecutive words, texts
DEFAULT_RUN = 12
QUESTION_RUN = 9  # consecutive words, questions: shorter runs ("can you help me plan a trip to") are everyday language
CHARACTER_RUN = 24
SHORT_TEXTS = 400  # mean characters of the sets whose texts the filter by cosine uses on a CPU
OLD_LICENCES = {
    "F": ("Qwen2.5-Coder-1.5B generated or rules", "Apache-2.0/own"),
    "P": ("Qwen2.5-Coder-1.5B generated", "Apache-2.0"),
    "T": ("Qwen2.5-Coder-1.5B generated", "Apache-2.0"),
    "D": (
        "questions generated; k8s, MDN, FastAPI, PEPs, Zulip, OpenStax, QED texts",
        "CC-BY-4.0, CC-BY-SA, MIT, PD, Apache-2.0",
    ),
    "I": ("k8s, MDN, FastAPI, PEPs, Zulip, OpenStax texts", "CC-BY-4.0, CC-BY-SA, MIT, PD, Apache-2.0"),
    "C": ("PyPI packages (paramiko removed)", "MIT/BSD/Apache-2.0"),
    "M": ("translated docs, generated, DRCD, JaQuAD", "CC-BY-4.0, CC-BY-SA, MIT"),
    "MI": ("translated docs", "CC-BY-4.0, CC-BY-SA, MIT"),
}
LANGUAGES = {
    "Spanish": "es",
    "German": "de",
    "French": "fr",
    "Italian": "it",
    "Portuguese": "pt",
    "Chinese": "zh",
    "Japanese": "ja",
    "Korean": "ko",
}
WORD = re.compile(r"\w+")
DENSE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def runs(text: str, length: int) -> set[int]:
    """Hashes of all runs of `length` words; of characters if the script has no spaces."""
    text = text.lower()
    if len(DENSE.findall(text)) > len(text) / 4:
        text = re.sub(r"\s+", "", text)
        return {hash(text[i : i + CHARACTER_RUN]) for i in range(len(text) - CHARACTER_RUN + 1)}
    words = WORD.findall(text)
    return {hash(tuple(words[i : i + length])) for i in range(len(words) - length + 1)}


def plain(text: str) -> str:
    return " ".join(WORD.findall(text.lower()))


class TestSets:
    """Texts and questions of all sets that must not be trained on."""

    def __init__(self, roots: Iterable[Path]) -> None:
        self.texts: list[str] = []
        self.short_texts: list[str] = []
        self.questions: list[str] = []
        for root in roots:
            for corpus in sorted(root.glob("*/corpus.jsonl")):
                texts = [json.loads(x)["text"] for x in corpus.open(encoding="utf8")]
                self.texts += texts
                if sum(map(len, texts)) < SHORT_TEXTS * len(texts):
                    self.short_texts += texts
                self.questions += [
                    json.loads(x)["text"] for x in (corpus.parent / "queries.jsonl").open(encoding="utf8")
                ]
            for path in sorted(root.glob("*/**/*.md")):  # sets kept as whole files (passages, qmd_eval)
                if path.name not in ("ABOUT.md", "README.md"):
                    self.texts.append(path.read_text(encoding="utf8", errors="replace"))
        self.plain_questions = {plain(q) for q in self.questions if len(q.split()) > 3}
        self._runs: dict[int, set[int]] = {}

    def run_set(self, length: int) -> set[int]:
        if length not in self._runs:
            self._runs[length] = set().union(*(runs(t, length) for t in self.texts + self.questions))
        return self._runs[length]

    def touches(self, row: Row) -> bool:
        known = self.run_set(WORD_RUN.get(row["t"], DEFAULT_RUN))
        length = WORD_RUN.get(row["t"], DEFAULT_RUN)
        return any(runs(text, length) & known for text in [row["d"], *row.get("hn", [])]) or any(
            runs(q, QUESTION_RUN) & self.run_set(QUESTION_RUN) for q in row["q"]
        )


def normal(row: Row, part: str) -> Row:
    """Old rows get source and licence; the task and language names become uniform."""
    if "src" not in row:
        row["src"], row["lic"] = OLD_LICENCES[row["t"]]
        if row.get("tpl"):
            row["src"], row["lic"] = "rules (first set)", "own"
    row["t"] = "M" if row["t"] == "MI" else row["t"]
    if row["t"] == "M":
        row["lang"] = LANGUAGES.get(row.get("lang"), row.get("lang") or "es")
    row.setdefault("part", part)
    return row


def load(parts: Path, old: Path | None) -> list[Row]:
    """All rows. Old facts by rule are left out, because facts.py contains their rules."""
    rows: list[Row] = []
    for path in sorted(parts.glob("*.jsonl.xz")):
        if not path.name.startswith("all"):
            rows += [normal(r, path.name.split(".")[0]) for r in read_rows(path)]
    if old:
        for row in read_rows(old):
            if row["t"] == "TR" or row.get("tpl"):
                continue
            rows.append(normal(row, "old_" + row["t"]))
    return without_copies(rows)


def without_copies(rows: list[Row]) -> list[Row]:
    """Drop a row if its text, or the first question of an old row, is already there for the same task."""
    kept, texts, asked = [], set(), set()
    for row in rows:
        text, question = (row["t"], plain(row["d"])[:300]), (row["t"], plain(row["q"][0]))
        if text in texts or (row["part"] in ("old_C", "old_MI", "old_M") and question in asked):
            continue
        texts.add(text)
        asked.add(question)
        kept.append(row)
    print(f"copies left out: {len(rows) - len(kept)}", flush=True)
    return kept


def filter_ngrams(rows: list[Row], tests: TestSets) -> list[Row]:
    kept, dropped = [], Counter()
    for row in rows:
        pairs = list(zip(row["q"], row.get("qk") or row["q"], strict=True))
        good = [(q, k) for q, k in pairs if plain(q) not in tests.plain_questions]
        if not good or tests.touches(row):
            dropped[row["part"]] += 1
            continue
        row["q"] = [q for q, _ in good]
        if "qk" in row:
            row["qk"] = [k for _, k in good]
        kept.append(row)
    print("dropped by n-grams:", dict(dropped), flush=True)
    return kept


def counts_table(rows: list[Row]) -> str:
    groups: dict[tuple[str, str], Counter] = defaultdict(Counter)
    for row in rows:
        name = row["t"] + ("_" + row["lang"] if row["t"] == "M" else "")
        source = row["src"] if not (row["t"] == "C" and row["part"] == "code") else "PyPI packages and TheAlgorithms"
        lic = row["lic"] if source == row["src"] else "MIT/BSD/Apache-2.0/PSF (from metadata)"
        groups[(row["part"], name)].update(
            {"rows": 1, "questions": len(row["q"]), "hard": bool(row.get("hn")), f"src:{source} ({lic})": 1}
        )
    lines = [
        "| part | task | rows | questions | with own hard negatives | source (licence) |",
        "|---|---|---:|---:|---:|---|",
    ]
    for (part, name), count in sorted(groups.items()):
        sources = "; ".join(k[4:] for k in count if k.startswith("src:"))
        lines.append(f"| {part} | {name} | {count['rows']} | {count['questions']} | {count['hard']} | {sources} |")
    lines.append(
        f"| all | | {len(rows)} | {sum(len(r['q']) for r in rows)} | {sum(bool(r.get('hn')) for r in rows)} | |"
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", type=Path, required=True)
    parser.add_argument("--old", type=Path, help="rows of the first training")
    parser.add_argument("--tests", type=Path, nargs="+", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--preset", type=int, default=6, help="strength of the compression")
    args = parser.parse_args()
    tests = TestSets(args.tests)
    print(f"test sets: {len(tests.texts)} texts, {len(tests.questions)} questions", flush=True)
    rows = filter_ngrams(load(args.parts, args.old), tests)
    random.Random(5).shuffle(rows)
    write_rows(args.out, rows, preset=args.preset)
    args.out.with_name(args.out.name.split(".")[0] + "_counts.md").write_text(
        counts_table(rows) + "\n", encoding="utf8"
    )
    print(counts_table(rows))


if __name__ == "__main__":
    main()
