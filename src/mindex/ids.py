"""Makes ids and hashes. An id has twelve letters and digits: legal in every engine, short enough to type."""

from base64 import b32encode
from functools import lru_cache
from unicodedata import normalize

from mindex.nul import without_nul

_LENGTH = 12
_BYTES = 10  # as many as give at least this number of letters
# A bulk asks for the hash of each of its 500 texts three times. Longer texts are not kept.
_KEPT, _LONGEST_KEPT = 1024, 2_000


def short_hash(*parts: str) -> str:
    """Return an id made of texts. It has 60 bits: among a million records, one clash in two million memories."""
    from hashlib import sha256  # loads OpenSSL: as slow as a keyword search

    return _to_id(sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest())


def new_id() -> str:
    """Return a random id."""
    from secrets import token_bytes  # loads OpenSSL: as slow as a keyword search

    return _to_id(token_bytes(8))


def content_hash(text: str) -> str:
    """Return a hash that is equal for texts that differ only in white space or in how characters are composed.

    NUL counts as the character by which it is replaced when a text is stored.
    """
    return (_kept_hash if len(text) <= _LONGEST_KEPT else _content_hash)(text)


def _content_hash(text: str) -> str:
    from hashlib import sha256  # loads OpenSSL: as slow as a keyword search

    text = without_nul(text)
    normal = " ".join((text if text.isascii() else normalize("NFC", text)).split())
    return sha256(normal.encode("utf-8", "surrogatepass")).hexdigest()


_kept_hash = lru_cache(maxsize=_KEPT)(_content_hash)


def _to_id(data: bytes) -> str:
    return b32encode(data[:_BYTES])[:_LENGTH].decode().lower()
