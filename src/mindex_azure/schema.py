"""The index behind an alias: its fields, its version, and the change to a newer one.

The alias has the name that a user gave, the index a name with the versions of schema and analyzer (`handbook-v1-2`). A
field's type cannot be changed, so another version is another index: it is filled from the old one, then the alias is
moved. Searches continue during the move. `mindex optimize` deletes the old index.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceModifiedError, ResourceNotFoundError
from azure.search.documents.indexes.models import SearchAlias, SearchIndex

from mindex.analyzer import ANALYZER_VERSION, COLUMN_WEIGHTS
from mindex.datatypes import Model, Record
from mindex.errors import SchemaError, StoreBusyError, StoreError
from mindex.ids import short_hash
from mindex_azure.connection import Changes, Connection, Row
from mindex_azure.documents import chunk_row, part_row, read_body
from mindex_azure.odata import WORD_FIELDS

SCHEMA_VERSION = 1
PROFILE = "columns"
_VERSIONED = re.compile(r"(?P<name>.+)-v(?P<schema>\d+)-(?P<analyzer>\d+)")
_VECTOR, _FLUENCY = "vector_", "fluency_"
_COPIED_AT_ONCE = 200
_MAX_TRIES = 5


# ── fields ────────────────────────────────────────────────────────────────────────────────────────────────────


def _field(name: str, type_: str, *uses: str, **more: Any) -> dict[str, Any]:
    """A field that is returned with a document, and otherwise serves only what is named."""
    flags = {flag: flag in uses for flag in ("key", "searchable", "filterable", "sortable", "facetable")}
    return {"name": name, "type": f"Edm.{type_}" if "(" not in type_ else type_, "retrievable": True, **flags, **more}


def _fields() -> list[dict[str, Any]]:
    texts = "Collection(Edm.String)"
    return [
        _field("key", "String", "key", "filterable", "sortable"),
        _field("doctype", "String", "filterable"),
        _field("stamp", "Int64", "filterable"),
        _field("id", "String", "filterable", "sortable"),
        _field("body", "String"),
        _field("document", "String", "filterable", "sortable"),
        _field("collection", "String", "filterable", "facetable"),
        _field("path", "String", "filterable", "sortable"),
        _field("path_ends", texts, "filterable"),
        _field("domain", "String", "filterable", "facetable"),
        _field("instruction", "Boolean"),
        _field("type", "String", "filterable", "facetable"),
        _field("position", "Int32", "sortable"),
        _field("created_at", "Int64", "filterable", "sortable"),
        _field("updated_at", "Int64", "sortable"),
        _field("has_context", "Boolean", "filterable"),
        _field("tags", texts, "filterable", "facetable"),
        _field("folded_tags", texts, "filterable"),
        _field("foreign_ids", texts, "filterable"),
        _field("length", "Int32", "filterable", "facetable"),
        # The tokens are finished: nothing but white space is to be seen by the service's analyzer.
        *(_field(name, "String", "searchable", analyzer="whitespace") for name in WORD_FIELDS),
        _field("spaces", texts, "filterable"),
        _field("part", "Int32", "sortable"),
        _field("parts", "Int32"),
    ]


def space_of(fingerprint: str) -> str:
    """The name under which a space's vectors are stored."""
    return short_hash(fingerprint)


def vector_field(space: str) -> str:
    return f"{_VECTOR}{space}"


def fluency_field(space: str) -> str:
    return f"{_FLUENCY}{space}"


def _space_fields(model: Model) -> list[dict[str, Any]]:
    space = space_of(model.fingerprint)
    vector = _field(
        vector_field(space),
        "Collection(Edm.Single)",
        "searchable",
        dimensions=model.dimensions,
        vectorSearchProfile="cosine",
    )
    return [vector, _field(fluency_field(space), "Double")]


def definition(name: str, more_fields: Iterable[Any] = ()) -> SearchIndex:
    """The whole definition of an index, with the fields of embedding spaces."""
    weights = {f"words_{column}": weight for column, weight in COLUMN_WEIGHTS.items()}
    return SearchIndex(
        {
            "name": name,
            "fields": [*_fields(), *more_fields],
            "scoringProfiles": [{"name": PROFILE, "text": {"weights": weights}}],
            "similarity": {"@odata.type": "#Microsoft.Azure.Search.BM25Similarity", "k1": 1.2, "b": 0.75},
            "vectorSearch": {
                "algorithms": [
                    {
                        "name": "hnsw",
                        "kind": "hnsw",
                        "hnswParameters": {"metric": "cosine", "m": 8, "efConstruction": 400, "efSearch": 500},
                    }
                ],
                "profiles": [{"name": "cosine", "algorithm": "hnsw"}],
            },
        }
    )


# ── the index behind the alias ────────────────────────────────────────────────────────────────────────────────


