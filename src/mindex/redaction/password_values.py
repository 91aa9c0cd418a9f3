"""What makes a string a password and not a word: classes of values, from digits among letters to plain words."""

from enum import Enum, auto

from mindex.redaction.secret_checks import is_expression, is_placeholder, is_technical
from mindex.redaction.tables import Patterns
from mindex.word_cache import WordCache

_PATTERN = Patterns("password_values")


class Value(Enum):
    """The class of a string, by what it is made of."""

    STRONG = auto()  # letters, digits and a sign: `Sommer2026!`, `k9#plum`
    MIXED = auto()  # digits among letters, or two of them behind: `matr3shka`, `Falcon77x`
    ENDING = auto()  # a word with one digit, or with a dash or a year and digits: `hunter2`, `policy2025`, `step-12`
    SIGNED = auto()  # letters around a sign, a word and a number: `P@ssw!rd`, `Ledger#2019`
    DIGITS = auto()
    WORD = auto()
    OTHER = auto()  # a placeholder, an expression, a path, a version, a date …


def _find_value_class(value: str) -> Value:
    """The class of `value`, a run without blanks and without the punctuation around it."""
    value = value.replace("\u2011", "-")
    if value.isdigit():
        return Value.DIGITS
    if (
        is_placeholder(value)
        or is_technical(value)
        or _PATTERN.not_alone.search(value)
        or not _PATTERN.letter.search(value)
    ):
        return Value.OTHER
    if is_expression(value):
        return Value.OTHER
    digits = len(_PATTERN.digit.findall(value))
    has_sign = bool(_PATTERN.sign.search(value))
    if not digits:
        return _class_without_digits(value)
    if has_sign and _PATTERN.number_sign.fullmatch(value):
        return Value.SIGNED
    if has_sign:
        return Value.STRONG if not _is_address(value) else Value.OTHER
    if _PATTERN.technical.fullmatch(value) or _PATTERN.id.fullmatch(value) or _PATTERN.numbered.fullmatch(value):
        return Value.OTHER
    if _PATTERN.ending.fullmatch(value):
        return Value.ENDING
    return Value.MIXED if _PATTERN.digit_before_letter.search(value) or digits > 1 else Value.ENDING


# Each of ten words around every `password` is asked for.
value_class = WordCache(_find_value_class, 8192).__getitem__


def _class_without_digits(value: str) -> Value:
    if _PATTERN.sign_inside.search(value) and len(value) >= 6 and not _is_address(value):
        return Value.SIGNED
    return Value.WORD if _PATTERN.letter.search(value) else Value.OTHER


def _is_address(value: str) -> bool:
    """`bob@host7`, `R&D2`: names on both sides of one sign. `Caju@9921` is not one: no host is a number."""
    left, _, right = value.partition("@")
    return (
        bool(_PATTERN.letter.search(right))
        and left.replace("-", "").replace("_", "").isalpha()
        and not _PATTERN.sign.search(right)
    )
