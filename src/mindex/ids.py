"""Makes ids and hashes. An id has twelve letters and digits: legal in every engine, short enough to type."""

from base64 import b32encode
from functools import lru_cache
from unicodedata import normalize

_LENGTH = 12

# Imported when first used: `hashlib` and `secrets` load OpenSSL, which takes as long as a keyword search.


def short_hash(*parts: str) -> str:
    """Return an id made of texts. It has 60 bits: among a million records, one clash in two million memories."""
    from hashlib import sha256

    return _to_id(sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest())


def new_id() -> str:
    """Return a random id."""
    from secrets import token_bytes

    return _to_id(token_bytes(8))


@lru_cache(maxsize=4)  # of one text it is asked twice in a row: is it known, and what is stored with it
def content_hash(text: str) -> str:
    """Return a hash that is equal for texts that differ only in white space or in how characters are composed."""
    from hashlib import sha256

    normal = " ".join(normalize("NFC", text).split())
    return sha256(normal.encode("utf-8", "surrogatepass")).hexdigest()


def _to_id(data: bytes) -> str:
    return b32encode(data)[:_LENGTH].decode().lower()
