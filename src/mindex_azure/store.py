"""The engine for indexed files in the cloud: one index of an Azure AI Search service."""

from pathlib import Path
from typing import NoReturn

from mindex.ids import short_hash
from mindex.store.base import GROUPS, unsupported
from mindex.store.engine_parts import SqliteStore, make_private_folder
from mindex.user_folders import cache_folder
from mindex_azure.address import Address, parse_address
from mindex_azure.connection import DEFAULT_WAIT
from mindex_azure.engine import AzureEngine
from mindex_azure.files import AzureFiles
from mindex_azure.maintenance import AzureMaintenance
from mindex_azure.retrieval import AzureRetrieval
from mindex_azure.vector_store import AzureVectorStore


class AzureStore:
    """Implements `mindex.store.base.Store`, but for entries: what is not indexed from files raises UnsupportedError."""

    capabilities = GROUPS - {"entries", "tokens", "sync"}
    folder: Path | None = None
    read_only = False

    def __init__(self, url: str, *, wait: float = DEFAULT_WAIT, cache_rows: int) -> None:
        """`wait` bounds how long a request is tried and a write may take to show, `cache_rows` each kind of cache."""
        address = parse_address(url)
        self._engine = engine = AzureEngine(address, wait=wait)
        try:
            self._local = _open_local_caches(address, cache_rows)
        except BaseException:
            engine.close()
            raise
        self.files = AzureFiles(engine, self._local)
        self.retrieval = AzureRetrieval(engine)
        self.vectors = AzureVectorStore(engine)
        self.caches = self._local.caches
        self.maintenance = AzureMaintenance(engine, self._local)

    @property
    def entries(self) -> NoReturn:
        raise unsupported("Azure AI Search", "entries")

    @property
    def tokens(self) -> NoReturn:
        raise unsupported("Azure AI Search", "tokens")

    @property
    def sync(self) -> NoReturn:
        raise unsupported("Azure AI Search", "sync")

    def settle(self) -> None:
        self._engine.connection.settle()
        self._local.settle()

    def close(self) -> None:
        self._local.close()
        self._engine.close()


def _open_local_caches(address: Address, rows: int) -> SqliteStore:
    """The store whose caches serve an index, a SQLite file of this machine; `rows` bounds each kind, 0 stores nothing.

    A round trip to the service costs more than most cached results do, and they can all be made again.
    """
    folder = cache_folder() / "azure"
    make_private_folder(folder)
    return SqliteStore(folder / f"{short_hash(address.endpoint, address.index)}.db", cache_rows=rows)
