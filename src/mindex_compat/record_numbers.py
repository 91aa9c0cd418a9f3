"""Integer ids for records, for programs that know no others: made of the record's own id, and above all numbers.

The first ten characters of an id have 5 bits each. Two of a million records have the same number in one of 2,000
databases.
"""

# JSON numbers are exact up to 2^53: these are the upper half of them.
_FIRST, _PREFIX = 2**52, 10
_BASE_32 = "abcdefghijklmnopqrstuvwxyz234567"


def record_number(id_: str) -> int:
    """Return the integer by which a record is known."""
    return _FIRST + sum(_BASE_32.index(letter) << (5 * place) for place, letter in enumerate(id_[_PREFIX - 1 :: -1]))


def id_start(number: int) -> str:
    """Return how the id of a record with this number begins; '' for a number that no record has."""
    bits = number - _FIRST
    if not 0 <= bits < _FIRST:
        return ""
    return "".join(_BASE_32[bits >> (5 * place) & 31] for place in reversed(range(_PREFIX)))
