"""Fine-tunes all-MiniLM-L6-v2 for memory search, on a GPU or on a CPU with bf16 instructions.

Every batch contains one task. The loss of a batch is the sum of

- InfoNCE in both directions over in-batch, mined and own hard negatives; foreign and unanswerable questions are further
  negatives of facts and turns,
- a sigmoid term that keeps right pairs above and wrong ones below a cosine,
- a term that keeps vectors near those of the stock model (the scale of cosines), and an InfoNCE of the new question
  vectors over the stock vectors of the texts (a database that was filled with the stock model).

A share of the batches distils the L-12 cross-encoder instead.

    python train.py --prepared prepared.pkl --models models --out out --runs runs/cpu.json
    python train.py --smoke parts/facts.jsonl.xz parts/dialogues.jsonl.xz --models models --out out
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import pickle
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from encoder import Encoder, Weights, cut, load_tokenizer, load_weights
from prepare import QUESTION_LIMIT, TEACHER_TEXTS, TEXT_LIMIT, Item, Prepared, prepare
from rows import Row, read_rows

MONTHS = "January February March April May June July August September October November December".split()
SHORT_TASKS = ("F", "P", "T")
FOREIGN_TASKS = ("D", "C", "M_es", "I", "K")
MIX = {
    "F": 0.27,
    "P": 0.10,
    "T": 0.14,
    "S": 0.05,
    "D": 0.12,
    "K": 0.07,
    "C": 0.07,
    "I": 0.05,
    "M_es": 0.025,
    "M_de": 0.025,
    "M_zh": 0.025,
    "M_fr": 0.015,
    "M_pt": 0.01,
    "M_it": 0.01,
    "M_ja": 0.015,
    "M_ko": 0.01,
    "M_ru": 0.01,
    "M_nl": 0.008,
    "M_pl": 0.008,
    "M_ar": 0.006,
    "M_hi": 0.006,
}
SMOKE_ROWS = 100  # per task
MASKED = -4.0  # cosine that means "not a negative"


@dataclass
class Options:
    name: str = "run"
    seed: int = 11
    steps: int = 1500
    seconds: float = 140.0  # the schedule ends at steps or seconds, whichever comes first
    batch: int = 1024  # questions of short tasks
    long_batch: int = 512
    session_batch: int = 192
    distil_turns: int = 192
    distil_documents: int = 96
    extra: int = 80  # foreign questions per other task, unanswerable ones 2.5 times as many
    rate: float = 7e-5
    warmup: int = 60
    temperature: float = 20.0  # factor on cosines
    sigmoid: float = 0.3
    sigmoid_centre: float = 0.32
    keep_scale: float = 0.4
    old_space: float = 0.2  # weight of the InfoNCE of new questions over stock vectors of the texts
    distil: float = 0.3  # share of batches
    distil_temperature: float = 2.0
    checkpoint: float = 1e9  # seconds between saved weights
    mix: dict[str, float] = field(default_factory=lambda: dict(MIX))


@dataclass
class Batch:
    task: str
    questions: list[list[int]]  # token ids
    texts: list[list[int]]
    question_keys: np.ndarray  # [B]
    text_keys: np.ndarray  # [B, K]
    hard: list[list[int]] = field(default_factory=list)
    hard_keys: np.ndarray | None = None  # [H, K]
    hard_owners: np.ndarray | None = None  # [H]: the question whose hard negative it is
    extra: list[list[int]] = field(default_factory=list)  # questions that none of the texts answers
    stock: np.ndarray | None = None  # [n, 2, width]: stock vectors of question and text
    stock_rows: np.ndarray | None = None  # [n]
    teacher: np.ndarray | None = None  # [B, TEACHER_TEXTS]

    @property
    def tokens(self) -> int:
        return sum(map(len, [*self.questions, *self.texts, *self.hard, *self.extra]))


def pad_keys(keys: list[list[int]], width: int = 6) -> np.ndarray:
    table_ = np.full((len(keys), width), -1, np.int64)
    for i, own in enumerate(keys):
        table_[i, : len(own[:width])] = own[:width]
    return table_


class Batches(IterableDataset):
    """Endless batches; every worker has its own random generator."""

    def __init__(self, prepared: Prepared, options: Options, tokenizer: Tokenizer) -> None:
        self.pools, self.names = prepared.pools, prepared.names
        self.options, self.tokenizer = options, tokenizer
        self.pairs = {
            t: [(i, j) for i, item in enumerate(pool) for j in range(len(item.questions))]
            for t, pool in self.pools.items()
        }
        self.mix = {t: w for t, w in options.mix.items() if len(self.pairs.get(t, [])) >= 8}
        self.distilled = prepared.teacher

    def __iter__(self) -> Iterator[Batch]:
        worker = get_worker_info()
        rng = random.Random(self.options.seed * 1000 + (worker.id if worker else 0))
        while True:
            if self.distilled and rng.random() < self.options.distil:
                yield self.distil_batch(rng)
            else:
                yield self.contrast_batch(rng)

    def tokens(self, texts: list[str], limit: int) -> list[list[int]]:
        return [cut(e.ids, limit) for e in self.tokenizer.encode_batch(texts)]

    def choose(self, rng: random.Random, task: str) -> list[tuple[int, int]]:
        """(item, question). In tasks with long texts every item brings a near one along, as a free hard negative."""
        size = (
            self.options.session_batch
            if task == "S"
            else self.options.batch
            if task in SHORT_TASKS
            else self.options.long_batch
        )
        pool, pairs, chosen = self.pools[task], self.pairs[task], {}
        for i, j in rng.sample(pairs, min(size, len(pairs))):
            if len(chosen) >= size:
                break
            chosen.setdefault(i, j)
            if task in SHORT_TASKS or task == "S":
                continue
            near = rng.choice(pool[i].mined[j][1:12] or pool[i].mined[j])
            if pool[near].questions:
                chosen.setdefault(near, rng.randrange(len(pool[near].questions)))
        return list(chosen.items())

    def hard_negative(
        self, rng: random.Random, task: str, item: Item, question: int
    ) -> tuple[str, list[int], list[int]] | None:
        """(text, tokens, keys) of an own hard negative or of a mined one."""
        short = task in ("F", "T")
        if item.hard and rng.random() < (0.6 if short else 0.3):
            n = rng.randrange(len(item.hard))
            return item.hard_texts[n], item.hard[n], item.keys
        if not short:
            return None
        first = 2 if task == "F" else 1
        other = self.pools[task][rng.choice(item.mined[question][first:] or item.mined[question])]
        return other.text, other.tokens, other.keys

    def speakers(self, rng: random.Random) -> tuple[list[str], int]:
        return rng.sample(self.names, 2), rng.randint(2019, 2026)

    def turn_head(self, rng: random.Random, name: str, year: int) -> str:
        return f"{name} ({rng.randint(1, 28)} {rng.choice(MONTHS)} {year}): "

    def contrast_batch(self, rng: random.Random) -> Batch:
        task = rng.choices(list(self.mix), list(self.mix.values()))[0]
        pool, chosen = self.pools[task], self.choose(rng, task)
        batch = Batch(
            task,
            [],
            [],
            np.array([pool[i].question_keys[j] for i, j in chosen]),
            pad_keys([pool[i].keys for i, _ in chosen]),
        )
        owners, hard_keys, stock_rows, stock, swapped = [], [], [], [], []
        names, year = ([], 0)
        for position, (i, j) in enumerate(chosen):
            item = pool[i]
            negative = self.hard_negative(rng, task, item, j)
            if (
                item.speaker and len(self.names) > 1
            ):  # the two names of a block are swapped in, so that the name alone does not separate
                if position % 48 == 0 or not names:
                    names, year = self.speakers(rng)
                name = rng.choice(names)
                swapped += [
                    item.questions[j].replace(item.speaker, name),
                    self.turn_head(rng, name, year) + item.text.replace(item.speaker, name),
                ]
                batch.questions.append([])
                batch.texts.append([])
                if negative:
                    other = name if rng.random() < 0.7 else names[0]
                    negative = (
                        negative[0],
                        self.tokens([self.turn_head(rng, other, year) + negative[0].split("): ")[-1]], TEXT_LIMIT["T"])[
                            0
                        ],
                        negative[2],
                    )
            else:
                batch.questions.append(item.question_tokens[j])
                batch.texts.append(item.tokens)
                if item.stock is not None:
                    stock_rows.append(position)
                    stock.append(item.stock[[1 + j, 0]])
            if negative:
                batch.hard.append(negative[1])
                hard_keys.append(negative[2])
                owners.append(position)
        new = iter(self.tokens(swapped, TEXT_LIMIT["T"]))
        for position in range(len(chosen)):
            if not batch.texts[position]:
                batch.questions[position], batch.texts[position] = cut(next(new), QUESTION_LIMIT), next(new)
        if batch.hard:
            batch.hard_keys, batch.hard_owners = pad_keys(hard_keys), np.array(owners)
        if stock:
            batch.stock, batch.stock_rows = np.stack(stock), np.array(stock_rows)
        batch.extra = self.extra_questions(rng, task, chosen)
        return batch

    def extra_questions(self, rng: random.Random, task: str, chosen: list[tuple[int, int]]) -> list[list[int]]:
        """Unanswerable questions of the batch's facts, and questions of other tasks."""
        if task not in ("F", "T"):
            return []
        pool = self.pools[task]
        extra = (
            [pool[i].unanswerable for i, _ in chosen if pool[i].unanswerable][: int(2.5 * self.options.extra)]
            if task == "F"
            else []
        )
        for other in FOREIGN_TASKS:
            for _ in range(self.options.extra if self.pairs.get(other) else 0):
                i, j = rng.choice(self.pairs[other])
                extra.append(self.pools[other][i].question_tokens[j])
        return extra

    def distil_batch(self, rng: random.Random) -> Batch:
        task = rng.choices(list(self.distilled), [2.0 if t == "T" else 1.0 for t in self.distilled])[0]
        pool, rows = self.pools[task], self.distilled[task]
        chosen = rng.sample(
            rows, min(len(rows), self.options.distil_turns if task == "T" else self.options.distil_documents)
        )
        questions, texts = [], []
        names, year = ([], 0)
        for position, (i, j, candidates, _) in enumerate(chosen):
            item = pool[i]
            if item.speaker and len(self.names) > 1:
                if position % 24 == 0 or not names:
                    names, year = self.speakers(rng)
                name = rng.choice(names)
                questions.append(self.tokens([item.questions[j].replace(item.speaker, name)], QUESTION_LIMIT)[0])
                texts += self.tokens(
                    [self.turn_head(rng, name, year) + pool[x].text.split("): ")[-1] for x in candidates],
                    TEXT_LIMIT["T"],
                )
            else:
                questions.append(item.question_tokens[j])
                texts += [pool[x].tokens for x in candidates]
        keys = np.arange(len(chosen))
        return Batch(
            "distil_" + task, questions, texts, keys, keys[:, None], teacher=np.stack([row[3] for row in chosen])
        )


