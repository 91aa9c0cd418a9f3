"""How much memory and time `mindex copy` takes: `python bench/copying.py --records 100000 [--to postgresql://…]`.

Makes a memory of chunks and memories with vectors, copies it in a separate process, and prints the most
memory that this process had (its maximum resident size) and the records per second.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from mindex.datatypes import Collection, Document, Model, Record, RecordVectors
from mindex.datatypes.spaces import EmbedderSpec
from mindex.store.base import DocumentUpdate, Store
from mindex.store.open import open_store

MODEL = Model("openai", "bench", 384)
WORDS = [f"word{number}" for number in range(5000)]
PER_DOCUMENT = 10
BATCH = 1000


def text(made: random.Random) -> str:
    return " ".join(made.choices(WORDS, k=60))


def fill(store: Store, records: int) -> None:
    """Half chunks, half memories, each with one vector."""
    made, numbers = random.Random(7), np.random.default_rng(7)
    store.files.put_collection(Collection("docs", "/docs", indexed_at=1))
    for start in range(0, records // 2, BATCH):
        updates = []
        for number in range(start, min(start + BATCH, records // 2), PER_DOCUMENT):
            document = Document(f"d{number}", "docs", f"{number}.md", "f", 1, 1)
            chunks = [document.record(f"c{number + n}", text(made), "Page", (), n, n) for n in range(PER_DOCUMENT)]
            updates.append(DocumentUpdate(document, tuple(chunks)))
        store.files.apply(updates)
        ids = [chunk.id for update in updates for chunk in update.records or ()]
        put(store, ids, numbers)
    for start in range(0, records // 2, BATCH):
        numbered = range(start, min(start + BATCH, records // 2))
        entries = [Record(f"m{n}", "memory", text(made), agent="main", created_at=n, updated_at=n) for n in numbered]
        store.entries.add(entries, by="bench")
        put(store, [entry.id for entry in entries], numbers)


def put(store: Store, ids: list[str], numbers: np.random.Generator) -> None:
    vectors = numbers.standard_normal((len(ids), 1, MODEL.dimensions)).astype(np.float32)
    given = [RecordVectors(id_, vector) for id_, vector in zip(ids, vectors, strict=True)]
    store.vectors.put(MODEL, given, EmbedderSpec("openai", "bench", "http://127.0.0.1:9"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--to", help="where to copy to (default: another file)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source.db"
        store = open_store(source)
        fill(store, arguments.records)
        store.close()
        print(f"{arguments.records:,} records, {source.stat().st_size / 1e6:,.0f} MB")
        started = time.monotonic()
        program = "from mindex.cli.main import main; main()"
        target = arguments.to or str(Path(folder) / "target.db")
        done = subprocess.run([sys.executable, "-c", program, "copy", str(source), target], check=False)
        seconds = time.monotonic() - started
        most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(
            f"copied in {seconds:,.0f} s, {arguments.records / seconds:,.0f} records/s, at most {most:,.0f} MB resident"
        )
        sys.exit(done.returncode)


if __name__ == "__main__":
    main()
