"""Short flags do what the long ones do; and XML from every command that prints records."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from mindex.present.token_count import count_tokens
from tests.cli.conftest import Mindex
from tests.running import is_one_error


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("search redis -l 2", "search redis --limit 2"),
        ("search redis -f csv", "search redis --format csv"),
        ("search redis -m keyword -b 200", "search redis --mode keyword --budget 200"),
        ("search redis -k chunk -p domains", "search redis --kind chunk --path domains"),
        ("search redis -c handbook -t fact", "search redis --collection handbook --type fact"),
        ("search redis -e", "search redis --expand"),
        ("get redis.md -f md -b 90", "get redis.md --format md --budget 90"),
        ("list -k chunk -l 3 -f files", "list --kind chunk --limit 3 --format files"),
    ],
)
def test_a_short_flag_is_the_long_one(mindex: Mindex, shared: Path, short: str, long: str) -> None:
    ran = mindex(*short.split())
    assert ran == mindex(*long.split())
    assert ran.code == 0 and ran.out


def test_search_get_and_list_print_xml_that_a_parser_reads(mindex: Mindex, shared: Path) -> None:
    def parsed(*command: str) -> ElementTree.Element:
        ran = mindex(*command, "--format", "xml")
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith('<?xml version="1.0" encoding="UTF-8"?>\n<mindex>')
        return ElementTree.fromstring(ran.out)

    hits = mindex("search", "redis", "--json").json["results"]
    found = parsed("search", "redis").findall("results/result")
    assert [(one.findtext("id"), one.findtext("text")) for one in found] == [(hit["id"], hit["text"]) for hit in hits]
    (record,) = parsed("get", hits[0]["id"]).findall("records/record")
    assert record.findtext("path") == hits[0]["path"]
    listed = parsed("list", "--kind", "chunk", "--limit", "2")
    assert len(listed.findall("records/record")) == 2 and listed.findtext("has_more") == "true"
    assert parsed("search", "redis", "--compact").find("results/result/at") is not None


def test_json_and_another_format_contradict_each_other_in_list_too(mindex: Mindex, shared: Path) -> None:
    ran = mindex("list", "--json", "--format", "xml")
    assert ran.code == 2 and "--json cannot be combined with --format xml" in ran.out


@pytest.mark.parametrize("budget", [200, 400, 1_000])
@pytest.mark.parametrize(
    "command", [("search", "redis", "-l", "20"), ("get", "*.md"), ("search", "redis", "--compact")]
)
def test_xml_never_exceeds_a_budget(mindex: Mindex, shared: Path, command: tuple[str, ...], budget: int) -> None:
    ran = mindex(*command, "-f", "xml", "-b", budget)
    assert ran.code == 0
    assert budget // 3 < count_tokens(ran.out.rstrip("\n")) <= budget
    notes = [note.text or "" for note in ElementTree.fromstring(ran.out).findall("notes/note")]
    assert not any("budget of" in note and f"budget of {budget} tokens" not in note for note in notes)


def test_a_budget_that_is_too_small_for_xml_is_an_error(mindex: Mindex, shared: Path) -> None:
    ran = mindex("search", "redis", "-f", "xml", "-b", "50")
    is_one_error(ran, "too small for XML", "use JSON", code=2)
