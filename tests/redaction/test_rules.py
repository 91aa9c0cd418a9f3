"""What the table of rules promises about its patterns, read from the patterns themselves."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from mindex.redaction import password_words, tables
from mindex.redaction.patterns import RULES
from mindex.redaction.tables import UNBROKEN

_parser = import_module("re._parser")  # private, and the only way to see what a pattern may match
_ZERO_WIDTH = ("ASSERT", "ASSERT_NOT", "AT", "GROUPREF")
_UNBROKEN = [rule for rule in RULES if rule.unbroken]
_BLANKS = tuple(map(ord, " \t\n\r\xa0\u3000"))


def test_what_an_unbroken_rule_matches_is_long_and_has_no_blank() -> None:
    for rule in _UNBROKEN:
        tree = _parser.parse(rule.source)
        assert tree.getwidth()[0] >= rule.unbroken, rule.source
        assert not _may_match_blank(tree), rule.source


def test_the_words_of_an_unbroken_rule_are_in_the_run_that_it_matches() -> None:
    """Only runs as long as a token are searched for them: a word with a blank would never be seen."""
    for rule in _UNBROKEN:
        assert not any(set(word) & set(map(chr, _BLANKS)) for word in (*rule.starts, *rule.hints)), rule.source
        assert all(word.lower() in rule.source.lower().replace("\\", "") for word in rule.hints), rule.source


def test_what_a_rule_matches_begins_with_its_head() -> None:
    for rule in RULES:
        assert rule.pattern.pattern.startswith(rule.head), rule.source
        assert not rule.head or (rule.starts and not rule.hints)  # the head is asked where one of the starts is


def test_most_rules_are_unbroken_so_that_prose_is_passed_over_quickly() -> None:
    assert sum(rule.unbroken >= UNBROKEN for rule in RULES) > 0.7 * len(RULES)


def _may_match_blank(tree: Any) -> bool:
    return any(_node_may_match_blank(str(kind), value) for kind, value in tree)


def _node_may_match_blank(kind: str, value: Any) -> bool:
    if kind in _ZERO_WIDTH:
        return False
    if kind == "LITERAL":
        return value in _BLANKS
    if kind == "IN":
        return any(_class_has(value, blank) for blank in _BLANKS)
    if kind == "BRANCH":
        return any(map(_may_match_blank, value[1]))
    if kind == "SUBPATTERN":
        return _may_match_blank(value[3])
    if kind in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        return _may_match_blank(value[2])
    if kind == "ATOMIC_GROUP":
        return _may_match_blank(value)
    return True  # a dot, or something that no rule has yet


def _class_has(members: Any, code: int) -> bool:
    kinds = {str(kind): value for kind, value in members}
    inside = any(
        value == code if str(kind) == "LITERAL" else value[0] <= code <= value[1]
        for kind, value in members
        if str(kind) in ("LITERAL", "RANGE")
    )
    categories = {str(value) for kind, value in members if str(kind) == "CATEGORY"}
    inside |= any(("NOT" in name) != name.endswith("SPACE") for name in categories)
    return inside != ("NEGATE" in kinds)


@pytest.mark.parametrize("table", ["checks", "nearby_passwords", "one_time_codes", "password_values", "random_tokens"])
def test_every_pattern_of_a_table_is_used_and_can_be_compiled(table: str) -> None:
    modules = "".join(path.read_text("utf-8") for path in Path(tables.__file__).parent.glob("*.py"))
    sources = tables.load_table(table)["patterns"]
    given = dict.fromkeys(("between_lines", "services"), "x") | {"encoded_line": "40"} | password_words.PARTS
    patterns = tables.Patterns(table, given)
    for name in sources:
        assert f".{name}." in modules or f"<<{name}>>" in str(sources), name
        assert isinstance(getattr(patterns, name), re.Pattern)
