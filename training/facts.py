"""Short facts made by rule, with the questions people ask about them.

Own work, no data set is used. The word lists are in rules/: single words and updates (`facts.txt`), classes of things
(`classes.txt`, `classes_new.txt`), frames (`frames.txt`, `frames_new.txt`) and frames in other languages
(`frames_es.txt` and so on).

A row has: t (task), q (questions), d (fact), k (facts with the same k are never
negatives of each other), hn (texts that must rank below d), src and lic.

    python facts.py --out parts/facts.jsonl.xz
"""

from __future__ import annotations

import argparse
import random
import re
from pathlib import Path

from rows import Row, write_rows
from word_lists import read_lines, read_lists

LISTS = read_lists("facts.txt")
OWN = {"src": "rules", "lic": "own"}

NAMES = LISTS["names"]
MONTHS = LISTS["months"]
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
CITIES = LISTS["cities"]
WORDS = LISTS["words"]
LANGUAGES = LISTS["languages"]
COMPANIES = LISTS["companies"]
DOCTORS = LISTS["doctors"]
JOBS = LISTS["jobs"]
RELATIVES = LISTS["relatives"]
ITEMS = LISTS["items"]
ANIMALS = ["dog", "cat", "rabbit", "parrot", "hamster", "horse", "guinea pig", "ferret", "tortoise"]
REASONS = LISTS["reasons"]

# Facts about a thing {e} of a class {c} ({f}: another thing of the class; {p}: what it is for).
CLASS_FACTS = LISTS["class_facts"]
CLASS_QUESTIONS = LISTS["class_questions"]
CLASS_QUESTIONS_OTHER = LISTS["class_questions_other"]
CLASS_QUESTIONS_PERSON = LISTS["class_questions_person"]

# One attribute with an old and a new value: attribute, new fact, older fact, questions, older question, kind of value.
UPDATES = LISTS["updates"]

VALUE_LISTS = {
    "city": CITIES,
    "job": JOBS,
    "name": NAMES,
    "day": DAYS,
    "word": [w.capitalize() for w in WORDS],
    "lang": LANGUAGES,
    "co": COMPANIES,
    "doctor": DOCTORS,
    "animal": ANIMALS,
    **{kind: LISTS[f"values.{kind}"] for kind in ("diet", "editor", "db", "car", "drink", "hobby")},
}


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def ask_style(rng: random.Random, question: str) -> str:
    """The same question as typed by different people."""
    r = rng.random()
    if r < 0.35:
        return question.lower().rstrip("?")
    if r < 0.6 and len(question.split()) > 3:
        return capital(question).rstrip("?") + "?"
    return question


def fix_article(text: str) -> str:
    return re.sub(r"\b([Aa]) (?=[aeiouAEIOU])", r"\1n ", text)


WH_LABEL = re.compile(r"(what|where|who|how|which) ")
VERB_S = re.compile(r"^(User|The user) (\w+?)s (?=\w)")
PREFIXES = [
    "Note: ",
    "Remember: ",
    "FYI: ",
    "Reminder: ",
    "Note to self: ",
    "Fact: ",
    "Preference: ",
    "For the record, ",
    "Update: ",
    "- ",
    "PS: ",
]


def tell_style(rng: random.Random, fact: str) -> str:  # noqa: C901 (one branch per style)
    """The same fact in another voice: first person, with a prefix, with a date."""
    r = rng.random()
    if fact.startswith("User's ") and r < 0.35:
        fact = "My " + fact[7:]
    elif fact.startswith("User ") and r < 0.35:
        for old, new in (
            ("User is ", "I am "),
            ("User has ", "I have "),
            ("User was ", "I was "),
            ("User does not ", "I don't "),
            ("User can't ", "I can't "),
            ("User had ", "I had "),
        ):
            if fact.startswith(old):
                fact = new + fact[len(old) :]
                break
        else:
            match = VERB_S.match(fact)
            if match and match[2].endswith(("she", "tche", "sse")):
                fact = f"I {match[2][:-1]} " + fact[match.end() :]
            elif match and not match[2].endswith(("e", "i")):
                fact = f"I {match[2]} " + fact[match.end() :]
    elif fact.startswith("I ") and r < 0.1:
        fact = "The user said: " + fact
    r = rng.random()
    if r < 0.08:
        fact = rng.choice(PREFIXES) + (
            fact
            if fact[:2].isupper() or fact.split()[0] in NAMES or fact.startswith(("I ", "I'"))
            else fact[:1].lower() + fact[1:]
        )
    elif r < 0.12:
        fact = f"[{rng.randint(2021, 2026)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}] {fact}"
    elif r < 0.16:
        fact = f"{fact} ({rng.choice(MONTHS)} {rng.randint(2021, 2026)})"
    elif r < 0.20:
        fact += "."
    elif r < 0.23:
        fact = fact.lower()
    return fact if fact[:1].islower() and r < 0.23 else capital(fact)


