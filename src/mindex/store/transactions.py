"""Several writes as one, which an engine may have to run again."""

import time
from collections.abc import Callable
from typing import TypeVar

from mindex.errors import LostTransactionError
from mindex.store.base import EntryStore

T = TypeVar("T")

_RETRY_SECONDS = 30.0
_PAUSE = 0.1


def in_transaction(entries: EntryStore, work: Callable[[int], T], *, batch: bool = False) -> T:
    """Run a function in `EntryStore.transaction`; again if its connection was lost, for up to 30 seconds.

    The function gets the time of all changes. It may be called more than once, so what it changes outside of the store
    must start over with each call.
    """
    deadline = time.monotonic() + _RETRY_SECONDS
    while True:
        try:
            with entries.transaction(batch=batch) as moment:
                return work(moment)
        except LostTransactionError:
            if time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE)
