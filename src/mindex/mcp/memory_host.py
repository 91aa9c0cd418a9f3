"""`MemoryHost`: the one memory of a server, opened when first needed, and the folders that the server may index."""

import contextlib
import threading
from pathlib import Path
from shlex import quote

from mindex.config import Settings, load_settings
from mindex.datatypes import Collection
from mindex.datatypes.guidance import Guidance
from mindex.errors import AccessDeniedError, ForbiddenPathError, ForeignDatabaseError, MindexError, only_collections
from mindex.http_access.current_principal import current_principal, shown_error
from mindex.mcp.background_work import BackgroundWork
from mindex.mcp.server_options import ServerOptions
from mindex.mcp.stderr_log import log_note
from mindex.memory import Memory
from mindex.values import replace


class MemoryHost:
    """The memory for all requests of a server. Nothing costly happens before `start` or the first request."""

    def __init__(self, options: ServerOptions) -> None:
        self.options = options
        self.background = BackgroundWork(options, lambda: self.whole_memory)
        # Set where requests have tokens: none of them reaches the whole memory by mistake.
        self.requires_principal = False
        self._opening = threading.Lock()
        self._memory: Memory | None = None
        self._source: Collection | None = None

    @property
    def memory(self) -> Memory:
        """The memory for the current request, as its principal sees it. Raises AccessDeniedError if it has none."""
        principal = current_principal()
        if principal is not None:
            return self.whole_memory.acting_as(principal)
        if self.requires_principal:
            raise AccessDeniedError("this request has no token", "send one")
        return self.whole_memory

    @property
    def whole_memory(self) -> Memory:
        """The memory, opened by the first caller. An error leaves it closed, and the next caller tries again."""
        with self._opening:
            if self._memory is None:
                memory = self._open()
                try:
                    if self.options.source is not None:
                        self._source = memory.collections.add(self.options.source, exclude=self.options.exclude)
                except MindexError:
                    memory.close()
                    raise
                if self.options.build is not None:
                    # Now, so that the first search knows of the folder. Indexing in the background returns its error.
                    with contextlib.suppress(MindexError):
                        memory.collections.add(self.options.build, exclude=self.options.exclude)
                self._memory = memory
            return self._memory

    def peek(self, seconds: float, server_seconds: float) -> Memory | None:
        """The memory, if it opens within this number of seconds: a handshake does not wait for another process's lock.

        `server_seconds` is for a database on a server.
        """
        thread = threading.Thread(target=self._try_to_open, name="mindex-open", daemon=True)
        thread.start()
        thread.join(server_seconds if self._on_server() else seconds)
        return None if thread.is_alive() else self._memory

    def _on_server(self) -> bool:
        try:
            return "://" in self._settings(self.options.dialect_db or self.options.db).database
        except MindexError:
            return False

    def _try_to_open(self) -> None:
        with contextlib.suppress(MindexError):  # the first request that needs the memory returns the error
            _ = self.whole_memory

    @property
    def source(self) -> Collection | None:
        """The collection of `--source-path`, the only one that a dialect of one folder searches."""
        _ = self.whole_memory
        return self._source

    @property
    def settings(self) -> Settings:
        return self.whole_memory.settings

    def _open(self) -> Memory:
        """Open the memory; where the settings of a dialect name its program's own database, one beside that."""
        db = self.options.dialect_db
        settings = self._settings(db or self.options.db)
        for note in settings.notes:
            log_note(note)
        may_be_foreign = db is not None or settings.origin("db") in {one.name for one in self.options.foreign}
        data = self.options.data
        try:
            if data is None or str(data) == settings.database:
                return self._memory_with(settings)
            named = settings.database if settings.text("db") else ""
            return self._memory_with(settings, self._guidance_to(_import_command(data, named)))
        except ForeignDatabaseError as error:
            if not may_be_foreign:
                raise
            theirs = settings.database
            own = Path(theirs).with_suffix(".mindex.db")
            command = _import_command(Path(theirs), str(own))
            log_note(
                f"{error.message}; using {own}; the user can bring its entries over: {command} on the command line"
            )
            return self._memory_with(self._settings(str(own)), self._guidance_to(command))

    def _guidance_to(self, command: str) -> Guidance:
        """Return guidance by which the answers of an empty memory name an import: no client reads the log."""
        guidance = self.options.guidance
        bring = f"to bring over the entries of before, ask the user to run {command}"
        fill, add = (f"{words}; {bring}" for words in (guidance.fill, guidance.add))
        return replace(guidance, fill=fill, add=add)

    def _settings(self, db: str | None) -> Settings:
        flags = {**self.options.settings, "db": db, "agent": self.options.agent}
        return load_settings(flags, foreign=self.options.foreign)

    def _memory_with(self, settings: Settings, guidance: Guidance | None = None) -> Memory:
        if settings.text("db") and "://" not in settings.database and not Path(settings.database).exists():
            log_note(f"{settings.database} is new: this memory is empty")
        wait = settings.number("embedding.wait")
        memory = Memory(settings=settings, query_wait=wait, guidance=guidance or self.options.guidance)
        memory.embedding_queue.in_background = True
        memory.embedding.on_first_use(self.background.embed)
        return memory

    def start(self) -> None:
        self.background.start()

    def shown_error(self, error: MindexError) -> MindexError:
        """The error as the principal of the current request sees it."""
        return error if self._memory is None else shown_error(error, self._memory.settings.database)

    def error_text(self, error: MindexError) -> str:
        """The sentence of an error, for the principal of the current request."""
        return str(self.shown_error(error))

    def notes(self) -> tuple[str, ...]:
        """The notes of every result; they name folders, so a principal that sees a part of the files gets none."""
        principal = current_principal()
        return () if principal is not None and principal.collections else self.background.notes()

    def close(self) -> None:
        if self.background.stop() and self._memory is not None:
            self._memory.close()

    def folder(self, path: str) -> Path:
        """The folder of a collection's name or a path. Raises ForbiddenPathError if the server may not index it."""
        collections = self.memory.collections.list()
        for collection in collections:
            if path in (collection.name, collection.root):
                return Path(collection.root)
        principal = current_principal()
        if principal is not None and principal.collections:  # before anything depends on which folders there are
            raise only_collections(principal.collections)
        ask = f"ask the user to run `mindex index {path}`"
        if self.options.root is None:
            here = "this server was started in a home folder or above, and indexes only what is indexed already"
            raise ForbiddenPathError(here, f"{ask}, or to set --root")
        root = self.options.root.resolve()
        try:
            folder = (root / Path(path).expanduser()).resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise ForbiddenPathError(f"{path!r} is not a usable path ({error})", "name a folder") from None
        if folder.is_relative_to(root) or str(folder) in {collection.root for collection in collections}:
            return folder
        raise ForbiddenPathError(
            f"{path} is outside {root}; this server may index only below it",
            ask,
        )


def _import_command(data: Path, database: str) -> str:
    source = quote(str(data))
    return f"`mindex --db {quote(database)} import {source}`" if database else f"`mindex import {source}`"
