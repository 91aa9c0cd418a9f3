"""How fluently a model reads a text: words per word piece, seen through its tokenizer."""

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
_BLANKS = (" ", "\n", "\t", "▁")
_BLANK_MARKS = "▁Ġ"
_UNKNOWN = ("[UNK]", "<unk>")


def fluency(tokenizer: Tokenizer, text: str) -> float:
    """Words per word piece in the text's beginning; punctuation counts for neither.

    Every mark is a piece of its own: counted, they would make markdown and code look like a foreign language.
    A word the vocabulary cannot spell is a piece but no word. A text without words says nothing against the model.
    """
    sample = clean(text[:SAMPLE])
    encoding = tokenizer.encode(sample, add_special_tokens=False)
    unknown = {tokenizer.token_to_id(token) for token in _UNKNOWN}
    pieces = []
    for word, id_, token, (start, end) in zip(
        encoding.word_ids, encoding.ids, encoding.tokens, encoding.offsets, strict=True
    ):
        spelt = sample[start:end] if token.strip(_BLANK_MARKS) else ""  # a blank of its own points to what follows
        pieces.append((word, None if id_ in unknown else spelt))
    return _share(pieces)


def fluency_of_pieces(pieces: Iterable[str | None]) -> float:
    """The same of pieces as a tokenizer spells them: a blank before each new word, None for part of a character."""
    word = 0
    numbered: list[tuple[int, str | None]] = []
    before = ""
    for piece in pieces:
        word += piece is not None and (piece[:1] in _BLANKS or not before[-1:].isalnum())
        before = piece or ""
        numbered.append((word, None if before.strip() in _UNKNOWN else piece))
    return _share(numbered)


def _share(pieces: Iterable[tuple[int | None, str | None]]) -> float:
    """Of pieces with the number of their word and their characters; None for one that is not in the vocabulary.

    Where nothing parts the words, several characters learnt as one piece are a word; a piece of one character is not:
    every vocabulary has some, whether its model reads the language or not.
    """
    words: set[int | None] = set()
    unsegmented_words = counted = 0
    for word, characters in pieces:
        if characters is None:
            counted += 1
        elif unsegmented := len(_UNSEGMENTED.findall(characters)):
            counted += 1
            unsegmented_words += unsegmented > 1
        elif any(character.isalnum() for character in characters):
            counted += 1
            words.add(word)
    return (len(words) + unsegmented_words) / counted if counted else 1.0
