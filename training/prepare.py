"""Makes rows ready for training: tokens, stock vectors, filter by cosine, mined hard negatives, teacher scores.

The result is one pickle that every training run reads, so several variants share the work. On a CPU give --limits, or
it takes hours.

    python prepare.py --rows clean.jsonl.xz --models models --tests DEV HELDOUT --limits runs/limits_cpu.json \\
        --questions 2 --teacher '{"T": 5500, "D": 1100}' --out prepared.pkl
"""

from __future__ import annotations

import argparse
import json
import pickle
import random
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file as load_numpy
from tokenizers import Tokenizer
from torch import Tensor

from build_data import TestSets
from encoder import Encoder, Weights, cut, embed, embed_tokens, length_chunks, load_tokenizer, load_weights
from rows import Row, read_rows

TEXT_LIMIT = {"F": 64, "P": 64, "T": 80, "S": 224}  # tokens
DEFAULT_TEXT_LIMIT = 128
QUESTION_LIMIT = 48
# A question whose own text ranks behind this share of all texts of the task is noise: only rows by rule keep it.
RANK_LIMIT = {"F": 0.04, "P": 0.15, "T": 0.10, "D": 0.01, "C": 0.05, "I": 0.02, "K": 0.05, "S": 1.0}
DEFAULT_RANK_LIMIT = 0.25
NEAR_DUPLICATE = {"F": 0.8, "P": 0.8, "T": 0.85}
COSINE_LIMITS = {"F": 0.80, "P": 0.80, "T": 0.85, "S": 0.90}  # text against test texts
DEFAULT_COSINE = 0.90
QUESTION_COSINE = 0.93
TEACHER_QUESTIONS = {"T": 24_000, "D": 24_000, "K": 8_000}
NEGATIVES = 24
TEACHER_TEXTS = 7


@dataclass
class Item:
    """One text with its questions."""

    text: str
    tokens: list[int]
    questions: list[str] = field(default_factory=list)
    question_tokens: list[list[int]] = field(default_factory=list)
    question_keys: list[int] = field(default_factory=list)
    mined: list[list[int]] = field(default_factory=list)  # per question: positions of other items
    keys: list[int] = field(default_factory=list)
    hard: list[list[int]] = field(default_factory=list)  # token ids of own hard negatives
    hard_texts: list[str] = field(default_factory=list)
    unanswerable: list[int] | None = None  # tokens of a question that the text does not answer
    speaker: str | None = None  # a name to be swapped
    part: str = ""
    stock: np.ndarray | None = None  # fp16 vectors of the stock model: the text's, then its questions'


@dataclass
class Prepared:
    pools: dict[str, list[Item]]
    teacher: dict[str, list[tuple[int, int, list[int], np.ndarray]]]  # item, question, items, scores
    names: list[str]


def pool_name(row: Row) -> str:
    return f"M_{row['lang']}" if row["t"] == "M" else row["t"]


def tokenise(tokenizer: Tokenizer, texts: list[str], limit: int) -> list[list[int]]:
    return [cut(e.ids, limit) for e in tokenizer.encode_batch(texts)] if texts else []


def choose_rows(rows: Sequence[Row], limits: dict[str, int], questions: int, seed: int = 9) -> list[Row]:
    """At most limits["PART/POOL"] or limits["POOL"] rows (no entry: all), and the same limit of questions for each."""
    rng = random.Random(seed)
    count: Counter[str] = Counter()
    chosen = []
    for row in rng.sample(rows, len(rows)):
        pool = pool_name(row)
        key = next((k for k in (f"{row.get('part')}/{pool}", pool) if k in limits), None)
        if key is not None and count[key] >= limits[key]:
            continue
        count[key or pool] += 1
        if len(row["q"]) > questions:
            kept = sorted(rng.sample(range(len(row["q"])), questions))
            row = {
                **row,
                "q": [row["q"][j] for j in kept],
                **({"qk": [row["qk"][j] for j in kept]} if "qk" in row else {}),
            }
        chosen.append(row)
    print("rows chosen:", dict(sorted(count.items())), flush=True)
    return chosen


