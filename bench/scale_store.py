"""Stores of growing size for `bench/scale.py`: each is a copy of the next smaller one with more records in it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import corpus
from ground import say
from mindex.datatypes import Collection, Document, Record, RecordVectors
from mindex.providers.embed.local import LocalEmbedder
from mindex.providers.packaged_models import BUILT_IN
from mindex.store.base import DocumentUpdate, Store
from mindex.store.open import open_store
from zipf import ZipfText

_BATCH = 1_000
_CHUNKS_PER_DOCUMENT = 20
_NOISE = 0.02
# Up to here texts are stored through the store; beyond, halves of them are joined, which takes a fifth of the time.
_ANALYSED = 100_000
_LIKE_DOCUMENT = """
INSERT INTO documents (key, id, collection, path, fingerprint, size, mtime_ns, indexed_at)
SELECT ?, ?, min(key), ?, '', 1, 1, 1 FROM collections
"""
_ADD_CHUNK = """
INSERT INTO records (key, id, kind, document, position, created_at, updated_at, text)
VALUES (?, ?, 'chunk', ?, ?, 1, 1, ?)
"""
_ADD_WORDS = "INSERT INTO records_fts (rowid, title, text, summary, tags, identifiers) VALUES (?, '', ?, '', ?, '')"


class ScaleStores:
    """Databases below a work folder, made once and kept."""

    def __init__(self, work: Path, real_vectors: int) -> None:
        work.mkdir(parents=True, exist_ok=True)
        self._work = work
        self._real = real_vectors
        self.text = ZipfText()

    def path(self, records: int) -> Path:
        return self._work / f"{records}.db"

    def build(self, sizes: Sequence[int]) -> None:
        """Every size that is not there yet."""
        before = None
        for size in sizes:
            if not self.path(size).exists():
                started = time.monotonic()
                self._grow(before, size)
                say(f"built {size:,} records in {time.monotonic() - started:.0f} s")
            before = size

    def _grow(self, before: int | None, size: int) -> None:
        unfinished = self.path(size).with_suffix(".unfinished")
        for rest in self._work.glob(f"{unfinished.name}*"):
            rest.unlink()
        if before is not None:
            with closing(sqlite3.connect(self.path(before))) as source, closing(sqlite3.connect(unfinished)) as copy:
                source.backup(copy)
        with closing(open_store(unfinished)) as store:
            store.files.put_collection(Collection("generated", "/generated"))
            for start in range(before or 0, min(size, _ANALYSED), _BATCH):
                say(f"storing records from {start:,} on", again=True)
                self._put(store, start, min(size, start + _BATCH))
        if size > _ANALYSED:
            self._multiply(unfinished, size)
        with closing(open_store(unfinished)) as store:
            store.vectors.pack()
        unfinished.rename(self.path(size))

    def _put(self, store: Store, start: int, end: int) -> None:
        texts = list(self.text.texts(end - start, seed=start))
        updates = []
        for at in range(0, len(texts), _CHUNKS_PER_DOCUMENT):
            name = f"{start + at:08}"
            document = Document(f"d{name}", "generated", f"{name[:4]}/{name[4:]}.md", "", 1, 1)
            chunks = tuple(
                Record(f"r{start + place:08}", "chunk", texts[place], document=document.id, collection="generated",
                       path=document.path, created_at=1)
                for place in range(at, min(at + _CHUNKS_PER_DOCUMENT, len(texts)))
            )  # fmt: skip
            updates.append(DocumentUpdate(document, chunks))
        store.files.apply(updates)
        vectors = self.vectors(end - start, start)
        rows = [RecordVectors(f"r{start + at:08}", vector[None, :], 1.0) for at, vector in enumerate(vectors)]
        store.vectors.put(BUILT_IN, rows)

    def _multiply(self, path: Path, size: int) -> None:
        """Add records made of two halves of earlier ones each, their words with them: no text is analysed again."""
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            texts = dict(connection.execute("SELECT key, text FROM records"))
            words = dict(connection.execute("SELECT rowid, text FROM records_fts"))
            keys, draw = sorted(texts), np.random.default_rng(size)
            (model,) = connection.execute("SELECT max(key) FROM models").fetchone()
            (document,) = connection.execute("SELECT max(key) FROM documents").fetchone()
            for start in range(len(keys), size, _BATCH):
                say(f"storing records from {start:,} on", again=True)
                connection.execute("BEGIN")
                document += 1
                made = (f"d{start:08}", f"{start // 100_000}/{start:08}.md")
                connection.execute(_LIKE_DOCUMENT, (document, *made))
                rows, tokens = [], []
                for place, (one, other) in enumerate(draw.choice(keys, (_BATCH, 2)).tolist()):
                    key = start + place + 1
                    rows.append((key, f"r{key - 1:08}", document, place, _mixed(texts[one], texts[other])))
                    path_words = " ".join(made[1].removesuffix(".md").split("/")) + " md"
                    tokens.append((key, _mixed(words[one], words[other]), path_words))
                connection.executemany(_ADD_CHUNK, rows)
                connection.executemany(_ADD_WORDS, tokens)
                vectors = self.vectors(_BATCH, start)
                connection.executemany(
                    "INSERT INTO vectors (model, record, fluency, data) VALUES (?, ?, 1, ?)",
                    [(model, row[0], vector.tobytes()) for row, vector in zip(rows, vectors, strict=True)],
                )
                connection.executemany("INSERT INTO changes (record) VALUES (?)", [row[:1] for row in rows])
                connection.execute("COMMIT")

    def vectors(self, count: int, start: int) -> NDArray[np.float32]:
        """Those of the records from `start` on: as the model made them, and beyond their number with a little noise."""
        real = self._model_vectors
        places = np.arange(start, start + count)
        noise = np.random.default_rng(start).normal(scale=_NOISE, size=(count, real.shape[1]))
        made = real[places % len(real)] + (noise * (places >= len(real))[:, None]).astype(np.float32)
        return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), np.float32)

    @property
    def _model_vectors(self) -> NDArray[np.float32]:
        if not hasattr(self, "_kept"):
            path = self._work / f"vectors-{self._real}.npy"
            if not path.exists():
                np.save(path, _embedded(self._real))
            self._kept: NDArray[np.float32] = np.load(path)
        return self._kept


def _embedded(count: int) -> NDArray[np.float32]:
    """The vectors of real text: at most this number of sentences from the documentation of installed packages."""
    embedder = LocalEmbedder()
    embedder.load()
    sentences = corpus.sentences(corpus.texts(), count)
    if len(sentences) < count:
        say(f"the installed packages have {len(sentences):,} sentences")
    found: list[NDArray[np.float32]] = []
    for start in range(0, len(sentences), _BATCH):
        say(f"embedding {start:,} of {len(sentences):,} sentences", again=True)
        found.append(np.asarray(embedder.embed(sentences[start : start + _BATCH]), np.float32))
    return np.concatenate(found)


def _mixed(one: str, other: str) -> str:
    """The first half of one text with the second half of another, word by word."""
    first, second = one.split(), other.split()
    return " ".join((*first[: len(first) // 2], *second[len(second) // 2 :]))
