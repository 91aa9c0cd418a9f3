"""One rule turns dataclasses into JSON; the table of deviations names only what exists."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from importlib import import_module

import pytest

from mindex.datatypes import AddResult, Check, Hit, PurgeResult, Record, Stage, Trace
from mindex.datatypes.reports import CollectionStatus, EmbeddingStatus, ListedModel, SimilarMemory, Status
from mindex.present.text import note_lines
from mindex.present.to_json import RULES, Rule, compact_json, to_json, wording

MODULES = [
    import_module(f"mindex.{name}")
    for name in (
        "datatypes.records", "datatypes.results", "datatypes.reports", "datatypes.consolidation",
        "datatypes.transfer", "datatypes.access_tokens", "present.answer_view", "present.records_view",
    )
]  # fmt: skip


def names_of(rule: Rule) -> set[str]:
    """Every name that a rule says something about, but for those that it makes itself."""
    grouped = {name for group in rule.groups.values() for name in group}
    named = {*rule.shown, *rule.rename, *rule.always, *rule.digits, *rule.flat, *grouped}
    return named - set(rule.views) - set(rule.groups)


@pytest.mark.parametrize("name", RULES)
def test_a_rule_names_a_class_and_attributes_that_exist(name: str) -> None:
    (kind,) = {getattr(module, name) for module in MODULES if hasattr(module, name)}
    assert is_dataclass(kind)
    assert [one for one in names_of(RULES[name]) if not hasattr(kind, one)] == []


@pytest.mark.parametrize("name", RULES)
def test_a_rule_decides_only_about_keys_that_are_written(name: str) -> None:
    (kind,) = {getattr(module, name) for module in MODULES if hasattr(module, name)}
    rule = RULES[name]
    shown = rule.shown or tuple(field.name for field in fields(kind))
    written = {*shown, *(member for group in shown for member in rule.groups.get(group, ()))}
    assert {*rule.rename, *rule.always, *rule.digits, *rule.flat, *rule.views, *rule.groups} <= written


def test_fields_come_in_order_and_those_at_their_default_are_left_out() -> None:
    assert to_json(CollectionStatus("docs", "/docs", 0, 0)) == {
        "name": "docs",
        "root": "/docs",
        "documents": 0,
        "chunks": 0,
    }
    shown = to_json(CollectionStatus("docs", "/docs", 2, 9, indexed_at=1_750_000_000_000, missing=True))
    assert list(shown) == ["name", "root", "documents", "chunks", "indexed_at", "missing"]


def test_times_are_written_as_iso_8601_with_their_zone() -> None:
    shown = to_json(CollectionStatus("docs", "/docs", 2, 9, indexed_at=1_750_000_000_000))
    assert shown["indexed_at"] == "2025-06-15T15:06:40Z"


def test_values_inside_values_follow_the_same_rule() -> None:
    status = Status(
        "a.db", 3, {"memory": 2}, (CollectionStatus("docs", "/", 1, 1),), EmbeddingStatus("none"), "keyword", 9
    )
    shown = to_json(status)
    assert shown["collections"] == [{"name": "docs", "root": "/", "documents": 1, "chunks": 1}]
    assert (shown["records"], shown["embedding"]) == ({"memory": 2}, {"provider": "none", "pending": 0})


def test_a_mapping_may_hold_values() -> None:
    assert to_json({"checks": [Check("file", True, "fine")], "ok": True}) == {
        "checks": [{"name": "file", "ok": True, "message": "fine"}],
        "ok": True,
    }


def test_a_property_is_written_where_the_rule_names_it() -> None:
    shown = to_json(AddResult("a", created=False, similar=(SimilarMemory("b", "tea", 0.5),)))
    assert list(shown) == ["id", "created", "duplicate", "similar", "conflicts", "redacted"]
    assert (shown["duplicate"], shown["redacted"]) == (True, [])


def test_a_group_is_a_separate_object() -> None:
    assert to_json(PurgeResult(1, 0, 2, notes=("a note",))) == {
        "purged": {"records": 1, "vectors": 0, "history": 2},
        "notes": ["a note"],
    }


def test_a_view_that_is_none_is_left_out() -> None:
    assert "fix" not in to_json(Check("file", True, "fine", fix="mend it"))
    assert to_json(Check("file", False, "broken", fix="mend it"))["fix"] == "mend it"
    assert "active" not in to_json(ListedModel("m", "rerank", "local"))


def test_an_explanation_has_the_published_keys_and_rounded_numbers() -> None:
    trace = Trace((Stage("keyword", 1 / 3),), keyword_rank=1, cosine_zscore=2 / 3, model_fluency=1.0, matched_share=0.5)
    assert to_json(Hit(Record(id="a", kind="memory", text="tea"), 0.3, 1 / 7, trace)) == {
        "keyword_rank": 1,
        "matched_share": 0.5,
        "cosine_zscore": 0.6667,
        "model_fluency": 1.0,
        "coverage": 0.5,
        "z": 0.6667,
        "g": 1.0,
        "relevance": 0.1429,
        "stages": [{"name": "keyword", "change": 0.333333}],
    }


def test_compact_json_has_no_blanks_and_no_escapes() -> None:
    assert compact_json({"name": "Ångström", "tags": ("a", "b")}) == '{"name":"Ångström","tags":["a","b"]}'


def test_messages_are_written_in_the_words_of_the_interface() -> None:
    report = PurgeResult(1, 1, 1, notes=("run `mindex index`",))
    contact = {"notes": ["run `mindex index`"]}  # a stored value, and not a message
    with wording(lambda message: message.replace("run `mindex index`", "call `index`")):
        assert to_json(report)["notes"] == ["call `index`"]
        assert note_lines(report.notes) == ["note: call `index`"]
        assert to_json(contact) == contact
    assert to_json(report)["notes"] == ["run `mindex index`"]
