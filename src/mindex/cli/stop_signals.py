"""How commands that run until they are told to stop learn of it."""

import signal
import threading


def set_on_signal(stop: threading.Event, *, interrupt: bool = False) -> None:
    """Set `stop` when Ctrl-C or SIGTERM arrives. With `interrupt`, a KeyboardInterrupt is raised as well.

    The event is set by a thread of its own: a handler runs between two instructions of the main thread, and where that
    thread is inside `stop.wait()` it may hold the lock that `stop.set()` waits for.
    """

    def on_signal(*_: object) -> None:
        threading.Thread(target=stop.set, name="mindex-stop", daemon=True).start()
        if interrupt:
            raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
