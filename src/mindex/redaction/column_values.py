"""Secrets below a heading that names them: columns of markdown tables, of CSV and of tab-separated values."""

import re
from collections.abc import Iterator

from mindex.redaction.patterns import PASSWORD, PASSWORD_WORDS
from mindex.redaction.secret_checks import is_generated_password, is_random_token

_BEFORE = r"(?:[\w. -]{0,30}[ _-])?"
_PASSWORD_COLUMN = re.compile(rf"{_BEFORE}{PASSWORD}s?", re.IGNORECASE)
_TOKEN_COLUMN = re.compile(rf"{_BEFORE}(?:secret|token|api[ _-]?key|access[ _-]?key)s?", re.IGNORECASE)
_HINTS = (*PASSWORD_WORDS, "secret", "token", "key")
_ASCII_HINTS = tuple(filter(str.isascii, _HINTS))
_LINE = re.compile(r"[^\n]++")
# The cells of a row by its separator: an empty one counts, and in quotes a separator is none.
_CELLS = {sign: re.compile(rf'("(?:[^"\n]|"")*+"|[^{sign}\n]*+)(?:{sign}|$)') for sign in "\t;,"}
_CELLS["|"] = re.compile(r"([^|\n]*+)(?:\||$)")
_LONGEST_HEADING = 60
_AROUND = " \t\r*`_\"'"

Span = tuple[int, int, str]


def find_column_values(text: str, lowered: str) -> Iterator[Span]:
    """Yield start, end and kind of each. A block of rows is read once: it ends where another begins."""
    hints = _ASCII_HINTS if lowered.isascii() else _HINTS
    if not any(sign in text for sign in _CELLS) or not any(map(lowered.__contains__, hints)):
        return
    columns: dict[int, str] = {}
    separator = ""
    previous_end = -2
    for line in _LINE.finditer(text):
        if line.start() > previous_end + 1 or not line[0].strip():  # a blank line ends a table
            columns = {}
        previous_end = line.end()
        if heading := _named_columns(text, line):
            separator, columns = heading
        elif columns:
            for number, cell in enumerate(_cells(text, line, separator)):
                kind = columns.get(number)
                value = cell[1].strip(_AROUND)
                if kind and " " not in value and _is_secret(kind, value):
                    start = cell.start() + cell[1].index(value)
                    yield start, start + len(value), kind


def _named_columns(text: str, line: re.Match[str]) -> tuple[str, dict[int, str]] | None:
    """The separator of a heading, and the kind of secret in each of its columns that is named so."""
    separator = next((sign for sign in ("|", "\t", ";", ",") if sign in line[0]), None)
    if separator is None:
        return None
    cells = [cell[1].strip(_AROUND) for cell in _cells(text, line, separator)]
    if max(map(len, cells)) > _LONGEST_HEADING:
        return None
    columns = {
        number: "password" if _PASSWORD_COLUMN.fullmatch(cell) else "secret"
        for number, cell in enumerate(cells)
        if _PASSWORD_COLUMN.fullmatch(cell) or _TOKEN_COLUMN.fullmatch(cell)
    }
    return (separator, columns) if columns else None


def _cells(text: str, line: re.Match[str], separator: str) -> Iterator[re.Match[str]]:
    """The cells of a line, each as the first group. The bar before the first cell of a table is not a separator."""
    start = line.start()
    if separator == "|":
        start += len(line[0]) - len(line[0].lstrip().removeprefix("|"))
    return _CELLS[separator].finditer(text, start, line.end())


def _is_secret(kind: str, value: str) -> bool:
    return is_generated_password(value) if kind == "password" else is_random_token(value)
