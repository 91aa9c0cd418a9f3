"""`mindex conversation`, `profile`, `contact`, `project` and `skill`: as text and as JSON."""

from __future__ import annotations

import io
import json
from pathlib import Path

import click
import pytest

from mindex.cli.main import cli
from mindex.entries.field_specs import FIELD_ENTRY_KINDS, FIELDS
from tests.cli.conftest import Mindex
from tests.running import is_one_error

KEY = "sk-ant-api03-" + "a1B2" * 10
INTERVAL = json.dumps({"interval_minutes": 30})


def group(name: str) -> click.Group:
    command = cli.get_command(click.Context(cli), name)
    assert isinstance(command, click.Group)
    return command


def add_contact(mindex: Mindex, name: str = "Anna", **more: str) -> str:
    options = [part for key, value in more.items() for part in (f"--{key}", value)]
    return str(mindex("contact", "add", name, *options, "--json").json["id"])


# ── the table makes the commands ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", FIELD_ENTRY_KINDS)
def test_every_field_has_an_option_to_add_and_to_update_it(kind: str) -> None:
    for verb in ("add", "update"):
        options = {option.name: option for option in group(kind).commands[verb].params}
        for field in FIELDS[kind]:  # type: ignore[index]
            option = options[field.name]
            assert isinstance(option, click.Option)
            assert option.help
            assert option.multiple == (field.shape == "texts")


@pytest.mark.parametrize(
    ("name", "verbs"),
    [
        ("conversation", {"add", "extract", "search", "list", "show"}),
        ("profile", {"get", "set", "history", "rollback"}),
        ("contact", {"add", "list", "get", "update", "delete"}),
        ("project", {"add", "list", "get", "update", "delete", "link", "unlink", "sources", "report"}),
        ("skill", {"add", "list", "get", "update", "delete", "due"}),
    ],
)
def test_every_group_has_its_verbs_with_help(mindex: Mindex, name: str, verbs: set[str]) -> None:
    assert set(group(name).commands) == verbs
    for verb in verbs:
        assert mindex(name, verb, "--help").out.startswith(f"Usage: mindex {name} {verb}")


# ── contacts, projects, skills ────────────────────────────────────────────────────────────────────────────────


def test_a_contact_from_add_to_delete(mindex: Mindex) -> None:
    ran = mindex("contact", "add", "--name", "Anna", "--email", "Anna@Acme.example", "--notes", "likes tea", "--json")
    id_ = ran.json["id"]
    assert ran.json == {
        "id": id_, "name": "Anna", "email": "anna@acme.example", "type": "work", "notes": "likes tea"
    }  # fmt: skip
    got = mindex("contact", "get", id_, "--json").json
    assert {**ran.json, "kind": "contact", "agent": "main"}.items() <= got.items()
    assert {"created_at", "updated_at"} <= set(got)
    changed = mindex("contact", "update", "anna", "--role", "CTO", "--notes", "", "--reason", "promoted", "--json").json
    assert set(changed) == {"id", "change"}
    after = mindex("contact", "get", id_, "--json").json
    assert (after["role"], "notes" in after) == ("CTO", False)
    deleted = mindex("contact", "delete", id_, "--reason", "left", "--json").json
    assert (deleted["id"], set(deleted)) == (id_, {"id", "change"})
    assert mindex("contact", "list", "--json").json == {"records": [], "total": 0}
    assert mindex("restore", id_).code == 0
    assert mindex("contact", "list", "--json").json["total"] == 1


def test_text_and_json_have_the_same_content(mindex: Mindex) -> None:
    id_ = add_contact(mindex, email="a@b.example", company="Acme")
    values = ("Anna", "a@b.example", "Acme", "work", "main", id_)
    for command in (("get", id_), ("list",)):
        out = mindex("contact", *command).out
        assert all(value in out for value in values)
    assert mindex("contact", "list").out.startswith("1 of 1\n\n")


