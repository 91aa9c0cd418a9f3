"""The place of a word in a text: in a sentence, or in a name of code or configuration."""

import re

Span = tuple[int, int]
MARKER = "[redacted:"
# Short words that are the end of other words (`mapping`, `enclave`).
_SHORT = re.compile(r"(?:pin|clave)(?![a-z])", re.IGNORECASE)


def is_in_a_name(text: str, start: int, end: int) -> bool:
    """`db_password`, `--password`, `setPassword`, `password_hash`, `passwords`: no sentence speaks of a value here."""
    before, after = text[start - 1 : start] if start else "", text[end : end + 1]
    if before and (before in "_$%{<./@\\&[" or before.isdigit() or text[max(0, start - 2) : start] == "--"):
        return True
    if before.islower() and before.isascii() and text[start].isupper():
        return True
    if (before.isascii() and before.isalpha() and text[start].islower()) and _SHORT.match(text, start):
        return True
    if MARKER in text[max(0, start - 40) : start].rpartition("]")[2]:
        return True
    return (
        after in ("_", "(", "[", "/", "\\", "-", "=", "@")
        or (after.isascii() and after.isalnum() and text[end - 1].isascii())
        or (after == "." and text[end + 1 : end + 2].isalpha())
    )
