"""Stop signals of commands that run until they are stopped."""

import signal
import threading


def set_on_signal(stop: threading.Event, *, interrupt: bool = False) -> None:
    """Set `stop` when Ctrl-C or SIGTERM arrives. With `interrupt`, a KeyboardInterrupt is raised as well.

    A separate thread sets the event: a handler runs between two instructions of the main thread, and if that thread is
    inside `stop.wait()`, it may have the lock that `stop.set()` waits for.
    """

    def on_signal(*_: object) -> None:
        threading.Thread(target=stop.set, name="mindex-stop", daemon=True).start()
        if interrupt:
            raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
