"""What storing finished vectors of memories costs: `python bench/neighbours.py [--records N] [--close] [--to URL]`.

The vectors cost nothing to make, so that what remains is storing them and looking for near-duplicates. Prints the CPU
time of this process and, with a PostgreSQL server on this machine, of the server's processes, and a hash of the links
that result: two versions must print the same one. With `--close` every memory has three near-duplicates.
"""

from __future__ import annotations

import argparse
import os
import random
import string
import tempfile
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mindex.datatypes import Filters, Model
from mindex.entries.new_memory import NewMemory
from mindex.memory import Memory

_DIMENSIONS = 384
_CLUSTER = 4


class Finished:
    """An embedder that has all vectors: those of texts in the order in which they come."""

    model = Model("bench", "finished", _DIMENSIONS)
    loaded = True

    def __init__(self, count: int, *, close: bool) -> None:
        numbers = np.random.default_rng(1)
        rows = numbers.standard_normal((count, _DIMENSIONS))
        if close:
            rows = np.tile(rows[: -(-count // _CLUSTER)], (_CLUSTER, 1))[:count]
            rows += 0.2 * numbers.standard_normal(rows.shape)
        self._rows: NDArray[np.float32] = np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)
        self._next = 0

    def load(self) -> None: ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self._next += len(texts)
        return self._rows[self._next - len(texts) : self._next]

    def embed_query(self, text: str) -> NDArray[np.float32]:
        return self.embed([text]).reshape(-1)

    def fluency(self, texts: Sequence[str]) -> list[float]:
        return [1.0] * len(texts)


def memories(count: int) -> list[NewMemory]:
    """Sentences of which each says nearly the same as three others."""
    draw = random.Random(3)
    words = ["".join(draw.choices(string.ascii_lowercase, k=7)) for _ in range(3_000)]
    told = [" ".join(draw.choices(words, k=12)) for _ in range(-(-count // _CLUSTER))]
    return [NewMemory(f"{told[n % len(told)]} {' '.join(draw.choices(words, k=2))}") for n in range(count)]


def server_seconds() -> float:
    """The CPU time of all processes of PostgreSQL, also of those that have ended."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().rpartition(")")
        except OSError:
            continue
        if name.endswith("(postgres"):
            ticks += sum(map(int, rest.split()[11:15]))  # its own, and that of children that have ended
    return ticks / os.sysconf("SC_CLK_TCK")


def links(memory: Memory, count: int) -> list[tuple[str, str, str]]:
    texts = {one.id: one.text for one in memory.store.retrieval.list(Filters(agent="*"), limit=count).records}
    return sorted(
        (kind, *sorted((texts[one], texts[other])))  # type: ignore[misc]
        for kind in ("near", "conflict")
        for one, other in memory.store.entries.linked_pairs(kind, "*")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--close", action="store_true")
    parser.add_argument("--to", default="", help="an empty schema: postgresql://…?schema=NAME")
    chosen = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory(chosen.to or Path(folder) / "memory.db", options={"embedding.provider": "none"}) as memory,
    ):
        memory.add_many(memories(chosen.records))
        memory.models.use(Finished(chosen.records, close=chosen.close))
        before, server, started = time.process_time(), server_seconds() if chosen.to else 0.0, time.monotonic()
        memory.maintenance.backfill()
        own, wall = time.process_time() - before, time.monotonic() - started
        of_server = server_seconds() - server if chosen.to else 0.0
        found = links(memory, chosen.records)
        print(
            f"{chosen.records:,} vectors: CPU {own + of_server:.2f} s ({own:.2f} s of mindex), wall {wall:.1f} s;"
            f" {len(found):,} links, {sha256(repr(found).encode()).hexdigest()[:12]}"
        )


if __name__ == "__main__":
    main()
