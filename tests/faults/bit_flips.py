"""Flips single bits of a database that holds something of every kind, and reads all of it through every interface.

`python -m tests.faults.bit_flips --flips 200 --seed 1` prints what came of each flip. The law: every answer is right,
or it is an error of mindex, or `doctor --deep` sees the damage. A raw exception, or a wrong answer while
`doctor --deep` is content, breaks it.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import random
import shutil
import sqlite3
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from mindex.datatypes import Model, VectorArray
from mindex.errors import MindexError
from mindex.memory import Memory
from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import Embedder

_DIMENSIONS = 64
_OPTIONS = {"daily_log.enabled": False}


class HashEmbedder:
    """Makes a vector of the hashes of a text's words: the same text, the same vector, without a model."""

    model = Model("local", "hash", _DIMENSIONS)
    loaded = True

    def load(self) -> None:
        """Nothing to load."""

    def embed(self, texts: Sequence[str]) -> VectorArray:
        return cast("VectorArray", np.stack([self.embed_query(text) for text in texts]))

    def embed_query(self, text: str) -> VectorArray:
        words = [hashlib.blake2b(word.encode(), digest_size=8).digest() for word in text.lower().split()] or [bytes(8)]
        vectors = [np.random.default_rng(int.from_bytes(word)).standard_normal(_DIMENSIONS) for word in words]
        mean = np.mean(vectors, axis=0)
        return cast("VectorArray", (mean / np.linalg.norm(mean)).astype(np.float32))

    def fluency(self, texts: Sequence[str]) -> list[float]:
        return [0.9] * len(texts)


class HashProviders:
    """Implements `Providers` without a model."""

    checks_canaries = True
    reranker = None
    generator = None

    def settings(self, role: str) -> ProviderSettings:
        return ProviderSettings(provider="local" if role == "embedding" else "none", model="hash")

    def embedder(self, settings: ProviderSettings) -> Embedder | None:  # noqa: ARG002
        return HashEmbedder()

    @property
    def requested_reranker(self) -> Any:
        raise MindexError("no reranker", "")


def open_memory(path: Path) -> Memory:
    return Memory(path, options=_OPTIONS, providers=HashProviders())


# ── a database with something of every kind ───────────────────────────────────────────────────────────────────


def fill(path: Path, folder: Path) -> None:
    """Make a database of files, entries of every kind with history, links, accesses, vectors, caches and tokens."""
    docs = folder / "docs"
    docs.mkdir()
    (folder / "shared").mkdir()
    for n in range(12):
        links = f"\n\nSee [the next page]({n + 1}.md).\n"
        body = "\n\n".join(
            f"## Part {p}\n\nThe harbour crane {n}.{p} lifts containers. " + "Grease it. " * 20 for p in range(3)
        )
        front = f"---\ntags: [port, page{n}]\nowner: Ines\n---\n"
        (docs / f"{n}.md").write_text(f"{front}# Page {n}\n\n{body}{links}", encoding="utf-8")
    with open_memory(path) as memory:
        memory.index(docs)
        for n in range(25):
            memory.add(
                f"The crane {n} was painted in colour {n * 7}.", tags=["crane", f"t{n % 3}"], importance=n % 10 + 1
            )
        ids = [record.id for record in memory.list(memory.filters(kinds=["memory"]), limit=50).records]
        for id_ in ids[:8]:
            memory.update(id_, text=f"{memory.entries.find(id_).text} It was checked.", reason="inspection")
        for id_ in ids[8:11]:
            memory.forget(id_, "no longer true")
        memory.undo(ids[8])
        memory.add("A long memory. " + "It tells of the quay, the pilots and the tide. " * 150, summary="quay")
        for n in range(6):
            memory.conversations.add(f"Who steers ship {n}?", f"Pilot number {n} steers it.", session_id=f"s{n % 2}")
        memory.profile.set({"name": "Ines"})
        memory.profile.set({"city": "Porto"}, reason="moved")
        memory.contacts.add(name="Rui", email="rui@example.org")
        memory.projects.add(name="Quay 7", description="a new quay")
        memory.skills.add(
            name="greasing", description="how to grease a crane", trigger_type="manual", instructions="Use a gun."
        )
        memory.notes.create("default", "/memories/plan.md", "Buy grease.")
        memory.store.entries.link([(ids[0], ids[1], "similar", 0.9)])
        memory.tokens.add("laptop", agent="default", rights="read")
        memory.tokens.add("phone", agent="default", rights="write", collections=["docs"])
        memory.store.caches.put_many("query", {"q1": b"12345678" * 20, "q2": b"abcdefgh" * 20}, now=True)
        memory.sync.run(folder / "shared")
        memory.maintenance.backfill()
        memory.store.vectors.pack()
        memory.search("crane", limit=5)
        memory.get(ids[0])
        memory.store.settle()
        memory.maintenance.optimize()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


