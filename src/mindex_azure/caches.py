"""Cached results of an Azure store: in a SQLite file of this machine.

A round trip to the service costs more than most cached results do, and they can all be made again.
"""

from mindex.ids import short_hash
from mindex.store.engine_parts import SqliteStore, make_private_folder
from mindex.user_folders import cache_folder
from mindex_azure.address import Address


def open_local_caches(address: Address, rows: int) -> SqliteStore:
    """The store whose caches serve an index; `rows` bounds each kind, 0 stores nothing."""
    folder = cache_folder() / "azure"
    make_private_folder(folder)
    return SqliteStore(folder / f"{short_hash(address.endpoint, address.index)}.db", cache_rows=rows)
