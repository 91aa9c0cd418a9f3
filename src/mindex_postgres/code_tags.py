"""Correct the tags of indexed files in a PostgreSQL database; `mindex.store.rules.code_tags` has the rule."""

from mindex.store.engine_parts import TaggedChunk, correct_tags
from mindex_postgres.record_rows import folded
from mindex_postgres.transaction import Transaction

_CHUNKS = """
SELECT id, text, tags, first_line FROM records
WHERE owner = %s AND document = %s AND kind = 'chunk' ORDER BY position
"""
_PUT_CHUNK_TAGS = "UPDATE records SET tags = %s::text[], folded_tags = %s::text[] WHERE owner = %s AND id = %s"
_PUT_DOCUMENT_TAGS = "UPDATE documents SET tags = %s::text[] WHERE collection = %s AND id = %s"
# The bytes of the file stay in the fingerprint: a file that was moved is recognized by them.
_READ_AGAIN = """
UPDATE documents SET fingerprint = split_part(fingerprint, ':', 1) || ':' WHERE collection = %s AND id = %s
"""


def remove_code_tags(transaction: Transaction) -> bool:
    """Remove the tags that were names in inline code. Returns whether there were any."""
    changed = False
    for collection, document, own, fields in transaction.rows("SELECT collection, id, tags, fields FROM documents"):
        rows = list(transaction.rows(_CHUNKS, collection, document))
        chunks = [TaggedChunk(text, tuple(tags), first or 1) for _, text, tags, first in rows]
        corrected = correct_tags(chunks, fields)
        for (id_, *_), chunk, tags in zip(rows, chunks, corrected.chunks, strict=True):
            if tags != chunk.tags:
                changed = True
                transaction.defer(_PUT_CHUNK_TAGS, list(tags), folded(tags), collection, id_)
        if corrected.document != tuple(own):
            transaction.defer(_PUT_DOCUMENT_TAGS, list(corrected.document), collection, document)
        if corrected.unsure:
            transaction.defer(_READ_AGAIN, collection, document)
    return changed
