"""The watcher: keeps collections up to date while files change.

An event only triggers a scan: what happened is read from the files themselves, as when a folder is indexed. So atomic
saves, renames and branch switches need no special case, and a lost event only delays the change until the next scan.
"""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from watchfiles import Change
from watchfiles import watch as watch_files

from mindex.datatypes import Collection
from mindex.errors import MindexError
from mindex.files.collections import root_problem
from mindex.files.file_scan import SUFFIXES, ScannedFile, scan
from mindex.files.ignore_rules import IGNORE_FILES
from mindex.project_file import PROJECT_FILE

logger = logging.getLogger(__name__)

# Changes are indexed when there was none for this long: a file that is still being written is left alone …
DEBOUNCE_MS = 500
# … but a stream of changes delays it no longer than this.
_LONGEST_DEBOUNCE_MS = 5_000
# Network drives send no events, and some are lost when there are many: everything is scanned now and then.
RECONCILE_SECONDS = 300.0
_TICK_MS = 1_000

Refresh = Callable[[Sequence[Collection]], None]


def watch(
    collections: Callable[[], Sequence[Collection]],
    refresh: Refresh,
    stop: threading.Event,
    *,
    exclude: Sequence[str] = (),
    poll: bool = False,
    reconcile: float = RECONCILE_SECONDS,
) -> None:
    """Call `refresh` with the collections in which something may have changed, until `stop` is set.

    A root that is missing stays indexed as it was, and is watched again when it returns. Without native events (some
    network and container file systems) the files are polled, except those that `exclude` names. A refresh that fails
    (the database is locked for long, a folder is deleted) is logged and repeated.
    """
    while not stop.is_set():
        try:
            watched = _existing(collections())
            refresh(list(watched))
            batches = _polled_changes(watched, exclude, stop) if poll or not watched else _native_events(watched, stop)
            _watch_until_due(watched, collections, refresh, batches, reconcile)
        except FileNotFoundError:  # a root was deleted a moment ago
            stop.wait(_TICK_MS / 1000)
        except MindexError as error:
            logger.warning("the last changes are not indexed yet: %s", error)
            stop.wait(_TICK_MS / 1000)
        except OSError as error:
            if poll:
                raise
            logger.warning("native file events are not available (%s); polling instead", error)
            poll = True


def _watch_until_due(
    watched: dict[Collection, tuple[int, int]],
    collections: Callable[[], Sequence[Collection]],
    refresh: Refresh,
    batches: Iterator[list[str]],
    reconcile: float,
) -> None:
    """Refresh what changes in one set of folders; return when the set changed or all of it is due for a scan."""
    due = time.monotonic() + reconcile
    # An event of a root itself: it was deleted or replaced, and the watched folder is no longer the one on disk. The
    # new folder may have the inode of the old one.
    roots = {collection.root for collection in watched}
    first = True  # what changed between the last scan and the first event was seen by neither
    for paths in batches:
        if _existing(collections()) != watched or time.monotonic() > due or not roots.isdisjoint(paths):
            return
        touched = [c for c in watched if first or any(Path(path).is_relative_to(c.root) for path in paths)]
        first = False
        if touched:
            refresh(touched)


def _native_events(watched: Iterable[Collection], stop: threading.Event) -> Iterator[list[str]]:
    """Yield the paths that the system reports as changed, in batches; an empty batch every second."""
    batches = watch_files(
        *(collection.root for collection in watched),
        watch_filter=None,  # filtered below: a batch of other files still counts as a tick
        step=DEBOUNCE_MS,
        debounce=_LONGEST_DEBOUNCE_MS,
        rust_timeout=_TICK_MS,
        yield_on_timeout=True,
        stop_event=stop,
        force_polling=False,
        ignore_permission_denied=True,
    )
    for batch in batches:
        yield [path for change, path in batch if _affects_index(change, path)]


def _polled_changes(
    watched: Iterable[Collection], exclude: Sequence[str], stop: threading.Event
) -> Iterator[list[str]]:
    """Yield the same by comparing scans; at most a tenth of the time is spent on scanning."""
    before = _snapshot(watched, exclude)
    spent = 0.0
    while not stop.wait(max(_TICK_MS / 1000, 10 * spent)):
        started = time.monotonic()
        now = _snapshot(watched, exclude)
        spent = time.monotonic() - started
        yield [path for path in {**before, **now} if before.get(path) != now.get(path)]
        before = now


def _snapshot(collections: Iterable[Collection], exclude: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return size and time in nanoseconds of every file that would be indexed: a second may hold two versions."""
    return {
        found.location: (found.size, found.mtime_ns)
        for collection in collections
        for found in scan(Path(collection.root), exclude=(*exclude, *collection.exclude), max_bytes=sys.maxsize)
        if isinstance(found, ScannedFile)
    }


def _affects_index(change: Change, path: str) -> bool:
    """Return whether it is a file to index, an ignore or project file, a folder, or deleted, as a folder may be."""
    return (
        path.lower().endswith((*SUFFIXES, *IGNORE_FILES, PROJECT_FILE))
        or change == Change.deleted
        or Path(path).is_dir()
    )


def _existing(collections: Sequence[Collection]) -> dict[Collection, tuple[int, int]]:
    """Return the collections whose root can be read, with device and inode: a folder made again is another one."""
    found = {}
    for collection in collections:
        try:
            if root_problem(collection):
                continue
            status = Path(collection.root).stat()
        except OSError:
            continue
        found[Collection(collection.name, collection.root, collection.exclude)] = (status.st_dev, status.st_ino)
    return found
