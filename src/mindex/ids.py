"""The one id maker. Ids are twelve letters and digits: legal in every engine, short enough to be said."""

from __future__ import annotations

import base64
import hashlib
import secrets
import unicodedata

_LENGTH = 12


def short_hash(*parts: str) -> str:
    """60 bits of what the parts say: at a million records, one clash in two million memories."""
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()
    return base64.b32encode(digest)[:_LENGTH].decode().lower()


def words_hash(kind: str, title: str, context: str, text: str) -> str:
    """Of what an embedder reads of a record: a vector of other words must not serve it."""
    return short_hash(title, context, text) if kind == "chunk" and context else short_hash(title, text)


def new_id() -> str:
    return base64.b32encode(secrets.token_bytes(8))[:_LENGTH].decode().lower()


def content_hash(text: str) -> str:
    """Equal for texts that differ only in white space or in how their characters are composed."""
    normal = " ".join(unicodedata.normalize("NFC", text).split())
    return hashlib.sha256(normal.encode("utf-8", "surrogatepass")).hexdigest()
