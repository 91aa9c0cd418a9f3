"""Print how fast and how well mistyped words are corrected, as docs/quality.md shows it.

`python bench/spelling.py` makes a store of 100,000 distinct made-up words (`--words`). With `--folder DIR` it indexes
that folder instead and mistypes words of its texts.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
import time
from pathlib import Path

from mindex import Memory
from mindex.entries.new_memory import NewMemory
from mindex.search.spelling import correct

SYLLABLES = (
    "ba be bi bo bu ca ce co da de di do fa fe fi ga ge go ha he hi ho ja ka ke ko la le li lo lu ma me mi mo na ne no"
    " pa pe po ra re ri ro ru sa se si so su ta te ti to va ve vi wa za ze con pre tion ment ing str ter ple gra"
).split()
LETTERS = "abcdefghijklmnopqrstuvwxyz"
TRIES = 200
_WORD = re.compile(r"[a-z]{6,14}")


def made_up_words(count: int, chance: random.Random) -> list[str]:
    words: dict[str, None] = {}
    while len(words) < count:
        words["".join(chance.choices(SYLLABLES, k=chance.randint(3, 5)))] = None
    return list(words)


def mistyped(word: str, edits: int, chance: random.Random) -> str:
    """The word with this number of typos: two letters swapped, one left out, one doubled or one replaced."""
    for _ in range(edits):
        at = chance.randrange(1, len(word) - 1)
        before, here, after = word[:at], word[at], word[at + 1 :]
        word = chance.choice(
            [before + after[0] + here + after[1:], before + after, before + here + here + after,
             before + chance.choice(LETTERS) + after]
        )  # fmt: skip
    return word


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=100_000)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    chance = random.Random(3)
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory(Path(folder) / "memory.db", options={"embedding.provider": "none"}) as memory,
    ):
        if arguments.folder is not None:
            memory.index(arguments.folder)
            texts = (path.read_text(encoding="utf-8") for path in sorted(arguments.folder.rglob("*.md")))
            words = sorted({word for text in texts for word in _WORD.findall(text)})
        else:
            words = made_up_words(arguments.words, chance)
            hundreds = range(0, len(words), 100)
            memory.add_many([NewMemory(" ".join(words[start : start + 100])) for start in hundreds], embed=False)
        filters = memory.filters()
        print(f"{len(words):,} words")
        for edits in (1, 2):
            times, suggested, meant = [], 0, 0
            for _ in range(TRIES):
                word = chance.choice(words)
                typed = mistyped(word, edits, chance)
                start = time.process_time()
                found = correct(memory.store, typed, filters)
                times.append(1000 * (time.process_time() - start))
                if found is not None:
                    suggested += 1
                    meant += word in map(str.casefold, found.suggestions[0].meant)
            times.sort()
            p50, p95 = times[TRIES // 2], times[TRIES * 95 // 100]
            print(f"{edits} edits: {p50:.1f} ms of CPU p50, {p95:.1f} ms p95; {suggested} suggestions, {meant} right")


if __name__ == "__main__":
    main()