class Keys:
    """Numbers for key strings; a missing key gets a new number."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def __call__(self, key: str | None) -> int:
        return self.known.setdefault(key if key is not None else f"own{len(self.known)}", len(self.known))


def nearest(vectors: Tensor, known: Tensor) -> Tensor:
    """Highest cosine of each vector to the known ones."""
    return torch.cat([(chunk @ known.T).max(1)[0] for chunk in vectors.split(4096)])


def mine(
    rows: list[Row], name: str, keys: list[list[int]], question_keys: list[list[int]], texts: Tensor, questions: Tensor
) -> tuple[list[list[int]], list[list[list[int]]]]:
    """For every row: indices of the questions to keep, and for each the nearest wrong texts."""
    flat = [(i, j) for i, r in enumerate(rows) for j in range(len(r["q"]))]
    device = texts.device
    width = max(len(k) for k in keys)
    key_table = torch.full((len(rows), width), -1, dtype=torch.long)
    for i, k in enumerate(keys):
        key_table[i, : len(k)] = torch.tensor(k)
    key_table = key_table.to(device)
    limit = RANK_LIMIT.get(name, DEFAULT_RANK_LIMIT) * len(rows)
    near = NEAR_DUPLICATE.get(name, 0.9)
    kept: list[list[int]] = [[] for _ in rows]
    found: list[list[list[int]]] = [[] for _ in rows]
    for start in range(0, len(flat), 1024):
        part = flat[start : start + 1024]
        own = torch.tensor([i for i, _ in part], device=device)
        asked = torch.tensor([question_keys[i][j] for i, j in part], device=device)
        cosines = questions[start : start + 1024] @ texts.T
        positive = cosines.gather(1, own[:, None])
        for column in range(width):
            cosines.masked_fill_(asked[:, None] == key_table[None, :, column], -9.0)
        rank = (cosines > positive).sum(1).tolist()
        cosines.masked_fill_((texts[own] @ texts.T) > near, -9.0)
        best = cosines.topk(min(NEGATIVES, max(1, len(rows) - 1)), 1)[1].tolist()
        for (i, j), r, b in zip(part, rank, best, strict=True):
            if r <= limit or rows[i].get("tpl") or rows[i].get("fixed"):
                kept[i].append(j)
                found[i].append(b)
    return kept, found


def clean(
    rows: list[Row], texts: Tensor, questions: Tensor, name: str, known_texts: Tensor, known_questions: Tensor
) -> tuple[list[Row], Tensor, Tensor]:
    """Rows that are not close to a test text or test question, with their vectors."""
    close, asked = nearest(texts, known_texts).tolist(), nearest(questions, known_questions).tolist()
    limit = COSINE_LIMITS.get(name, DEFAULT_COSINE)
    kept_rows, kept_texts, kept_questions, at = [], [], [], 0
    for i, row in enumerate(rows):
        good = [j for j in range(len(row["q"])) if asked[at + j] < QUESTION_COSINE]
        if close[i] < limit and good:
            kept_rows.append(
                {
                    **row,
                    "q": [row["q"][j] for j in good],
                    **({"qk": [row["qk"][j] for j in good]} if "qk" in row else {}),
                }
            )
            kept_texts.append(i)
            kept_questions += [at + j for j in good]
        at += len(row["q"])
    print(f"{name}: {len(rows) - len(kept_rows)} of {len(rows)} rows are too close to a test set", flush=True)
    return kept_rows, texts[kept_texts], questions[kept_questions]


def make_pools(
    rows: list[Row], stock: Encoder, tokenizer: Tokenizer, known: tuple[Tensor, Tensor] | None
) -> dict[str, list[Item]]:
    grouped: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[pool_name(row)].append(row)
    number = Keys()
    pools: dict[str, list[Item]] = {}
    for name, group in sorted(grouped.items()):
        began, limit = time.time(), TEXT_LIMIT.get(name, DEFAULT_TEXT_LIMIT)
        texts = embed_tokens(stock, tokenise(tokenizer, [r["d"] for r in group], limit))
        questions = embed_tokens(stock, tokenise(tokenizer, [q for r in group for q in r["q"]], QUESTION_LIMIT))
        if known:
            group, texts, questions = clean(group, texts, questions, name, *known)
        keys = [[number(k) for k in (r.get("ks") or [r.get("k")])] for r in group]
        question_keys = [
            [number(k) for k in r["qk"]] if "qk" in r else [own[0]] * len(r["q"])
            for r, own in zip(group, keys, strict=True)
        ]
        kept, found = mine(group, name, keys, question_keys, texts, questions)
        tokens = tokenise(tokenizer, [r["d"] for r in group], limit)
        hard = tokenise(tokenizer, [x for r in group for x in r.get("hn", [])], limit)
        asked = tokenise(tokenizer, [q for r in group for q in r["q"]], QUESTION_LIMIT)
        no = iter(tokenise(tokenizer, [r["no"] for r in group if r.get("no")], QUESTION_LIMIT))
        texts, questions = texts.half().cpu().numpy(), questions.half().cpu().numpy()
        items, at, hard_at = [], 0, 0
        for i, row in enumerate(group):
            count, own_hard = len(row["q"]), len(row.get("hn", []))
            items.append(
                Item(
                    text=row["d"],
                    tokens=tokens[i],
                    questions=[row["q"][j] for j in kept[i]],
                    question_tokens=[asked[at + j] for j in kept[i]],
                    question_keys=[question_keys[i][j] for j in kept[i]],
                    mined=found[i],
                    keys=keys[i],
                    hard=hard[hard_at : hard_at + own_hard],
                    hard_texts=row.get("hn", []),
                    unanswerable=next(no) if row.get("no") else None,
                    speaker=row.get("a"),
                    part=row.get("part", ""),
                    stock=np.concatenate([texts[i : i + 1], questions[[at + j for j in kept[i]]]]),
                )
            )
            at, hard_at = at + count, hard_at + own_hard
        pools[name] = items
        print(
            f"{name}: {len(items)} texts, {sum(len(r['q']) for r in group)} questions, "
            f"{sum(len(x.questions) for x in items)} kept, {time.time() - began:.0f} s",
            flush=True,
        )
    return pools


class Teacher:
    """ms-marco-MiniLM-L-12 from int8 arrays (NAME, NAME.scale, NAME.zero) or plain fp16 arrays."""

    def __init__(self, path: Path, device: str) -> None:
        arrays = dict(np.load(path)) if path.suffix == ".npz" else load_numpy(str(path))
        weights: Weights = {}
        for name, array in arrays.items():
            if not name.endswith((".scale", ".zero")):
                value = array.astype(np.float32)
                if name + ".scale" in arrays:
                    value = (value - arrays[name + ".zero"].astype(np.float32)) * arrays[name + ".scale"].astype(
                        np.float32
                    )
                weights[name] = torch.from_numpy(np.ascontiguousarray(value))
        self.encoder = Encoder(weights, device, prefix="bert.")
        self.pooler = [weights[f"bert.pooler.dense.{kind}"].to(device) for kind in ("weight", "bias")]
        self.classifier = [weights[f"classifier.{kind}"].to(device) for kind in ("weight", "bias")]

    @torch.no_grad()
    def scores(self, tokenizer: Tokenizer, pairs: list[tuple[str, str]], limit: int) -> np.ndarray:
        tokens, border = [], []
        for question, text in zip(
            tokenise(tokenizer, [q for q, _ in pairs], QUESTION_LIMIT),
            tokenizer.encode_batch([t for _, t in pairs]),
            strict=True,
        ):
            tokens.append(cut([*question, *text.ids[1:]], limit))
            border.append(len(question))
        out = torch.empty(len(pairs), device=self.encoder.device)
        for chunk in length_chunks([len(t) for t in tokens], 16 * self.encoder.tokens_per_chunk):
            first = self.encoder.pooled([tokens[i] for i in chunk], [border[i] for i in chunk], first_token=True)
            pooled = torch.tanh(torch.nn.functional.linear(first, *self.pooler))
            out[torch.tensor(chunk, device=out.device)] = torch.nn.functional.linear(pooled, *self.classifier)[:, 0]
        return out.cpu().numpy()


def make_teacher(
    pools: dict[str, list[Item]], path: Path, tokenizer: Tokenizer, device: str, limits: dict[str, int]
) -> dict[str, list]:
    """Teacher scores of each question for its text and the nearest wrong texts."""
    teacher = Teacher(path, device)
    result = {}
    for name, limit in limits.items():
        began, pool = time.time(), pools.get(name, [])
        chosen = [
            (i, j)
            for i, item in enumerate(pool)
            for j in range(len(item.questions))
            if len(item.mined[j]) >= TEACHER_TEXTS - 1
        ]
        random.Random(4).shuffle(chosen)
        chosen = chosen[:limit]
        if not chosen:
            continue
        candidates = [[i, *pool[i].mined[j][: TEACHER_TEXTS - 1]] for i, j in chosen]
        pairs = []
        for (i, j), texts in zip(chosen, candidates, strict=True):
            lead = f"{pool[i].speaker}: " if pool[i].speaker else ""
            pairs += [(pool[i].questions[j], (lead if pool[x].speaker else "") + pool[x].text[:700]) for x in texts]
        scores = teacher.scores(tokenizer, pairs, 96 if name == "T" else 160).reshape(-1, TEACHER_TEXTS)
        result[name] = [(i, j, texts, row) for (i, j), texts, row in zip(chosen, candidates, scores, strict=True)]
        print(
            f"teacher {name}: {len(chosen)} questions, own text best {np.mean(scores.argmax(1) == 0):.3f}, "
            f"{time.time() - began:.0f} s",
            flush=True,
        )
    return result


def prepare(rows: list[Row], models: Path, teacher_limits: dict[str, int], tests: Sequence[Path] = ()) -> Prepared:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = load_tokenizer(models / "tokenizer.json")
    stock = Encoder(load_weights(models / "minilm.safetensors"), device)
    known = None
    if tests:
        test_sets = TestSets(tests)
        texts = test_sets.texts if device == "cuda" else test_sets.short_texts
        known = (
            embed(stock, tokenizer, [t[:1500] for t in texts], 128),
            embed(stock, tokenizer, test_sets.questions, 64),
        )
        print(f"test sets: {len(known[0])} texts, {len(known[1])} questions embedded", flush=True)
    pools = make_pools(rows, stock, tokenizer, known)
    names = sorted({x.speaker for x in pools.get("T", []) if x.speaker})
    teacher_file = next((p for p in (models / "ce12_int8.npz", models / "ce12.safetensors") if p.exists()), None)
    teacher = (
        make_teacher(pools, teacher_file, tokenizer, device, teacher_limits) if teacher_file and teacher_limits else {}
    )
    return Prepared(pools, teacher, names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument(
        "--models", type=Path, required=True, help="folder with minilm.safetensors, tokenizer.json, ce12_int8.npz"
    )
    parser.add_argument(
        "--tests",
        type=Path,
        nargs="*",
        default=[],
        help="folders of test sets for the filter by cosine (on a CPU: only the sets with short texts)",
    )
    parser.add_argument("--limits", type=Path, help="JSON: rows per pool or part/pool")
    parser.add_argument("--questions", type=int, default=99, help="questions per row")
    parser.add_argument(
        "--teacher", type=json.loads, default=TEACHER_QUESTIONS, help="JSON: questions per pool that the teacher scores"
    )
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    start = time.time()
    rows = choose_rows(
        list(read_rows(args.rows)), json.loads(args.limits.read_text()) if args.limits else {}, args.questions
    )
    result = prepare(rows, args.models, args.teacher, args.tests)
    with args.out.open("wb") as out:
        pickle.dump(result, out, protocol=5)
    print(f"prepared in {time.time() - start:.0f} s, {args.out.stat().st_size / 1e6:.0f} MB", flush=True)


if __name__ == "__main__":
    from prepare import main as run  # the pickled classes must belong to this module, not to __main__

    run()
