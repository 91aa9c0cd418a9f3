"""The text format of Prometheus, as its documentation has it."""

from __future__ import annotations

import re

from mindex.http_access.metrics import Metrics

_LINE = re.compile(r'[a-z_]+(\{[a-z]+="(?:[^"\\\n]|\\["\\n])*"(,[a-z]+="(?:[^"\\\n]|\\["\\n])*")*\})? [0-9.e+-]+')


def test_every_line_is_a_comment_or_a_sample() -> None:
    metrics = Metrics()
    metrics.begin_request()
    metrics.end_request("/mcp", 200, 0.02)
    metrics.count_call('odd "name"\\\n', "ok", 0.3)
    text = metrics.text({"hybrid": 2}, 5, "1.0")
    assert text.endswith("\n")
    for line in text.splitlines():
        assert line.startswith(("# HELP ", "# TYPE ")) or _LINE.fullmatch(line), line


def test_buckets_of_a_histogram_add_up() -> None:
    metrics = Metrics()
    for seconds in (0.005, 0.02, 0.02, 99.0):
        metrics.begin_request()
        metrics.end_request("/mcp", 200, seconds)
    lines = metrics.text({}, 0, "1.0").splitlines()
    buckets = {
        match[1]: int(match[2])
        for line in lines
        if (match := re.match(r'mindex_http_request_seconds_bucket\{route="/mcp",le="(.+)"\} (\d+)', line))
    }
    assert (buckets["0.005"], buckets["0.01"], buckets["0.025"], buckets["10"], buckets["+Inf"]) == (1, 1, 3, 3, 4)
    assert 'mindex_http_request_seconds_count{route="/mcp"} 4' in lines
    assert 'mindex_http_request_seconds_sum{route="/mcp"} 99.045' in lines
    assert "mindex_http_requests_in_progress 0" in lines
