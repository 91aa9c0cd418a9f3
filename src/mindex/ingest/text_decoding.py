"""Bytes → text, whatever wrote them. The text holds no NUL and can always be encoded as UTF-8."""

from __future__ import annotations

import codecs

# UTF-32 first: its little-endian mark begins with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_REPLACED = "\N{REPLACEMENT CHARACTER}"


class BinaryFile(Exception):
    """The bytes are not text; `str()` of it is the reason to report."""


def decode(data: bytes) -> str:
    """UTF-8, UTF-16 and UTF-32 by their marks; else UTF-8, forgiving a few bad bytes; else Windows-1252."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, errors="replace").replace("\0", _REPLACED)
    if b"\0" in data:
        raise BinaryFile("binary file (it holds NUL bytes)")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _decode_damaged(data)


def _decode_damaged(data: bytes) -> str:
    """Damaged UTF-8 still has more whole characters beyond ASCII than bad bytes; a legacy encoding has hardly any."""
    forgiving = data.decode(errors="replace")
    bad = forgiving.count(_REPLACED)
    beyond_ascii = sum(character > "\x7f" for character in forgiving) - bad
    if beyond_ascii > bad:
        return forgiving
    # Five bytes mean nothing in Windows-1252; Latin-1 gives every byte a character.
    return "".join(_WINDOWS_1252[byte] for byte in data)


def _windows_1252(byte: int) -> str:
    try:
        return bytes([byte]).decode("cp1252")
    except UnicodeDecodeError:
        return chr(byte)


_WINDOWS_1252 = tuple(map(_windows_1252, range(256)))
