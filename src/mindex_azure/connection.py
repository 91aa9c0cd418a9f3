"""The requests to one index: attempts with back-off, batches whose every result is checked, and waiting for writes.

The service shows a write a moment later. This process remembers which writes it has not seen yet, and its next read
waits for them (`settle`), so that it reads what it wrote; another process sees them as soon as the service shows them.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from typing import Any, TypeVar

from azure.core.exceptions import AzureError, HttpResponseError, ResourceNotFoundError, ServiceRequestError
from azure.search.documents import SearchClient
from azure.search.documents.indexes import SearchIndexClient
from azure.search.documents.models import IndexAction, IndexDocumentsBatch, VectorizedQuery

from mindex.values import dataclass
from mindex_azure import errors
from mindex_azure.address import Address, find_credential
from mindex_azure.odata import any_of, both, quoted

T = TypeVar("T")
Row = dict[str, Any]

# The service's limits: documents and bytes of a batch, and rows of an answer.
MAX_IN_BATCH = 1_000
_MAX_BYTES = 8_000_000  # half of what it takes
PAGE = 1_000
_KEYS_AT_ONCE = 500
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_MAX_UNANSWERED = 3  # attempts to reach a service that does not answer at all
_TIMEOUTS = {"connection_timeout": 10, "read_timeout": 60}
DEFAULT_WAIT = 30.0
_OVERWRITTEN_AFTER = 1.0  # seconds after which it is asked whether another process has overwritten what is awaited


@dataclass(frozen=True, slots=True)
class Found:
    """The rows of a search, how many there are in all if that was asked for, and the facets by field."""

    rows: list[Row]
    total: int = 0
    facets: Mapping[str, list[Row]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Changes:
    """Documents to write, each with its key, and keys to delete; applied in this order.

    An upload replaces a document, a merge changes some fields of one that exists.
    """

    uploads: Sequence[Row] = ()
    merges: Sequence[Row] = ()
    deletes: Sequence[str] = ()


class Connection:
    """One index, by its alias. May be used by several threads at once."""

    def __init__(self, address: Address, *, wait: float = DEFAULT_WAIT) -> None:
        """`wait` bounds, in seconds, how long a request is tried, and how long a write may take to show."""
        self.address = address
        self._wait = wait
        credential = find_credential()
        # Attempts are counted here: the library's own would multiply them, and leave some requests out.
        options: dict[str, Any] = {"retry_total": 0, **_TIMEOUTS}
        self._documents = SearchClient(address.endpoint, address.index, credential, **options)
        self.indexes = SearchIndexClient(address.endpoint, credential, **options)
        self._threads = ThreadPoolExecutor(8, thread_name_prefix="mindex-azure")
        self._lock = threading.Lock()
        self._unseen: dict[str, int] = {}  # keys of documents and the stamps of their last writes
        self._undeleted: set[str] = set()
        self.generation = 0  # grows with every write of this process

    def close(self) -> None:
        self._threads.shutdown(wait=True)
        self._documents.close()
        self.indexes.close()

    # ── attempts ──────────────────────────────────────────────────────────────────────────────────────────────

    def attempt(self, request: Callable[[], T]) -> T:
        """Make a request, again and again while the service is busy. Raises StoreError when it stays so, or refuses."""
        end, pause, unanswered = time.monotonic() + self._wait, _FIRST_PAUSE, 0
        while True:
            try:
                return request()
            except ResourceNotFoundError:
                raise  # the callers that expect it say what is missing
            except AzureError as error:
                unanswered += isinstance(error, ServiceRequestError)
                rest = _retry_after(error) or pause * random.uniform(0.5, 1.0)
                if not _is_passing(error) or unanswered >= _MAX_UNANSWERED or time.monotonic() + rest > end:
                    raise errors.to_store_error(error, self.address) from error
            time.sleep(rest)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def together(self, *requests: Callable[[], T]) -> list[T]:
        """Make requests at once. Returns their results in order."""
        if len(requests) == 1:
            return [requests[0]()]
        return list(self._threads.map(lambda request: request(), requests))

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────

    def search(
        self,
        where: str,
        *,
        text: str = "*",
        fields: Sequence[str] = (),
        select: Sequence[str] = ("key",),
        order: Sequence[str] = (),
        top: int = PAGE,
        skip: int = 0,
        facets: Sequence[str] = (),
        vector: VectorizedQuery | None = None,
        profile: str | None = None,
        fresh: bool = True,
    ) -> Found:
        """The documents that a filter admits and a query of mindex tokens matches; `top` 0 only counts them.

        Without `fresh` it does not wait for what this process wrote.
        """
        if fresh:
            self.settle()

        def request() -> Found:
            found = self._documents.search(
                None if vector is not None else text,
                filter=where or None,
                query_type="full",
                search_mode="any",
                search_fields=list(fields) or None,
                select=list(select),
                order_by=list(order) or None,
                top=top,
                skip=skip or None,
                facets=list(facets) or None,
                include_total_count=vector is None,
                vector_queries=[vector] if vector is not None else None,
                vector_filter_mode="preFilter" if vector is not None else None,
                scoring_profile=profile,
            )
            rows = list(found)
            total = 0 if vector is not None else found.get_count()
            return Found(rows, total, (found.get_facets() or {}) if facets else {})

        return self._in_index(request)

    def count(self, where: str, text: str = "*", fields: Sequence[str] = ()) -> int:
        return self.search(where, text=text, fields=fields, top=0).total

    def pages(self, where: str, select: Sequence[str], *, fresh: bool = True) -> Iterator[Row]:
        """Every document that a filter admits, in the order of the keys, a page at a time."""
        last = ""
        while True:
            after = both(where, f"key gt {quoted(last)}") if last else where
            found = self.search(after, select=("key", *select), order=("key asc",), top=PAGE, fresh=fresh).rows
            yield from found
            if len(found) < PAGE:
                return
            last = found[-1]["key"]

    def with_keys(self, keys: Sequence[str], select: Sequence[str]) -> list[Row]:
        """The documents with these keys that exist, in any order."""
        fresh = self.is_unseen(keys)
        requests = [
            lambda some=some: self.search(any_of("key", some), select=("key", *select), fresh=fresh).rows
            for some in in_groups(keys, _KEYS_AT_ONCE)
        ]
        return [row for rows in self.together(*requests) for row in rows] if requests else []

    def get(self, key: str) -> Row | None:
        """One document, or None."""
        if self.is_unseen([key]):
            self.settle()
        try:
            return dict(self.attempt(lambda: self._documents.get_document(key)))
        except ResourceNotFoundError:
            return None

    def _in_index(self, request: Callable[[], T]) -> T:
        try:
            return self.attempt(request)
        except ResourceNotFoundError as error:
            raise errors.to_store_error(error, self.address) from error

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, changes: Changes) -> frozenset[str]:
        """Write documents in batches. Returns the keys of merges whose document is not there.

        A document that is refused raises StoreError; documents before it are written.
        """
        # Grows with time, so that a document that another process wrote since has a greater one.
        stamp = time.time_ns() // 1_000 << 10 | random.getrandbits(10)
        actions = [
            *(_action("upload", {**row, "stamp": stamp}) for row in changes.uploads),
            *(_action("merge", {**row, "stamp": stamp}) for row in changes.merges),
            *(_action("delete", {"key": key}) for key in changes.deletes),
        ]
        missing: set[str] = set()
        for batch in _batches(actions):
            missing |= self._write_batch(batch, stamp)
        return frozenset(missing)

    def _write_batch(self, batch: list[IndexAction], stamp: int) -> set[str]:
        end, pause = time.monotonic() + self._wait, _FIRST_PAUSE
        missing: set[str] = set()
        while batch:
            sent = IndexDocumentsBatch(actions=batch)
            results = self._in_index(lambda sent=sent: self._documents.index_documents(sent))  # type: ignore[misc]
            failed = {one.key: (one.status_code, one.error_message or "") for one in results if not one.succeeded}
            missing |= {key for key, (status, _) in failed.items() if status == 404}
            self._remember([one for one in batch if one["key"] not in failed], stamp)
            again = {key for key, (status, _) in failed.items() if status in errors.PASSING_FOR_DOCUMENT}
            final = {key: failure for key, failure in failed.items() if key not in again | missing}
            rest = pause * random.uniform(0.5, 1.0)
            if final or (again and time.monotonic() + rest > end):
                raise errors.refused(self.address, final or failed)
            batch = [one for one in batch if one["key"] in again]
            if batch:
                time.sleep(rest)
                pause = min(2 * pause, _LONGEST_PAUSE)
        return missing

    def _remember(self, actions: Iterable[IndexAction], stamp: int) -> None:
        with self._lock:
            self.generation += 1
            for one in actions:
                if one["@search.action"] == "delete":
                    self._unseen.pop(one["key"], None)
                    self._undeleted.add(one["key"])
                else:
                    self._undeleted.discard(one["key"])
                    self._unseen[one["key"]] = stamp

    # ── what is not seen yet ──────────────────────────────────────────────────────────────────────────────────

    def unseen_keys(self) -> frozenset[str]:
        """The keys of documents that were written, and perhaps do not show yet."""
        with self._lock:
            return frozenset(self._unseen) | self._undeleted

    def is_unseen(self, keys: Iterable[str]) -> bool:
        """Whether a document with one of these keys was written, and perhaps does not show yet."""
        unseen = self.unseen_keys()
        return bool(unseen) and not unseen.isdisjoint(keys)

    def settle(self) -> None:
        """Return when every write of this process is seen. Raises StoreBusyError when that takes too long."""
        if not self._unseen and not self._undeleted:
            return
        start, pause = time.monotonic(), _FIRST_PAUSE / 5
        while not self._is_seen(overwritten=time.monotonic() - start > _OVERWRITTEN_AFTER):
            if time.monotonic() - start > self._wait:
                with self._lock:  # the next read answers with what there is
                    self._unseen.clear()
                    self._undeleted.clear()
                raise errors.lagging(self.address, self._wait)
            time.sleep(pause)
            pause = min(2 * pause, 1.0)

    def _is_seen(self, *, overwritten: bool) -> bool:
        """Whether every write is seen; with `overwritten`, a later one of another process counts as well."""
        with self._lock:
            unseen, undeleted = dict(self._unseen), set(self._undeleted)
        for stamp, written in Counter(unseen.values()).items():
            if self._count_now(f"stamp eq {stamp}") < written:
                keys = [key for key, one in unseen.items() if one == stamp]
                if not overwritten or self._count_keys(keys, f"stamp ge {stamp}") < written:
                    return False
        if undeleted and self._count_keys(sorted(undeleted)):
            return False
        with self._lock:
            for key, stamp in unseen.items():
                if self._unseen.get(key) == stamp:
                    del self._unseen[key]
            self._undeleted -= undeleted
        return True

    def _count_keys(self, keys: Sequence[str], where: str = "") -> int:
        return sum(self._count_now(both(any_of("key", some), where)) for some in in_groups(keys, _KEYS_AT_ONCE))

    def _count_now(self, where: str) -> int:
        found = lambda: self._documents.search(  # noqa: E731
            "*", filter=where, top=0, select=["key"], include_total_count=True
        ).get_count()
        return self._in_index(found)


def in_groups(values: Sequence[T], size: int) -> list[Sequence[T]]:
    return [values[start : start + size] for start in range(0, len(values), size)]


def _action(kind: str, row: Row) -> IndexAction:
    return IndexAction({"@search.action": kind, **row})


def _batches(actions: Sequence[IndexAction]) -> Iterator[list[IndexAction]]:
    """Batches that the service takes: neither too many documents nor too many bytes, and no document twice."""
    batch: list[IndexAction] = []
    keys: set[str] = set()
    weight = 0
    for one in actions:
        own = sum(map(_weight, one.values()))
        if batch and (len(batch) == MAX_IN_BATCH or weight + own > _MAX_BYTES or one["key"] in keys):
            yield batch
            batch, keys, weight = [], set(), 0
        batch.append(one)
        keys.add(one["key"])
        weight += own
    if batch:
        yield batch


def _weight(value: object) -> int:
    """About how many bytes a value takes as JSON."""
    if isinstance(value, str):
        return 2 * len(value)
    return 20 * len(value) if isinstance(value, list) else 20


def _is_passing(error: AzureError) -> bool:
    if isinstance(error, HttpResponseError) and error.status_code is not None:
        return error.status_code in errors.PASSING
    return not isinstance(error, HttpResponseError)  # it did not answer; every request of ours may be made twice


def _retry_after(error: AzureError) -> float:
    """The seconds that the service asks to wait; 0 when it does not say."""
    response = error.response if isinstance(error, HttpResponseError) else None
    asked = str(getattr(response, "headers", {}).get("Retry-After", ""))
    return float(asked) if asked.replace(".", "", 1).isdigit() else 0.0
