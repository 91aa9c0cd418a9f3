"""Sentences, parsed: what each says, as far as rules can tell: its words, its numbers and dates, its negation."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from mindex.analyzer import STOP_WORDS, fold
from mindex.lexicon import dates, load
from mindex.lexicon import meaning as known
from mindex.values import dataclass

_LONGEST = 400  # characters of a sentence: rules cannot compare longer ones
_MAX_SENTENCES = 5

# Not after `Dr.`, and not in `3. März`.
_SENTENCE_END = re.compile(
    rf"(?<=[.!?;])(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bSr\.)(?<!\bSt\.)(?<!\bMrs\.)"
    rf"\s+(?!(?:{'|'.join(load('dates')['months']['de'].split('|'))})\b)|\n+",
    re.IGNORECASE,
)
_PARTS = load("sentences")
_SUBORDINATE, _SECOND_CLAUSE, _DETAIL = (
    re.compile(_PARTS[name], re.IGNORECASE | re.DOTALL) for name in ("subordinate", "second_clause", "detail")
)
_EVERYWHERE = re.compile(_PARTS["everywhere"], re.IGNORECASE)
_CONDITIONS = frozenset(_PARTS["conditions"].split())
_ELISION = re.compile(_PARTS["elision"], re.IGNORECASE)
_CONTRACTIONS: dict[str, str] = _PARTS["contractions"]
_CONTRACTION = re.compile(rf"(?<=\w)['’]({'|'.join(_CONTRACTIONS)})\b", re.IGNORECASE)
_CURRENCIES = {sign: name for name, signs in _PARTS["currencies"].items() for sign in signs.split()}
_WORD = re.compile(r"[^\W\d_]+")
_TOKEN = re.compile(
    r"(?P<iso>\d{4}-\d{2}-\d{2})"
    r"|(?P<clock>\d{1,2}:\d{2}(?:\s?[ap]\.?m\b\.?)?|\d{1,2}\s?[ap]\.?m\b\.?|\d{1,2}\s?h(?:\d\d)?\b)"
    r"|(?P<money>[$€£]\s?\d[\d,]*(?:\.\d+)?)"
    r"|(?P<number>\d[\d,]*(?:\.\d+)*(?:st|nd|rd|th)?(?![^\W_]))"
    r"|(?P<percent>%)"
    r"|(?P<word>[^\W_]+(?:[-_./@#+'’][^\W_]+)*(?:\+\+|\#)?)",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"(\d{1,2})(?:\s?[:h](\d{2})?)?\s?(?:([ap])\.?m)?", re.IGNORECASE)
_MONTH = 2_628_000  # seconds: a twelfth of 365 days
_SECONDS = {**dates.UNIT_SECONDS, **{unit: _MONTH * months for unit, months in dates.UNIT_MONTHS.items()}} | {
    "ms": 0.001, "millisecond": 0.001, "milliseconds": 0.001
}  # fmt: skip
_SAME_LENGTH = 0.02  # of the longer duration: 30 days are a month, and 52 weeks a year
_YEARS = range(1800, 2200)
_HOURS = range(25)


@dataclass(frozen=True, slots=True)
class Value:
    """A number, time or date of a sentence. `parts` tell it apart from others of its kind and unit."""

    kind: str  # time, date, duration, money, share or number
    parts: tuple[tuple[str, float], ...]
    unit: str
    text: str  # as it is written
    names_subject: bool = False  # `Room 12 has …`: it belongs to the name of the subject
    bound: str = ""  # lower or upper: `from 9:00`, `until 18:00`
    of_name: bool = False  # it follows a name: `Python 3.12`


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a sentence: its stem, how it is written, and whether it carries meaning."""

    stem: str
    text: str
    content: bool = True
    follows_article: bool = False

    @property
    def folded(self) -> str:
        return fold(self.text)

    @property
    def is_name(self) -> bool:
        """Whether it is written like a name: `Porto`, `iPhone`, `1Password`."""
        return "@" in self.text or any(character.isupper() for character in self.text)


@dataclass(frozen=True, slots=True)
class ParsedSentence:
    """One sentence: words in order without articles and negations, values, and whether it denies or tells an event."""

    words: tuple[Word, ...]
    values: tuple[Value, ...]
    negated: bool
    unclear: bool  # it is negated in part, or twice
    event: bool  # it tells what happened, not how something is
    first: str  # the first word, folded
    update: bool = False  # it says that something else held before: `now`, `moved to`, `no longer`
    corrects: str = ""  # the stem of the value that it says is wrong: `port 9443, not 8443`
    shortened: bool = False  # without a role, or who else is there: only an update is compared with it

    @property
    def content(self) -> frozenset[str]:
        return frozenset(word.stem for word in self.words if word.content)


