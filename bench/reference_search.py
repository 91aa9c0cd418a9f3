"""CPU of a hybrid search over that of a bare reference: `python bench/reference_search.py`.

The reference does what no hybrid search can leave out, and nothing else: it embeds the question with the same model,
takes 200 records by `bm25()` of FTS5 (any word that is not a stop word, porter stemmer) and the 200 nearest vectors by
sqlite-vec, merges both by reciprocal ranks, and reads the texts of the first five. It judges and presents nothing.
Both sides search the same records and get each question once, by turns; the medians of their CPU time are compared.

With `--tools mudpuppy` the searches are calls of its `memory_search` in a database of memories, and the vectors of all
questions are known before, to both sides.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sqlite3
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

import apsw
import numpy as np
import sqlite_vec

from ground import QUICK, Ground, Sizes
from measure import Row, Timings, alternate, load, timed, told
from mindex.analyzer import STOP_WORDS
from mindex.entries.new_memory import NewMemory
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.server_options import ServerOptions
from mindex.providers.packaged_models import BUILT_IN
from mindex_compat.dialects.mudpuppy import DIALECT, MudpuppyTools
from telling import sentences

_CANDIDATES, _SHOWN, _RANK = 200, 5, 60
_MOST, _MOST_OF_TOOL = 1.25, 1.5
_WORD = re.compile(r"\w+")
_RECORDS = "SELECT key, title, text FROM records"
_VECTORS = "SELECT record, data FROM vectors"
_BY_WORDS = f"SELECT rowid FROM words WHERE words MATCH ? ORDER BY bm25(words) LIMIT {_CANDIDATES}"
_BY_VECTOR = f"SELECT record FROM vectors WHERE embedding MATCH ? AND k = {_CANDIDATES} ORDER BY distance"


class Reference:
    """FTS5 and sqlite-vec over the records of a mindex database, in a separate file."""

    def __init__(self, database: Path, folder: Path, embed: Callable[[str], np.ndarray]) -> None:
        self._embed = embed
        self._connection = apsw.Connection(str(folder / "reference.db"))
        self._connection.enable_load_extension(True)
        self._connection.load_extension(sqlite_vec.loadable_path())
        self._connection.execute("CREATE VIRTUAL TABLE words USING fts5 (title, text, tokenize = 'porter')")
        dimensions = BUILT_IN.dimensions
        self._connection.execute(
            f"CREATE VIRTUAL TABLE vectors USING vec0 (embedding float[{dimensions}], +record int)"
        )
        with closing(sqlite3.connect(database)) as source, self._connection:
            insert = "INSERT INTO words (rowid, title, text) VALUES (?, ?, ?)"
            self._connection.executemany(insert, source.execute(_RECORDS))
            insert = "INSERT INTO vectors (embedding, record) VALUES (?, ?)"
            for record, data in source.execute(_VECTORS):
                pieces = np.frombuffer(data, np.float32).reshape(-1, dimensions)
                self._connection.executemany(insert, [(piece.tobytes(), record) for piece in pieces])

    def search(self, question: str) -> list[tuple[str, str]]:
        """The titles and texts of the first five records."""
        scores: dict[int, float] = defaultdict(float)
        vector = self._embed(question).astype(np.float32).tobytes()
        wanted = [word for word in dict.fromkeys(_WORD.findall(question.lower())) if word not in STOP_WORDS]
        found = [self._records(_BY_VECTOR, vector)]
        if wanted:
            found.append(self._records(_BY_WORDS, " OR ".join(f'"{word}"' for word in wanted)))
        for records in found:
            for rank, record in enumerate(dict.fromkeys(records), start=1):
                scores[record] += 1 / (_RANK + rank)
        best = sorted(scores, key=lambda record: -scores[record])[:_SHOWN]
        marks = ", ".join("?" * len(best))
        return self._connection.execute(f"SELECT title, text FROM words WHERE rowid IN ({marks})", best).fetchall()

    def _records(self, statement: str, value: bytes | str) -> list[int]:
        return [record for (record,) in self._connection.execute(statement, (value,))]

    def close(self) -> None:
        self._connection.close()


def reference_search(ground: Ground) -> Row:
    records = ground.sizes.small
    questions = ground.questions(3)
    embedder = ground.embedder
    folder = ground.scratch("reference")
    with (
        closing(Reference(ground.store(records), folder, embedder.embed_query)) as reference,
        ground.memory(records) as memory,
    ):
        for question in ground.questions(9, 3):
            reference.search(question)
        ours, bare = alternate(
            len(questions),
            lambda turn: timed(lambda: memory.search(questions[turn])),
            lambda turn: timed(lambda: reference.search(questions[turn])),
        )
    return _row("reference", f"hybrid search of {records:,} records", _MOST, ours, bare)


def mudpuppy_search(ground: Ground) -> Row:
    records = ground.sizes.small
    texts = sentences(ground, records, 45)
    draw = random.Random(7)
    questions = [" ".join(draw.sample(text.split()[:-1], 4)) for text in texts[: ground.sizes.questions]]
    folder = ground.scratch("reference-mudpuppy")
    database = folder / "memory.db"
    host = MemoryHost(ServerOptions(db=str(database), settings=DIALECT.settings))
    known = {question: ground.embedder.embed_query(question) for question in questions}
    with host.memory as memory:
        memory.models.use(ground.embedder)
        added = memory.add_many(map(NewMemory, texts), embed=False)
        memory.store.vectors.put(BUILT_IN, ground.vectors([one.id for one in added]))
        memory.store.vectors.pack()
        tools = MudpuppyTools(host)
        for question in questions:  # their vectors are in the cache from here on
            tools.search(question)
        memory.store.settle()
        with closing(Reference(database, folder, known.__getitem__)) as reference:
            for question in questions:
                reference.search(question)
            ours, bare = alternate(
                len(questions),
                lambda turn: timed(lambda: tools.search(questions[turn])),
                lambda turn: timed(lambda: reference.search(questions[turn])),
            )
    return _row("reference-mudpuppy", f"memory_search of {records:,} memories", _MOST_OF_TOOL, ours, bare)


def _row(name: str, measured: str, most: float, ours: Timings, bare: Timings) -> Row:
    ratio = ours.cpu_over(bare)
    return Row(
        name=name,
        measured=f"{measured}: {told(ours.cpu)} of CPU",
        baseline=f"FTS5, sqlite-vec and reciprocal ranks, {_CANDIDATES} each: {told(bare.cpu)} of CPU",
        ratio=f"{ratio:.2f}×",
        target=f"≤ {most}×",
        ok=ratio <= most,
        note=f"median of {len(ours.runs)} questions; wall {told(ours.wall)} against {told(bare.wall)}",
        numbers={"ratio": ratio, "cpu": ours.cpu, "reference_cpu": bare.cpu},
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=Sizes().small, help="size of the store (default: %(default)s)")
    parser.add_argument("--tools", choices=("native", "mudpuppy"), default="native", help="how to search")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: see that it runs, not how fast")
    parser.add_argument("--json", action="store_true", help="print JSON instead of lines")
    parser.add_argument(
        "--work",
        type=Path,
        default=Path(tempfile.gettempdir()) / "mindex-bench",
        help="where built stores are kept, as of speed.py (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    options.work.mkdir(parents=True, exist_ok=True)
    ground = Ground(options.work.resolve(), QUICK if options.quick else replace(Sizes(), small=options.records))
    before = load()
    try:
        row = (mudpuppy_search if options.tools == "mudpuppy" else reference_search)(ground)
    finally:
        ground.clean()
    if options.json:
        print(json.dumps(asdict(row) | {"loads": [before, load()]}, indent=1))
    else:
        print(f"{row.measured}\n{row.baseline}\n{row.ratio} (target {row.target}); {row.note}\n{before} … {load()}")
    return 0 if row.ok or options.quick else 1


if __name__ == "__main__":
    sys.exit(main())
