"""Integer ids for records, for programs that know no others: made of the record's own id, and above all numbers.

Ten letters and digits are a number below 36^10, which is less than 2^52. An id that mindex made has 50 random bits in
them: two of a million records have the same number in one of 2,000 databases.
"""

# JSON numbers are exact up to 2^53: these are the upper half of them.
_FIRST, _PREFIX = 2**52, 10
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def record_number(id_: str) -> int:
    """Return the integer by which a record is known."""
    return _FIRST + int(id_[:_PREFIX], len(_DIGITS))


def id_start(number: int) -> str:
    """Return how the id of a record with this number begins; '' for a number that no record has."""
    rest = number - _FIRST
    if not 0 <= rest < len(_DIGITS) ** _PREFIX:
        return ""
    start = ""
    while rest:
        rest, digit = divmod(rest, len(_DIGITS))
        start = _DIGITS[digit] + start
    return start.rjust(_PREFIX, "0")
