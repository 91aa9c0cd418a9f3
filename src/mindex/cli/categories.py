"""The commands tags and types: what records can be filtered by."""

from collections.abc import Sequence
from typing import Any

import click

from mindex.cli.open_memory import prints
from mindex.cli.options import collection_option, kind_option, limit_option
from mindex.cli.output import note
from mindex.datatypes import LabelCount
from mindex.lookup.labels import MAX_TAGS
from mindex.memory import Memory
from mindex.present.entries import labels_text


@click.command("tags", short_help="List tags, most frequent first.")
@click.argument("start", default="")
@kind_option
@collection_option
@limit_option(50, f"Number of tags, at most {MAX_TAGS}.")
@prints(labels_text, lambda found: {"tags": found})
def tags_command(memory: Memory, /, start: str, limit: int, **scope: Any) -> Sequence[LabelCount]:
    """List tags, most frequent first; with START, only those that begin with it."""
    if limit > MAX_TAGS:
        note(f"limit cut to {MAX_TAGS}, the maximum")
    limit = min(limit, MAX_TAGS)
    found = memory.labels.tags(start, filters=memory.filters(**scope), limit=limit)
    if len(found) == limit:
        note(f"these are the first {limit}; for more, use --limit N, or pass START")
    return found


@click.command("types")
@prints(labels_text, lambda found: {"types": found})
def types_command(memory: Memory) -> Sequence[LabelCount]:
    """List the types of memories with their counts."""
    return memory.labels.types()
