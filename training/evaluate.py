"""Retrieval figures of a model on the dev sets (and, behind --heldout, once per final candidate, on the held-out sets).

    python evaluate.py --weights models/minilm.safetensors MODEL/model.onnx --tokenizer MODEL/tokenizer.json --dev DEV

The names of held-out sets are the names of the folders in the folder given with --heldout. Arithmetic is bf16 for all
columns.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

MONTHS = "January February March April May June July August September October November December".split()
DEV_SETS = [
    "facts_dev",
    "prefeval_dev",
    "locomo_dev",
    "zoomcamp_faq",
    "anthropic_docs",
    "scifact",
    "xquad_es",
    "xquad_zh",
    "lme_sessions_dev",
    "lme_turns_dev",
]
DEV_FOREIGN = ["scifact", "zoomcamp_faq", "anthropic_docs", "locomo_dev", "prefeval_dev"]
Embed = Callable[[list[str]], np.ndarray]
Scores = dict[str, list[float]]


def header(document: dict[str, Any]) -> str:
    """«Anna (8 May 2023): » for a chat turn."""
    date = document.get("date", "")[:10]
    if re.match(r"\d{4}-\d\d-\d\d", date):
        year, month, day = date.split("-")
        return f"{document['speaker']} ({int(day)} {MONTHS[int(month) - 1]} {year}): "
    return f"{document['speaker']}: "


def document_text(document: dict[str, Any]) -> str:
    text, title = document["text"], document.get("title")
    if document.get("speaker"):
        return header(document) + text
    return f"{title}\n{text}" if title and not text.startswith(title) else text


class RetrievalSet:
    """One set in BEIR layout; where lines have a group, a query is searched inside its group."""

    def __init__(self, folder: Path) -> None:
        self.documents = [json.loads(x) for x in (folder / "corpus.jsonl").open(encoding="utf8")]
        self.relevant: dict[str, dict[str, float]] = {}
        for line in (folder / "qrels/test.tsv").read_text(encoding="utf8").splitlines()[1:]:
            query, document, score = line.split("\t")
            if float(score) > 0:
                self.relevant.setdefault(query, {})[document] = float(score)
        self.queries = [
            q for q in map(json.loads, (folder / "queries.jsonl").open(encoding="utf8")) if q["_id"] in self.relevant
        ]
        self.texts = [document_text(d) for d in self.documents]
        self.ids = [d["_id"] for d in self.documents]
        self.position = {d: i for i, d in enumerate(self.ids)}
        self.groups: dict[Any, list[int]] = {}
        for i, d in enumerate(self.documents):
            self.groups.setdefault(d.get("group"), []).append(i)

    def candidates(self, query: dict[str, Any]) -> np.ndarray:
        if "candidates" in query:
            return np.array([self.position[c] for c in query["candidates"] if c in self.position])
        return np.array(self.groups.get(query.get("group"), range(len(self.ids))))

    def score(
        self, documents: np.ndarray, queries: np.ndarray, keep: Callable[[dict[str, Any]], bool] = lambda _: True
    ) -> tuple[list[float], np.ndarray]:
        """([nDCG@10, hit@1, hit@5], best cosine of every query)."""
        ndcg, first, five, best = [], [], [], []
        for query, vector in zip(self.queries, queries, strict=True):
            if not keep(query):
                continue
            relevant, among = self.relevant[query["_id"]], self.candidates(query)
            cosines = documents[among] @ vector
            top = among[np.argsort(-cosines, kind="stable")[:10]]
            gains = [relevant.get(self.ids[i], 0.0) for i in top]
            ideal = sorted(relevant.values(), reverse=True)[:10]
            dcg = sum((2**g - 1) / math.log2(i + 2) for i, g in enumerate(gains))
            ndcg.append(dcg / sum((2**g - 1) / math.log2(i + 2) for i, g in enumerate(ideal)))
            first.append(gains[0] > 0)
            five.append(any(g > 0 for g in gains[:5]))
            best.append(float(cosines.max()))
        return [round(float(np.mean(x)), 4) for x in (ndcg, first, five)], np.array(best)


def auroc(own: np.ndarray, foreign: np.ndarray) -> float:
    """Probability that an own question has a higher best cosine than a foreign one."""
    wins = (own[:, None] > foreign[None, :]).mean() + 0.5 * (own[:, None] == foreign[None, :]).mean()
    return round(float(wins), 4)


class Suite:
    """Several sets; the first one named `facts…` is also asked foreign questions."""

    def __init__(self, root: Path, names: list[str], foreign: list[str], per_set: int = 30) -> None:
        self.sets = {n: RetrievalSet(root / n) for n in names if (root / n / "corpus.jsonl").exists()}
        self.foreign = [
            q["text"]
            for n in foreign
            if n in self.sets
            for q in random.Random(3).sample(self.sets[n].queries, min(per_set, len(self.sets[n].queries)))
        ]

    def run(self, embed: Embed, embed_documents: Embed | None = None) -> Scores:
        """Score all sets. `embed_documents`: another model for the documents, as in a database that it filled."""
        result: Scores = {}
        for name, data in self.sets.items():
            documents = (embed_documents or embed)(data.texts)
            queries = embed([q["text"] for q in data.queries])
            result[name], best = data.score(documents, queries)
            if name == "locomo_dev":
                result["locomo_dev/na"], _ = data.score(documents, queries, keep=lambda q: not q.get("adversarial"))
            if name.startswith("facts") and self.foreign:
                result["auroc"] = [auroc(best, (embed(self.foreign) @ documents.T).max(1))]
            if name == "scifact":
                rng = np.random.default_rng(0)
                pairs = (
                    documents[rng.integers(0, len(documents), 2000)] * queries[rng.integers(0, len(queries), 2000)]
                ).sum(1)
                result["background"] = [round(float(pairs.mean()), 3), round(float(pairs.std()), 3)]
        return result


def dev_suite(root: Path, names: list[str] | None = None) -> Suite:
    return Suite(root, names or DEV_SETS, DEV_FOREIGN)


def held_out_suite(root: Path, foreign: list[str] | None = None) -> Suite:
    names = sorted(p.parent.name for p in root.glob("*/corpus.jsonl"))
    return Suite(root, names, foreign or [n for n in names if not n.startswith("facts")])


def show(title: str, scores: Scores) -> None:
    print(f"{title:24s} " + " ".join(f"{k}={'/'.join(f'{x:.3f}' for x in v)}" for k, v in scores.items()), flush=True)


def table(columns: dict[str, Scores]) -> str:
    """Markdown table: one row per set, one column per model."""
    names = list(next(iter(columns.values())))
    lines = ["| set | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name in names:
        cells = ["/".join(f"{x:.3f}" for x in column.get(name, [])) for column in columns.values()]
        lines += [f"| {name} | " + " | ".join(cells) + " |"]
    return "\n".join(lines)


def main() -> None:
    import torch

    from encoder import Encoder, embed, load_tokenizer, load_weights

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--weights", type=Path, nargs="+", required=True, help="safetensors or model.onnx; the first is the reference"
    )
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--dev", type=Path, help="folder of the dev sets")
    parser.add_argument("--heldout", type=Path, help="only for a final candidate, once")
    parser.add_argument(
        "--foreign", help="comma-separated held-out sets whose questions are foreign to the facts (default: all others)"
    )
    parser.add_argument("--sets", help="comma-separated names instead of all dev sets")
    parser.add_argument(
        "--old-documents", action="store_true", help="documents by the first weights, questions by each"
    )
    parser.add_argument("--json", type=Path, help="also write the figures there")
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = load_tokenizer(args.tokenizer)
    suites = {"dev": dev_suite(args.dev, args.sets.split(",") if args.sets else None)} if args.dev else {}
    if args.heldout:
        suites["held out"] = held_out_suite(args.heldout, args.foreign.split(",") if args.foreign else None)

    def embedder(path: Path) -> Embed:
        encoder = Encoder(load_weights(path), device)
        return lambda texts: embed(encoder, tokenizer, texts).cpu().numpy()

    everything: dict[str, dict[str, Scores]] = {}
    for title, suite in suites.items():
        columns: dict[str, Scores] = {}
        for path in args.weights:
            columns[path.stem] = suite.run(embedder(path), embedder(args.weights[0]) if args.old_documents else None)
            show(path.stem, columns[path.stem])
        everything[title] = columns
        print(f"## {title}\n{table(columns)}", flush=True)
    if args.json:
        args.json.write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()
