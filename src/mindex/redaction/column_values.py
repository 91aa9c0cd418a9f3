"""Secrets below a heading that names them: columns of markdown tables, of CSV and of tab-separated values."""

import re
from collections.abc import Iterator

from mindex.redaction.secret_checks import is_generated_password, is_random_token

_PASSWORD = re.compile(
    r"(?:[\w. -]{0,30}[ _-])?"
    r"(?:pass(?:word|wd|wort|phrase|code)|pwd|kennwort|contraseña|mot de passe|senha|wachtwoord)s?",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"(?:[\w. -]{0,30}[ _-])?(?:secret|token|api[ _-]?key|access[ _-]?key)s?", re.IGNORECASE)
_HINTS = ("passw", "passphrase", "passcode", "pwd", "kennwort", "contrase", "mot de passe", "senha", "wachtwoord")
_TOKEN_HINTS = ("secret", "token", "key")
_LINE = re.compile(r"[^\n]++")
_CELLS = {sign: re.compile(rf'"[^"\n]*+"|[^{sign}\n]++|(?<={sign})(?={sign})') for sign in (r"\t", ";", ",")}
_CELLS[r"\|"] = re.compile(r"[^|\n]++")
_SIGNS = {"|": r"\|", "\t": r"\t", ";": ";", ",": ","}
_LONGEST_HEADING = 60
_AROUND = " \t\r*`_\"'"

Span = tuple[int, int, str]


def find_column_values(text: str, lowered: str) -> Iterator[Span]:
    """Yield start, end and kind of each. A block of rows is read once: it ends where another begins."""
    if not any(sign in text for sign in _SIGNS) or "\n" not in text:
        return
    if not any(hint in lowered for hint in (*_HINTS, *_TOKEN_HINTS)):
        return
    columns: dict[int, str] = {}
    cells_of = _CELLS[","]
    previous_end = -2
    for line in _LINE.finditer(text):
        if line.start() > previous_end + 1:  # a blank line ends a table
            columns = {}
        previous_end = line.end()
        if heading := _named_columns(line[0]):
            sign, columns = heading
            cells_of = _CELLS[sign]
        elif columns:
            for number, cell in enumerate(cells_of.finditer(text, line.start(), line.end())):
                kind = columns.get(number)
                value = cell[0].strip(_AROUND)
                if kind and " " not in value and _is_secret(kind, value):
                    start = cell.start() + cell[0].index(value)
                    yield start, start + len(value), kind


def _named_columns(line: str) -> tuple[str, dict[int, str]] | None:
    """The separator of a heading, and the kind of secret in each of its columns that is named so."""
    sign = next((one for one in _SIGNS if one in line), None)
    if sign is None:
        return None
    cells = [cell[0].strip(_AROUND) for cell in _CELLS[_SIGNS[sign]].finditer(line)]
    if len(cells) < 2 or max(map(len, cells)) > _LONGEST_HEADING:
        return None
    columns = {
        number: "password" if _PASSWORD.fullmatch(cell) else "secret"
        for number, cell in enumerate(cells)
        if _PASSWORD.fullmatch(cell) or _TOKEN.fullmatch(cell)
    }
    return (_SIGNS[sign], columns) if columns else None


def _is_secret(kind: str, value: str) -> bool:
    return is_generated_password(value) if kind == "password" else is_random_token(value)