def test_a_duplicate_email_is_one_error(mindex: Mindex) -> None:
    id_ = add_contact(mindex, email="a@b.example")
    is_one_error(mindex("contact", "add", "Bo", "--email", "A@B.example"), id_, "a@b.example already")
    error = mindex("contact", "add", "Bo", "--email", "A@B.example", "--json")
    assert (error.code, error.json["error"]["kind"]) == (1, "conflict")


def test_lists_of_projects_have_filters_limits_and_totals(mindex: Mindex) -> None:
    anna = add_contact(mindex)
    for name, status in (("Atlas", "active"), ("Borealis", "paused"), ("Cirrus", "active")):
        ran = mindex("project", "add", name, "--status", status, "--participants", anna, "--participants", "x")
        assert ran.code == 0
    listed = mindex("project", "list", "--status", "active", "--limit", 1, "--json").json
    assert ([one["name"] for one in listed["records"]], listed["total"]) == (["Atlas"], 2)
    assert listed["records"][0]["participants"] == [anna, "x"]
    assert mindex("project", "list", "--contact", anna, "--json").json["total"] == 3
    assert mindex("project", "list", "--name", "rea", "--json").json["total"] == 1
    is_one_error(mindex("project", "list", "--status", "dead"), "status", "active, paused, completed", code=2)
    is_one_error(mindex("project", "list", "--limit", 0), "too small", code=2)


def test_a_skill_takes_json_and_is_listed_when_due(mindex: Mindex) -> None:
    plan = json.dumps([{"id": "1", "toolName": "web_search"}])
    ran = mindex(
        "skill", "add", "Brief", "--trigger-type", "interval", "--trigger-config", INTERVAL, "--instructions", "Sum up",
        "--required-tools", "web", "--required-tools", "mail", "--execution-plan", plan, "--max-steps", 3, "--json",
    )  # fmt: skip
    assert ran.json["trigger_config"] == {"interval_minutes": 30}
    assert ran.json["execution_plan"] == [{"id": "1", "toolName": "web_search"}]
    assert (ran.json["required_tools"], ran.json["max_steps"], ran.json["enabled"]) == (["web", "mail"], 3, True)
    (due,) = mindex("skill", "due", "--json").json["due"]
    assert (due["id"], due["name"], due["instructions"]) == (ran.json["id"], "Brief", "Sum up")
    assert due["since"].endswith("Z")
    assert "instructions: Sum up" in mindex("skill", "due").out
    assert mindex("skill", "due", "--at", "2020-01-01", "--json").json == {"due": []}
    mindex("skill", "update", "Brief", "--enabled", "false")
    assert mindex("skill", "due").out == "nothing is due\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("contact", "add"), "a contact needs the field name"),
        (("contact", "add", "A", "--name", "B"), "passed twice"),
        (("contact", "add", "A", "--email", "nobody"), "e-mail address"),
        (("contact", "add", "A", "--fax", "1"), "--fax"),
        (("contact", "update", "A"), "nothing to change"),
        (("skill", "add", "A", "--trigger-type", "cron", "--instructions", "x"), "no 'schedule'"),
        (
            ("skill", "add", "A", "--trigger-type", "cron", "--instructions", "x", "--trigger-config", "{"),
            "trigger_config is not JSON",
        ),
        (
            ("skill", "add", "A", "--trigger-type", "cron", "--instructions", "x", "--trigger-config", "[" * 100_000),
            "trigger_config is not JSON",
        ),
        (("skill", "due", "--at", "whenever"), "not a time"),
        (("profile", "set", "a"), "PATH or VALUE"),
        (("profile", "set", "a", "1", "--remove", "b"), "--remove cannot be combined"),
        (("profile", "set", "a..b", "1"), "is not a path"),
        (("conversation", "add", " ", ""), "both messages of the turn are empty"),
        (("conversation", "add", "-", "-"), "standard input"),
        (("conversation", "search", "x", "--around", "-1"), "around -1"),
        (("conversation", "show", "x", "--around", "-1"), "around -1"),
    ],
)
def test_bad_input_is_a_usage_error(mindex: Mindex, arguments: tuple[str, ...], message: str) -> None:
    is_one_error(mindex(*arguments), message, code=2)


