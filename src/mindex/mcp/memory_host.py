"""What a server keeps while it runs: the memory, opened when first needed, and the work behind its back."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from mindex.config import load_settings
from mindex.errors import EmbeddingError, ForbiddenPathError, ForeignDatabaseError, MindexError
from mindex.memory import Memory
from mindex.model import Collection, Progress

logger = logging.getLogger(__name__)

_JOIN_SECONDS = 3.0
# How often it is looked whether the model was changed, which is cheap, and whether something has no vector.
_FOLLOW_SECONDS = 3.0
_LOOK_SECONDS = 60.0
_BATCH = 16


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asked for."""

    db: str | None = None
    seed_db: str | None = None  # `--database-path`: where a seed's own database may stand already
    agent: str | None = None
    root: Path = field(default_factory=Path.cwd)
    source: Path | None = None
    exclude: tuple[str, ...] = ()
    build: Path | None = None
    watch: bool = False
    settings: Mapping[str, object] = field(default_factory=dict)


class _Stopped(Exception):
    """The server goes; what is indexed so far stays."""


class MemoryHost:
    """One memory for all requests of a server. Nothing costly happens before `start` or the first request."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._opening = threading.Lock()
        self._memory: Memory | None = None
        self._source: Collection | None = None
        self._stop = threading.Event()
        self._started = False
        self._threads: list[threading.Thread] = []
        # Whoever wants a folder watched wants it indexed first.
        self._first = options.build or (options.source if options.watch else None)
        self._building = "indexing: starting" if self._first else ""

    # ── the memory ────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def memory(self) -> Memory:
        """The memory; opened by whoever comes first, and tried again by the next one when that failed."""
        with self._opening:
            if self._memory is None:
                memory = self._open()
                try:
                    if self.options.source is not None:
                        self._source = memory.collections.add(self.options.source, exclude=self.options.exclude)
                except MindexError:
                    memory.close()
                    raise
                self._memory = memory
            return self._memory

    def peek(self, seconds: float) -> Memory | None:
        """The memory, if it opens within so many seconds: a handshake does not wait for another process's lock."""
        thread = threading.Thread(target=self._try_to_open, name="mindex-open", daemon=True)
        thread.start()
        thread.join(seconds)
        return None if thread.is_alive() else self._memory

    def _try_to_open(self) -> None:
        with contextlib.suppress(MindexError):  # whoever needs it is told why
            _ = self.memory

    @property
    def source(self) -> Collection | None:
        """The collection of `--source-path`: a dialect of one folder sees nothing else."""
        _ = self.memory
        return self._source

    def _open(self) -> Memory:
        seed = self.options.seed_db
        if seed is None:
            return self._open_at(self.options.db)
        try:
            return self._open_at(seed)
        except ForeignDatabaseError as error:
            ours = Path(seed).with_suffix(".mindex.db")
            _tell(f"{error.message}; using {ours}")
            return self._open_at(str(ours))

    def _open_at(self, db: str | None) -> Memory:
        settings = load_settings({**self.options.settings, "db": db, "agent": self.options.agent})
        for note in settings.notes:
            _tell(note)
        memory = Memory(settings=settings, query_wait=settings.number("embedding.wait"))
        memory.embedding_queue.in_background = True
        return memory

    # ── behind its back ───────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Load the model, clean up, build the index and watch the folders, each in a thread. Once."""
        if self._started or self._stop.is_set():
            return
        self._started = True
        self._spawn("mindex-model", self._keep_vectors)
        self._spawn("mindex-tidy", self._tidy)
        self._spawn("mindex-files", self._keep_files)

    def _spawn(self, name: str, work: Callable[[], None]) -> None:
        def run() -> None:
            try:
                work()
            except _Stopped:
                pass
            except MindexError as error:
                _tell(str(error))
            except Exception:
                if not self._stop.is_set():
                    logger.exception("%s failed", name)

        thread = threading.Thread(target=run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _keep_vectors(self) -> None:
        """Load the model, and again another one when it is changed; give vectors to what has none.

        Looked for at the start and then now and then: a model that was down may have come back, and another process
        may have left something for whoever has time.
        """
        if self.memory.models.embedder is None:
            return
        said, looked = "", 0.0
        while True:
            try:
                self.memory.models.load()
                if not looked or monotonic() - looked > _LOOK_SECONDS:
                    self._backfill()
                    looked = monotonic()
                said = ""
            except EmbeddingError as error:  # every answer says so too, in its own words
                if str(error) != said:
                    said = str(error)
                    _tell(said)
                if self._stop.wait(_LOOK_SECONDS):
                    return
            if self._stop.wait(_FOLLOW_SECONDS):
                return

    def _backfill(self) -> None:
        """A few at a time: whoever has something more urgent to embed comes in between."""
        memory = self.memory
        while not (self._stop.is_set() or memory.embedding_queue.stopped) and memory.embedding.status().pending:
            embedded, _ = memory.maintenance.backfill(batch=_BATCH, limit=_BATCH)
            if not embedded:
                return

    def _tidy(self) -> None:
        self.memory.maintenance.purge_expired()

    def _keep_files(self) -> None:
        if self._first is not None:
            try:
                self.memory.index(self._first, exclude=self.options.exclude, report=self._report)
                self._building = ""
            except MindexError as error:
                self._building = f"indexing {self._first} failed: {error}"
                raise
        workspace = self._workspace()
        if self.options.watch:
            self.memory.watch(self._stop)
        elif workspace is not None:
            self.memory.watch(self._stop, only=workspace.name)

    def _workspace(self) -> Collection | None:
        try:
            memory = self.memory
        except MindexError:  # whoever loads the model says so
            return None
        try:
            return memory.collections.workspace()
        except MindexError as error:  # other folders are watched all the same
            _tell(str(error))
            return None

    def _report(self, progress: Progress) -> None:
        if self._stop.is_set():
            raise _Stopped
        what = {
            "chunk": "indexing: {} of {} files",
            "embed": "embedding: {} of {} passages",
            "context": "placing {} of {} passages in their documents",
        }
        if progress.stage in what:
            self._building = what[progress.stage].format(progress.done, progress.total)

    def notes(self) -> tuple[str, ...]:
        """What every answer should say beside its content: how far the index is that is being built."""
        return (self._building,) if self._building else ()

    def close(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)
        if self._memory is not None and not any(thread.is_alive() for thread in self._threads):
            self._memory.close()

    # ── what may be indexed ───────────────────────────────────────────────────────────────────────────────────

    def folder(self, path: str) -> Path:
        """The folder a caller means by a collection's name or a path, if this server may index it."""
        collections = self.memory.collections.list()
        for collection in collections:
            if path in (collection.name, collection.root):
                return Path(collection.root)
        root = self.options.root.resolve()
        try:
            folder = (root / Path(path).expanduser()).resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise ForbiddenPathError(f"{path!r} is not a usable path ({error})", "name a folder") from None
        if folder.is_relative_to(root) or str(folder) in {collection.root for collection in collections}:
            return folder
        raise ForbiddenPathError(
            f"{path} lies outside {root}, below which this server may index",
            f"ask the user to run `mindex index {path}`",
        )


def _tell(note: str) -> None:
    """A line for whoever reads the server's log; stdout belongs to the protocol."""
    sys.stderr.write(f"note: {note}\n")
    sys.stderr.flush()
