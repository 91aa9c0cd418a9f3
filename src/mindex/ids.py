"""The one id maker. Ids are twelve letters and digits: legal in every engine, short enough to be said.

What makes them is imported by whoever makes one: OpenSSL takes as long as a question by keyword, which makes none.
"""

from __future__ import annotations

_LENGTH = 12


def short_hash(*parts: str) -> str:
    """60 bits of what the parts say: at a million records, one clash in two million memories."""
    from hashlib import sha256

    return _spelled(sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest())


def embedded_text_hash(kind: str, title: str, context: str, text: str) -> str:
    """Of what an embedder reads of a record: a vector of other words must not serve it."""
    return short_hash(title, context, text) if kind == "chunk" and context else short_hash(title, text)


def new_id() -> str:
    from secrets import token_bytes

    return _spelled(token_bytes(8))


def content_hash(text: str) -> str:
    """Equal for texts that differ only in white space or in how their characters are composed."""
    from hashlib import sha256
    from unicodedata import normalize

    normal = " ".join(normalize("NFC", text).split())
    return sha256(normal.encode("utf-8", "surrogatepass")).hexdigest()


def _spelled(data: bytes) -> str:
    from base64 import b32encode

    return b32encode(data)[:_LENGTH].decode().lower()
