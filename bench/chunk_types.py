"""Print how many chunks of a folder of markdown get which type by rule, and a sample of each to judge.

`python bench/chunk_types.py DIR… --sample 20 --seed 1`: a line per sampled chunk, its type, headings and first words.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from pathlib import Path

from mindex.files.chunker import chunk_markdown
from mindex.type_rules import chunk_type


def typed_chunks(folder: Path) -> list[tuple[str, str, str]]:
    """(type, headings, first words) of every chunk below a folder."""
    found = []
    for path in sorted(folder.rglob("*.md")):
        parsed = chunk_markdown(path.read_text(encoding="utf-8", errors="replace"))
        name = parsed.title or path.stem
        for chunk in parsed.chunks:
            own = parsed.heading or chunk.breadcrumb[:1] == (name,)
            titles = chunk.breadcrumb if own else (name, *chunk.breadcrumb)
            found.append((chunk_type(titles, chunk.text), " > ".join(titles), " ".join(chunk.text.split())[:120]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--sample", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chunks = [one for folder in arguments.folders for one in typed_chunks(folder)]
    counts = Counter(type_ for type_, _, _ in chunks)
    counted = ", ".join(f"{count:,} {type_ or 'without a type'}" for type_, count in counts.most_common())
    print(f"{len(chunks):,} chunks: {counted}")
    chance = random.Random(arguments.seed)
    for type_ in sorted(filter(None, counts)):
        of_type = [one for one in chunks if one[0] == type_]
        for _, headings, words in chance.sample(of_type, min(arguments.sample, len(of_type))):
            print(f"{type_} | {headings} | {words}")


if __name__ == "__main__":
    main()
