"""Where in the cache things are kept that more than one room must find."""

from __future__ import annotations

from mindex.ids import short_hash

# Sentences that place chunks in their documents, as a model wrote them.
CONTEXT_CACHE = "context"


def context_key(collection: str, *parts: str) -> str:
    """Where such sentences are kept: all of a collection's start alike, so that they can go with it."""
    return short_hash("collection", collection) + (short_hash(*parts) if parts else "")