def sentences(text: str) -> list[str]:
    """The sentences of a text that rules can compare; none of them is too long."""
    return [part for part in _SENTENCE_END.split(text.strip()) if part.strip() and len(part) <= _LONGEST]


def parse_sentences(text: str, *, without_details: bool = False) -> tuple[ParsedSentence, ...]:
    """The first five sentences of a text, parsed, and what an update says without its date.

    `without_details` instead adds what a sentence says without what follows its first number, and without a person's
    role: a newer and shorter sentence changes the number or the place, and seldom repeats the rest.
    """
    found: list[ParsedSentence] = []
    for part in sentences(text)[:_MAX_SENTENCES]:
        whole = _read(part)
        found.append(whole)
        if not without_details:
            if (undated := known.reworded(part, "dated")) != part and _read(undated).update:
                found.append(_read(undated))  # an update may say when it came: `moved to Braga in May`
            continue
        clause = _clause(part)
        if head := _head(clause):
            found.append(_parse(known.reworded(head, "same")))
        if not whole.negated and not whole.unclear and (short := known.reworded(clause, "left_out")) != clause:
            found.append(replace(_parse(known.reworded(short, "same")), shortened=True))
    return tuple(found)


@lru_cache(maxsize=1024)
def _read(sentence: str) -> ParsedSentence:
    """A sentence without what it explains or adds, its update words, and phrases in one wording."""
    corrected = known.named_pattern("correction").search(sentence) if "," in sentence else None
    if corrected:
        sentence = sentence[: corrected.start()].rstrip(", ")
    denied = sentence if corrected else _denied(sentence)
    clause = _clause(denied)
    plain = known.reworded(clause, "updates")
    update = plain != clause or corrected is not None
    if update:
        plain = known.named_pattern("since").sub(" ", plain)
    parsed = _parse(known.reworded(plain, "same"))
    history = "?" in sentence or known.named_pattern("history").search(plain) is not None
    return replace(
        parsed,
        unclear=parsed.unclear or history,
        update=update,
        corrects=known.stem(corrected[1]) if corrected else "",
    )


def _denied(sentence: str) -> str:
    """`The lab no longer uses Redis` of `The lab no longer uses Redis, it uses NATS`; any other sentence as it is."""
    denial, comma, rest = sentence.partition(",")
    following = _WORD.findall(fold(rest))
    if not comma or not following or following[0] not in known.OTHER_CLAUSE:
        return sentence
    if not known.LIMITS_DENIAL.isdisjoint(following):
        return sentence
    plain = known.reworded(denial, "updates")
    return denial if plain != denial and _parse(plain).negated else sentence


def _clause(sentence: str) -> str:
    plain = sentence
    if "'" in sentence or "’" in sentence:
        plain = _CONTRACTION.sub(lambda match: _CONTRACTIONS[match[1].casefold()], _ELISION.sub(r"\1 ", sentence))
    return " ".join(_SECOND_CLAUSE.sub("", _SUBORDINATE.sub(" ", plain)).split())


def _head(sentence: str) -> str:
    """A sentence up to the details that follow its first number, or up to `in every …`; '' if none do."""
    if everywhere := _EVERYWHERE.search(sentence):
        return sentence[: everywhere.start()]
    number = next((match for match in _TOKEN.finditer(sentence) if _is_number(match)), None)
    detail = _DETAIL.search(sentence, number.end()) if number else None
    if detail is None:
        return ""
    following = _bare(detail["next"])
    is_condition = (
        following in dates.MONTHS or following.removesuffix("s") in dates.WEEKDAYS or following in _CONDITIONS
    )
    return "" if is_condition or following.isdigit() else sentence[: detail.start()]


def _is_number(match: re.Match[str]) -> bool:
    return match.lastgroup in ("clock", "money", "number") or fold(match[0]) in dates.NUMBERS


