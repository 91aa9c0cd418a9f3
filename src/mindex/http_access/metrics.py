"""Counters and histograms of a server, in the text format of Prometheus."""

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Upper bounds in seconds. A keyword search takes milliseconds, the first one with a model about a second.
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

Labels = tuple[tuple[str, str], ...]
Sample = tuple[str, Labels, float]


class Histogram:
    """How many observations are not above each bound, by labels."""

    def __init__(self) -> None:
        self._buckets: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, seconds: float, labels: Labels) -> None:
        buckets = self._buckets.setdefault(labels, [0] * (len(_BOUNDS) + 1))
        buckets[bisect_left(_BOUNDS, seconds)] += 1
        self._sums[labels] = self._sums.get(labels, 0.0) + seconds

    def samples(self, name: str) -> Iterator[Sample]:
        for labels, buckets in sorted(self._buckets.items()):
            total = 0
            for bound, count in zip((*(f"{one:g}" for one in _BOUNDS), "+Inf"), buckets, strict=True):
                total += count
                yield f"{name}_bucket", (*labels, ("le", bound)), total
            yield f"{name}_sum", labels, self._sums[labels]
            yield f"{name}_count", labels, total


class Metrics:
    """What a server counts. Labels are routes, tools and statuses: never a token, an agent or a text."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[Labels] = Counter()
        self._request_seconds = Histogram()
        self._calls: Counter[Labels] = Counter()
        self._call_seconds = Histogram()
        self._in_progress = 0

    def begin_request(self) -> None:
        with self._lock:
            self._in_progress += 1

    def end_request(self, route: str, status: int, seconds: float) -> None:
        with self._lock:
            self._in_progress -= 1
            self._requests[("route", route), ("status", str(status))] += 1
            self._request_seconds.observe(seconds, (("route", route),))

    def count_call(self, tool: str, outcome: str, seconds: float) -> None:
        with self._lock:
            self._calls[("tool", tool), ("outcome", outcome)] += 1
            self._call_seconds.observe(seconds, (("tool", tool),))

    def text(self, tiers: Mapping[str, int], pending: int | None, version: str) -> str:
        """All metrics. `tiers` counts searches, `pending` the records that wait for a vector.

        `pending` is None while the database does not answer.
        """
        with self._lock:
            families: list[tuple[str, str, str, list[Sample]]] = [
                ("mindex_info", "gauge", "The version of mindex.", [("mindex_info", (("version", version),), 1)]),
                _counter("mindex_http_requests_total", "Requests by route and status.", self._requests),
                _histogram("mindex_http_request_seconds", "Duration of requests.", self._request_seconds),
                _gauge("mindex_http_requests_in_progress", "Requests that are being answered.", self._in_progress),
                _counter("mindex_tool_calls_total", "Calls of MCP tools by outcome.", self._calls),
                _histogram("mindex_tool_seconds", "Duration of tool calls.", self._call_seconds),
                _counter(
                    "mindex_searches_total",
                    "Searches by the tier that answered.",
                    {(("tier", tier),): count for tier, count in tiers.items()},
                ),
                _gauge("mindex_database_up", "Whether the database answers.", int(pending is not None)),
            ]
        if pending is not None:
            families.append(_gauge("mindex_embedding_pending", "Records that wait for a vector.", pending))
        return "".join(line for family in families for line in _lines(*family))


def _counter(name: str, meaning: str, counts: Mapping[Labels, int]) -> tuple[str, str, str, list[Sample]]:
    return name, "counter", meaning, [(name, labels, count) for labels, count in sorted(counts.items())]


def _gauge(name: str, meaning: str, value: float) -> tuple[str, str, str, list[Sample]]:
    return name, "gauge", meaning, [(name, (), value)]


def _histogram(name: str, meaning: str, histogram: Histogram) -> tuple[str, str, str, list[Sample]]:
    return name, "histogram", meaning, list(histogram.samples(name))


def _lines(name: str, kind: str, meaning: str, samples: Iterable[Sample]) -> Iterator[str]:
    yield f"# HELP {name} {meaning}\n# TYPE {name} {kind}\n"
    for sample, labels, value in samples:
        named = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
        yield f"{sample}{{{named}}} {value:.12g}\n" if named else f"{sample} {value:.12g}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
