"""Secrets that are already stored, such as those from before a rule existed: find them, and remove what holds them."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from mindex.datatypes import Document, PurgeResult, Record, SecretFinding, SecretsRemoved
from mindex.redaction.redactor import Redactor
from mindex.store.base import Store
from mindex.store.export_rows import ExportRow
from mindex.values import dataclass

_OF_ENTRIES = frozenset({"text", "properties", "history"})  # the places of a text of an entry


@dataclass(frozen=True, slots=True)
class _StoredText:
    """A text of the store: where it is, and everything that would be removed with it."""

    place: str  # text, properties, history, document, collection, query, cache
    id: str  # of the record or document; the name of the collection; the kind of cached values
    text: str
    path: str = ""
    first_line: int = 0
    document: str = ""


@dataclass(frozen=True, slots=True)
class StoredSecrets:
    """Looks for secrets in entries (live, forgotten, and as they were), files, names, logged queries and caches."""

    _store: Store
    _redactor: Redactor

    def find(self) -> tuple[SecretFinding, ...]:
        """Every secret that is stored. Names and paths are shown without the secrets that they hold themselves."""
        return tuple(self._findings())

    def _findings(self) -> Iterator[SecretFinding]:
        shown = replace(self._redactor, mode="redact").redact_text
        for stored in self._texts():
            for match in self._redactor.find(stored.text):
                line = stored.first_line + match.line - 1 if stored.first_line else 0
                yield SecretFinding(shown(stored.id), match.kind, line, match.preview, shown(stored.path), stored.place)

    def remove(self, purge: Callable[[Sequence[str]], PurgeResult]) -> SecretsRemoved:
        """Remove what holds a secret; `purge` removes entries for good.

        Entries are removed with all their versions. A file's chunks are removed, and come back redacted when it is
        indexed again. A collection goes when its name or root holds the secret; else the pattern or the context does.
        Caches of the kind are emptied.
        """
        found = [stored for stored in self._texts() if self._redactor.find(stored.text)]
        entries = list(dict.fromkeys(one.id for one in found if one.place in _OF_ENTRIES and not one.document))
        documents = list(dict.fromkeys(one.document for one in found if one.document))
        queries = [one.text for one in found if one.place == "query"]
        kinds = list(dict.fromkeys(one.id for one in found if one.place == "cache"))
        if queries:
            self._store.entries.forget_queries(queries)
        if kinds:
            self._store.caches.clear(kinds)
        if documents:
            self._store.files.apply([], documents)
        collections = [one.id for one in found if one.place == "collection"]
        for name in collections:
            self._clean_collection(name)
        # Also without entries: what was deleted otherwise leaves the file's free pages by it.
        purged = purge(entries) if entries else self._purge_nothing()
        return SecretsRemoved(
            entries=purged.records,
            files=len(documents),
            collections=len(collections),
            queries=len(queries),
            caches=len(kinds),
            erased=purged.erased,
            notes=purged.notes,
        )

    def _purge_nothing(self) -> PurgeResult:
        if self._has_entries:
            return self._store.entries.purge([])
        return PurgeResult(erased=False, notes=("the service decides when deleted texts leave its disks",))

    @property
    def _has_entries(self) -> bool:
        return "entries" in self._store.capabilities

    def _clean_collection(self, name: str) -> None:
        collection = next(one for one in self._store.files.collections() if one.name == name)
        if self._redactor.find(collection.name) or self._redactor.find(collection.root):
            self._store.files.remove_collection(name)
            return
        clean = tuple(pattern for pattern in collection.exclude if not self._redactor.find(pattern))
        self._store.files.put_collection(
            replace(
                collection,
                exclude=clean,
                context=replace(self._redactor, mode="redact").redact_text(collection.context),
            )
        )

    def _texts(self) -> Iterator[_StoredText]:
        if self._has_entries:
            with self._store.entries.export_snapshot() as snapshot:
                for row in snapshot.rows:
                    yield from _texts_of_entry(row)
        for collection in self._store.files.collections():
            names = "\n".join((collection.name, collection.root, *collection.exclude, collection.context))
            yield _StoredText("collection", collection.name, names)
            for document in self._store.files.documents(collection.name).values():
                yield _StoredText("document", document.id, _names(document), document.path, document=document.id)
                for chunk in self._store.files.chunks(document.id):
                    first = chunk.first_line or 1
                    yield _StoredText("text", chunk.id, chunk.text, document.path, first, document.id)
                    yield _StoredText("properties", chunk.id, _properties(chunk), document.path, document=document.id)
        for query in self._store.entries.logged_queries() if self._has_entries else ():
            yield _StoredText("query", "", query)
        if "caches" in self._store.capabilities:
            for kind, key, value in self._store.caches.items():
                yield _StoredText("cache", kind, f"{key}\n{value.decode(errors='replace')}")


def _texts_of_entry(row: ExportRow) -> Iterator[_StoredText]:
    """The texts of an entry and of its former versions; what did not change is given once."""
    record = row.record
    yield _StoredText("text", record.id, record.text, first_line=1)
    yield _StoredText("properties", record.id, _properties(record))
    seen = {record.text, _properties(record)}
    for change in row.history:
        texts = [change.reason, change.by]
        for state in (change.before, change.after):
            texts += (state.text, _properties(state)) if state is not None else ()
        for text in texts:
            if text and text not in seen:
                seen.add(text)
                yield _StoredText("history", record.id, text)


def _properties(record: Record) -> str:
    """Everything of a record but its text, one property a line; a summary that is part of the text is left out."""
    summary = "" if record.summary in record.text else record.summary
    texts = (record.title, summary, record.context, record.source, record.agent, *record.tags, *record.entities)
    return "\n".join((*texts, json.dumps(dict(record.fields), ensure_ascii=False)))


def _names(document: Document) -> str:
    return "\n".join((document.path, document.title, *document.tags, *document.links, *document.fields))