@lru_cache(maxsize=512)
def _parse(sentence: str) -> ParsedSentence:
    tokens = list(_tokens(sentence))
    words: list[Word] = []
    values: list[Value] = []
    negations, unclear, past, once, article = 0, False, False, False, False
    place = 0
    while place < len(tokens):
        value, used = _value(tokens, place, words)
        if value is not None:
            last = words[-1].folded if words else ""
            of_name = len(words) > 1 and words[-1].is_name and not value.unit
            values.append(replace(value, bound=known.BOUNDS.get(last, ""), of_name=of_name))
            place += used
            continue
        _, text = tokens[place]
        folded = _bare(text)
        following = _bare(tokens[place + 1][1]) if place + 1 < len(tokens) else ""
        place += 1
        if folded.endswith(("n't", "n’t")) or folded.replace("'", "").replace("’", "") in known.folded("negations"):
            if following in known.folded("reminders"):  # do not forget to …
                place += 1
                continue
            negations += 1
            unclear = unclear or following in known.folded("partial")
            past = past or folded.startswith(("did", "was", "were", "had"))
            continue
        unclear = unclear or folded in known.folded("unclear")
        past = past or _is_past(folded, words)
        stem = "user" if folded in known.folded("first_person") else known.stem(folded)
        once = once or stem in known.stems("once")
        if folded in known.folded("articles") or not stem:
            article = folded in known.folded("articles")
            continue
        if folded.rstrip(".") in known.folded("titles"):
            continue
        is_acronym = len(text) > 1 and text.isupper()  # MIT, the licence
        content = is_acronym or not (folded in known.FUNCTION_WORDS or stem in known.stems("light"))
        words.append(Word(stem, text, content or stem == "user", article))
        article = False
    first = _bare(tokens[0][1]) if tokens else ""
    return ParsedSentence(
        tuple(words), tuple(values), negations == 1, unclear or negations > 1, past and not once, first
    )