def current_name(alias: str) -> str:
    return f"{alias}-v{SCHEMA_VERSION}-{ANALYZER_VERSION}"


def open_index(connection: Connection) -> None:
    """Create index and alias if they are missing; move the alias to an index of this version if it is older.

    Raises SchemaError for a newer one.
    """
    alias = connection.address.index
    name = index_behind(connection)
    if name == current_name(alias):
        return
    if name:
        _require_older(connection, name)
        _fill_from(connection, name)
    else:
        _create(connection, definition(current_name(alias)))
    move = SearchAlias(name=alias, indexes=[current_name(alias)])
    connection.attempt(lambda: connection.indexes.create_or_update_alias(move))


def index_behind(connection: Connection) -> str:
    """The name of the alias's index; '' if there is no alias."""
    try:
        alias = connection.attempt(lambda: connection.indexes.get_alias(connection.address.index))
    except ResourceNotFoundError:
        return ""
    return alias.indexes[0]


def old_indexes(connection: Connection) -> list[str]:
    """The former indexes of the alias."""
    names = connection.attempt(lambda: list(connection.indexes.list_index_names()))
    current, alias = index_behind(connection), connection.address.index
    versioned = ((name, _VERSIONED.fullmatch(name)) for name in names)
    return [name for name, match in versioned if match and match["name"] == alias and name != current]


def _require_older(connection: Connection, name: str) -> None:
    match = _VERSIONED.fullmatch(name)
    if match is None:
        raise StoreError(
            f"{connection.address.place} is the alias of '{name}', which mindex did not make", "choose another name"
        )
    if (int(match["schema"]), int(match["analyzer"])) > (SCHEMA_VERSION, ANALYZER_VERSION):
        raise SchemaError(f"{connection.address.place} was made by a newer mindex", "upgrade mindex")


def _create(connection: Connection, index: SearchIndex) -> None:
    try:
        connection.attempt(lambda: connection.indexes.create_index(index))
    except StoreError as error:
        if not isinstance(error.__cause__, ResourceExistsError):  # else another process was faster
            raise


def _fill_from(connection: Connection, old_name: str) -> None:
    """Make an index of this version out of an older one; two processes that do so write the same."""
    old = Connection(replace(connection.address, index=old_name))
    new = Connection(replace(connection.address, index=current_name(connection.address.index)))
    try:
        stored = connection.attempt(lambda: connection.indexes.get_index(old_name))
        of_spaces = [field for field in stored.fields if field.name.startswith((_VECTOR, _FLUENCY))]
        _create(connection, definition(new.address.index, of_spaces))
        batch: list[Row] = []
        for row in _rows_anew(old):
            batch.append(row)
            if len(batch) == _COPIED_AT_ONCE:
                new.write(Changes(uploads=batch))
                batch = []
        new.write(Changes(uploads=batch))
        new.settle()
    finally:
        old.close()
        new.close()


def _rows_anew(old: Connection) -> Iterator[Row]:
    """The documents of an index as this version writes them; a chunk's parts follow it."""
    known = {field["name"] for field in _fields()}
    chunk: Row = {}
    for row in old.pages("", ("*",)):
        kept = {name: value for name, value in row.items() if name in known or name.startswith((_VECTOR, _FLUENCY))}
        of_vectors = {name: value for name, value in kept.items() if name.startswith((_VECTOR, _FLUENCY))}
        if row["doctype"] == "chunk":
            chunk = chunk_row(read_body(Record, row), row["position"])
            yield {**chunk, "spaces": row["spaces"], "parts": row["parts"], **of_vectors}
        elif row["doctype"] == "part":
            yield {**part_row(chunk, row["part"]), "spaces": row["spaces"], **of_vectors}
        else:
            yield kept


# ── spaces ────────────────────────────────────────────────────────────────────────────────────────────────────


def add_space_fields(connection: Connection, model: Model) -> None:
    """Let documents have vectors of a space. Raises StoreBusyError when other processes keep changing the index."""
    name = index_behind(connection)
    for _ in range(_MAX_TRIES):
        index = connection.attempt(lambda: connection.indexes.get_index(name))
        if any(field.name == vector_field(space_of(model.fingerprint)) for field in index.fields):
            return
        index["fields"] = [*index["fields"], *_space_fields(model)]
        try:
            connection.attempt(
                lambda index=index: connection.indexes.create_or_update_index(  # type: ignore[misc]
                    index, match_condition=MatchConditions.IfNotModified
                )
            )
            return
        except StoreError as error:
            cause = error.__cause__
            changed = isinstance(cause, ResourceModifiedError) or (
                isinstance(cause, HttpResponseError) and cause.status_code == 412
            )
            if not changed:
                raise
    raise StoreBusyError(f"other processes keep changing {connection.address.place}", "run the command again")
