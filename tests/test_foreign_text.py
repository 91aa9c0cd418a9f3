from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.foreign_text import json_without_controls, quotation, without_controls

CONTROLS = {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))} - {"\n", "\t", "\r"}


def test_a_control_character_is_shown_as_a_picture() -> None:
    assert without_controls("a\x1b[31mb\x07\x7f\x9b") == "a␛[31mb␇␡\ufffd"
    assert without_controls("one\r\ntwo\n\tthree\rfour") == "one\r\ntwo\n\tthree␍four"


@pytest.mark.parametrize("indent", [None, 2])
@given(value=st.dictionaries(st.text(), st.one_of(st.text(), st.lists(st.text()))))
def test_json_has_the_same_values_without_control_characters(value: dict[str, object], indent: int | None) -> None:
    def cleaned(one: object) -> object:
        if isinstance(one, list):
            return [cleaned(part) for part in one]
        return without_controls(one) if isinstance(one, str) else one

    shown = json_without_controls(json.dumps(value, ensure_ascii=False, indent=indent))
    assert not CONTROLS & set(shown)
    expected = {without_controls(name): cleaned(one) for name, one in value.items()}
    assert json.loads(shown) == expected


def test_an_escape_in_a_text_that_is_not_json_is_kept() -> None:
    for text in (r'print("\u001b[0m")', r'{"not": json \u001b}', r"\b"):
        assert json_without_controls(text) == text
    assert json_without_controls(r'{"a": "\\u001b"}') == r'{"a": "\\u001b"}'


@given(st.text())
def test_nothing_in_a_quotation_ends_it(text: str) -> None:
    shown = quotation(text)
    assert shown[0] + shown[-1] == "“”"
    assert not set("“”`·") & set(shown[1:-1])
    assert shown.isprintable()
    assert len(shown) <= 202
