"""The command `mindex bookmarks`."""

import click

from mindex.extension import Context


@click.command("bookmarks", short_help="Print the addresses of bookmarks.")
@click.argument("query")
@click.option("--limit", type=int, default=5, show_default=True, help="Maximum number of addresses.")
@click.pass_obj
def bookmarks(context: Context, query: str, limit: int) -> None:
    """Search the bookmarks and print the addresses of the confident hits, the best first."""
    with context.memory() as memory:
        hits = memory.search(query, tags=["bookmark"], limit=limit).hits
    addresses = [hit.record.source for hit in hits if not hit.weak]
    context.emit({"addresses": addresses}, lambda: "\n".join(addresses))
