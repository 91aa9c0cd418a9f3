"""Fluency: how well a model reads a text, as words per word piece of its tokenizer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from mindex.providers.base import clean

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SAMPLE = 1_000

# Scripts that write without blanks between words: Thai, Lao, Myanmar, Khmer, kana, bopomofo, Han.
_UNSEGMENTED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u312f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_BLANKS = (" ", "\n", "\t", "▁")
_BLANK_MARKS = "▁Ġ"
_UNKNOWN = ("[UNK]", "<unk>")


def fluency(tokenizer: Tokenizer, text: str, per_han: float = 0.0) -> float:
    """Return words per word piece in the text's beginning, punctuation left out; 1.0 for a text without words.

    A model that learnt Chinese character by character is said to: each then counts as `per_han` words.

    Every punctuation mark is a separate piece: counted, they would make markdown and code look like a foreign language.
    A word that is not in the vocabulary is a piece, but not a word.
    """
    sample = clean(text, SAMPLE)
    encoding = tokenizer.encode(sample, add_special_tokens=False)
    unknown = {tokenizer.token_to_id(token) for token in _UNKNOWN}
    pieces = []
    for word, id_, token, (start, end) in zip(
        encoding.word_ids, encoding.ids, encoding.tokens, encoding.offsets, strict=True
    ):
        # A token of only a blank has the offsets of what follows.
        characters = sample[start:end] if token.strip(_BLANK_MARKS) else ""
        pieces.append((word, None if id_ in unknown else characters))
    return _words_per_piece(pieces, per_han)


def fluency_of_pieces(pieces: Iterable[str | None]) -> float:
    """Return the same for pieces as text: a blank before each new word, None for part of a character."""
    word = 0
    numbered: list[tuple[int, str | None]] = []
    before = ""
    for piece in pieces:
        word += piece is not None and (piece[:1] in _BLANKS or not before[-1:].isalnum())
        before = piece or ""
        numbered.append((word, None if before.strip() in _UNKNOWN else piece))
    return _words_per_piece(numbered)


def _words_per_piece(pieces: Iterable[tuple[int | None, str | None]], per_han: float = 0.0) -> float:
    """Return words per piece; each piece has the number of its word and its characters, None if unknown.

    In a script without blanks between words, several characters learnt as one piece are a word. A piece of one
    character is not: every vocabulary has some, whether its model reads the language or not. Names and numbers fall to
    pieces in every language, and say nothing about it: an address or a contact is little else.
    """
    pieces = list(pieces)
    names = _names_and_numbers(pieces)
    words: set[int | None] = set()
    unsegmented_words, counted = 0.0, 0
    for word, characters in pieces:
        if word in names:
            continue
        if characters is None:
            counted += 1
        elif unsegmented := len(_UNSEGMENTED.findall(characters)):
            counted += 1
            unsegmented_words += 1 if unsegmented > 1 else per_han * bool(_HAN.search(characters))
        elif any(character.isalnum() for character in characters):
            counted += 1
            words.add(word)
    return (len(words) + unsegmented_words) / counted if counted else 1.0


def _names_and_numbers(pieces: Iterable[tuple[int | None, str | None]]) -> set[int | None]:
    """The words that begin with a capital letter or have a digit."""
    found: set[int | None] = set()
    begun: set[int | None] = set()
    for word, characters in pieces:
        if characters and word is not None:
            first = word not in begun
            begun.add(word)
            if (first and characters.strip(_BLANK_MARKS + " ")[:1].isupper()) or any(map(str.isdigit, characters)):
                found.add(word)
    return found
