"""What the groups of an Azure store share: the connection, the embedding spaces, and counts that are kept a moment."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeVar

from mindex.datatypes import Document, Filters, Model
from mindex.store.engine_parts import Former, SpaceRoles, describe_space, glob_matches, path_matches
from mindex.values import dataclass
from mindex_azure import odata, schema
from mindex_azure.address import Address
from mindex_azure.connection import Changes, Connection
from mindex_azure.documents import key_of, read_body

if TYPE_CHECKING:
    from mindex.datatypes import EmbedderSpec

T = TypeVar("T")

# Counts of other processes' writes may be so old, in seconds; those of this one are not.
_KEPT = 10.0
_MAX_KEPT = 2_000
_SPACES_KEY = key_of("spaces", "all")


@dataclass(slots=True)
class Spaces:
    """The embedding spaces as they are stored: which is which, and for each its description and its canary."""

    roles: SpaceRoles = field(default_factory=SpaceRoles)
    descriptions: dict[str, str] = field(default_factory=dict)
    canaries: dict[str, str] = field(default_factory=dict)


class AzureEngine:
    """One open index."""

    def __init__(self, address: Address, *, wait: float) -> None:
        self.connection = Connection(address, wait=wait)
        self._kept: dict[object, tuple[int, float, Any]] = {}
        self._space_fields: set[str] = set()
        try:
            schema.open_index(self.connection)
        except BaseException:
            self.connection.close()
            raise

    def close(self) -> None:
        self.connection.close()

    # ── scopes and counts ─────────────────────────────────────────────────────────────────────────────────────

    def scope(self, filters: Filters, what: str = odata.CHUNKS) -> str | None:
        """The condition for what filters admit, or None when that can be nothing."""
        return odata.scope(filters, lambda glob: [one.id for one in self.documents_of_glob(glob)], what)

    def documents_of_glob(self, glob: str, *, with_collection: bool = False) -> list[Document]:
        """The files whose path a glob matches; `with_collection`, also those whose collection and path it matches."""
        rows = self.connection.pages("doctype eq 'document'", ("body",))
        documents = (read_body(Document, row) for row in rows)
        return [
            one
            for one in documents
            if path_matches(glob, one.path) or (with_collection and glob_matches(glob, f"{one.collection}/{one.path}"))
        ]

    def kept(self, key: object, make: Callable[[], T]) -> T:
        """A value that is computed again after a write of this process, or after some seconds."""
        now, generation = time.monotonic(), self.connection.generation
        made_in, until, value = self._kept.get(key, (-1, 0.0, None))
        if made_in != generation or until < now:
            value = make()
            if len(self._kept) > _MAX_KEPT:
                self._kept.clear()
            self._kept[key] = generation, now + _KEPT, value
        return value  # type: ignore[no-any-return]

    def facet(self, where: str, name: str) -> Mapping[str, int]:
        """How many documents have each value of a field."""
        found = self.connection.search(where, top=0, facets=(f"{name},count:10000",)).facets.get(name, [])
        return {one["value"]: one["count"] for one in found}

    def documents_by_collection(self) -> Mapping[str, int]:
        return self.kept("documents", lambda: self.facet("doctype eq 'document'", "collection"))

    # ── spaces ────────────────────────────────────────────────────────────────────────────────────────────────

    def spaces(self) -> Spaces:
        row = self.connection.get(_SPACES_KEY)
        if row is None:
            return Spaces()
        stored = json.loads(row["body"])
        return Spaces(SpaceRoles(*stored["roles"]), stored["descriptions"], stored["canaries"])

    def put_spaces(self, spaces: Spaces) -> None:
        values = {
            "roles": [spaces.roles.active, spaces.roles.filling],
            "descriptions": spaces.descriptions,
            "canaries": spaces.canaries,
        }
        row = {"key": _SPACES_KEY, "doctype": "spaces", "body": json.dumps(values)}
        self.connection.write(Changes(uploads=[row]))

    def ensure_space_fields(self, model: Model) -> None:
        if model.fingerprint not in self._space_fields:
            schema.add_space_fields(self.connection, model)
            self._space_fields.add(model.fingerprint)


class AzureSpaceStatements:
    """Implements `SpaceStatements` on the spaces as they were read; `changed` says whether they must be stored."""

    def __init__(self, engine: AzureEngine, spaces: Spaces) -> None:
        self._engine = engine
        self._spaces = spaces
        self.changed = False

    def roles(self) -> SpaceRoles:
        return self._spaces.roles

    def set_roles(self, roles: SpaceRoles) -> None:
        self.changed |= roles != self._spaces.roles
        self._spaces.roles = roles

    def put_space(self, model: Model, embedder_spec: EmbedderSpec | None) -> None:
        known = self._spaces.descriptions.get(model.fingerprint)
        description = describe_space(model, embedder_spec)
        if known is None or (embedder_spec is not None and known != description):
            self._spaces.descriptions[model.fingerprint] = description
            self.changed = True

    def begin_filling(self, model: Model) -> None:
        """Nothing: vectors from an earlier time are as good as new ones."""

    def rename_space(self, *_: object) -> bool:
        """Never: the fields of an index are named after the space, and cannot be renamed."""
        return False

    def former(self) -> Former:
        return Former()

    def set_former(self, former: Former) -> None:
        """Nothing: no space holds vectors of two models."""

    def last_position(self, fingerprint: str) -> int:  # noqa: ARG002 - no record has a position
        return 0

    def lacks(self, new: Model, old: str) -> bool:
        space, other = schema.space_of(new.fingerprint), schema.space_of(old)
        where = odata.both(odata.CHUNKS, odata.has("spaces", other), f"not {odata.has('spaces', space)}")
        return self._engine.connection.count(where) > 0
