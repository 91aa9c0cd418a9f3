"""Detects the language of texts, well enough to pair only sets in one language."""

import re
from collections import Counter
from collections.abc import Iterable

# Scripts that decide alone. Kana before Han: Japanese has both.
_RANGES = {
    "ja": "\u3040-\u30ff", "zh": "\u3400-\u9fff", "ko": "\uac00-\ud7af\u1100-\u11ff", "ru": "\u0400-\u04ff",
    "el": "\u0370-\u03ff", "ar": "\u0600-\u06ff", "he": "\u0590-\u05ff", "hi": "\u0900-\u097f", "th": "\u0e00-\u0e7f",
}  # fmt: skip
_SCRIPTS = {language: re.compile(f"[{characters}]") for language, characters in _RANGES.items()}
# Function words, without those that several of these languages share.
_SMALL_WORDS = {
    "en": "the of and to is was were what how which that with for are does did my you your it",
    "es": "el los las del que y por qué cuál fue cómo cuándo está para una su al lo como más",
    "fr": "le les des et est une du dans que qui pour sur pas quel quelle sont avec au ce il",
    "de": "der die das und ist nicht ein eine wie wann wer von den dem mit auf für wurde ich sind",
    "it": "il gli di che è della per una sono qual cosa dei nel con del alla quando come più lo",
    "pt": "o os do da que é em um uma não qual foi como quando para dos das ao pelo mais",
    "nl": "het een van en is niet dat wat wie hoe wordt zijn voor met op de werd door ook",
}
_WORDS = {language: frozenset(words.split()) for language, words in _SMALL_WORDS.items()}
_LETTERS = re.compile(r"[^\W\d_]+")
_SAMPLE = 20_000
_ENOUGH = 0.2  # of the letters


def language_of(texts: Iterable[str]) -> str:
    """A two-letter code by script, else by function words; `und` when neither decides."""
    sample = " ".join(texts)[:_SAMPLE].casefold()
    words = _LETTERS.findall(sample)
    letters = sum(map(len, words))
    for language, script in _SCRIPTS.items():
        if letters and len(script.findall(sample)) > (0.05 if language == "ja" else _ENOUGH) * letters:
            return language
    found = Counter({language: sum(word in small for word in words) for language, small in _WORDS.items()})
    best, count = found.most_common(1)[0]
    return best if count else "und"
