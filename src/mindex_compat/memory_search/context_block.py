"""`ms context`: what a search found as a block for a prompt, also kept up to date between two lines of a CLAUDE.md."""

from __future__ import annotations

import shutil
from pathlib import Path

from mindex import Memory
from mindex.errors import UsageError
from mindex.mcp.dialect_parts import body
from mindex.temporary_files import replaced_file
from mindex_compat.memory_search.search import Request, search, tokens_of

START, END = "<!-- memory-search-context:start -->", "<!-- memory-search-context:end -->"


def build(memory: Memory, query: str, *, limit: int, tokens: int) -> str:
    """Return the best passages with their places, as many as fit into a number of tokens; '' if nothing was found."""
    blocks: list[str] = []
    left = tokens
    for one in search(memory, Request(query, limit)).results:
        if one.hit.weak:
            continue
        passage = one.passage
        place = f"{passage.file}:{passage.first_line}-{passage.last_line}"
        block = "\n".join([place, *one.context, body(passage.text)])
        if tokens_of(block) > left:
            break
        left -= tokens_of(block)
        blocks.append(block)
    return "\n\n".join(blocks)


def sync(path: Path, block: str) -> bool:
    """Put a block between the two lines of a file, which get added at its end. Returns whether the file changed."""
    try:
        before = path.read_bytes().decode() if path.exists() else ""
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {error}", "name a text file") from None
    newline = "\r\n" if "\r\n" in before else "\n"
    marked = f"{START}\n{block.replace(START, '').replace(END, '')}\n{END}".replace("\n", newline)
    head, start, rest = before.partition(START)
    _, end, tail = rest.partition(END)
    if start and not end:
        raise UsageError(f"{path} has {START} without {END}", "add the line at the end of the block")
    after = head + marked + tail if start else f"{before.rstrip()}{newline * 2}{marked}{newline}".lstrip("\r\n")
    if after == before:
        return False
    with replaced_file(path.resolve()) as file:  # a link stays one
        if path.exists():
            shutil.copymode(path, file.name)
        file.write(after.encode())
    return True