@pytest.mark.parametrize(
    "arguments",
    [
        ("contact", "get", "nobody"),
        ("contact", "delete", "nobody"),
        ("contact", "update", "nobody", "--role", "x"),
        ("profile", "get", "user.name"),
        ("profile", "set", "--remove", "user.name"),
        ("profile", "rollback", "99"),
        ("conversation", "show", "nowhere"),
    ],
)
def test_what_is_not_there_is_one_error(mindex: Mindex, arguments: tuple[str, ...]) -> None:
    is_one_error(mindex(*arguments))


def test_a_secret_is_left_out_and_named(mindex: Mindex) -> None:
    ran = mindex("contact", "add", "Anna", "--notes", f"key {KEY}", "--json")
    assert ran.json["redacted"] == ["anthropic-key"]
    assert KEY not in ran.out + mindex("contact", "list").out
    changed = mindex("profile", "set", "login.password", "hunter2hunter2", "--json").json
    assert changed["redacted"] == ["password"]
    assert "redacted: password" in mindex("profile", "set", "other.password", "hunter3hunter3").out
    assert "redacted" not in mindex("profile", "set", "city", "Oslo", "--json").json


def test_agents_have_their_own_contacts(mindex: Mindex) -> None:
    add_contact(mindex)
    assert mindex("contact", "list", "--agent", "other", "--json").json["total"] == 0
    mindex("contact", "add", "Bo", "--agent", "other")
    assert mindex("contact", "list", "--agent", "*", "--json").json["total"] == 2
    assert mindex("contact", "get", "Bo").code == 1
    is_one_error(mindex("contact", "add", "Cy", "--agent", "*"), "means all agents", code=2)


# ── the profile ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("Anna", "Anna"),
        ("5", 5),
        ("true", True),
        ('["a", 1]', ["a", 1]),
        ('{"a": {"b": 1}}', {"a": {"b": 1}}),
        ('"5"', "5"),
        ("NaN", "NaN"),
        ("{not json", "{not json"),
        ("", ""),
    ],
)
def test_a_value_is_json_where_it_reads_as_json(mindex: Mindex, given: str, kept: object) -> None:
    changed = mindex("profile", "set", "user.value", given, "--reason", "why not", "--json").json
    assert set(changed) == {"id", "change"}
    assert mindex("profile", "get", "user.value", "--json").json == {"value": kept}
    assert mindex("profile", "get", "--json").json == {"profile": {"user": {"value": kept}}}


def test_a_value_nested_too_deep_is_one_error(mindex: Mindex) -> None:
    for depth in (60, 100_000):
        is_one_error(mindex("profile", "set", "a", "[" * depth + "]" * depth), "nested", code=2)
    is_one_error(mindex("profile", "set", "a", "x" * 300_000), "at most 10,000", code=2)
    long = json.dumps(["word " * 2_000] * 30)
    is_one_error(mindex("profile", "set", "a", long), "at most 262,144", code=2)
    assert mindex("profile", "get", "--json").json == {"profile": {}}


def test_the_profile_as_text(mindex: Mindex) -> None:
    mindex("profile", "set", "user.name", "Anna")
    assert mindex("profile", "get", "user.name").out == "Anna\n"
    assert json.loads(mindex("profile", "get").out) == {"user": {"name": "Anna"}}


