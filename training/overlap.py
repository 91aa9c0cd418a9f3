"""Drops training rows that share eight consecutive words with a dev set.

Texts are normalized (NFKC, case, punctuation) and cut into shingles of 8 words, each a 64-bit hash. In scripts without
spaces 13 characters count as 8 words. `data/dev_shingles.xz` contains the shingles of the dev sets whose hash is
divisible by 4, 48 bits of each. With it a test finds an overlap of the committed rows without the texts. It misses a
text with n shared shingles with a probability of .75 ** n.

    python overlap.py --rows all.jsonl.xz --dev DEV --out clean.jsonl.xz
    python overlap.py --rows data/generated.jsonl.xz               # against data/dev_shingles.xz
    python overlap.py --dev DEV --index data/dev_shingles.xz       # writes the file
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rows import Row, read_rows, write_rows

DATA = Path(__file__).parent / "data"
INDEX = DATA / "dev_shingles.xz"
WORDS, CHARACTERS = 8, 13
SAMPLE = 4  # one of this number of shingles is in the file
BITS = 48  # of each hash in the file: a shingle of another text is found in it with a probability of 2e-9
DROPPED_BITS = np.uint64(64 - BITS)
STEP = np.uint64(0x9E3779B97F4A7C15)

WORD = re.compile(r"\w+")
# Thai, Lao, Burmese, Khmer, kana and Chinese characters. Korean has spaces.
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
UNSPACED_SHARE = 0.25  # of the characters: such a text is cut into characters

Hashes = np.ndarray[Any, np.dtype[np.uint64]]


class Shingles:
    """Hashes the shingles of texts; remembers the hashes of words."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def __call__(self, texts: Sequence[str]) -> tuple[Hashes, np.ndarray]:
        """Return the hashes of all shingles, and for each the position of its text."""
        tokens: dict[int, list[int]] = {WORDS: [], CHARACTERS: []}
        owners: dict[int, list[int]] = {WORDS: [], CHARACTERS: []}
        for position, text in enumerate(texts):
            text = unicodedata.normalize("NFKC", text).casefold()
            words: Sequence[str] = WORD.findall(text)
            length = WORDS
            if len(UNSPACED.findall(text)) > UNSPACED_SHARE * len(text):
                words, length = "".join(words), CHARACTERS
            if len(words) >= length:
                tokens[length] += map(self._hash, words)
                owners[length] += [position] * len(words)
        parts = [_windows(np.array(tokens[n], np.uint64), np.array(owners[n], np.int64), n) for n in tokens]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def _hash(self, word: str) -> int:
        if (known := self._known.get(word)) is None:
            digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            known = self._known[word] = int.from_bytes(digest, "little")
        return known


def _windows(tokens: Hashes, owners: np.ndarray, length: int) -> tuple[Hashes, np.ndarray]:
    """Hash every run of `length` tokens of one text."""
    count = max(0, len(tokens) - length + 1)
    hashes = np.zeros(count, np.uint64)
    for offset in range(length):
        hashes = hashes * STEP + tokens[offset : offset + count]
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # splitmix64: all bits are mixed
        hashes = (hashes ^ (hashes >> np.uint64(shift))) * np.uint64(factor)
    hashes ^= hashes >> np.uint64(31)
    whole = owners[:count] == owners[length - 1 : length - 1 + count]
    return hashes[whole], owners[:count][whole]


def dev_texts(root: Path) -> Iterator[str]:
    """All texts of the dev sets: every string of the JSON lines, and the files of sets that are folders of files."""
    for path in sorted([*root.glob("*/corpus.jsonl"), *root.glob("*/queries.jsonl")]):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield from _strings(json.loads(line))
    for path in sorted(root.glob("*/**/*.md")):
        if path.name not in ("ABOUT.md", "README.md"):
            yield path.read_text(encoding="utf-8", errors="replace")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _strings(each)


def write_index(hashes: Hashes, path: Path) -> int:
    """Write the sample of the hashes: sorted, as differences, byte by byte in planes. Returns their number."""
    sample = np.unique(hashes[hashes % np.uint64(SAMPLE) == 0] >> DROPPED_BITS)
    differences = np.diff(sample, prepend=np.uint64(0))
    planes = differences.astype("<u8").view(np.uint8).reshape(-1, 8).T
    path.write_bytes(lzma.compress(planes.tobytes(), preset=9 | lzma.PRESET_EXTREME))
    return len(sample)


@cache
def read_index(path: Path = INDEX) -> Hashes:
    planes = np.frombuffer(lzma.decompress(path.read_bytes()), np.uint8).reshape(8, -1)
    return np.cumsum(np.ascontiguousarray(planes.T).view("<u8").ravel(), dtype=np.uint64)


def row_texts(row: Row) -> Iterator[str]:
    for name in ("d", "q", "hn", "no", "old"):
        yield from _strings(row.get(name))


def overlapping(rows: Sequence[Row], known: Hashes, *, sampled: bool) -> set[int]:
    """Return the positions of the rows that share a shingle with `known`: all hashes, or those of the file."""
    texts = [(position, text) for position, row in enumerate(rows) for text in row_texts(row)]
    hashes, owners = Shingles()([text for _, text in texts])
    if sampled:
        chosen = hashes % np.uint64(SAMPLE) == 0
        hashes, owners = hashes[chosen] >> DROPPED_BITS, owners[chosen]
    return {texts[owner][0] for owner in np.unique(owners[np.isin(hashes, known)])}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=Path, help="training rows; without --dev they are compared with the index")
    parser.add_argument("--dev", type=Path, help="folder of the dev sets")
    parser.add_argument("--out", type=Path, help="file for the rows without overlap")
    parser.add_argument("--index", type=Path, help="write the sample of the shingles there")
    args = parser.parse_args()
    known = np.unique(Shingles()(list(dev_texts(args.dev)))[0]) if args.dev else read_index()
    print(f"{len(known)} shingles of the dev sets")
    if args.index:
        print(f"{write_index(known, args.index)} of them in {args.index}, {args.index.stat().st_size} bytes")
    if args.rows:
        rows: list[Row] = list(read_rows(args.rows))
        found: Iterable[int] = overlapping(rows, known, sampled=args.dev is None)
        print(f"{len(set(found))} of {len(rows)} rows overlap:", dict(Counter(rows[i]["t"] for i in found)))
        if args.out:
            write_rows(args.out, (row for i, row in enumerate(rows) if i not in found))


if __name__ == "__main__":
    main()
