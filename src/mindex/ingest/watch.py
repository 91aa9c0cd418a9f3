"""Keeps collections up to date while files change.

An event only says "look": what happened comes from the files themselves, by the same scan that indexes a folder. So
atomic saves, renames and branch switches need no care here, and a lost event costs only the time until the next look.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from watchfiles import Change
from watchfiles import watch as watch_files

from mindex.errors import MindexError
from mindex.ingest.file_scan import SUFFIXES, ScannedFile, scan
from mindex.ingest.ignore_rules import IGNORE_FILES
from mindex.model import Collection

logger = logging.getLogger(__name__)

# A file that is still being written is left alone until it has been quiet for this long …
QUIET_MS = 500
# … but a stream of changes does not put the look off for ever.
_LONGEST_MS = 5_000
# Network drives send no events, and storms lose some: whatever happens, everything is looked at now and then.
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

    A root that is missing is left as it was indexed, and taken up again when it returns. Without native events (some
    network and container file systems) the files are polled, except those that `exclude` names. A look that fails (a
    database that is locked for long, a folder that goes away meanwhile) is said and made again.
    """
    while not stop.is_set():
        try:
            watched = _present(collections())
            refresh(list(watched))
            batches = _polled(watched, exclude, stop) if poll or not watched else _native(watched, stop)
            _until_something_else(watched, collections, refresh, batches, reconcile)
        except FileNotFoundError:  # a root that was there a moment ago
            stop.wait(_TICK_MS / 1000)
        except MindexError as error:
            logger.warning("the last changes are not indexed yet: %s", error)
            stop.wait(_TICK_MS / 1000)
        except OSError as error:
            if poll:
                raise
            logger.warning("native file events are not available (%s); polling instead", error)
            poll = True


def _until_something_else(
    watched: dict[Collection, tuple[int, int]],
    collections: Callable[[], Sequence[Collection]],
    refresh: Refresh,
    batches: Iterator[list[str]],
    reconcile: float,
) -> None:
    """Watch one set of folders; return when another set should be watched or it is time to look at everything."""
    due = time.monotonic() + reconcile
    # An event of a root itself: it was deleted or replaced, and what was watched is no longer what is there. The new
    # folder may well have the old one's number.
    roots = {collection.root for collection in watched}
    blind = True  # what changed between the last look and the first event was seen by neither
    for paths in batches:
        if _present(collections()) != watched or time.monotonic() > due or not roots.isdisjoint(paths):
            return
        touched = [c for c in watched if blind or any(_is_below(path, c) for path in paths)]
        blind = False
        if touched:
            refresh(touched)


def _native(watched: Iterable[Collection], stop: threading.Event) -> Iterator[list[str]]:
    """Paths the system says have changed, batch by batch; an empty batch every second."""
    batches = watch_files(
        *(collection.root for collection in watched),
        watch_filter=None,  # filtered here instead: a batch of other files is still a tick
        step=QUIET_MS,
        debounce=_LONGEST_MS,
        rust_timeout=_TICK_MS,
        yield_on_timeout=True,
        stop_event=stop,
        force_polling=False,
        ignore_permission_denied=True,
    )
    for batch in batches:
        yield [path for change, path in batch if _matters(change, path)]


def _polled(watched: Iterable[Collection], exclude: Sequence[str], stop: threading.Event) -> Iterator[list[str]]:
    """The same without the system's help; at most a tenth of the time is spent on looking."""
    before = _snapshot(watched, exclude)
    spent = 0.0
    while not stop.wait(max(_TICK_MS / 1000, 10 * spent)):
        started = time.monotonic()
        now = _snapshot(watched, exclude)
        spent = time.monotonic() - started
        yield [path for path in {**before, **now} if before.get(path) != now.get(path)]
        before = now


def _snapshot(collections: Iterable[Collection], exclude: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Size and time of every file that would be indexed, to the nanosecond: a second may hold two versions."""
    return {
        found.location: (found.size, found.mtime_ns)
        for collection in collections
        for found in scan(Path(collection.root), exclude=(*exclude, *collection.exclude), max_bytes=sys.maxsize)
        if isinstance(found, ScannedFile)
    }


def _matters(change: Change, path: str) -> bool:
    """Files we index, the ignore files that decide which, and anything that vanished: it may have been a folder."""
    return path.lower().endswith((*SUFFIXES, *IGNORE_FILES)) or change == Change.deleted or Path(path).is_dir()


def _present(collections: Sequence[Collection]) -> dict[Collection, tuple[int, int]]:
    """The collections whose root is there, each with the folder's identity: one deleted and made anew is another."""
    found = {}
    for collection in collections:
        try:
            status = Path(collection.root).stat()
        except OSError:
            continue
        found[Collection(collection.name, collection.root, collection.exclude)] = (status.st_dev, status.st_ino)
    return found


def _is_below(path: str, collection: Collection) -> bool:
    return Path(collection.root) in (Path(path), *Path(path).parents)
