"""Decode the bytes of a file, in UTF or a legacy encoding. The text has no NUL and can be encoded as UTF-8."""

import codecs

# UTF-32 first: its little-endian mark begins with that of UTF-16.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_REPLACED = "\N{REPLACEMENT CHARACTER}"


class BinaryFile(Exception):
    """The bytes are not text; `str()` of the error is the reason to report."""


def decode(data: bytes) -> str:
    """Return the text by its byte order mark, else as UTF-8 with a few bad bytes replaced, else as Windows-1252.

    Raises BinaryFile for bytes that are not text.
    """
    for mark, encoding in _BYTE_ORDER_MARKS:
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
    as_utf8 = data.decode(errors="replace")
    bad = as_utf8.count(_REPLACED)
    beyond_ascii = sum(character > "\x7f" for character in as_utf8) - bad
    if beyond_ascii > bad:
        return as_utf8
    # Five bytes are undefined in Windows-1252; they become the characters of Latin-1.
    return "".join(_WINDOWS_1252[byte] for byte in data)


def _windows_1252(byte: int) -> str:
    try:
        return bytes([byte]).decode("cp1252")
    except UnicodeDecodeError:
        return chr(byte)


_WINDOWS_1252 = tuple(map(_windows_1252, range(256)))
