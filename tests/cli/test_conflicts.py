"""Conflicts on the command line: reported by `add` and `update`, counted by `stats`, shown by `list --conflicts`."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Mindex


@pytest.fixture
def standups(mindex: Mindex) -> tuple[str, str]:
    """The ids of an older and a newer memory that are in conflict."""
    return mindex("add", "Standup is at 9:30", "--json").json["id"], mindex(
        "add", "Standup is at 10:00", "--json"
    ).json["id"]


def test_add_tells_a_conflict_and_how_to_end_it(mindex: Mindex) -> None:
    older = mindex("add", "The project uses pnpm", "--json").json
    assert older["conflicts"] == []
    told = mindex("add", "The project uses npm").out
    assert f"conflict: {older['id']} The project uses pnpm (different values: pnpm and npm)" in told
    assert f"--supersedes {older['id']}` supersedes the other one" in told


def test_update_tells_a_conflict(mindex: Mindex, standups: tuple[str, str]) -> None:
    older, newer = standups
    changed = mindex("update", newer, "--text", "Standup is at 11:00", "--json").json
    why = "different times: 9:30 and 11:00"
    assert changed["conflicts"] == [{"id": older, "summary": "Standup is at 9:30", "why": why}]
    assert f"conflict: {older}" in mindex("update", newer, "--text", "Standup is at 12:00").out
    assert mindex("update", newer, "--supersedes", older, "--json").json["conflicts"] == []


def test_open_conflicts_are_counted_and_listed(mindex: Mindex, standups: tuple[str, str]) -> None:
    older, newer = standups
    assert "1 open conflict: `mindex list --conflicts` shows them" in mindex("stats").out
    assert mindex("stats", "--json").json["conflicts"] == 1
    listed = mindex("list", "--conflicts", "--json").json
    assert [(record["id"], record["conflicts"][0]["id"]) for record in listed["records"]] == [
        (newer, older),
        (older, newer),
    ]
    assert (listed["total"], listed["has_more"]) == (2, False)
    assert (
        f"conflicts with {older} Standup is at 9:30 (different times: 9:30 and 10:00)"
        in mindex("list", "--conflicts").out
    )
    page = mindex("list", "--conflicts", "--limit", 1, "--json").json
    assert ([record["id"] for record in page["records"]], page["has_more"]) == ([newer], True)


def test_a_forgotten_memory_is_in_no_conflict(mindex: Mindex, standups: tuple[str, str]) -> None:
    mindex("forget", standups[0])
    assert mindex("list", "--conflicts", "--json").json == {"records": [], "total": 0, "has_more": False}
    assert mindex("list", "--conflicts").out == "0 of 0\n"
    assert mindex("stats", "--json").json["conflicts"] == 0


def test_conflicts_have_no_past(mindex: Mindex, standups: tuple[str, str]) -> None:
    refused = mindex("list", "--conflicts", "--as-of", "yesterday")
    assert refused.code == 2 and "remove --as-of" in refused.err