def test_a_history_with_readable_differences_and_a_rollback(mindex: Mindex) -> None:
    assert mindex("profile", "history").out == "no profile yet\n"
    assert mindex("profile", "history", "--json").json == {"versions": []}
    mindex("profile", "set", "user", '{"name": "Anna", "age": 40}', "--reason", "she said so")
    mindex("profile", "set", "user.name", "Bea")
    mindex("profile", "set", "--remove", "user.age", "--reason", "none of our business")
    versions = mindex("profile", "history", "--json").json["versions"]
    assert [version["diff"] for version in versions[1:]] == [
        [{"path": "user", "after": {"name": "Anna", "age": 40}}],
        [{"path": "user.name", "before": "Anna", "after": "Bea"}],
        [{"path": "user.age", "before": 40}],
    ]
    out = mindex("profile", "history").out
    for line in ('+ user: {"name": "Anna", "age": 40}', 'user.name: "Anna" → "Bea"', "- user.age: 40", "she said so"):
        assert line in out
    back = mindex("profile", "rollback", versions[1]["version"], "--reason", "a mistake", "--json").json
    assert set(back) == {"id", "change"}
    assert mindex("profile", "get", "user", "--json").json == {"value": {"name": "Anna", "age": 40}}
    assert mindex("profile", "history", "--json").json["versions"][-1]["reason"] == "a mistake"


# ── conversations ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_turn_is_added_found_and_shown(mindex: Mindex, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = []
    for n in range(5):
        ran = mindex("conversation", "add", f"question {n}", f"answer {n}", "--session", "s1", "--tag", "t",
                     "--at", f"2026-03-01T10:0{n}:00Z", "--json")  # fmt: skip
        assert set(ran.json) == {"id", "session_id", "created_at", "redacted"}
        ids.append(ran.json["id"])
    monkeypatch.setattr("sys.stdin", io.StringIO("a long answer\nof two lines"))
    piped = mindex("conversation", "add", "and then?", "-").out
    assert "remembered · session " in piped

    (hit,) = mindex("conversation", "search", '"question 2"', "--session", "s1", "--around", "1", "--json").json[
        "results"
    ]
    assert (hit["id"], hit["kind"], hit["fields"]) == (ids[2], "turn", {"session_id": "s1"})
    assert [beside["id"] for beside in hit["around"]] == [ids[1], ids[3]]
    out = mindex("conversation", "search", '"question 2"', "--around", "1").out
    assert "session_id: s1" in out and "question 1" in out and "answer 3" in out
    assert mindex("conversation", "search", "question", "--before", "2026", "--json").json["total"] == 0
    assert mindex("conversation", "search", "lines", "--after", "1d", "--json").json["total"] == 1

    shown = mindex("conversation", "show", "s1", "--json").json
    assert ([turn["id"] for turn in shown["records"]], shown["total"]) == (ids, 5)
    around = mindex("conversation", "show", ids[2], "--json").json["records"]
    assert [turn["id"] for turn in around] == ids
    assert mindex("conversation", "show", ids[0], "--around", "1", "--json").json["total"] == 2
    assert mindex("conversation", "show", "s1").out.startswith("5 exchanges\n\n")
    assert mindex("conversation", "show", ids[2], "--around", "0").out.startswith("1 exchange\n\n")


def test_a_secret_in_a_turn_is_named(mindex: Mindex) -> None:
    ran = mindex("conversation", "add", f"my key is {KEY}", "thanks")
    assert "redacted: anthropic-key" in ran.out
    assert KEY not in mindex("conversation", "search", "key").out


# ── all of it among the rest ──────────────────────────────────────────────────────────────────────────────────


def test_search_get_and_history_show_the_fields(mindex: Mindex) -> None:
    mindex(
        "skill", "add", "Brief", "--trigger-type", "interval", "--trigger-config", INTERVAL, "--instructions", "Sum up"
    )
    (hit,) = mindex("search", "Brief", "--json").json["results"]
    assert hit["fields"]["trigger_config"] == {"interval_minutes": 30}
    assert "instructions" not in hit["fields"]  # it is in the text
    assert 'trigger_config: {"interval_minutes": 30}' in mindex("search", "Brief").out
    id_ = add_contact(mindex, company="Acme")
    mindex("contact", "update", id_, "--company", "Globex")
    assert 'company: "Acme" → "Globex"' in mindex("history", id_).out
    assert mindex("get", f"history:{id_}", "due", "profile", "--json").json["missing"] == ["profile"]