def shared_keys(question_keys: Tensor, text_keys: Tensor) -> Tensor:
    """[B, N]: the text holds the key of the question."""
    return (question_keys[:, None, None] == text_keys[None]).any(-1)


def contrast_logits(q: Tensor, d: Tensor, h: Tensor, x: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """Cosines question -> texts and hard negatives, text -> questions and extra ones; non-negatives are masked."""
    question_keys = torch.from_numpy(batch.question_keys).to(q.device)
    known = shared_keys(question_keys, torch.from_numpy(batch.text_keys).to(q.device)).fill_diagonal_(False)
    cosines = q @ d.T
    forward, backward = cosines.masked_fill(known, MASKED), cosines.T.masked_fill(known.T, MASKED)
    if len(h):
        same = shared_keys(question_keys, torch.from_numpy(batch.hard_keys).to(q.device))
        same[torch.from_numpy(batch.hard_owners).to(q.device), torch.arange(len(h), device=q.device)] = (
            False  # the own hard negative always counts
        )
        forward = torch.cat([forward, (q @ h.T).masked_fill(same, MASKED)], 1)
    if len(x):
        backward = torch.cat([backward, d @ x.T], 1)
    return forward, backward


def info_nce(forward: Tensor, backward: Tensor, temperature: float) -> Tensor:
    target = torch.arange(len(forward), device=forward.device)
    return functional.cross_entropy(forward * temperature, target) + 0.5 * functional.cross_entropy(
        backward * temperature, target
    )


def scale_loss(forward: Tensor, backward: Tensor, centre: float) -> Tensor:
    """Right pairs above, the worst wrong pairs below the centre."""
    size = len(forward)
    right = forward.diagonal()
    wrong = forward.masked_fill(
        torch.eye(size, forward.shape[1], dtype=torch.bool, device=forward.device), MASKED
    ).topk(min(16, size - 1), 1)[0]
    if backward.shape[1] > size:
        wrong = torch.cat([wrong, backward[:, size:].topk(min(8, backward.shape[1] - size), 1)[0]], 1)
    return functional.softplus(-15 * (right - centre)).mean() + functional.softplus(15 * (wrong - centre)).mean()


def old_space_loss(q: Tensor, d: Tensor, batch: Batch, options: Options) -> Tensor:
    """Keeps the vectors near the stock model's, and the questions good over the stock vectors of the texts."""
    rows, stock = torch.from_numpy(batch.stock_rows).to(q.device), torch.from_numpy(batch.stock).to(q.device).float()
    q, d, q0, d0 = q[rows], d[rows], stock[:, 0], stock[:, 1]
    loss = (
        options.keep_scale
        * len(rows)
        / len(batch.questions)
        * ((1 - (q * q0).sum(1)).mean() + (1 - (d * d0).sum(1)).mean())
    )
    if options.old_space and len(rows) > 8:
        keys = torch.from_numpy(batch.question_keys).to(q.device)[rows]
        known = shared_keys(keys, torch.from_numpy(batch.text_keys).to(q.device)[rows]).fill_diagonal_(False)
        loss = loss + options.old_space * functional.cross_entropy(
            (q @ d0.T).masked_fill(known, MASKED) * options.temperature, torch.arange(len(rows), device=q.device)
        )
    return loss


def contrast_loss(model: Encoder, batch: Batch, options: Options) -> Tensor:
    parts = [batch.questions, batch.texts, batch.hard, batch.extra]
    q, d, h, x = model.encode([s for part in parts for s in part]).split([len(part) for part in parts])
    forward, backward = contrast_logits(q, d, h, x, batch)
    loss = info_nce(forward, backward, options.temperature)
    if options.sigmoid:
        loss = loss + options.sigmoid * scale_loss(forward, backward, options.sigmoid_centre)
    if options.keep_scale and batch.stock is not None:
        loss = loss + old_space_loss(q, d, batch, options)
    return loss


def distil_loss(model: Encoder, batch: Batch, options: Options) -> Tensor:
    q, d = model.encode([*batch.questions, *batch.texts]).split([len(batch.questions), len(batch.texts)])
    teacher = torch.from_numpy(batch.teacher).to(q.device)
    among = torch.einsum("bd,bkd->bk", q, d.view(len(q), TEACHER_TEXTS, -1)) * options.temperature
    wanted = torch.softmax(teacher / options.distil_temperature, 1)
    whole = q @ d[::TEACHER_TEXTS].T * options.temperature
    own = torch.arange(len(q), device=q.device)
    divergence = functional.kl_div(torch.log_softmax(among, 1), wanted, reduction="batchmean")
    return 2 * divergence + 0.5 * functional.cross_entropy(whole, own)


def make_optimizer(model: Encoder, rate: float) -> torch.optim.Optimizer:
    matrices = [p for p in model.weights.values() if p.ndim >= 2]
    vectors = [p for p in model.weights.values() if p.ndim < 2]
    return torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}], lr=rate, fused=True
    )


