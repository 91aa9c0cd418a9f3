"""A store: `shelf://NAME` is the database `NAME.db` in the folder `~/shelf`."""

from pathlib import Path

from mindex import UsageError
from mindex.extension import Engine, OpenOptions, Store, open_store

MINDEX_INTERFACE = 1


def open_shelf(url: str, options: OpenOptions) -> Store:
    name = url.partition("://")[2]
    if not name.isidentifier():
        raise UsageError(f"'{name}' is not the name of a database", "use letters and digits: shelf://NAME")
    return open_store(
        Path.home() / "shelf" / f"{name}.db",
        cache_rows=options.cache_rows,
        logs_access=options.logs_access,
        creates=options.creates,
    )


engine = Engine(open_shelf)
