"""The vectors of a chunk as fields of documents: the first in the chunk's own, each further one in a part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mindex.datatypes import Model
from mindex_azure.connection import Row
from mindex_azure.documents import key_of, part_row
from mindex_azure.schema import fluency_field, space_of, vector_field

if TYPE_CHECKING:
    from mindex.datatypes import RecordVectors, VectorArray


def without_vectors(spaces: Iterable[str]) -> Row:
    """The fields of a chunk that loses its vectors of every space."""
    names = [name for space in spaces for name in (vector_field(space), fluency_field(space))]
    return {**dict.fromkeys(names), "spaces": [], "parts": 1}


def with_vectors(
    model: Model, chunk: Row, spaces: Sequence[str], parts: int, item: RecordVectors, pieces: VectorArray
) -> tuple[list[Row], list[Row]]:
    """The uploads (new parts) and merges that give a chunk its vectors of one space, in place of earlier ones.

    `chunk` is the chunk's document as `chunk_row` makes it. Parts of other spaces stay.
    """
    space = space_of(model.fingerprint)
    names = vector_field(space), fluency_field(space)
    uploads, merges = [], []
    for part in range(max(parts, len(pieces))):
        has_piece = part < len(pieces)
        values = [float(value) for value in pieces[part]] if has_piece else None
        fields: Row = dict(zip(names, (values, item.fluency if has_piece else None), strict=True))
        if part == 0:
            fields |= {"spaces": sorted({*spaces, space}), "parts": max(parts, len(pieces))}
            merges.append({"key": chunk["key"], **fields})
        elif part >= parts:
            uploads.append({**part_row(chunk, part), **fields, "spaces": [space]})
        else:
            # Which other spaces this part has is not known here; those without a piece of it find nothing there.
            named = {*spaces, space} if has_piece else {*spaces} - {space}
            merges.append({"key": key_of("chunk", chunk["id"], part), **fields, "spaces": sorted(named)})
    return uploads, merges