def batch_loss(model: Encoder, batch: Batch, options: Options) -> Tensor:
    return distil_loss(model, batch, options) if batch.teacher is not None else contrast_loss(model, batch, options)


def train(
    prepared: Prepared, stock: Weights, tokenizer: Tokenizer, options: Options, device: str, workers: int, out: Path
) -> Weights:
    """Train from the stock weights; return the last ones. Writes a checkpoint every `options.checkpoint` seconds."""
    torch.manual_seed(options.seed)
    model = Encoder(stock, device, trainable=True)
    optimizer, parameters = make_optimizer(model, options.rate), list(model.weights.values())
    loader = DataLoader(
        Batches(prepared, options, tokenizer),
        batch_size=None,
        collate_fn=lambda batch: batch,
        num_workers=workers,
        prefetch_factor=4 if workers else None,
        multiprocessing_context="fork" if workers else None,
    )
    batches, checkpoints = iter(loader), 0
    next(batches)  # the workers are up before the clock starts
    start, waited, tokens, losses = time.time(), 0.0, 0, defaultdict(list)

    def state() -> Weights:
        return {**stock, **{k: v.detach().float().cpu().clone() for k, v in model.weights.items()}}

    for step in range(options.steps):
        t0 = time.time()
        batch = next(batches)
        waited += time.time() - t0
        loss = batch_loss(model, batch, options)
        progress = max(step / options.steps, (time.time() - start) / options.seconds)
        warm, cosine = min(1.0, (step + 1) / options.warmup), 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
        for group in optimizer.param_groups:
            group["lr"] = options.rate * warm * max(0.02, cosine)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        tokens += batch.tokens
        losses[batch.task].append(loss.item())
        seconds = time.time() - start
        if (step + 1) % 20 == 0 or options.steps < 20:
            recent = {k: round(float(np.mean(v[-5:])), 2) for k, v in sorted(losses.items())}
            speed = f"{tokens / 1e6:.2f} M tokens, {tokens / seconds:.0f} a second"
            print(
                f"{options.name}: step {step + 1}, {seconds:.0f} s, waited {waited:.0f} s, {speed}, {recent}",
                flush=True,
            )
        if seconds > options.checkpoint * (checkpoints + 1) and seconds < options.seconds - 60:
            checkpoints += 1
            save(state(), out / f"{options.name}_{checkpoints}.safetensors")
        if seconds > options.seconds:
            break
    counts = {k: len(v) for k, v in sorted(losses.items())}
    spent = f"{tokens / 1e6:.2f} M tokens in {time.time() - start:.0f} s"
    print(f"{options.name}: {step + 1} steps, {spent}, batches per task {counts}", flush=True)
    del batches, loader
    return state()