# ── reading everything ────────────────────────────────────────────────────────────────────────────────────────


def surfaces(memory: Memory, ids: Sequence[str], folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every way of reading, each as a function that returns something comparable.

    The first ones say how often records were returned, and what is cached: searches change that.
    """

    def hits(mode: str, query: str, **options: Any) -> list[tuple[str, str]]:
        answer = memory.search(query, mode=mode, limit=20, min_relevance=0, **options)  # type: ignore[arg-type]
        return [(hit.record.id, hit.record.text) for hit in answer.hits]

    yield "export jsonl", lambda: _exported(memory)
    yield "status", lambda: repr(replace(memory.status(), db="", size_bytes=None))
    yield "stats", lambda: repr(memory.maintenance.statistics())
    for mode in ("keyword", "vector", "hybrid"):
        yield f"search {mode}", lambda mode=mode: hits(mode, "crane painted colour")
    yield "search as_of", lambda: hits("keyword", "crane", as_of="2030-01-01")
    yield "search phrase", lambda: hits("keyword", '"pilots and the tide"')
    yield "search filter", lambda: hits("hybrid", "crane", tags=["crane"], kinds=["memory"])
    yield "get", lambda: repr(memory.get(*ids[:50]).records)
    yield "get file", lambda: repr(memory.get("docs/3.md").records)
    yield "get links", lambda: repr(memory.get("links:docs/3.md").records)
    yield "list", lambda: [repr(memory.list(memory.filters(), limit=50, offset=at)) for at in (0, 50)]
    yield "history", lambda: [repr(memory.history(id_)) for id_ in ids]
    yield "timeline", lambda: repr(memory.timeline.events(limit=50))
    yield "conversations", lambda: repr(memory.conversations.list())
    yield "session", lambda: repr(memory.conversations.session("s1"))
    yield "profile", lambda: memory.profile.get()
    yield "things", lambda: repr([memory.field_entries(kind).all() for kind in ("contact", "project", "skill")])
    yield "notes", lambda: repr(memory.notes.files("default"))
    yield "tags", lambda: repr(memory.labels.tags())
    yield "types", lambda: repr(memory.labels.types())
    yield "collections", lambda: repr(memory.store.files.collections())
    yield "documents", lambda: repr([*memory.store.files.documents("docs").values()])
    yield "tokens", lambda: repr(memory.tokens.all())
    yield "scan", lambda: repr(memory.maintenance.scan())
    yield "export markdown", lambda: _markdown(memory, folder)
    yield "sync dry run", lambda: repr(memory.sync.run(folder / "shared", dry_run=True))
    yield "cache", lambda: [memory.store.caches.get("query", key) for key in ("q1", "q2")]


def _exported(memory: Memory) -> bytes:
    file = io.BytesIO()
    memory.transfer.export(file, vectors=True)
    return file.getvalue()


def _markdown(memory: Memory, folder: Path) -> dict[str, str]:
    target = folder / "markdown"
    shutil.rmtree(target, ignore_errors=True)
    memory.transfer.export(target, format="markdown")
    return {str(file.relative_to(target)): file.read_text(encoding="utf-8") for file in sorted(target.rglob("*.md"))}


@dataclass(slots=True)
class Outcome:
    """What came of one flip: how often a surface was right, wrong, an error; what raised; whether doctor saw it."""

    where: str
    right: int = 0
    wrong: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    raw: list[str] = field(default_factory=list)
    seen: bool = False  # by `doctor --deep`

    @property
    def breaks_the_law(self) -> bool:
        return bool(self.raw or (self.wrong and not self.seen))

    @property
    def verdict(self) -> str:
        if self.raw:
            return "raw exception"
        if self.wrong:
            return "wrong, and doctor says so" if self.seen else "wrong, and nothing says so"
        if self.errors:
            return "error"
        return "right, and doctor says so" if self.seen else "right"


def read_all(path: Path, ids: Sequence[str], folder: Path) -> dict[str, object]:
    """What every surface returns; the exception where it raised one."""
    answers: dict[str, object] = {}
    try:
        memory = open_memory(path)
    except Exception as error:
        return {"open": error}
    try:
        for name, read in surfaces(memory, ids, folder):
            try:
                answers[name] = read()
            except Exception as error:
                answers[name] = error
        try:
            answers["doctor"] = not [check for check in memory.doctor(deep=True) if not check.ok]
        except Exception as error:
            answers["doctor"] = error
        memory.close()
    except Exception as error:
        answers["close"] = error
    return answers


def used_pages(path: Path) -> list[int]:
    """Offsets of the pages that hold something, without the first one, which has the file's header."""
    with sqlite3.connect(path) as connection:
        (size,), (pages,) = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_size", "page_count"))
        assert connection.execute("PRAGMA freelist_count").fetchone() == (0,)
    connection.close()
    return [page * size for page in range(pages)]


class Attack:
    """A sound database, what it answers, and what it answers once a bit of it is flipped."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sound = folder / "sound.db"
        fill(self.sound, folder)
        with open_memory(self.sound) as memory, memory.store.entries.export_snapshot() as snapshot:
            self.ids = [row.record.id for row in snapshot.rows]
        self.pages = used_pages(self.sound)
        self.page_size = self.pages[1]
        self.answers = self._read(self.sound.read_bytes())
        failures = {name: one for name, one in self.answers.items() if isinstance(one, Exception)}
        assert not failures, failures
        assert self.answers["doctor"], "doctor finds damage in a sound database"

    def _read(self, content: bytes) -> dict[str, object]:
        path = self.folder / "damaged.db"
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        path.write_bytes(content)
        path.chmod(0o600)
        return read_all(path, self.ids, self.folder)

    def flip(self, place: int, bit: int) -> Outcome:
        content = bytearray(self.sound.read_bytes())
        content[place] ^= 1 << bit
        outcome = Outcome(f"page {place // self.page_size + 1}, byte {place % self.page_size}, bit {bit}")
        for name, answer in self._read(bytes(content)).items():
            if isinstance(answer, MindexError):
                outcome.errors.append(f"{name}: {answer}")
                outcome.seen |= name == "doctor"
            elif isinstance(answer, Exception):
                at = traceback.extract_tb(answer.__traceback__)[-1]
                outcome.raw.append(f"{name}: {answer!r} at {Path(at.filename).name}:{at.lineno}")
            elif name == "doctor":
                outcome.seen = not answer
            elif answer == self.answers[name]:
                outcome.right += 1
            else:
                outcome.wrong.append(name)
        return outcome

    def random_flips(self, count: int, seed: int) -> Iterator[Outcome]:
        """Flips at random places; zeros are mostly room between rows, so half of the flips hit something else."""
        source = random.Random(seed)
        content = self.sound.read_bytes()
        for n in range(count):
            while True:
                place = source.randrange(100, len(content))
                if n % 2 or content[place]:
                    break
            yield self.flip(place, source.randrange(8))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flips", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="what came of every flip, not only of those that matter")
    arguments = parser.parse_args()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        attack = Attack(Path(folder))
        sys.stdout.write(f"{len(attack.pages)} pages, {len(attack.answers)} ways of reading\n")
        for outcome in attack.random_flips(arguments.flips, arguments.seed):
            counts[outcome.verdict] += 1
            if outcome.breaks_the_law or arguments.verbose:
                details = "; ".join((outcome.raw or outcome.wrong or outcome.errors)[:3])
                sys.stdout.write(f"{outcome.where}: {outcome.verdict}; {details}\n")
    for verdict, count in counts.most_common():
        sys.stdout.write(f"{count:5}  {verdict}\n")


if __name__ == "__main__":
    main()
