"""The daily log: a line in a file of the workspace for each new memory, for people to read."""

import errno
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from logging import getLogger
from pathlib import Path

from mindex.daily_log_format import LOG_FOLDER, is_line_of, local_day, log_header, log_line, log_name
from mindex.datatypes import Record
from mindex.errors import MindexError
from mindex.private_files import make_private_folder, open_private
from mindex.temporary_files import lock_within, replaced_file

# The source of memories that come from files: they are not written back into one.
_FILE_INDEX = "file-index"

# Longer than any line takes to write, shorter than a person waits for a log.
_LOCK_SECONDS = 2.0


class DailyLog:
    """The daily log of one workspace. Its methods raise OSError; the caller decides whether a failing log matters."""

    def __init__(self, workspace: Path) -> None:
        self._folder = workspace / LOG_FOLDER

    def append(self, record: Record) -> None:
        """Append a memory's line to the log of the day it was created; other kinds of records have none."""
        if record.kind != "memory" or record.source == _FILE_INDEX:
            return
        day = local_day(record.created_at)
        entry = f"{log_line(record)}\n"
        make_private_folder(self._folder)
        with self._locked(), open_private(self._folder / log_name(day), "ab+", buffering=0) as log:
            size = os.fstat(log.fileno()).st_size
            if size == 0:
                entry = log_header(day) + entry
            else:
                log.seek(-1, os.SEEK_END)
                if log.read(1) != b"\n":  # an editor may leave the last line without its end
                    entry = f"\n{entry}"
            data = entry.encode()
            if log.write(data) < len(data):
                log.truncate(size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def remove(self, record: Record) -> bool:
        """Remove the line of a memory, given as it was when it was added; return whether there was one."""
        if not self._folder.is_dir():
            return False
        day = local_day(record.created_at)
        # The process that wrote it may have run in another time zone, where it was another day.
        days = (day, day - timedelta(days=1), day + timedelta(days=1))
        with self._locked():
            return any(_drop_line(self._folder / log_name(day), record) for day in days)

    @contextmanager
    def without(self, records: Iterable[Record]) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Remove the lines of memories that the block purges; put them back if it fails with a MindexError.

        Yields how many had a line, and a note on each line that could not be removed.
        """
        removed: list[Record] = []
        notes = []
        for record in records:
            try:
                removed += [record] * self.remove(record)
            except OSError as error:
                getLogger(__name__).debug("the line of %s stays in the daily log: %s", record.id, error)
                notes.append(f"the line of {record.id} could not be removed from the daily log: {error}")
        try:
            yield len(removed), tuple(notes)
        except MindexError:
            for record in removed:
                with suppress(OSError):
                    self.append(record)
            raise

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes out, which could write a second header or append to a file that is being replaced.

        The folder is locked: it exists before the file and is never replaced. Windows has no such lock; there an
        append is still one write.
        """
        if sys.platform == "win32":
            yield
            return
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            if not lock_within(_LOCK_SECONDS, folder):
                raise TimeoutError(errno.ETIMEDOUT, "another process holds it")
            yield
        finally:
            os.close(folder)


def _drop_line(path: Path, record: Record) -> bool:
    if not path.is_file():
        return False
    lines = path.read_bytes().splitlines(keepends=True)
    texts = [line.decode("utf-8", "replace").rstrip("\r\n") for line in lines]
    matching = [number for number, text in enumerate(texts) if is_line_of(text, record)]
    if not matching:
        return False
    # One memory, one line: two agents may have added the same text within a second.
    exact = log_line(record)
    del lines[next((number for number in matching if texts[number] == exact), matching[0])]
    with replaced_file(path.resolve()) as file:
        file.write(b"".join(lines))
        shutil.copymode(path, file.name)
    return True
