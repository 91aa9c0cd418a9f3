"""The command token: what it prints, before a server was ever started and of tokens that have ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Mindex
from tests.running import is_one_error


def test_the_owners_token_is_made_when_it_is_first_shown(mindex: Mindex) -> None:
    first = mindex("token", "show")
    assert (first.code, first.err) == (0, "")
    assert first.out.startswith("mdx_")
    assert mindex("token", "show").out == first.out


def test_the_owners_token_of_a_database_server_is_in_the_data_folder(mindex: Mindex, database: str) -> None:
    shown = mindex("token", "show").out
    folder = mindex("paths", "--json").json["data"] if "://" in str(database) else Path(database).parent
    assert (Path(folder) / "owner-token").read_text() == shown


@pytest.mark.sqlite_only
def test_the_owners_token_is_shown_before_the_database_is_there(mindex: Mindex, tmp_path: Path) -> None:
    ran = mindex("--db", tmp_path / "new" / "memory.db", "token", "show")
    assert ran.code == 0
    assert (tmp_path / "new" / "owner-token").read_text() == ran.out


def test_a_token_for_a_folder_that_is_not_indexed_yet_says_to_index_it(mindex: Mindex) -> None:
    mindex("add", "The memory has no collection.")
    ran = mindex("token", "add", "anna", "--collections", "docs")
    is_one_error(ran, "unknown collection 'docs'; index it first, with `mindex index DIR`", code=2)


def test_a_time_that_is_none_is_answered_with_times_to_come(mindex: Mindex) -> None:
    ran = mindex("token", "add", "anna", "--expires", "soon")
    is_one_error(ran, "'soon' is not a time; write 12h, 90d, or a date such as 2027-01-01", code=2)
    for form in ("12h", "90d", "2099-01-01"):
        assert mindex("token", "add", f"t{form}", "--expires", form).code == 0


def test_the_list_says_what_has_expired_and_names_no_agent_for_the_metrics(
    mindex: Mindex, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert mindex("token", "add", "anna", "--expires", "1h").code == 0
    assert mindex("token", "add", "scraper", "--metrics").code == 0
    listed = {one["name"]: one for one in mindex("token", "list", "--json").json["tokens"]}
    assert (listed["anna"]["expired"], listed["anna"]["agent"]) == (False, "anna")
    assert (listed["scraper"]["expired"], listed["scraper"]["agent"]) == (False, None)
    monkeypatch.setattr("mindex.cli.token.now_ms", lambda: 4_102_444_800_000)
    listed = {one["name"]: one for one in mindex("token", "list", "--json").json["tokens"]}
    assert (listed["anna"]["expired"], listed["scraper"]["expired"]) == (True, False)
