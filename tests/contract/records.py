"""Records that the tests of the store's laws store and find again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mindex.datatypes import Document, Filters, Model, Record
from mindex.search.query import parse
from mindex.store.base import DocumentUpdate, KeywordQuery, Store

MODEL = Model("test", "axes", 64)
EVERYTHING = Filters()
EVERYONE = Filters(agent="*")

Open = Callable[[], Store]


def memory_of(id_: str, **more: Any) -> Record:
    return Record(id=id_, kind="memory", text=f"text of {id_}", agent="a", created_at=1, updated_at=1, **more)


def turn(id_: str, session: str, at: int, **more: Any) -> Record:
    fields = {"session_id": session}
    return Record(id=id_, kind="turn", text=f"said {id_}", agent="a", created_at=at, fields=fields, **more)


def update(path: str, *texts: str, collection: str = "docs", **document: object) -> DocumentUpdate:
    stored = Document(f"doc{path}", collection, path, "fp", 1, 1, **document)  # type: ignore[arg-type]
    records = tuple(
        Record(
            id=f"id{path}{number}".replace(".", "").replace("/", ""),
            kind="chunk",
            text=text,
            title=f"Page {path}",
            document=stored.id,
            collection=collection,
            path=path,
            first_line=number,
            last_line=number,
            created_at=1_000 + number,
            domain=stored.domain,
            instruction=stored.instruction,
            document_fields=stored.fields,
            tags=stored.tags,
        )
        for number, text in enumerate(texts, start=1)
    )
    return DocumentUpdate(stored, records)


def axis(number: int, lean: float = 0.0) -> list[float]:
    vector = np.zeros(64, np.float32)
    vector[number] = 1.0
    vector[(number + 1) % 64] = lean
    return list(map(float, vector / np.linalg.norm(vector)))


def found(store: Store, query: str, filters: Filters = EVERYTHING, limit: int = 10) -> list[str]:
    node = parse(query).node
    assert node is not None
    return [hit.id for hit in store.retrieval.keyword(KeywordQuery(node), filters, limit).hits]


def nearest(store: Store, vector: list[float], filters: Filters = EVERYTHING, limit: int = 10) -> list[str]:
    return [hit.id for hit in store.retrieval.nearest(MODEL, np.asarray(vector, np.float32), filters, limit).hits]