def slots(rng: random.Random) -> dict[str, object]:
    """Values for all slots of a frame; people, cities and days are different from each other."""
    n, n2, n3 = rng.sample(NAMES, 3)
    city, city2 = rng.sample(CITIES, 2)
    day, day2 = rng.sample(DAYS, 2)
    w, w2 = rng.sample(WORDS, 2)
    job, job2 = rng.sample(JOBS, 2)
    lang, lang2 = rng.sample(LANGUAGES, 2)
    amount = rng.choice(
        [
            f"{rng.randint(2, 9)}{rng.randint(0, 9)}0 euros",
            f"${rng.randint(2, 90)},{rng.randint(1, 9)}00",
            f"{rng.randint(2, 90)}k",
            f"CHF {rng.randint(20, 900)}",
            f"£{rng.randint(15, 400)}",
        ]
    )
    return {
        "n": n,
        "n2": n2,
        "n3": n3,
        "city": city,
        "city2": city2,
        "day": day,
        "day2": day2,
        "w": w,
        "w2": w2,
        "W": rng.choice(WORDS).upper(),
        "job": job,
        "job2": job2,
        "lang": lang,
        "lang2": lang2,
        "m": rng.choice(MONTHS),
        "m2": rng.randint(1, 12),
        "d": rng.randint(1, 28),
        "h": f"{rng.randint(6, 21)}:{rng.choice(['00', '15', '30', '45'])}",
        "k": rng.randint(2, 9),
        "k2": rng.randint(2, 12),
        "y": rng.randint(2015, 2028),
        "p": rng.randint(2000, 9000),
        "p2": rng.randint(2000, 9000),
        "L": rng.choice("BEGJKMPQ"),
        "amt": amount,
        "co": rng.choice(COMPANIES),
        "dr": rng.choice(DOCTORS),
        "rel": rng.choice(RELATIVES),
        "item": rng.choice(ITEMS),
        "animal": rng.choice(ANIMALS),
    }


def frame_rows(rng: random.Random, count: int) -> list[Row]:
    """Facts from frames. Hard negatives: same person, other attribute; same attribute, other person."""
    frames = [line.split("|") for line in read_lines("frames.txt", "frames_new.txt")]
    personal = [i for i, (fact, _) in enumerate(frames) if "{n}" in fact]
    rows, seen = [], set()
    for i in range(count):
        index = i % len(frames)
        template, questions = frames[index]
        values = slots(rng)
        fact = tell_style(rng, template.format(**values))
        if fact in seen:
            continue
        seen.add(fact)
        asked = [ask_style(rng, q.format(**values)) for q in questions.split(";")]
        negatives = []
        if index in personal:
            other = rng.choice(personal)
            if other != index:
                negatives.append(frames[other][0].format(**{**slots(rng), "n": values["n"]}))
        named = [q for q in asked if str(values["n"]).lower() in q.lower()]
        row = dict(t="F", q=asked, d=fact, k=f"frame{index}", tpl=1, hn=negatives, **OWN)
        rows.append(row)
        if named and rng.random() < 0.35:  # questions that name the person: the same fact about another person is wrong
            rows.append(
                dict(
                    t="F",
                    q=named,
                    d=tell_style(rng, template.format(**values)),
                    k=f"frame{index}",
                    tpl=1,
                    hn=[*negatives, template.format(**slots(rng))],
                    **OWN,
                )
            )
    return rows


def pick(rng: random.Random, base: dict[str, object], labels: list[str], purposes: list[str]) -> dict[str, object]:
    """The values of a thing, with one of its classes and purposes."""
    return {**base, "c": rng.choice(labels), "p": rng.choice(purposes)}


def class_rows(rng: random.Random, count: int) -> list[Row]:
    """Facts about things of a class: the question names the class or the purpose, the fact only the thing."""
    classes = []
    for line in read_lines("classes.txt", "classes_new.txt"):
        labels, purposes, things = line.split("|")
        nouns = [x for x in labels.split(",") if not WH_LABEL.match(x)]
        clauses = [x for x in labels.split(",") if WH_LABEL.match(x)]  # "what someone drives": a complete question
        classes.append((nouns, purposes.split(","), [x.replace("_", " ") for x in things.split()], clauses))
    rows, seen = [], set()
    for i in range(count):
        index = i % len(classes)
        labels, purposes, things, clauses = classes[index]
        thing, other = rng.sample(things, 2)
        base = {**slots(rng), "e": thing, "f": other}
        base["r"] = rng.choice(REASONS).format(**base)
        template = rng.choice(CLASS_FACTS)
        fact = tell_style(rng, template.format(**pick(rng, base, labels, purposes)))
        if fact in seen:
            continue
        seen.add(fact)
        questions = rng.sample(CLASS_QUESTIONS, 4)
        if "{f}" in template:
            questions.append(rng.choice(CLASS_QUESTIONS_OTHER))
        if "{n}" in template:
            questions.append(rng.choice(CLASS_QUESTIONS_PERSON if "{f}" in template else CLASS_QUESTIONS_PERSON[:-1]))
        asked = [ask_style(rng, fix_article(q.format(**pick(rng, base, labels, purposes)))) for q in questions]
        if clauses and rng.random() < 0.4:
            asked[0] = ask_style(rng, rng.choice(clauses))
        labels2, purposes2, things2, _ = classes[rng.randrange(len(classes))]
        negative = []
        if not set(labels2) & set(labels):
            e2, f2 = rng.sample(things2, 2)
            negative = [
                template.format(**{**base, "e": e2, "f": f2, "c": rng.choice(labels2), "p": rng.choice(purposes2)})
            ]
        rows.append(dict(t="F", q=asked, d=fact, k=f"class{index}", tpl=1, hn=negative, **OWN))
    return rows


