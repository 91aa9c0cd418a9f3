"""A pool of connections that read one SQLite file. They never write, and each has its own snapshot."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from mindex.store.sqlite.errors import no_space
from mindex.store.sqlite.file_access import ALONE, FileConnection, open_to_read


class Readers:
    """`generation` counts the files that the path has named: connections to an earlier one are closed after use."""

    def __init__(self, path: Path, open_in_mode: Callable[[str], FileConnection], *, read_only: bool) -> None:
        self.generation = 0
        self._path = path
        self._open_in_mode = open_in_mode
        self._read_only = read_only
        self._idle: list[FileConnection] = []
        self._views: Sequence[str] = ()
        self._alone = 0  # connections that lock other processes out
        self._opening = threading.RLock()  # of these, and of connections that write
        self._lock = threading.Lock()
        self._closed = False

    @contextlib.contextmanager
    def borrow(self) -> Iterator[FileConnection]:
        """An idle connection, or a new one."""
        generation = self.generation  # before: a connection to a file that is replaced now is not kept
        connection = self._take_idle() or self._open()
        try:
            yield connection
        finally:
            self._give_back(connection, generation)

    @contextlib.contextmanager
    def borrow_idle(self) -> Iterator[FileConnection | None]:
        """An idle connection, if there is one."""
        generation, connection = self.generation, self._take_idle()
        try:
            yield connection
        finally:
            if connection is not None:
                self._give_back(connection, generation)

    @contextlib.contextmanager
    def none_alone(self) -> Iterator[None]:
        """Let a connection that writes be opened. Raises NoSpaceError while a reader locks other processes out.

        It would share that lock, and keep other processes out as long as it is open.
        """
        with self._opening:
            if self._alone:
                raise no_space(self._path)
            yield

    def _open(self) -> FileConnection:
        with self._opening:
            usual = "ro" if self._read_only else ALONE if self._alone else "rwc"
            connection = open_to_read(self._path, self._open_in_mode, usual=usual)
            self._alone += connection.locks_out_others
        if self._read_only:
            for view in self._views:
                connection.execute(view)
        return connection

    def _take_idle(self) -> FileConnection | None:
        with self._lock:
            idle = self._idle.pop() if self._idle else None
        if idle is not None and not idle.is_unchanged:
            idle.close()
            return None
        return idle

    def _give_back(self, connection: FileConnection, generation: int) -> None:
        if connection.locks_out_others:
            with self._opening:
                connection.close()
                self._alone -= 1
            return
        with self._lock:
            if self._closed or generation != self.generation:
                connection.close()
            else:
                self._idle.append(connection)

    def prepare(self, views: Sequence[str]) -> None:
        """Have every connection of a read-only file create these temporary views."""
        self._views = views
        with self._lock:
            self._close_idle()

    def leave_file(self) -> None:
        """Leave the connections to the present file behind: the idle ones now, the others when they are given back."""
        with self._lock:  # one step: a connection to the old file is never taken for one of the new generation
            self.generation += 1
            self._close_idle()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._close_idle()

    def _close_idle(self) -> None:
        for connection in self._idle:
            connection.close()
        self._idle.clear()