def save(weights: Weights, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({k: v.half().contiguous() for k, v in weights.items()}, str(path))


def smoke(rows: Iterable[Row], models: Path, out: Path, device: str) -> None:
    """Train 20 steps on a few hundred rows; fails unless the loss of fixed batches falls."""
    chosen, per_task = [], Counter()
    for row in rows:
        if per_task[row["t"]] < SMOKE_ROWS:
            per_task[row["t"]] += 1
            chosen.append(row)
    print("rows", dict(per_task))
    prepared = prepare(chosen, models, {"T": 24})
    tokenizer, stock = load_tokenizer(models / "tokenizer.json"), load_weights(models / "minilm.safetensors")
    options = Options(
        name="smoke", steps=20, seconds=600, batch=16, long_batch=16, session_batch=4, distil_turns=8,
        distil_documents=4, extra=2, warmup=2, rate=5e-5, mix={"F": 0.4, "P": 0.2, "T": 0.3, "S": 0.1},
    )  # fmt: skip
    fixed = list(itertools.islice(iter(Batches(prepared, replace(options, seed=1), tokenizer)), 12))

    def loss(weights: Weights) -> float:
        with torch.no_grad():
            return float(np.mean([batch_loss(Encoder(weights, device), batch, options).item() for batch in fixed]))

    weights = train(prepared, stock, tokenizer, options, device, 0, out)
    save(weights, out / "smoke.safetensors")
    before, after = loss(stock), loss(weights)
    tasks = ", ".join(sorted({batch.task for batch in fixed}))
    print(f"loss of {len(fixed)} fixed batches ({tasks}): {before:.3f} -> {after:.3f}")
    if not after < before:
        raise SystemExit("smoke: the loss does not fall")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--prepared", type=Path, help="written by prepare.py")
    source.add_argument("--smoke", type=Path, nargs="+", help="files of rows: train 20 steps on a few of them")
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--runs", type=Path, help="JSON file: list of option objects")
    parser.add_argument(
        "--workers", type=int, help="processes that make batches (default: 12 with a GPU, none without)"
    )
    args = parser.parse_args()
    began = time.time()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    workers = args.workers if args.workers is not None else 12 if device == "cuda" else 0
    if args.smoke:
        smoke((row for path in args.smoke for row in read_rows(path)), args.models, args.out, device)
        return
    with args.prepared.open("rb") as file:
        prepared = pickle.load(file)
    print(f"read {args.prepared.name} after {time.time() - began:.0f} s", flush=True)
    tokenizer, stock = load_tokenizer(args.models / "tokenizer.json"), load_weights(args.models / "minilm.safetensors")
    for given in json.loads(args.runs.read_text()) if args.runs else [{}]:
        options = Options(**given)
        print("run", json.dumps({k: v for k, v in asdict(options).items() if k != "mix"}), flush=True)
        weights = train(prepared, stock, tokenizer, options, device, workers, args.out)
        save(weights, args.out / f"{options.name}.safetensors")
    print(f"total {time.time() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
