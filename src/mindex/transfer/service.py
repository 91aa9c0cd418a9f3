"""Export, import and copy as a service."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import IO

from mindex.datatypes import Report
from mindex.datatypes.transfer import CopyReport, ExportReport, Format, ImportReport
from mindex.embedding.queue import EmbeddingQueue
from mindex.errors import MindexError, NotFoundError, UsageError
from mindex.redaction.redactor import Redactor
from mindex.store.base import Store
from mindex.store.open import open_store
from mindex.temporary_files import temporary_folder
from mindex.transfer.export import export
from mindex.transfer.import_rows import import_rows
from mindex.transfer.imported_rows import AgentMapping
from mindex.transfer.importer_base import detect_importer, load_importer


class Transfer:
    """`memory.transfer`: export, import and copy. A copy includes indexed files."""

    def __init__(self, store: Store, redactor: Redactor, queue: EmbeddingQueue, default_agent: str) -> None:
        self._store = store
        self._redactor = redactor
        self._queue = queue
        self._default_agent = default_agent

    def export(
        self,
        target: str | Path | IO[bytes],
        *,
        format: Format = "jsonl",  # noqa: A002 - the option's name
        agent: str = "*",
        vectors: bool = False,
        report: Report | None = None,
    ) -> ExportReport:
        """Export the entries of one agent or of all, as JSONL (all but the access log) or as a folder of markdown.

        Raises UsageError for a folder as the target of JSONL, also for a path that ends in a slash.
        """
        place = Path(target).expanduser() if isinstance(target, str) else target
        if format == "jsonl" and isinstance(place, Path) and (place.is_dir() or str(target).endswith(("/", os.sep))):
            hint = f"name a file such as {place / 'mindex.jsonl'}, or write a folder with --format markdown"
            raise UsageError(f"{target} is a folder, and jsonl is one file", hint)
        return export(self._store, place, format, agent=agent, vectors=vectors, report=report)

    def copy(self, target: str, *, dry_run: bool = False, report: Report | None = None) -> CopyReport:
        """Copy everything, files and vectors included, to another database: a file or a URL.

        Existing rows are not copied again, so an interrupted copy resumes. Raises ConflictError if the target has other
        rows.
        """
        from mindex.transfer.copy_store import copy_store  # only a copy needs it

        name = self._store.maintenance.status().location if "maintenance" in self._store.capabilities else "the source"
        with _target(target, creates=not dry_run) as store:
            return copy_store(self._store, store, names=(name, target), dry_run=dry_run, report=report)

    def import_(
        self,
        path: str | Path,
        *,
        source: str = "",
        agent: str = "",
        agents: Mapping[str, str] | None = None,
        dry_run: bool = False,
        embed: bool = True,
        report: Report | None = None,
    ) -> ImportReport:
        """Import an export, or another program's memory; a second import adds nothing.

        `source` names the format if it cannot be detected. `agent` receives all entries; `agents` imports the entries
        of one agent as those of another.
        """
        place = Path(path).expanduser()
        if not place.exists():
            raise NotFoundError(f"there is no file {place}", "check the path")
        if not (place.is_file() or place.is_dir()):  # to read a pipe would wait
            raise UsageError(f"{place} is not a file or folder", "name the file of an export, or a database")
        if not os.access(place, os.R_OK):
            raise MindexError(f"cannot read {place}", "check its permissions")
        imported = import_rows(
            self._store,
            place,
            load_importer(source) if source else detect_importer(place),
            agents=AgentMapping(agent, agents or {}, self._default_agent),
            redactor=self._redactor,
            by=self._default_agent,
            dry_run=dry_run,
            report=report,
        )
        if imported.added and embed and not dry_run:
            if self._queue.in_background:  # in a server
                self._queue.embed_all()
            else:
                self._queue.backfill(report=report)  # a model that fails is not an error
        return imported


@contextmanager
def _target(database: str, *, creates: bool) -> Iterator[Store]:
    """The store that a copy goes to; an empty one in its place where it is not there and is not to be made."""
    with ExitStack() as stack:
        try:
            store = open_store(database, creates=creates)
        except NotFoundError:
            folder = stack.enter_context(temporary_folder("mindex-copy"))
            store = open_store(folder / "memory.db")
        yield stack.enter_context(closing(store))
