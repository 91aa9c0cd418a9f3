"""`BackgroundWork`: the threads of a server that load the model, embed, purge, index and watch."""

import logging
import threading
from collections.abc import Callable
from time import monotonic

from mindex.datatypes import Collection, Progress
from mindex.errors import EmbeddingError, MindexError
from mindex.hooks.recall_socket import RecallSocket
from mindex.mcp.server_options import ServerOptions
from mindex.mcp.stderr_log import log_note
from mindex.memory import Memory

logger = logging.getLogger(__name__)

_JOIN_SECONDS = 3.0
# How often to check whether the model was changed, which is cheap, and whether a record has no vector.
_MODEL_CHECK_SECONDS = 3.0
_BACKFILL_SECONDS = 60.0
_BATCH = 16
_PROGRESS_NOTES = {
    "chunk": "indexing: {} of {} files",
    "embed": "embedding: {} of {} passages",
    "context": "placing {} of {} passages in their documents",
}


class _Stopped(Exception):
    """The server stops; what is indexed so far stays."""


class BackgroundWork:
    """The threads of one server. `memory` opens the memory, or raises MindexError."""

    def __init__(self, options: ServerOptions, memory: Callable[[], Memory]) -> None:
        self._options = options
        self._memory = memory
        self._stop = threading.Event()
        self._starting = threading.Lock()
        self._started = False
        self._threads: list[threading.Thread] = []
        self._recall_socket = RecallSocket(memory)
        # A folder that is watched is indexed first.
        self._folder = options.build or (options.source if options.watch else None)
        self._index_note = "indexing: starting" if self._folder else ""
        self._index_done = threading.Event()
        self._is_first_index: bool | None = None  # None: not known yet

    def start(self) -> None:
        """Start the threads. Does nothing the second time."""
        with self._starting:
            if self._started or self._stop.is_set():
                return
            self._started = True
        self._spawn("mindex-tidy", lambda: self._memory().maintenance.purge_expired())
        self._spawn("mindex-files", self._index_and_watch)
        self._spawn("mindex-captured", self._extract_facts)
        self._spawn("mindex-hooks", self._recall_socket.open)

    def embed(self) -> None:
        """Load the model and embed what has no vector, from now on: called when something first needs the model."""
        if not self._stop.is_set():
            self._spawn("mindex-model", self._load_model_and_embed)

    def stop(self) -> bool:
        """Stop the threads. Returns False if one of them still runs after a few seconds."""
        self._stop.set()
        self._index_done.set()
        self._recall_socket.close()
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)
        return not any(thread.is_alive() for thread in self._threads)

    def notes(self) -> tuple[str, ...]:
        """How far the index is that is being built; empty once it is complete."""
        return (self._index_note,) if self._index_note else ()

    def wait_for_first_index(self, seconds: float) -> bool:
        """Wait until the folder is indexed, if it never was before. Returns whether it is, or was."""
        if self._folder is None or self._index_done.is_set() or not self._first_index():
            return True
        self.start()
        return self._index_done.wait(seconds)

    def _first_index(self) -> bool:
        """Whether the folder was not indexed when this server started."""
        if self._is_first_index is None and self._folder is not None:
            root = str(self._folder.resolve())
            known = [one for one in self._memory().collections.list() if one.root == root]
            self._is_first_index = not any(one.indexed_at for one in known)
        return bool(self._is_first_index)

    def _spawn(self, name: str, work: Callable[[], object]) -> None:
        def run() -> None:
            try:
                work()
            except _Stopped:
                pass
            except MindexError as error:
                log_note(str(error))
            except Exception:
                if not self._stop.is_set():
                    logger.exception("%s failed", name)

        thread = threading.Thread(target=run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _load_model_and_embed(self) -> None:
        """Load the model, and another one when it is changed; embed what has no vector.

        Repeated now and then: a model that was down may be up again, and another process may have left records
        without vectors.
        """
        if self._memory().models.embedder is None:
            return
        logged, next_backfill = "", monotonic() + self._options.backfill_delay
        while True:
            try:
                self._memory().models.load()
                if monotonic() >= next_backfill:
                    self._backfill()
                    next_backfill = monotonic() + _BACKFILL_SECONDS
                logged = ""
            except EmbeddingError as error:  # every search result says so too, in its notes
                if str(error) != logged:
                    logged = str(error)
                    log_note(logged)
                if self._stop.wait(_BACKFILL_SECONDS):
                    return
            if self._stop.wait(_MODEL_CHECK_SECONDS):
                return

    def _backfill(self) -> None:
        """Embed a few records at a time, so that something more urgent can come in between."""
        memory = self._memory()
        while not (self._stop.is_set() or memory.embedding_queue.stopped) and memory.embedding.status().pending:
            embedded, _ = memory.maintenance.backfill(batch=_BATCH, limit=_BATCH)
            if not embedded:
                return

    def _extract_facts(self) -> None:
        """Have the language model, if one is configured, read what hooks store, now and then."""
        capture = self._memory().capture
        while capture.has_model and not self._stop.is_set():
            if not capture.extract_facts() and self._stop.wait(_BACKFILL_SECONDS):
                return

    def _index_and_watch(self) -> None:
        if self._folder is not None:
            try:
                self._first_index()
                self._memory().index(self._folder, exclude=self._options.exclude, report=self._report_progress)
                self._index_note = ""
            except MindexError as error:
                self._index_note = f"indexing {self._folder} failed: {error}"
                raise
            finally:
                self._index_done.set()
        workspace = self._workspace()
        if self._options.watch:
            self._memory().watch(self._stop)
        elif workspace is not None:
            self._memory().watch(self._stop, only=workspace.name)

    def _workspace(self) -> Collection | None:
        try:
            memory = self._memory()
        except MindexError:  # the thread that loads the model logs it
            return None
        try:
            return memory.collections.workspace()
        except MindexError as error:  # other folders are watched all the same
            log_note(str(error))
            return None

    def _report_progress(self, progress: Progress) -> None:
        if self._stop.is_set():
            raise _Stopped
        if progress.stage in _PROGRESS_NOTES:
            self._index_note = _PROGRESS_NOTES[progress.stage].format(progress.done, progress.total)
