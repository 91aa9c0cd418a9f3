"""Rows about files: how fast they become searchable, and how fast nothing changes."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import corpus
from ground import Ground
from measure import Row, Timings, Took, alternate, timed, told
from mindex.embedding_text import embedding_pieces
from mindex.memory import Memory
from mindex.providers.embed.local import LocalEmbedder
from mindex.providers.packaged_models import built_in_files


def index_rate(ground: Ground) -> Row:
    """Different files in each turn; the baseline reads the very pieces that the index makes of them, all at once."""
    scratch = ground.scratch("rate")
    waiting = iter(ground.texts)
    pieces: list[list[str]] = []
    for turn in range(ground.sizes.rounds):
        pieces.append([])
        with Memory(scratch / f"look{turn}.db") as memory:
            chunks = 0
            while chunks < ground.sizes.chunks and (text := next(waiting, None)):
                corpus.write_folder([text], scratch / f"files{turn}", int(time.time()) - 3600)
                chunks += len(corpus.passages([text]))
            memory.index(scratch / f"files{turn}", embed=False)
            ids = [
                record.id
                for document in memory.collections.documents(limit=10**6)
                for record in memory.store.files.chunks(document.id)
            ]
            pieces[turn] = [
                piece for record in memory.store.retrieval.records(ids) for piece in embedding_pieces(record)
            ]

    def index(turn: int) -> Took:
        with Memory(scratch / f"index{turn}.db") as memory:
            memory.models.use(ground.embedder)
            took = timed(lambda: memory.index(scratch / f"files{turn}"))
            assert not memory.status().embedding.pending
        return took

    indexing, embedding = alternate(
        ground.sizes.rounds, index, lambda turn: timed(lambda: ground.embedder.embed(pieces[turn]))
    )
    shutil.rmtree(scratch)
    # Turns are of different sizes: a median of ratios, not a ratio of medians.
    pairs = list(zip(embedding.runs, indexing.runs, strict=True))
    shares = sorted(one.wall / other.wall for one, other in pairs)
    share = shares[len(shares) // 2]
    cpu = sum(one.cpu for one, _ in pairs) / sum(other.cpu for _, other in pairs)
    count = sum(map(len, pieces))
    return Row(
        name="index-rate",
        measured=f"Memory.index of files: {_rate(count, indexing)} pieces/s",
        baseline=f"the embedder on the same pieces: {_rate(count, embedding)} pieces/s",
        ratio=f"{share:.0%}",
        target="≥ 90 %",
        ok=share >= 0.9,
        note=f"wall, median of {len(pairs)} turns, {shares[0]:.0%}–{shares[-1]:.0%}; {count:,} pieces in all;"
        f" CPU {cpu:.0%}",
        numbers={"ratio": share, "cpu_ratio": cpu},
    )


def _rate(count: int, timings: Timings) -> str:
    return f"{count / sum(run.wall for run in timings.runs):.1f}"


def embed_rate(ground: Ground) -> Row:
    """The embedder as it is shipped, against the same model computed in float: other passages in each turn."""
    size = ground.sizes.chunks // 2
    lots = [
        [passage.text for passage in ground.passages[turn * size : turn * size + size]]
        for turn in range(ground.sizes.rounds)
    ]
    in_float = LocalEmbedder(files=lambda: replace(built_in_files(), int8_graph=None))
    in_float.load()
    vectors: list[list[NDArray[np.float32]]] = [[], []]

    def embedding(side: int, embedder: LocalEmbedder) -> Callable[[int], Took]:
        return lambda turn: timed(lambda: vectors[side].append(embedder.embed(lots[turn])))

    shipped, exact = alternate(ground.sizes.rounds, embedding(0, ground.embedder), embedding(1, in_float))
    cosines = (np.concatenate(vectors[0]) * np.concatenate(vectors[1])).sum(axis=1)
    ratio = sum(run.cpu for run in exact.runs) / sum(run.cpu for run in shipped.runs)
    wall = sum(run.wall for run in exact.runs) / sum(run.wall for run in shipped.runs)
    count = sum(map(len, lots))
    return Row(
        name="embed-rate",
        measured=f"the built-in model: {_rate(count, shipped)} passages/s",
        baseline=f"the same model computed in float: {_rate(count, exact)} passages/s",
        ratio=f"{ratio:.2f}×",
        target="≥ 1.7× (with VNNI)",
        ok=ratio >= 1.7,
        note=f"CPU time, {count:,} passages in {ground.sizes.rounds} turns; wall {wall:.2f}×; cosine between the two"
        f" vectors of a passage: mean {cosines.mean():.4f}, least {cosines.min():.4f}",
        numbers={"ratio": ratio, "wall_ratio": wall, "cosine": float(cosines.mean())},
    )


def unchanged(ground: Ground) -> Row:
    """The first index of the files in a fresh database, and what it takes to see that nothing has changed."""
    scratch = ground.scratch("unchanged")
    files = [
        corpus.Text(f"{round_}/{text.name}" if round_ else text.name, text.body)
        for round_ in range(-(-ground.sizes.files // len(ground.texts)))
        for text in ground.texts
    ][: ground.sizes.files]
    corpus.write_folder(files, scratch / "files", int(time.time()) - 3600)

    def first(turn: int) -> Took:
        with Memory(scratch / f"{turn}.db") as memory:
            return timed(lambda: memory.index(scratch / "files", embed=False))

    def again(turn: int) -> Took:
        with Memory(scratch / f"{turn}.db") as memory:
            took = timed(lambda: memory.index(scratch / "files", embed=False))
            (report,) = memory.index(scratch / "files", embed=False).collections
            assert report.unchanged == len(files), report
        return took

    initial = []
    repeated = []
    for turn in range(min(3, ground.sizes.rounds)):
        initial.append(first(turn))
        repeated += [again(turn) for _ in range(ground.sizes.rounds)]
    new, old = Timings(initial), Timings(repeated)
    shutil.rmtree(scratch)
    share = old.over(new)
    return Row(
        name="unchanged",
        measured=f"index of {len(files):,} unchanged files: {told(old.wall)}",
        baseline=f"their first index, without vectors: {told(new.wall)}",
        ratio=f"{share:.1%}",
        target="≤ 3 %",
        ok=share <= 0.03,
        note=f"wall, median of {len(repeated)} and {len(initial)}; middle half {old.spread} against {new.spread};"
        f" CPU {old.cpu_over(new):.1%}",
        numbers={"ratio": share, "cpu_ratio": old.cpu_over(new)},
    )
