"""Contacts, projects and skills through `Memory`."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindex.datatypes import Record
from mindex.errors import AmbiguousIdError, ConflictError, NotFoundError, UsageError
from mindex.memory import Memory
from mindex.transfer.service import Format


@pytest.fixture
def memory(keyword_memory: Memory) -> Memory:
    return keyword_memory


@pytest.fixture
def anna(memory: Memory) -> Record:
    return memory.contacts.add(name="Anna Lindqvist", email="anna@acme.example", company="Acme", role="CTO")


def skill(memory: Memory, name: str = "Brief", **fields: object) -> Record:
    return memory.skills.add(name=name, trigger_type="manual", instructions="Sum up the day", **fields)  # type: ignore[arg-type]


def test_a_contact_is_added_listed_read_updated_and_deleted(memory: Memory, anna: Record) -> None:
    assert memory.contacts.get(anna.id).fields == {
        "name": "Anna Lindqvist",
        "email": "anna@acme.example",
        "company": "Acme",
        "role": "CTO",
        "type": "work",
    }
    change = memory.contacts.update(anna.id, "promoted", role="CEO", company=None)
    assert (change.reason, change.after.fields.get("role"), "company" in change.after.fields) == (
        "promoted",
        "CEO",
        False,
    )
    assert memory.contacts.get(anna.id).summary == "Anna Lindqvist (CEO)"
    memory.contacts.delete(anna.id, "left")
    assert memory.contacts.list().records == ()
    with pytest.raises(NotFoundError):
        memory.contacts.get(anna.id)


def test_a_deleted_contact_is_restored_and_one_whose_adding_is_undone_is_gone(memory: Memory, anna: Record) -> None:
    memory.contacts.delete(anna.id)
    memory.restore(anna.id)
    assert memory.contacts.list().records == (memory.contacts.get(anna.id),)
    memory.undo(anna.id)
    assert memory.contacts.list().records == ()


def test_one_change_is_undone_and_what_was_changed_since_stays(memory: Memory, anna: Record) -> None:
    first = memory.contacts.update(anna.id, company="Globex")
    memory.contacts.update(anna.id, role="CEO")
    memory.undo(str(first.change))
    record = memory.contacts.get(anna.id)
    assert (record.fields["company"], record.fields["role"]) == ("Acme", "CEO")
    assert "company: Acme" in record.text and "role: CEO" in record.text
    assert [hit.record.id for hit in memory.search("Acme CEO").hits] == [anna.id]


@pytest.mark.parametrize("email", ["anna@acme.example", "ANNA@Acme.Example"])
def test_no_two_contacts_of_an_agent_share_an_email(memory: Memory, anna: Record, email: str) -> None:
    with pytest.raises(ConflictError, match=anna.id):
        memory.contacts.add(name="Another Anna", email=email)
    bo = memory.contacts.add(name="Bo")
    with pytest.raises(ConflictError, match="has the same email"):
        memory.contacts.update(bo.id, email=email)
    assert memory.contacts.add(agent="other", name="Anna", email=email).id != anna.id


def test_a_contact_is_not_restored_when_another_one_has_its_email_by_now(memory: Memory, anna: Record) -> None:
    memory.contacts.delete(anna.id)
    second = memory.contacts.add(name="Anna the second", email="anna@acme.example")
    with pytest.raises(ConflictError):
        memory.restore(anna.id)
    with pytest.raises(ConflictError):
        memory.undo(anna.id)
    memory.contacts.update(second.id, email="second@acme.example")
    memory.restore(anna.id)
    assert len(memory.contacts.list().records) == 2


def test_contacts_without_an_email_do_not_share_one(memory: Memory) -> None:
    assert memory.contacts.add(name="A").id != memory.contacts.add(name="A").id


def test_no_two_projects_or_skills_share_a_name(memory: Memory) -> None:
    memory.projects.add(name="Atlas")
    skill(memory, "Brief")
    with pytest.raises(ConflictError):
        memory.projects.add(name="atlas")
    with pytest.raises(ConflictError):
        skill(memory, "BRIEF")


def test_lists_are_by_field_and_by_part_of_a_name(memory: Memory, anna: Record) -> None:
    bo = memory.contacts.add(name="Bo Berg", company="Globex", type="personal")
    assert memory.contacts.list().records == (memory.contacts.get(anna.id), memory.contacts.get(bo.id))
    assert [one.id for one in memory.contacts.list(company="globex").records] == [bo.id]
    assert [one.id for one in memory.contacts.list(name="LIND").records] == [anna.id]
    assert [one.id for one in memory.contacts.list(type="personal").records] == [bo.id]
    assert [one.id for one in memory.contacts.list(email="Anna@acme.example").records] == [anna.id]
    page = memory.contacts.list(limit=1)
    assert (len(page.records), page.total) == (1, 2)


def test_projects_are_listed_by_primary_contact_or_participant(memory: Memory, anna: Record) -> None:
    led = memory.projects.add(name="Atlas", primary_contact_id=anna.id)
    joined = memory.projects.add(name="Borealis", participants=["x", anna.id])
    memory.projects.add(name="Other")
    assert [one.id for one in memory.projects.list(contact=anna.id).records] == [led.id, joined.id]
    with pytest.raises(UsageError, match="only projects"):
        memory.contacts.list(contact=anna.id)


def test_skills_are_listed_by_whether_they_are_enabled(memory: Memory) -> None:
    on, off = skill(memory, "On"), skill(memory, "Off", enabled=False)
    assert [one.id for one in memory.skills.list(enabled=True).records] == [on.id]
    assert [one.id for one in memory.skills.list(enabled="no").records] == [off.id]


def test_a_filter_that_could_never_match_is_an_error(memory: Memory) -> None:
    with pytest.raises(UsageError):
        memory.contacts.list(type="enemy")
    with pytest.raises(UsageError):
        memory.contacts.list(shoe_size="44")
    with pytest.raises(UsageError):
        memory.contacts.list(limit=0)
    with pytest.raises(UsageError, match="unknown kind"):
        memory.field_entries("pet")  # type: ignore[arg-type]


def test_a_thing_is_found_by_id_prefix_or_name(memory: Memory, anna: Record) -> None:
    for reference in (anna.id, anna.id[:6], anna.id.upper(), "Anna Lindqvist", "anna lindqvist"):
        assert memory.contacts.get(reference).id == anna.id
    for reference in ("nobody", "", "Anna"):
        with pytest.raises(NotFoundError, match="there is no contact"):
            memory.contacts.get(reference)
    with pytest.raises(NotFoundError, match="there is no project"):
        memory.projects.get(anna.id)


def test_a_name_that_many_ids_begin_with_is_still_a_name(memory: Memory) -> None:
    for n in range(60):
        memory.contacts.add(name=f"Nobody {n}")
    letter = max("abcdefgh234567", key=lambda one: len(memory.store.retrieval.resolve(one)))
    with pytest.raises(AmbiguousIdError):
        memory.contacts.get(letter)
    named = memory.contacts.add(name=letter)
    assert memory.contacts.get(letter).id == named.id


def test_agents_do_not_see_the_contacts_of_others(memory: Memory, anna: Record) -> None:
    theirs = memory.contacts.add(agent="other", name="Theirs", email="t@acme.example")
    assert [one.id for one in memory.contacts.list().records] == [anna.id]
    assert [one.id for one in memory.contacts.list(agent="other").records] == [theirs.id]
    assert {one.id for one in memory.contacts.list(agent="*").records} == {anna.id, theirs.id}
    with pytest.raises(NotFoundError):
        memory.contacts.get("Theirs")
    assert [hit.record.id for hit in memory.search("acme", kinds=["contact"]).hits] == [anna.id]
    with pytest.raises(UsageError, match="means all agents"):
        memory.contacts.add(agent="*", name="All")


def test_search_finds_each_kind_by_its_text(memory: Memory, anna: Record) -> None:
    project = memory.projects.add(name="Atlas", description="Moving the warehouse to Rotterdam")
    brief = skill(memory, required_tools=["web_search"], description="every morning")
    assert [hit.record.id for hit in memory.search("Lindqvist").hits] == [anna.id]
    assert [hit.record.id for hit in memory.search("Rotterdam").hits] == [project.id]
    assert [hit.record.id for hit in memory.search("web_search").hits] == [brief.id]
    assert [hit.record.kind for hit in memory.search("Atlas", kinds=["project"]).hits] == ["project"]
    memory.projects.update(project.id, description="Moving it to Genoa")
    assert memory.search("Rotterdam").hits == ()


def test_secrets_in_any_field_are_left_out(memory: Memory) -> None:
    key = "sk-ant-api03-" + "a1B2" * 10
    contact = memory.contacts.add(name="Anna", notes=f"her key is {key}", role="password: hunter2hunter2")
    made = skill(
        memory,
        trigger_config={"headers": {"api_key": "abcd1234efgh5678"}},
        execution_plan=[{"id": "1", "parameters": {"deep": [key]}}],
        required_tools=[key],
    )
    changed = memory.contacts.update(contact.id, f"told with {key}", company=f"Acme {key}")
    for record in (contact, made, changed.after):
        stored = str(record)
        assert key not in stored and "hunter2" not in stored and "abcd1234" not in stored
    assert key not in str(memory.history(contact.id)) + str(memory.store.retrieval.record(made.id))


def test_the_text_of_a_thing_changes_only_through_its_fields(memory: Memory, anna: Record) -> None:
    with pytest.raises(UsageError, match="contact update"):
        memory.update(anna.id, text="Somebody else")
    memory.update(anna.id, tags=["vip"])
    assert memory.contacts.get(anna.id).tags == ("vip",)


def test_nothing_to_change_is_an_error(memory: Memory, anna: Record) -> None:
    with pytest.raises(UsageError, match="nothing to change"):
        memory.contacts.update(anna.id)


def test_a_skill_whose_cron_line_is_none_is_not_stored(memory: Memory) -> None:
    with pytest.raises(UsageError, match="not a cron line"):
        memory.skills.add(name="A", trigger_type="cron", instructions="x", trigger_config={"schedule": "at nine"})
    made = skill(memory)
    with pytest.raises(UsageError, match="trigger_config has no 'schedule'"):
        memory.skills.update(made.id, trigger_type="cron")
    assert memory.skills.get(made.id).fields["trigger_type"] == "manual"


# ── two of one name ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_second_contact_of_one_name_is_reported_and_get_lists_both(memory: Memory, anna: Record) -> None:
    assert memory.contacts.notes(anna) == ()
    second = memory.contacts.add(name="anna lindqvist", company="Globex")
    (note,) = memory.contacts.notes(second)
    assert note == f"another contact is called anna lindqvist: {anna.id}; name them by id"
    for call in (memory.contacts.get, memory.contacts.delete, lambda id_: memory.contacts.update(id_, role="CEO")):
        with pytest.raises(AmbiguousIdError, match="there are 2 contacts called 'Anna Lindqvist'") as raised:
            call("Anna Lindqvist")
        assert raised.value.hint == f"give the id: {anna.id} (anna@acme.example), {second.id} (Globex)"
    assert memory.contacts.get(second.id) == memory.entries.get(second.id)
    memory.contacts.delete(second.id)
    assert memory.contacts.get("Anna Lindqvist").id == anna.id


def test_a_contact_that_gets_the_name_of_another_one_is_reported(memory: Memory, anna: Record) -> None:
    bob = memory.contacts.add(name="Bob")
    assert memory.contacts.update(bob.id, name="Bobby").notes == ()
    assert anna.id in memory.contacts.update(bob.id, name="Anna Lindqvist").notes[0]
    assert memory.contacts.update(bob.id, company="Acme").notes == ()


# ── more about a contact ──────────────────────────────────────────────────────────────────────────────────────


def test_a_contact_has_phone_address_birthday_and_links(memory: Memory) -> None:
    more = {
        "phone": "+47 22 00 00 00",
        "address": "Storgata 1, Oslo",
        "birthday": "1990-05-17",
        "links": ["https://kari.example", "https://code.example/kari"],
    }
    kari = memory.contacts.add(name="Kari", **more)
    assert {name: kari.fields[name] for name in more} == more
    for query in ("Storgata", "kari.example", '"47 22 00 00 00"', "1990-05-17"):
        assert [hit.record.id for hit in memory.search(query).hits] == [kari.id]
    assert memory.contacts.list(birthday="1990-05-17").total == 1
    memory.contacts.update(kari.id, birthday="05-17", links=None)
    assert memory.contacts.get("Kari").fields["birthday"] == "05-17"
    assert "links" not in memory.contacts.get("Kari").fields


@pytest.mark.parametrize("birthday", ["May", "17.5.1990", "1990-02-30", "02-30", "1990-05"])
def test_a_birthday_is_a_date(memory: Memory, birthday: str) -> None:
    with pytest.raises(UsageError, match="invalid birthday of a contact; a date such as 1990-05-17 is expected"):
        memory.contacts.add(name="Kari", birthday=birthday)


# ── a schedule under another name ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"cron": "0 9 * * 1-5"}, "trigger_config has no 'schedule', but 'cron'"),
        ({"expression": "0 9 * * *", "timezone": "UTC"}, "trigger_config has no 'schedule', but 'expression'"),
        ({}, "trigger_config has no 'schedule'"),
    ],
)
def test_a_cron_trigger_without_a_schedule_names_the_key_that_is_missing(
    memory: Memory, config: dict[str, object], named: str
) -> None:
    with pytest.raises(UsageError) as raised:
        memory.skills.add(name="Brief", trigger_type="cron", trigger_config=config, instructions="Sum up")
    assert raised.value.message == named
    assert '{"schedule": "0 9 * * 1-5"}' in raised.value.hint


@pytest.mark.parametrize("form", ["jsonl", "markdown"])
def test_every_field_of_a_contact_survives_export_and_import(memory: Memory, tmp_path: Path, form: Format) -> None:
    more = {"phone": "+47 1", "address": "Storgata 1", "birthday": "05-17", "links": ["a.example"], "notes": "tall"}
    kari = memory.contacts.add(name="Kari", email="kari@a.example", **more)
    memory.transfer.export(tmp_path / "exported", format=form)
    with Memory(tmp_path / "other.db", options={"embedding.provider": "none"}) as other:
        other.transfer.import_(tmp_path / "exported")
        assert other.contacts.get("Kari").fields == kari.fields
