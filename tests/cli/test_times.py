"""Every option of a command that takes a time takes the times that people write."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.cli.conftest import Mindex

PAST = [
    ("search", "harbour", "--after"),
    ("search", "harbour", "--before"),
    ("search", "harbour", "--as-of"),
    ("list", "--after"),
    ("list", "--before"),
    ("list", "--as-of"),
    ("get", "profile", "--as-of"),
    ("conversation", "search", "harbour", "--after"),
    ("conversation", "search", "harbour", "--before"),
    ("conversation", "add", "Where?", "There.", "--at"),
    ("timeline", "--after"),
    ("timeline", "--before"),
    ("consolidate", "--older-than"),
    ("skill", "due", "--at"),
]
AHEAD = [("add", "The harbour is closed", "--expires"), ("add", "The harbour is closed", "--ttl")]


@pytest.mark.parametrize("command", PAST, ids=" ".join)
def test_a_time_in_the_past_is_taken(mindex: Mindex, command: tuple[str, ...]) -> None:
    mindex("profile", "set", "city", "Oslo")
    for time in ("yesterday", "3 days ago", "5min", "last week", "march", "friday", "now"):
        done = mindex(*command, time)
        assert done.code == 0 or "there is no profile yet" in done.err, (time, done.err)


@pytest.mark.parametrize("command", AHEAD, ids=" ".join)
@pytest.mark.parametrize("time", ["today", "in 3 days", "2h", "next week", "friday", "march"])
def test_an_expiry_is_taken(mindex: Mindex, command: tuple[str, ...], time: str) -> None:
    id_ = mindex(*command, time, "--json").json["id"]
    assert mindex("update", id_, *command[2:], time).code == 0


@pytest.mark.parametrize("command", [*PAST, *AHEAD], ids=" ".join)
def test_1m_is_refused_everywhere(mindex: Mindex, command: tuple[str, ...]) -> None:
    done = mindex(*command, "1m")
    assert done.code == 2
    assert "write 1min or 1mo" in done.err


def test_the_filter_is_the_time_that_was_written(mindex: Mindex) -> None:
    mindex("conversation", "add", "The harbour of Monday", "Yes.", "--at", "8 days ago")
    mindex("conversation", "add", "The harbour of now", "Yes.")
    assert len(mindex("list", "--after", "yesterday", "--json").json["records"]) == 1
    assert len(mindex("list", "--before", "7d", "--json").json["records"]) == 1
    assert len(mindex("list", "--after", "2w", "--json").json["records"]) == 2


def test_the_timeline_keeps_to_a_budget_and_counts_the_rest(mindex: Mindex) -> None:
    for number in range(12):
        mindex("add", f"Lamp {number} stands in room {number} of the northern house")
    shown = mindex("timeline", "--after", "today", "--budget", "200")
    assert 0 < shown.out.count("Lamp") < 12
    assert shown.out.startswith(f"{datetime.now(UTC).date()}: ")
    assert "budget of 200 tokens" in shown.err and "left out" in shown.err
    events = mindex("timeline", "--after", "today", "--budget", "200", "--json").json["events"]
    assert len(events) == shown.out.count("Lamp")


def test_the_timeline_needs_no_option(mindex: Mindex) -> None:
    for text in ("First", "Second"):
        mindex("add", text)
    assert [event["summary"] for event in mindex("timeline", "--json").json["events"]] == ["Second", "First"]
    assert [event["summary"] for event in mindex("timeline", "first", "--json").json["events"]] == ["First"]
    in_order = mindex("timeline", "--after", "today", "--before", "now", "--json").json["events"]
    assert [event["summary"] for event in in_order] == ["First", "Second"]