def test_get_takes_all_special_references(mindex: Mindex) -> None:
    mindex("profile", "set", "user.name", "Anna")
    turn = mindex("conversation", "add", "hello", "there", "--json").json["id"]
    ran = mindex("get", "profile.user.name", f"{turn}±2", f"history:{turn}", "timeline:1d..", "due", "--json")
    assert ran.code == 0
    assert [record["kind"] for record in ran.json["records"]] == ["profile", "turn", "history", "timeline"]
    assert ran.json["notes"] == ["nothing is due"]


def test_the_timeline_is_filtered_by_kind(mindex: Mindex) -> None:
    add_contact(mindex)
    mindex("add", "A fact")
    events = mindex("timeline", "--after", "1d", "--kind", "contact", "--json").json["events"]
    assert [event["kind"] for event in events] == ["contact"]


def test_an_anchor_is_stored_and_shown(mindex: Mindex, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("one\ntwo\nthree\n")
    id_ = mindex("add", "Two is made here", "--anchor", "app.py:2-3", "--json").json["id"]
    (hit,) = mindex("search", "made", "--json").json["results"]
    assert hit["anchor"] == {"at": f"{tmp_path / 'app.py'}:2-3", "state": "fresh"}
    (tmp_path / "app.py").write_text("zero\none\ntwo\nthree\n")
    assert f"anchor {tmp_path / 'app.py'}:3-4 drifted" in mindex("get", id_).out
    assert mindex("update", id_, "--anchor", "app.py:1").code == 0
    (record,) = mindex("get", id_, "--json").json["records"]
    assert record["anchor"] == {"at": f"{tmp_path / 'app.py'}:1-1", "state": "fresh"}
    is_one_error(mindex("add", "Elsewhere", "--anchor", "none.py:1"), "there is no file none.py")


def test_a_text_does_not_replace_an_object_of_the_profile_unless_asked_to(mindex: Mindex) -> None:
    mindex("profile", "set", "user.name", "Ada")
    refused = mindex("profile", "set", "user", "oops")
    is_one_error(refused)
    assert "'user' is an object that holds user.name; set one of its places, such as user.name" in refused.err
    assert mindex("profile", "get", "--json").json == {"profile": {"user": {"name": "Ada"}}}
    assert mindex("profile", "set", "user", "oops", "--replace").code == 0
    assert mindex("profile", "get", "--json").json == {"profile": {"user": "oops"}}
    assert mindex("profile", "set", "--remove", "user", "--replace").code == 2


def test_two_contacts_of_one_name_are_reported_by_add_and_get(mindex: Mindex) -> None:
    first = add_contact(mindex, "Anna", company="Acme")
    added = mindex("contact", "add", "Anna", "--phone", "+47 1", "--link", "x")
    assert added.code == 2 and "--links" in added.err
    added = mindex("contact", "add", "Anna", "--phone", "+47 1", "--links", "a.example", "--links", "b.example")
    assert f"note: another contact is called Anna: {first}; name them by id" in added.out
    assert "phone: +47 1\nlinks: a.example, b.example" in added.out
    asked = mindex("contact", "get", "Anna")
    is_one_error(asked)
    assert "there are 2 contacts called 'Anna'" in asked.err
    assert first in asked.err and "(Acme)" in asked.err and "(+47 1)" in asked.err
    shown = mindex("get", "anna")
    assert shown.code == 0
    assert "company: Acme" in shown.out and "phone: +47 1" in shown.out


def test_get_finds_contacts_projects_and_skills_by_name(mindex: Mindex) -> None:
    contact = add_contact(mindex, "Anna Berg", company="Acme")
    mindex("project", "add", "Harbour")
    mindex("skill", "add", "Standup", "--trigger-type", "manual", "--instructions", "Ask everyone.")
    shown = mindex("get", "Anna Berg, harbour, Standup")
    assert (shown.code, shown.err) == (0, "")
    assert [row["kind"] for row in mindex("get", "Anna Berg, harbour, Standup", "--json").json["records"]] == [
        "contact", "project", "skill",
    ]  # fmt: skip
    mindex("contact", "delete", contact)
    is_one_error(mindex("get", "Anna Berg"), "nothing found for Anna Berg")
