"""The engine for indexed files in the cloud: one index of an Azure AI Search service."""

from mindex.errors import ConfigError
from mindex.store.base import Engine, OpenOptions, Store

MINDEX_INTERFACE = 1


def open_index(url: str, options: OpenOptions) -> Store:
    """Open the index of a URL, which is made if missing; accesses of files are not logged.

    Raises ConfigError without Azure's packages.
    """
    try:
        from mindex_azure.store import AzureStore  # its client is installed only on request
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("azure", "azure_core"):
            raise
        raise ConfigError("Azure AI Search needs two more packages", "pip install 'mindex[azure]'") from None
    return AzureStore(url, cache_rows=options.cache_rows)


ENGINE = Engine(open_index)
