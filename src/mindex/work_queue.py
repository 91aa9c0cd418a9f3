"""A queue whose items are handled in the background, by a thread that lives only while there is work."""

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class WorkQueue(Generic[T]):
    """Handles items one after the other in a daemon thread. Safe to use from several threads.

    `stop` may be shared between queues: once it is set, the current item is finished and nothing new begins.
    """

    def __init__(self, name: str, handle: Callable[[T], object], stop: threading.Event) -> None:
        self._name = name
        self._handle = handle
        self._stop = stop
        self._lock = threading.Lock()
        self._items: deque[T] = deque()
        self._thread: threading.Thread | None = None

    def submit(self, item: T) -> None:
        with self._lock:
            self._items.append(item)
            if self._thread is None and not self._stop.is_set():
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()

    def join(self, seconds: float) -> None:
        """Wait until nothing is left to do, or with `stop` set until the current item is done, at most so long."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(max(0.0, seconds))

    def _run(self) -> None:
        while True:
            with self._lock:  # under the lock: the next caller of `submit` sees either this thread or none
                if not self._items or self._stop.is_set():
                    self._thread = None
                    return
                item = self._items.popleft()
            self._handle(item)
