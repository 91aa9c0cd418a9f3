"""`ScopedStore`: one store as one principal may see and change it."""

from functools import cached_property
from pathlib import Path

from mindex.datatypes.access_tokens import Principal
from mindex.errors import AccessDeniedError
from mindex.store.base import Store, SyncStore, TokenStore
from mindex.store.scoped.entries import ScopedEntries
from mindex.store.scoped.files import ScopedFiles
from mindex.store.scoped.retrieval import ScopedRetrieval
from mindex.store.scoped.rules import AccessRules
from mindex.store.scoped.upkeep import ScopedCaches, ScopedMaintenance, ScopedVectors


class ScopedStore:
    """Implements `mindex.store.base.Store`. Records of other agents, and files of other collections, do not exist here.

    The wall is here and not in the services or tools, so that none of them can forget it. Closing it closes nothing:
    the store belongs to the server.
    """

    def __init__(self, store: Store, principal: Principal) -> None:
        self._store = store
        self._principal = principal
        self._rules = AccessRules(store, principal)
        self.capabilities = store.capabilities - {"tokens", "sync"}

    # Made when first used: an engine need not serve all of them.

    @cached_property
    def files(self) -> ScopedFiles:
        return ScopedFiles(self._rules, self._store.files)

    @cached_property
    def entries(self) -> ScopedEntries:
        return ScopedEntries(self._rules, self._store.entries)

    @cached_property
    def retrieval(self) -> ScopedRetrieval:
        return ScopedRetrieval(self._rules, self._store.retrieval)

    @cached_property
    def vectors(self) -> ScopedVectors:
        return ScopedVectors(self._rules, self._store.vectors)

    @cached_property
    def caches(self) -> ScopedCaches:
        return ScopedCaches(self._rules, self._store.caches)

    @cached_property
    def maintenance(self) -> ScopedMaintenance:
        return ScopedMaintenance(self._rules, self._store.maintenance)

    @property
    def tokens(self) -> TokenStore:
        raise AccessDeniedError("a token cannot manage tokens", "ask the server's owner to run `mindex token`")

    @property
    def sync(self) -> SyncStore:
        raise AccessDeniedError("a token cannot sync", "ask the server's owner to run `mindex sync`")

    @property
    def read_only(self) -> bool:
        return self._store.read_only or self._principal.rights != "write"

    @property
    def folder(self) -> Path | None:
        return self._store.folder

    def settle(self) -> None:
        self._store.settle()

    def close(self) -> None:
        """Do nothing: other principals also use the store."""
