from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.files.text_decoding import BinaryFile, decode

WORDS = "Grüße aus Köln – 東京 ☕\nzweite Zeile"


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (b"", "utf-8"),
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
def test_unicode_is_read_with_and_without_a_mark(mark: bytes, encoding: str) -> None:
    assert decode(mark + WORDS.encode(encoding)) == WORDS


def test_a_few_bad_bytes_do_not_spoil_utf8() -> None:
    text = decode("Grüße aus Köln".encode() + b" \xff " + "und Füßen".encode())
    assert text == "Grüße aus Köln \ufffd und Füßen"


def test_latin_1_keeps_its_letters() -> None:
    assert decode("Grüße aus Köln, Café".encode("latin-1")) == "Grüße aus Köln, Café"


def test_windows_quotes_are_quotes_and_no_byte_is_lost() -> None:
    assert decode("it’s “fine” für €5".encode("cp1252")) == "it’s “fine” für €5"
    assert decode(b"caf\xe9 \x81") == "café \x81"


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n\x00\x00", b"\x00", b"text and\x00then not"])
def test_nul_bytes_mean_binary(data: bytes) -> None:
    with pytest.raises(BinaryFile, match="NUL"):
        decode(data)


def test_half_a_character_at_the_end_of_utf16_is_replaced() -> None:
    assert decode(codecs.BOM_UTF16_LE + "ab".encode("utf-16-le") + b"\x61") == "ab\ufffd"


def test_an_empty_file_is_empty_text() -> None:
    assert decode(b"") == ""


@given(st.binary())
def test_text_can_always_be_stored(data: bytes) -> None:
    try:
        text = decode(data)
    except BinaryFile:
        assert b"\0" in data
    else:
        assert "\0" not in text
        text.encode()


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0\ufeff")))
def test_every_utf8_text_comes_back(text: str) -> None:
    assert decode(text.encode()) == text
