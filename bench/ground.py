"""What the rows share: sizes, a work folder, the corpus, and stores built once and used again."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import corpus
from corpus import Passage, Text
from mindex import __version__
from mindex.analyzer import ANALYZER_VERSION
from mindex.datatypes import Collection, Document, Record, RecordVectors
from mindex.datatypes.spaces import EmbedderSpec
from mindex.embedding.backfill import embed
from mindex.files.chunker import CHUNKER_VERSION
from mindex.memory import Memory
from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import create_embedder
from mindex.providers.embed.local import LocalEmbedder
from mindex.providers.packaged_models import BUILT_IN
from mindex.store.base import DocumentUpdate
from mindex.store.open import open_store

# Added to each of a real vector's 384 numbers: the cosine between a vector and its variation is about .93.
NOISE = 0.02
_RECORDS_PER_DOCUMENT = 10
_BATCH = 1_000


@dataclass(frozen=True, slots=True)
class Sizes:
    small: int = 10_000  # records
    large: int = 100_000
    embedded: int = 3_000  # passages that the model really reads; the other vectors are variations of these
    questions: int = 200
    texts: int | None = None  # how much of the corpus to read: files, and characters of each
    text_length: int = 200_000
    files: int = 2_000
    chunks: int = 200  # indexed with their vectors in one go
    rounds: int = 5  # of what takes many seconds
    starts: int = 11  # of processes
    searches: int = 100  # asked of a server
    reranked: int = 9  # questions whose candidates a cross-encoder reads


QUICK = Sizes(
    small=200,
    large=400,
    embedded=20,
    questions=10,
    texts=60,
    text_length=1_500,
    files=40,
    chunks=8,
    rounds=1,
    starts=1,
    searches=3,
    reranked=1,
)


class Ground:
    """Made on demand: a row that needs no store waits for none."""

    def __init__(self, work: Path, sizes: Sizes) -> None:
        self.sizes = sizes
        self.work = work
        key = f"{__version__}-a{ANALYZER_VERSION}-c{CHUNKER_VERSION}-{sizes.embedded}-{sizes.texts or 'all'}"
        self._made = work / key
        self._made.mkdir(parents=True, exist_ok=True)
        self._scratch = work / f"scratch-{os.getpid()}"
        (work / "cache").mkdir(exist_ok=True)
        os.environ["MINDEX_CACHE_DIR"] = str(work / "cache")
        os.environ["XDG_CONFIG_HOME"] = str(work / "config")

    # ── text ──────────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def texts(self) -> list[Text]:
        path = self._made / "texts.json"
        if not path.exists():
            say("reading the documentation of installed packages")
            _write(path, json.dumps([asdict(text) for text in self._found()]).encode())
        return [Text(**text) for text in json.loads(path.read_bytes())]

    def _found(self) -> list[Text]:
        return [Text(text.name, text.body[: self.sizes.text_length]) for text in corpus.texts(self.sizes.texts)]

    @cached_property
    def passages(self) -> list[Passage]:
        path = self._made / "passages.json"
        if not path.exists():
            _write(path, json.dumps([asdict(passage) for passage in corpus.passages(self.texts)]).encode())
        return [Passage(**passage) for passage in json.loads(path.read_bytes())]

    @cached_property
    def _asked(self) -> list[str]:
        return corpus.questions(self.texts, 10 * self.sizes.questions + 200)

    def questions(self, lot: int, count: int | None = None) -> list[str]:
        """Questions that no other lot holds."""
        start = lot * self.sizes.questions
        return self._asked[start : start + (count or self.sizes.questions)]

    # ── vectors ───────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def embedder(self) -> LocalEmbedder:
        embedder = LocalEmbedder()
        embedder.load()
        return embedder

    @cached_property
    def _embedded(self) -> list[RecordVectors]:
        """The vectors of the first passages, each by the model itself."""
        path = self._made / "vectors.npz"
        if not path.exists():
            records = [_record(index, passage) for index, passage in enumerate(self._read_by_model)]
            found: list[RecordVectors] = []
            for start in range(0, len(records), 64):
                say(f"embedding {start} of {len(records)} passages", again=True)
                found += embed(self.embedder, tuple(records[start : start + 64]))
            counts = [len(item.vectors) for item in found]
            np.savez(
                path,
                vectors=np.concatenate([item.vectors for item in found]),
                counts=counts,
                fluency=[item.fluency for item in found],
            )
        with np.load(path) as kept:
            parts = np.split(kept["vectors"], np.cumsum(kept["counts"])[:-1])
            return [RecordVectors("", part, float(one)) for part, one in zip(parts, kept["fluency"], strict=True)]

    @property
    def _read_by_model(self) -> list[Passage]:
        return self.passages[: self.sizes.embedded]

    # ── stores ────────────────────────────────────────────────────────────────────────────────────────────────

    def store(self, records: int, made: EmbedderSpec | None = None) -> Path:
        """A database of that many records with their vectors, packed; its caches are emptied.

        With `made`, the same vectors are said to be that model's, which need not be there.
        """
        path = self._made / f"{records}{f'-{made.provider}' if made else ''}.db"
        if not path.exists():
            started = time.monotonic()
            unfinished = path.with_suffix(".unfinished")
            for rest in self._made.glob(f"{unfinished.name}*"):
                rest.unlink()
            self.fill(unfinished, corpus.varied(self.passages, records), made)
            unfinished.rename(path)
            say(f"built {path} in {time.monotonic() - started:.0f} s")
        with sqlite3.connect(path) as connection:
            connection.execute("DELETE FROM cache")
        connection.close()
        return path

    def fill(self, path: Path | str, passages: Iterable[Passage], made: EmbedderSpec | None = None) -> None:
        """A new database of these passages with vectors: a file, or the URL of another engine."""
        rng = np.random.default_rng(7)
        known = self._embedded
        root = self.work / "corpus"
        root.mkdir(exist_ok=True)
        embedder = create_embedder(ProviderSettings(made.provider, made.model)) if made else None
        model = embedder.model if embedder else BUILT_IN
        store = open_store(path)
        store.files.put_collection(Collection("corpus", str(root)))
        wanted = enumerate(passages)
        while records := [_record(index, passage) for index, passage in islice(wanted, _BATCH)]:
            say(f"storing records from {int(records[0].id[1:])} on", again=True)
            parts = [records[at : at + _RECORDS_PER_DOCUMENT] for at in range(0, len(records), _RECORDS_PER_DOCUMENT)]
            store.files.apply([DocumentUpdate(_document(part[0]), tuple(part)) for part in parts])
            store.vectors.put(model, [_variation(record, known, rng) for record in records], made)
        store.vectors.pack()
        store.close()

    def vectors(self, ids: Sequence[str]) -> list[RecordVectors]:
        """One vector for each record, varied from those that the model made."""
        rng = np.random.default_rng(7)
        known = np.concatenate([one.vectors for one in self._embedded])
        made = known[np.arange(len(ids)) % len(known)] + rng.normal(scale=NOISE, size=(len(ids), known.shape[1]))
        made = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
        return [RecordVectors(id_, vector.reshape(1, -1), 1.0) for id_, vector in zip(ids, made, strict=True)]

    def memory(self, records: int) -> Memory:
        """That store, opened, with the model loaded and one search behind it."""
        memory = Memory(self.store(records))
        memory.models.use(self.embedder)  # one model for all rows
        for question in self.questions(9, 3):
            memory.search(question)
        return memory

    def scratch(self, name: str) -> Path:
        """A fresh folder, for this run only."""
        folder = self._scratch / name
        folder.mkdir(parents=True)
        return folder

    def clean(self) -> None:
        shutil.rmtree(self._scratch, ignore_errors=True)


def _record(index: int, passage: Passage) -> Record:
    document = index - index % _RECORDS_PER_DOCUMENT
    return Record(
        id=f"r{index:011d}",
        kind="chunk",
        text=passage.text,
        title=passage.title,
        document=f"d{document:011d}",
        collection="corpus",
        path=f"part{document // 1000:03d}/page{document:06d}.md",
        first_line=index % _RECORDS_PER_DOCUMENT * 20 + 1,
        last_line=index % _RECORDS_PER_DOCUMENT * 20 + 20,
        domain="root",
    )


def _document(first: Record) -> Document:
    return Document(id=first.document, collection="corpus", path=first.path, fingerprint="", size=0, mtime_ns=0)


def _variation(record: Record, known: list[RecordVectors], rng: np.random.Generator) -> RecordVectors:
    """The record's own vectors where the model read it, else those of another with a little noise."""
    index = int(record.id[1:])
    base = known[index % len(known)]
    vectors: NDArray[np.float32] = np.asarray(base.vectors, np.float32)
    if index >= len(known):
        vectors = vectors + rng.normal(scale=NOISE, size=vectors.shape).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return RecordVectors(record.id, vectors, base.fluency)


def _write(path: Path, data: bytes) -> None:
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_bytes(data)
    unfinished.replace(path)


def say(text: str, *, again: bool = False) -> None:
    """Print the progress to stderr; only the table goes to stdout."""
    if again and not sys.stderr.isatty():
        return
    sys.stderr.write(f"\r\033[K{text}" if again else f"{text}\n")
    sys.stderr.flush()
