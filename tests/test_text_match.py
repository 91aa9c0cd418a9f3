"""Where a text holds what a query seeks."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.datatypes import QueryTerms
from mindex.search.query import parse
from mindex.text_match import identifier_around, literal_ranges, matched_ranges, merged_ranges


def matched(query: str, text: str) -> list[str]:
    return [text[start:end] for start, end in matched_ranges(text, parse(query).terms)]


@pytest.mark.parametrize(
    ("query", "text", "words"),
    [
        ("how is data cached", "Caching: the cache holds data, caches it.", ["Caching", "cache", "data", "caches"]),
        ("redis client", "A RedisClient and redis_pool.", ["RedisClient", "redis"]),
        ("RedisClient", "src/cache/RedisClient.cs talks to redis", ["RedisClient", "redis"]),
        ("users", "the user's users", ["user's", "users"]),
        ("C++", "Written in C++ and C#, not in C.", ["C++", "C", "C"]),
        ("v2.1.4", "since 2.1.4, before v2.2", ["2.1.4", "v2"]),
        ("北京", "我住在北京，北方。", ["北京"]),
        ("北", "我住在北京，北方。", ["北京", "北方"]),
        ("prog*", "A programmer programs. A frog.", ["programmer", "programs"]),
        ("redis NOT session", "redis keeps a session", ["redis"]),
        ("Größe", "Die GROSSE Größe", ["GROSSE", "Größe"]),
        ("to be or not", "To be", ["To", "be"]),
        ("nothing", "Some text", []),
    ],
)
def test_words_are_matched_as_the_analyzer_reads_them(query: str, text: str, words: list[str]) -> None:
    assert matched(query, text) == words


@pytest.mark.parametrize(
    ("query", "text", "words"),
    [
        ("cafe", "Ein Cafe\u0301 am Meer", ["Cafe\u0301"]),
        ("redis", "ﬁne Ｒｅｄｉｓ server", ["Ｒｅｄｉｓ"]),
        ("バス", "ﾊﾞｽ停", ["ﾊﾞｽ"]),
        ("한국", "\u1112\u1161\u11ab\u1100\u116e\u11a8 여행", ["\u1112\u1161\u11ab\u1100\u116e\u11a8"]),
    ],
)
def test_ranges_count_the_characters_of_the_text_as_it_is_stored(query: str, text: str, words: list[str]) -> None:
    assert matched(query, text) == words


@pytest.mark.parametrize(
    ("literal", "text", "places"),
    [
        ("cat", "a Cat, the location, a category", ["Cat"]),
        ("cat", "catFactory newCat cat_x concatCat", ["cat", "Cat", "cat", "Cat"]),
        ("away", "a GOAWAY frame", []),
        ("getUs", "call api.getUserById()", ["getUs"]),
        ("256", "sha256 2560 md2567", ["256", "256"]),
        ("the cat", "the cats and the cat", ["the cat"]),
        ("cat", "https://x.org/categories/catching-up#catalog and my-category", ["cat"]),
        ("my-cat", "my-category", ["my-cat"]),
        ("src/RedisCl", "src/RedisClient.cs", ["src/RedisCl"]),
        ("a->b", "x=a->b;", ["a->b"]),
        ("%w", "q%w", ["%w"]),
        ("东京", "我们在东京开会", ["东京"]),
        ("redis", "用Redis缓存", ["Redis"]),
        ("", "text", []),
    ],
)
def test_letters_are_matched_as_whole_words_or_from_the_start_of_a_part(
    literal: str, text: str, places: list[str]
) -> None:
    assert [text[start:end] for start, end in literal_ranges(text, literal)] == places


def test_letters_are_matched_anywhere_on_request() -> None:
    assert list(literal_ranges("location, category", "CAT", inside_words=True)) == [(2, 5), (10, 13)]


def test_an_identifier_is_read_around_a_place() -> None:
    text = "call api.getUserById(). https://example.com/my-pages/catching-it#sha256, see src/api/get-user.ts"
    assert identifier_around(text, 9, 12) == "api.getUserById"
    assert identifier_around(text, text.index("catch"), text.index("catch") + 3) == "catching"
    assert identifier_around(text, text.index("sha"), text.index("sha") + 2) == "sha256"
    assert identifier_around(text, text.index("api/get"), text.index("-user")) == "api/get"
    assert identifier_around("my-component x", 3, 7) == "my-component"


def test_ranges_that_overlap_or_touch_become_one() -> None:
    assert merged_ranges([(5, 7), (0, 2), (1, 4), (4, 5), (9, 9)]) == ((0, 7), (9, 9))


texts = st.text(max_size=80) | st.text(alphabet="aB1_.'-# 東京\u0301ﾞﬁ", max_size=60)


@given(texts, texts)
def test_ranges_lie_within_the_text_in_order(query: str, text: str) -> None:
    terms = parse(query).terms
    ranges = matched_ranges(text, QueryTerms(terms.tokens, terms.prefixes, (query,)))
    assert all(0 <= start < end <= len(text) for start, end in ranges)
    assert all(before[1] < after[0] for before, after in pairwise(ranges))
