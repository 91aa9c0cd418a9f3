"""Cost against size, in one SQLite file: `python bench/scale.py`; docs/measurements.md has its table and its plot.

Every size is built once (a million records take minutes) and kept in the work folder. Texts are generated (`zipf.py`).
100,000 vectors are real ones, of sentences of installed documentation; the others are these with a little noise. Times
are CPU times, medians of questions that were not asked before, after 150 others; the FTS5 query of the same words is
measured by turns with ours.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from measure import load, timed
from mindex.analyzer import COLUMN_WEIGHTS
from mindex.datatypes import Document, Filters, Record
from mindex.entries.new_memory import NewMemory
from mindex.memory import Memory
from mindex.providers.embed.local import LocalEmbedder
from mindex.providers.packaged_models import BUILT_IN
from mindex.search.query import parse
from mindex.store.base import DocumentUpdate, KeywordQuery, Store
from mindex.store.open import open_store
from mindex.store.sqlite.filter_sql import match_expression
from scale_plot import plot
from scale_store import ScaleStores

SIZES = (1_000, 10_000, 100_000, 1_000_000)
_CANDIDATES = 200  # what each half of a search brings
_ADDED = 200
_WARM = 150  # questions that a process has answered before
_EVERYTHING = Filters(agent="*")
_BARE_FTS = f"""
SELECT rowid, bm25(records_fts, {", ".join(map(str, COLUMN_WEIGHTS.values()))}) AS score
FROM records_fts WHERE records_fts MATCH ? ORDER BY score LIMIT {_CANDIDATES}
"""
# A process that is started, searches once, and then goes on: what the first answer takes, and what it holds in the end.
_RESTART = """
import json, resource, sys, time
began = time.perf_counter()
from mindex.memory import Memory
path, *questions = sys.argv[1:]
with Memory(path) as memory:
    memory.search(questions[0])
    first = time.perf_counter() - began, time.process_time()
    for question in questions[1:]:
        memory.search(question)
print(json.dumps([*first, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024]))
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """One size. Times are CPU milliseconds unless the name says otherwise."""

    records: int
    add: float
    index: float
    fts5: float
    keyword: float
    vector: float
    hybrid: float
    hybrid_wall: float
    restart_seconds: float
    restart_cpu_seconds: float
    resident_mb: int
    file_mb: int
    lists_mb: int
    agreement: float  # of the first ten with FTS5's

    @property
    def ratio(self) -> float:
        return self.fts5 / self.keyword


def measure(stores: ScaleStores, size: int, questions: Sequence[str], work: Path) -> Measured:
    path = stores.path(size)
    with closing(open_store(path)) as store:  # what another version left out is made first
        store.vectors.pack()
    with Memory(path) as memory:
        embedder = LocalEmbedder()
        memory.models.use(embedder)
        vectors = [embedder.embed_query(question) for question in questions]
        for question in questions:  # their vectors are in the cache from here on, so that no embedding is measured
            memory.search(question, mode="vector", logged=False)
        for question in stores.text.questions(_WARM, seed=7):
            memory.search(question, mode="keyword", logged=False)
        fts5, keyword, agreement = _keyword(memory.store, path, questions)
        nearest = [
            timed(lambda vector=vector: memory.store.retrieval.nearest(BUILT_IN, vector, _EVERYTHING, _CANDIDATES)).cpu
            for vector in vectors
        ]
        hybrid = [timed(lambda question=question: memory.search(question, logged=False)) for question in questions]
    added = work / "added.db"
    shutil.copy(path, added)
    add, index = _written(added, stores)
    added.unlink()
    restart_wall, restart_cpu, resident = _restarted(path, stores.text.questions(20, seed=time.time_ns()))
    return Measured(
        size,
        add,
        index,
        1e3 * statistics.median(fts5),
        1e3 * statistics.median(keyword),
        1e3 * statistics.median(nearest),
        1e3 * statistics.median(one.cpu for one in hybrid),
        1e3 * statistics.median(one.wall for one in hybrid),
        restart_wall,
        restart_cpu,
        resident,
        path.stat().st_size // 2**20,
        _lists_size(path) // 2**20,
        agreement,
    )


def _keyword(store: Store, path: Path, questions: Sequence[str]) -> tuple[list[float], list[float], float]:
    """CPU seconds of the bare FTS5 query and of ours, by turns, and how many of the first ten agree."""
    bare, ours, same = [], [], []
    with closing(sqlite3.connect(path)) as connection:
        keys = dict(connection.execute("SELECT key, id FROM records"))
        for question in questions:
            node = parse(question).node
            assert node is not None
            expression = match_expression(node)
            rows, hits = [], []
            bare.append(timed(lambda: rows.extend(connection.execute(_BARE_FTS, (expression,)))).cpu)  # noqa: B023
            query = KeywordQuery(node)
            ours.append(
                timed(lambda: hits.extend(store.retrieval.keyword(query, _EVERYTHING, _CANDIDATES).hits)).cpu  # noqa: B023
            )
            theirs = {keys[key] for key, _ in rows[:10]}
            same.append(len(theirs & {hit.id for hit in hits[:10]}) / max(1, len(theirs)))
    return bare, ours, statistics.mean(same)


