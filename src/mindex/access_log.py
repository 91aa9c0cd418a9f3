"""The access log: which entries were fetched, or found by which query. It feeds frequency and recency of ranking."""

from collections.abc import Callable, Container, Sequence

from mindex.clock import DAY_MS, now_ms
from mindex.datatypes import Answer, Record
from mindex.store.base import Access, Store
from mindex.values import dataclass

_LONGEST_QUERY = 500


@dataclass(frozen=True, slots=True)
class AccessLog:
    """Logs accesses in the background; neither waits nor fails. Chunks are not logged: only entries are ranked by use.

    Accesses older than `days`, and the oldest beyond `rows`, are dropped.
    """

    store: Store
    redact: Callable[[str], str]
    days: float
    rows: int

    def log_search(self, query: str, answer: Answer, shown: Container[str] | None = None) -> None:
        """Log the confident hits, of which only those with these ids were `shown`.

        That a weak one was shown says nothing of its use.
        """
        hits = [hit for hit in answer.hits if not hit.weak and (shown is None or hit.record.id in shown)]
        self._log([hit.record for hit in hits], "search", query, {hit.record.id: hit.score for hit in hits})

    def log_get(self, records: Sequence[Record]) -> None:
        self._log(records, "get", "", {})

    def prune(self) -> None:
        """Drop what is beyond the limits. Raises StoreError."""
        if "entries" in self.store.capabilities:
            self.store.entries.prune_access_log(oldest=self._oldest(), rows=self.rows)

    def prune_later(self) -> None:
        """The same in the background, if it is due. Never raises: a memory is opened with this."""
        if "entries" in self.store.capabilities:
            self.store.entries.prune_access_log_later(oldest=self._oldest(), rows=self.rows)

    def _oldest(self) -> int:
        return now_ms() - int(self.days * DAY_MS)

    def _log(self, records: Sequence[Record], action: str, query: str, scores: dict[str, float]) -> None:
        ids = [record.id for record in records if record.kind != "chunk"]
        if not ids:
            return
        now = now_ms()
        redacted = self.redact(query)[:_LONGEST_QUERY] if query else ""
        accesses = [Access(id_, now, action, redacted, scores.get(id_)) for id_ in ids]
        self.store.entries.log_access(accesses, oldest=self._oldest(), rows=self.rows)
