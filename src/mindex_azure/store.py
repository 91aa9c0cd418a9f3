"""The engine for indexed files in the cloud: one index of an Azure AI Search service."""

from pathlib import Path
from typing import NoReturn

from mindex.store.base import GROUPS, unsupported
from mindex_azure.address import parse_address
from mindex_azure.caches import open_local_caches
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
            self._local = open_local_caches(address, cache_rows)
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