def value(rng: random.Random, kind: str) -> str:
    if kind == "time":
        return f"{rng.randint(7, 18)}:{rng.choice(['00', '15', '30'])}"
    if kind == "num":
        return str(rng.randint(3, 99))
    if kind == "amt":
        return f"{rng.randint(2, 99)}0 euros"
    if kind == "date":
        return f"{rng.randint(1, 28)} {rng.choice(MONTHS)}"
    return rng.choice(VALUE_LISTS[kind])


def update_rows(rng: random.Random, per_attribute: int) -> list[Row]:
    """Old and new value of one attribute. A question finds the new fact; the old one is not a negative (same k)."""
    rows = []
    for index, line in enumerate(UPDATES):
        _, new, old, questions, past, kind = line.split("|")
        for _ in range(per_attribute):
            a = b = value(rng, kind)
            while b == a:
                b = value(rng, kind)
            values = {**slots(rng), "a": a, "b": b}
            key = f"update{index}"
            other = {**slots(rng), "a": value(rng, kind), "b": value(rng, kind)}
            negatives = [new.format(**other)] if "{n}" in questions or "{w}" in questions else []
            year = rng.randint(2022, 2026)
            dated = rng.random() < 0.5
            newer, older = tell_style(rng, new.format(**values)), old.format(**values)
            if dated:
                newer, older = (
                    f"[{year}-{rng.randint(7, 12):02d}-{rng.randint(1, 28):02d}] {newer}",
                    f"[{year}-{rng.randint(1, 6):02d}-{rng.randint(1, 28):02d}] {older}",
                )
            rows.append(
                dict(
                    t="F",
                    q=[ask_style(rng, q.format(**values)) for q in questions.split(";")],
                    d=newer,
                    k=key,
                    tpl=1,
                    old=[older],
                    hn=negatives,
                    **OWN,
                )
            )
            if rng.random() < 0.5:
                rows.append(
                    dict(
                        t="F",
                        q=[ask_style(rng, past.format(**values)), f"history: {line.split('|')[0].format(**values)}"],
                        d=older,
                        k=key,
                        tpl=1,
                        hn=[],
                        **OWN,
                    )
                )
    return rows


def local_rows(rng: random.Random, per_frame: int) -> list[Row]:
    """Facts in Spanish, German, French and Chinese; every third one is asked in English as well."""
    rows = []
    for lang in ("es", "de", "fr", "zh"):
        for index, line in enumerate(read_lines(f"frames_{lang}.txt")):
            fact, questions = line.split("|")
            for _ in range(per_frame):
                v = {
                    **slots(rng),
                    "n": rng.choice(LISTS[f"{lang}.names"]),
                    "day": rng.choice(LISTS[f"{lang}.days"]),
                    "m": rng.choice(LISTS[f"{lang}.months"]),
                    "food": rng.choice(LISTS[f"{lang}.foods"]),
                    "city": rng.choice(LISTS[f"{lang}.cities"]),
                }
                rows.append(
                    dict(
                        t="M",
                        lang=lang,
                        q=[q.format(**v) for q in questions.split(";")],
                        d=fact.format(**v),
                        k=f"local.{lang}{index}",
                        tpl=1,
                        **OWN,
                    )
                )
    return rows


def make_rows(rng: random.Random, frames: int, classes: int, updates: int, local: int) -> list[Row]:
    """All rows: given numbers by frames and by classes, pairs per attribute, and facts per frame and language."""
    return frame_rows(rng, frames) + class_rows(rng, classes) + update_rows(rng, updates) + local_rows(rng, local)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--frames", type=int, default=24_000)
    parser.add_argument("--classes", type=int, default=18_000)
    parser.add_argument("--updates", type=int, default=90, help="pairs per attribute")
    parser.add_argument("--local", type=int, default=12, help="facts per frame and language")
    parser.add_argument("--seed", type=int, default=31)
    args = parser.parse_args()
    write_rows(args.out, make_rows(random.Random(args.seed), args.frames, args.classes, args.updates, args.local))


if __name__ == "__main__":
    main()
