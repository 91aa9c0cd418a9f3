"""The JSON of `mindex eval` names only what exists."""

from __future__ import annotations

from dataclasses import fields

import pytest

from mindex_eval import results
from mindex_eval.json_rules import RULES


@pytest.mark.parametrize("name", RULES)
def test_a_rule_names_a_class_and_attributes_that_exist(name: str) -> None:
    kind, rule = getattr(results, name), RULES[name]
    named = {*rule.shown, *rule.rename, *rule.always, *rule.digits, *rule.flat, *rule.views}
    assert [one for one in named - set(rule.views) if not hasattr(kind, one)] == []


@pytest.mark.parametrize("name", RULES)
def test_a_rule_decides_only_about_keys_that_are_written(name: str) -> None:
    kind, rule = getattr(results, name), RULES[name]
    written = set(rule.shown or (field.name for field in fields(kind)))
    assert {*rule.rename, *rule.always, *rule.digits, *rule.flat, *rule.views} <= written