def _written(path: Path, stores: ScaleStores) -> tuple[float, float]:
    """CPU milliseconds for one memory that is added, and for one chunk of a file that is indexed, without vectors."""
    texts = list(stores.text.texts(2 * _ADDED, seed=1))
    with Memory(path, options={"embedding.provider": "none"}) as memory:
        memory.add_many([NewMemory("warm")])
        each = [timed(lambda text=text: memory.add_many([NewMemory(text)])).cpu for text in texts[:_ADDED]]
        document = Document("added", "generated", "added.md", "", 1, 1)
        chunks = tuple(
            Record(f"a{place}", "chunk", text, document="added", collection="generated", path="added.md", created_at=1)
            for place, text in enumerate(texts[_ADDED:])
        )
        indexed = timed(lambda: memory.store.files.apply([DocumentUpdate(document, chunks)])).cpu
    return 1e3 * statistics.median(each), 1e3 * indexed / _ADDED


def _restarted(path: Path, questions: Sequence[str]) -> tuple[float, float, int]:
    """Seconds from the start of a process to its first hybrid answer, on the clock and of CPU, and its megabytes.

    The model is loaded for it: its questions are new in every run.
    """
    done = subprocess.run(
        [sys.executable, "-c", _RESTART, str(path), *questions], capture_output=True, text=True, check=True
    )
    wall, cpu, resident = json.loads(done.stdout)
    return wall, cpu, resident


def _lists_size(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(
            connection.execute(
                "SELECT coalesce(sum(length(occurrences) + length(term) + 12), 0) FROM posting_lists"
            ).fetchone()[0]
        )


_COLUMNS: dict[str, Callable[[Measured], str]] = {
    "records": lambda one: f"{one.records:,}",
    "add one memory": lambda one: f"{one.add:.1f} ms",
    "index one chunk": lambda one: f"{one.index:.1f} ms",
    "FTS5's own query": lambda one: f"{one.fts5:.1f} ms",
    "keyword stage": lambda one: f"{one.keyword:.1f} ms ({one.ratio:.1f}×)",
    "first ten as FTS5's": lambda one: f"{one.agreement:.3f}",
    "vector stage": lambda one: f"{one.vector:.1f} ms",
    "hybrid search": lambda one: f"{one.hybrid:.1f} ms ({one.hybrid_wall:.0f} ms on the clock)",
    "restart to first answer": lambda one: (
        f"{one.restart_cpu_seconds:.1f} s ({one.restart_seconds:.1f} s on the clock)"
    ),
    "resident": lambda one: f"{one.resident_mb} MB",
    "file": lambda one: f"{one.file_mb:,} MB",
    "posting lists": lambda one: f"{one.lists_mb:,} MB" if one.lists_mb else "none",
}


def table(rows: Sequence[Measured]) -> str:
    """A markdown table, a column for each size."""
    lines = [f"| {name} | {' | '.join(map(shown, rows))} |" for name, shown in _COLUMNS.items()]
    return "\n".join([lines[0], f"|{'---|' * (len(rows) + 1)}", *lines[1:]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="ascending; beyond 100,000 whole thousands")
    parser.add_argument("--questions", type=int, default=80)
    parser.add_argument("--real-vectors", type=int, default=100_000, help="sentences that the model reads")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "mindex-scale")
    parser.add_argument("--svg", type=Path, help="also draw the plot into this file")
    options = parser.parse_args()
    work: Path = options.work
    os.environ["MINDEX_CACHE_DIR"] = str(work / "cache")
    os.environ["XDG_CONFIG_HOME"] = str(work / "config")
    stores = ScaleStores(work, options.real_vectors)
    stores.build(options.sizes)
    questions = stores.text.questions(options.questions, seed=5)
    rows = []
    for size in options.sizes:
        rows.append(measure(stores, size, questions, work))
        print(table(rows[-1:]), file=sys.stderr)
    print(table(rows))
    print(f"\n{load()}")
    if options.svg:
        curves = {
            "FTS5's own query": [row.fts5 for row in rows],
            "keyword stage": [row.keyword for row in rows],
            "vector stage": [row.vector for row in rows],
            "hybrid search": [row.hybrid for row in rows],
            "add one memory": [row.add for row in rows],
        }
        options.svg.write_text(plot([row.records for row in rows], curves), encoding="utf-8")


if __name__ == "__main__":
    main()
