"""Chat turns and sessions made by rule over a table of knowledge, with questions that name people, dates and relations.

Own work. For every pair of friends a table of events and attributes is drawn, and turns are written from it, so the
answers are right. T: one turn -> question. S: one session of several turns -> question; ks are the keys of all facts in
the session, qk the key of each question. A session that contains the key of a question is never its negative.

    python dialogues.py --out parts/dialogues.jsonl.xz
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from facts import CITIES, DAYS, JOBS, MONTHS, NAMES, RELATIVES
from rows import Row, write_rows
from word_lists import read_lists

LISTS = read_lists("dialogues.txt")

THINGS = {name.removeprefix("things."): LISTS[name] for name in LISTS if name.startswith("things.")}

# statement in the first person | questions about {a}
EVENTS = LISTS["events"]

CHATTER = LISTS["chatter"]
WHEN = LISTS["when"]


def fill(rng: random.Random) -> dict[str, str]:
    values = {k: rng.choice(v) for k, v in THINGS.items()}
    values.update(
        other=rng.choice(NAMES),
        day=rng.choice(DAYS),
        month=rng.choice(MONTHS),
        city=rng.choice(CITIES),
        job=rng.choice(JOBS),
        rel=rng.choice(RELATIVES),
        num=str(rng.randint(2, 14)),
    )
    values["date"] = f"{rng.randint(1, 28)} {values['month']}"
    values["when"] = rng.choice(WHEN).format(**values)
    return values


def article(text: str) -> str:
    return text.replace(" a architect", " an architect").replace(" a uncle", " an uncle").replace(" a aunt", " an aunt")


def make_dialogue(rng: random.Random, sessions: int = 3, per_session: int = 5) -> list[Row]:
    """Rows of one pair of friends: turns with their questions, and whole sessions."""
    a, b = rng.sample(NAMES, 2)
    templates = rng.sample(range(len(EVENTS)), sessions * per_session)
    year = rng.randint(2019, 2026)
    rows: list[Row] = []
    told: list[tuple[str, str, list[str], int, str]] = []
    for position, template in enumerate(templates):
        statement, questions = EVENTS[template].split("|")
        values = fill(rng)
        while values["other"] in (a, b):
            values = fill(rng)
        speaker = rng.choice((a, b))
        asked = [q.format(a=speaker, **values) for q in questions.split(";")]
        date = f"{rng.randint(1, 28)} {MONTHS[(position // per_session * 3 + rng.randint(0, 2)) % 12]} {year}"
        asked += [f"What did {speaker} say on {date}?"] if rng.random() < 0.1 else []
        told.append((speaker, article(statement.format(**values)), [article(q) for q in asked], template, date))
    for i, (speaker, text, asked, template, date) in enumerate(told):
        head = f"{speaker} ({date}): "
        others = [f"{s} ({dt}): {t}" for j, (s, t, _, _, dt) in enumerate(told) if j != i]
        lead = rng.choice(CHATTER) + " " if rng.random() < 0.25 else ""
        rows.append(
            {
                "t": "T",
                "q": rng.sample(asked, min(3, len(asked))),
                "d": head + lead + text,
                "fixed": 1,
                "k": f"dlg{template}",
                "hn": [*rng.sample(others, 2), f"{speaker} ({date}): {rng.choice(CHATTER)}"],
                "src": "rules",
                "lic": "own",
            }
        )
    texts = []
    for s in range(sessions):
        part = told[s * per_session : (s + 1) * per_session]
        lines = []
        for speaker, text, _, _, _ in part:
            lines.append(f"{speaker}: {text}")
            if rng.random() < 0.6:
                lines.append(f"{b if speaker == a else a}: {rng.choice(CHATTER)}")
        texts.append(f"{part[0][4]}\n" + "\n".join(lines))
    for s, text in enumerate(texts):
        part = told[s * per_session : (s + 1) * per_session]
        picked = [(rng.choice(item[2]), f"S{item[3]}.{item[0]}") for item in rng.sample(part, 3)]
        rows.append(
            {
                "t": "S",
                "q": [q for q, _ in picked],
                "qk": [key for _, key in picked],
                "ks": [f"S{item[3]}.{item[0]}" for item in part],
                "d": text,
                "hn": [texts[(s + 1) % sessions]],
                "src": "rules",
                "lic": "own",
            }
        )
    return rows


USER_FACTS = LISTS["user_facts"]
REPLIES = LISTS["replies"]


def make_user_session(rng: random.Random) -> list[Row]:
    """A chat of a user with an assistant that holds several facts on the side."""
    picked, lines, asked = rng.sample(USER_FACTS, 4), [], []
    for item in picked:
        statement, questions = item.split("|")
        values = fill(rng)
        lines += ["user: " + article(statement.format(**values)), "assistant: " + rng.choice(REPLIES)]
        asked.append(rng.choice(questions.split(";")).format(**values))
    keys = [f"user{USER_FACTS.index(item)}" for item in picked]
    return [{"t": "S", "q": asked[:3], "qk": keys[:3], "ks": keys, "d": "\n".join(lines), "src": "rules", "lic": "own"}]


def make_rows(rng: random.Random, pairs: int, users: int) -> list[Row]:
    """The dialogues of the given number of pairs of friends, then the sessions of the given number of users."""
    rows = [row for _ in range(pairs) for row in make_dialogue(rng)]
    return rows + [row for _ in range(users) for row in make_user_session(rng)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=900)
    parser.add_argument("--users", type=int, default=2500)
    parser.add_argument("--seed", type=int, default=34)
    args = parser.parse_args()
    write_rows(args.out, make_rows(random.Random(args.seed), args.pairs, args.users))


if __name__ == "__main__":
    main()