def _tokens(sentence: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(sentence):
        assert match.lastgroup is not None
        yield match.lastgroup, match[0]


def _bare(text: str) -> str:
    """A word folded, without the sign of a genitive."""
    return fold(text).removesuffix("'s").removesuffix("’s").rstrip("'’")


def _is_past(folded: str, before: list[Word]) -> bool:
    if folded in known.folded("irregular_past"):
        return True
    if len(folded) < 5 or not folded.endswith("ed") or folded.endswith(known.NO_PAST) or "-" in folded:
        return False
    return not before or before[-1].folded not in known.folded("be")  # `is stored` tells how something is


# ── numbers, times and dates ─────────────────────────────────────────────────────────────────────────────────


def _value(tokens: list[tuple[str, str]], place: int, before: list[Word]) -> tuple[Value | None, int]:
    """The value that begins at a token, and how many tokens it takes."""
    kind, text = tokens[place]
    following = [text for _, text in tokens[place + 1 : place + 4]] + [""] * 3
    if kind == "iso":
        year, month, day = map(float, text.split("-"))
        return Value("date", (("day", day), ("month", month), ("year", year)), "", text), 1
    if kind == "clock":
        return _clock(text), 1
    if kind == "money":
        return Value("money", _amount(text[1:].strip()), _CURRENCIES[text[0]], text), 1
    if kind == "word":
        folded = _bare(text)
        if folded in dates.MONTHS and _is_month(text, before):
            return _month(text, following)
        weekday = dates.WEEKDAYS.get(folded, dates.WEEKDAYS.get(folded.removesuffix("s")))
        if weekday is not None:
            return Value("date", (("weekday", float(weekday)),), "", text), 1
        if folded in dates.ORDINALS and before and any(word.folded in known.folded("be") for word in before):
            noun = known.stem(_bare(following[0]))
            return Value("number", (("ordinal", float(dates.ORDINALS[folded])),), noun, text), 1
        if folded in dates.NUMBERS and not (folded == "one" and following[0].lower() in ("of", "")):
            return _number(str(dates.NUMBERS[folded]), text, following, before)
        return None, 1
    if kind == "number":
        return _number(text.lower().rstrip("stndrh"), text, following, before)
    return None, 1


def _clock(text: str) -> Value:
    match = _CLOCK.match(text)
    assert match is not None
    hour, minute, half = int(match[1]), int(match[2] or 0), (match[3] or "").lower()
    if half:
        hour = hour % 12 + 12 * (half == "p")
    return Value("time", (("minute", hour * 60.0 + minute),), "", text)


def _is_month(text: str, before: list[Word]) -> bool:
    """`may` and `march` are months where they are written like one and not at the beginning."""
    return fold(text) not in ("may", "march") or (text[0].isupper() and bool(before))


def _month(text: str, following: list[str]) -> tuple[Value, int]:
    """`March`, `March 5`, `March 2026`, `March 5 2026`."""
    parts = [("month", float(dates.MONTHS[fold(text)]))]
    used = 1
    for word in following[:2]:
        digits = word.lower().rstrip("stndrh")
        if not digits.isdigit() or (int(digits) > 31 and int(digits) not in _YEARS):
            break
        parts.append(("day" if int(digits) <= 31 else "year", float(digits)))
        text, used = f"{text} {word}", used + 1
    return Value("date", tuple(sorted(parts)), "", text), used


def _number(digits: str, text: str, following: list[str], before: list[Word]) -> tuple[Value, int]:
    unit = _bare(following[0])
    last = before[-1].folded if before else ""
    plain = digits.isdigit()
    if unit == "de" and _bare(following[1]) in dates.MONTHS:  # 3 de marzo
        date, used = _number(digits, text, following[1:], before)
        return date, used + 1
    if plain and unit in dates.MONTHS and int(digits) <= 31:
        date, used = _month(following[0], following[1:])
        parts = tuple(sorted((*date.parts, ("day", float(digits)))))
        return Value("date", parts, "", f"{text} {date.text}"), used + 1
    if unit in _SECONDS:
        seconds = _amount(digits)[0][1] * _SECONDS[unit]
        return Value("duration", (("seconds", seconds),), "", f"{text} {unit}"), 2
    if unit in _CURRENCIES:
        return Value("money", _amount(digits), _CURRENCIES[unit], f"{text} {unit}"), 2
    if unit in ("%", "percent"):
        return Value("share", _amount(digits), "", f"{text} %"), 2
    if plain and (unit == "uhr" or (last == "at" and int(digits) in _HOURS and _ends_phrase(unit))):
        return Value("time", (("hour", float(digits)),), "", text), 1 + (unit == "uhr")
    if plain and int(digits) in _YEARS and (last in known.folded("prepositions") or last == "since"):
        return Value("date", (("year", float(digits)),), "", text), 1
    noun = known.stem(unit) if unit.isalpha() and unit not in STOP_WORDS else ""
    return Value("number", _amount(digits), noun, text, _is_name(before, following)), 1


def _is_name(before: list[Word], following: list[str]) -> bool:
    """Whether a number belongs to the name of a subject: `Room 12 has …`, `the draft of chapter 2 is …`."""
    if following[0].lower() in known.folded("measures"):
        return False
    if len(before) <= 2 and all(word.content for word in before):
        return True
    follows_noun = before[-1].content and all(word.folded not in known.PREDICATE for word in before)
    return follows_noun and fold(following[0]) in known.PREDICATE


def _ends_phrase(word: str) -> bool:
    return (
        not word
        or word in STOP_WORDS
        or word in known.folded("prepositions")
        or word in ("o'clock", "sharp", "every", "now")
    )


def _amount(digits: str) -> tuple[tuple[str, float], ...]:
    parts = digits.replace(",", "").split(".")
    if len(parts) > 2:  # a version
        return tuple((f"part {at}", float(part)) for at, part in enumerate(parts))
    return (("amount", float(".".join(parts))),)


def same_value(one: Value, other: Value) -> bool | None:
    """Whether two values are the same; None when they cannot be compared."""
    if one.kind != other.kind or (one.unit and other.unit and one.unit != other.unit):
        return None
    if one.kind == "time":  # `at seven` is 19:00 as well
        minutes = [dict(value.parts) for value in (one, other)]
        bare = any("hour" in parts for parts in minutes)
        apart = abs(_minutes(minutes[0]) - _minutes(minutes[1]))
        return apart % (720 if bare else 1440) == 0
    a, b = dict(one.parts), dict(other.parts)
    if one.kind == "duration" and _is_in_months(one) != _is_in_months(other):
        return abs(a["seconds"] - b["seconds"]) <= _SAME_LENGTH * max(a["seconds"], b["seconds"])
    shared = a.keys() & b.keys()
    return all(a[part] == b[part] for part in shared) if shared else None


def _is_in_months(duration: Value) -> bool:
    return duration.text.rpartition(" ")[2] in dates.UNIT_MONTHS


def _minutes(parts: dict[str, float]) -> float:
    return parts["hour"] * 60 if "hour" in parts else parts["minute"]
