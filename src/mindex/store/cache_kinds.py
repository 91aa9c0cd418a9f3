"""The kinds of cached values that more than one package must know, and the keys of contexts."""

from mindex.ids import short_hash

QUERY_CACHE = "query-embedding"
RERANK_CACHE = "rerank"
EXPANSION_CACHE = "expansion"
CONTEXT_CACHE = "context"  # sentences of a language model that place chunks in their documents
# Kinds whose values are made of texts: emptied when an entry is purged.
TEXT_CACHES = (QUERY_CACHE, RERANK_CACHE, EXPANSION_CACHE, CONTEXT_CACHE)


def context_key(collection: str, *parts: str) -> str:
    """The key of a chunk's context. Those of one collection start alike, so that they can be removed with it."""
    return short_hash("collection", collection) + (short_hash(*parts) if parts else "")
