from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.analyzer import STOP_WORDS, analyze, analyze_query, analyze_record, is_segmented, locate
from mindex.datatypes import Record


@pytest.mark.parametrize("asked", ["PolicyController", "policycontroller", "policy controller", "Policy-Controller"])
def test_an_identifier_is_found_whole_and_in_parts(asked: str) -> None:
    indexed = analyze("The PolicyController decides.")
    tokens = {*indexed.words, *indexed.identifiers}
    assert any(token in tokens for word in analyze_query(asked) for token in (*word.words, *word.identifiers))


@pytest.mark.parametrize(
    ("text", "words", "identifiers"),
    [
        ("user_id", ("user", "id"), ("user_id",)),
        ("sqlite-vec", ("sqlite", "vec"), ("sqlite_vec",)),
        ("v2.1.4", ("v2", "1", "4"), ("v2_1_4", "2_1_4")),
        ("getHTTPResponse", ("get", "http", "respons"), ("gethttprespons",)),
        ("sha256", ("sha", "256"), ("sha256",)),
        ("APIs", ("api",), ()),
        ("C++ and C#", ("c", "and", "c"), ("cplusplu", "csharp")),
        ("don't", ("dont",), ()),
    ],
)
def test_identifiers_are_cut_where_people_see_a_seam(
    text: str, words: tuple[str, ...], identifiers: tuple[str, ...]
) -> None:
    assert analyze(text).words == words
    assert analyze(text).identifiers == identifiers


def test_a_path_is_found_by_its_file_and_by_its_whole() -> None:
    identifiers = analyze("src/Caching/RedisClient.cs").identifiers
    assert {"rediscli", "redisclient_cs", "src_caching_redisclient_cs"} <= set(identifiers)


def test_prose_is_stemmed_and_folded() -> None:
    assert analyze("Caching caches CACHED").words == ("cach", "cach", "cach")
    assert analyze("Größe GROSSE große").words == ("gross", "gross", "gross")
    assert analyze("naïve café ﬁle").words == analyze("naive cafe file").words


@pytest.mark.parametrize("text", ["東京タワー", "値班手册", "ภาษาไทย", "한국어"])
def test_scripts_without_spaces_become_pairs(text: str) -> None:
    assert analyze(text).words == tuple(text[i : i + 2] for i in range(len(text) - 1))


def test_scripts_are_distinguished_inside_a_sentence() -> None:
    assert analyze("用Redis缓存3天").words == ("用", "redi", "缓存", "3", "天")


def test_vowel_signs_stay_with_their_word() -> None:
    assert analyze("हिन्दी भाषा").words == ("हिन्दी", "भाषा")


def test_a_question_marks_its_stop_words() -> None:
    assert [word.stop for word in analyze_query("how is data cached")] == [True, True, False, False]


def test_a_record_is_found_by_its_text_its_names_and_its_place() -> None:
    record = Record("x", "chunk", "evicts keys", title="Redis", tags=("LFU",), path="ops/cache.md", domain="infra")
    columns = analyze_record(record)
    assert columns.title == "redi"
    assert columns.text == "evict kei"
    assert columns.tags == "lfu op cach md infra"
    assert columns.identifiers == "cache_md ops_cache_md"


@given(st.text())
def test_tokens_hold_nothing_an_engine_could_mistake_for_syntax(text: str) -> None:
    analysis = analyze(text)
    for token in (*analysis.words, *analysis.identifiers):
        assert token
        assert not re.search(r"[\s\"'*():^{}+.,;/\\-]", token), token


@given(st.text(alphabet=st.characters(categories=["L", "N"], max_codepoint=0x24F), min_size=1))
def test_every_indexed_text_is_found_by_the_same_words(text: str) -> None:
    asked = {token for word in analyze_query(text) for token in word.words}
    assert set(analyze(text).words) == asked


def test_stop_words_are_lower_case_words() -> None:
    assert all(word.isalpha() and word.islower() for word in STOP_WORDS)


@given(st.text(st.characters(codec="ascii")))
def test_plain_ascii_is_read_as_it_would_be_among_other_letters(text: str) -> None:
    alone, among = (
        analyze(text),
        analyze(f"{text} é"),
    )  # the accent has the whole text read by the pattern for all scripts
    assert (*alone.words, "e") == among.words
    assert alone.identifiers == among.identifiers


@pytest.mark.parametrize("text", ["plain", "Größe – “quoted”", "привет", "Ελλάδα", ""])
def test_most_scripts_put_spaces_between_words(text: str) -> None:
    assert is_segmented(text)


@pytest.mark.parametrize("text", ["值班", "duty 值班 roster", "ｶﾀｶﾅ", "ภาษาไทย", "한국어"])
def test_some_scripts_do_not(text: str) -> None:
    assert not is_segmented(text)


@given(st.text(max_size=80) | st.text(alphabet="aBc12_./:@#+-'’ 東京é", max_size=60))
def test_tokens_have_their_places_wherever_they_are_located(text: str) -> None:
    located = list(locate(text))
    assert {one.token for one in located if not one.whole} == set(analyze(text).words)
    assert {one.token for one in located if one.whole} == set(analyze(text).identifiers)
    assert all(0 <= one.start < one.end <= len(text) for one in located)
