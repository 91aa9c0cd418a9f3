"""Preferences made by rule, with the requests they should shape (the request does not name the preference).

Own work. Each topic has things one may dislike or like and requests that touch the topic; two preferences of one topic
are never negatives of each other (same k).

    python preferences.py --out parts/preferences.jsonl.xz
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from rows import Row, write_rows
from word_lists import read_lists

LISTS = read_lists("preferences.txt")

# topic | things avoided | things wanted | requests
TOPICS = LISTS["topics"]

AVOID = LISTS["avoid"]
WANT = LISTS["want"]
REASONS = LISTS["reasons"]
SINCE = LISTS["since"]
LEADS = ["", "", "", "", "Hey, ", "Can you help me? ", "Quick question: ", "I was wondering: "]


def make_rows(rng: random.Random) -> list[Row]:
    rows = []
    for line in TOPICS:
        topic, avoided, wanted, requests = line.split("|")
        asked = requests.split(";")
        for things, patterns in ((avoided, AVOID), (wanted, WANT)):
            for thing in things.split(";"):
                for pattern in rng.sample(patterns, min(8, len(patterns))):
                    text = pattern.format(x=thing, r=rng.choice(REASONS), t=rng.choice(SINCE))
                    questions = [rng.choice(LEADS) + q for q in rng.sample(asked, min(3, len(asked)))]
                    rows.append(
                        {
                            "t": "P",
                            "q": questions,
                            "d": text[:1].upper() + text[1:],
                            "k": f"pref.{topic}",
                            "tpl": 1,
                            "src": "rules",
                            "lic": "own",
                        }
                    )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=32)
    args = parser.parse_args()
    write_rows(args.out, make_rows(random.Random(args.seed)))


if __name__ == "__main__":
    main()
