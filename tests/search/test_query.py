from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.datatypes import AllOf, AnyOf, KeywordNode, Phrase, Prefix, Term, Without
from mindex.search.query import MAX_QUERY, parse
from mindex.store.sqlite.filter_sql import match_expression


def test_plain_words_are_any_of_without_stop_words() -> None:
    parsed = parse("how is data cached")
    assert not parsed.strict
    assert parsed.tokens == ("data", "cach")
    assert parsed.node == AnyOf((Term("data"), Term("cach")))


def test_stop_words_are_kept_when_nothing_else_is_left() -> None:
    assert parse("to be or not to be").tokens == ("to", "be", "or", "not")


@pytest.mark.parametrize(
    ("query", "node"),
    [
        ('"coding preferences"', Phrase(("code", "prefer"))),
        ("red OR tea", AnyOf((Term("red"), Term("tea")))),
        ("red AND tea", AllOf((Term("red"), Term("tea")))),
        ("red NOT tea", Without(Term("red"), Term("tea"))),
        ("red AND NOT tea", Without(Term("red"), Term("tea"))),
        ("red tea NOT cup", Without(AllOf((Term("red"), Term("tea"))), Term("cup"))),
        ("(red OR tea) AND cup", AllOf((AnyOf((Term("red"), Term("tea"))), Term("cup")))),
        ("program*", AnyOf((Prefix("program"), Term("program")))),
        ("programming*", AnyOf((Prefix("programming"), Term("program")))),
        ("title:red", Term("red", "title")),
        ("{content}: red", AnyOf((Term("red", "text"), Term("red", "identifiers")))),
        (
            "{summary}: red tea",
            AllOf((AnyOf((Term("red", "summary"), Term("red", "identifiers"))), Term("tea"))),
        ),
        ('title:"red tea"', Phrase(("red", "tea"), "title")),
    ],
)
def test_operators_quotes_prefixes_and_fields_make_it_strict(query: str, node: KeywordNode) -> None:
    parsed = parse(query)
    assert parsed.strict
    assert parsed.node == node


def test_a_model_reads_what_is_wanted_not_what_is_excluded() -> None:
    parsed = parse('"red tea" cup NOT milk')
    assert parsed.text == "red tea cup"
    assert "milk" not in parsed.tokens


def test_a_strict_identifier_is_whole_or_its_parts_side_by_side() -> None:
    node = parse("PolicyController AND red").node
    assert node == AllOf(
        (
            AnyOf((Phrase(("polici", "control")), Term("policycontrol"))),
            Term("red"),
        )
    )


@pytest.mark.parametrize(
    "query",
    [
        'say "red',
        "NOT red",
        "red AND",
        "OR",
        "NOT",
        "*",
        "{content}:",
        "(red OR tea",
        "red)",
        "a* b(",
        '""',
        "AND OR NOT",
    ],
)
def test_what_does_not_parse_becomes_plain_words(query: str) -> None:
    assert not parse(query).strict


@pytest.mark.parametrize("query", ["do NOT use tabs", "is NOT null"])
def test_not_after_words_that_ask_for_nothing_is_not_an_operator(query: str) -> None:
    assert not parse(query).strict


@pytest.mark.parametrize(
    ("query", "excluded"),
    [
        ("python NOT fastapi", Term("fastapi")),
        ("python NOT fastapi NOT flask", AnyOf((Term("fastapi"), Term("flask")))),
        ("(python NOT fastapi) web", Term("fastapi")),
        ("(python NOT fastapi) OR web", None),
        ("(python NOT fastapi) OR (web NOT fastapi)", Term("fastapi")),
        ('python NOT "fast api"', Phrase(("fast", "api"))),
        ("python fastapi", None),
        ("NOT fastapi", None),
    ],
)
def test_what_no_hit_may_match(query: str, excluded: KeywordNode | None) -> None:
    assert parse(query).excluded == excluded


def test_the_terms_of_a_query_are_what_a_text_can_hold_of_it() -> None:
    terms = parse('how is "the RedisClient" prog* NOT milk').terms
    assert terms.tokens == {"redi", "client", "redisclient", "prog"} - {"redisclient"}
    assert terms.prefixes == ("prog",)
    assert parse("how is PolicyController cached").terms.tokens == {"polici", "control", "policycontrol", "cach"}
    assert parse("to be").terms.tokens == {"to", "be"}


@pytest.mark.parametrize("query", ["TypeError: x is not", "http://example.com/a?b=c", "std::vector", "key:value"])
def test_an_unknown_field_is_just_words(query: str) -> None:
    parsed = parse(query)
    assert not parsed.strict
    assert parsed.node is not None


@pytest.mark.parametrize("query", ["???", "🙂", "\0", "=>", "   "])
def test_punctuation_alone_asks_for_no_word(query: str) -> None:
    assert parse(query).node is None


def test_a_single_cjk_character_is_a_prefix_of_the_indexed_pairs() -> None:
    assert parse("猫").node == Prefix("猫")


def test_an_endless_query_is_cut() -> None:
    assert len(parse("word " * 100_000).text) <= MAX_QUERY


def test_deep_nesting_is_not_followed() -> None:
    assert not parse("(" * 500 + '"a b"' + ")" * 500).strict


_WORDS = [*'abAB01"(){}:*-_ .\0東京é', " AND ", " OR ", " NOT ", "title:", "{content}:", 'x"']


@given(st.lists(st.sampled_from(_WORDS)).map("".join))
def test_no_text_makes_it_raise_and_every_expression_is_well_formed(text: str) -> None:
    node = parse(text).node
    if node is not None:
        expression = match_expression(node)
        assert expression.count("(") == expression.count(")")
        assert expression.count('"') % 2 == 0
