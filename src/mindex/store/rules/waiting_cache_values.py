"""Values of caches that wait to be written in the background: until then they are read from memory."""

from collections.abc import Callable, Mapping, Sequence


class WaitingCacheValues:
    """The next page of a search comes sooner than its values are written."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], bytes] = {}  # by kind and key

    def among(self, kind: str, keys: Sequence[str]) -> dict[str, bytes]:
        """Those of the keys that wait, with their values."""
        waiting = {key: self._values.get((kind, key)) for key in keys} if self._values else {}
        return {key: value for key, value in waiting.items() if value is not None}

    def has_prefix(self, kind: str, start: str) -> bool:
        return any(waiting == kind and key.startswith(start) for waiting, key in tuple(self._values))

    def add(self, kind: str, values: Mapping[str, bytes]) -> Callable[[], None]:
        """Keep values until they are written. Returns what is to be called then."""
        waiting = {(kind, key): value for key, value in values.items()}
        self._values |= waiting

        def forget() -> None:
            for key in waiting:
                self._values.pop(key, None)

        return forget
