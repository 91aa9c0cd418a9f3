"""How many requests a token or an address may make: a bucket that fills evenly, and holds those of one minute."""

import threading
from collections.abc import Callable
from time import monotonic

_MAX_BUCKETS = 10_000


class RateLimit:
    """Counts requests by key. `per_minute` of 0 allows any number."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = monotonic) -> None:
        self.per_minute = per_minute
        self._most = float(per_minute)
        self._per_second = per_minute / 60
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: dict[str, tuple[float, float]] = {}  # key → (requests left, when that was so)

    def wait(self, key: str) -> float:
        """Count a request. Returns 0 if it is allowed, else the seconds after which the next one is."""
        if not self._most:
            return 0.0
        now = self._clock()
        with self._lock:
            if len(self._buckets) >= _MAX_BUCKETS:  # tokens that are gone, addresses of long ago
                self._buckets.clear()
            left, then = self._buckets.get(key, (self._most, now))
            left = min(self._most, left + (now - then) * self._per_second)
            allowed = left >= 1
            self._buckets[key] = (left - 1 if allowed else left, now)
        return 0.0 if allowed else (1 - left) / self._per_second
