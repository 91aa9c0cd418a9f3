"""The windows of time that a text names: `last week`, `im März`, `il y a deux mois`, `entre el 3 y el 10 de mayo`.

English, German, French and Spanish, by the patterns of `lexicon/times.toml`. The phrase may be anywhere in a text, so
the name of a month or weekday that may be another word (`may`, `April`) needs a preposition. Of days, months and
weekdays without a year the last one that began is meant. Quoted text is not read.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import MAXYEAR, MINYEAR, date, datetime, time

from mindex.analyzer import fold
from mindex.lexicon import dates, filled, load
from mindex.times.calendar import (
    DAY,
    MONTHS,
    Span,
    day_in_years,
    milliseconds,
    moment_of,
    month_span,
    months_later,
    one_day,
    season_span,
    stepped,
)
from mindex.values import dataclass

_LONGEST = 2_000  # characters of a text that are read


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A span of local days, and the phrase that names it. Without `first` it is everything before `end`."""

    first: date | None
    end: date  # the day after the last one
    phrase: str
    words: tuple[int, int] = (0, 0)  # where the phrase is in the text

    @property
    def starts_at(self) -> int | None:
        """The first millisecond; None: the window has no beginning."""
        return None if self.first is None else _midnight(self.first)

    @property
    def ends_at(self) -> int:
        """The millisecond after the last one."""
        return _midnight(self.end)

    def __str__(self) -> str:
        last = self.end - DAY
        if self.first is None:
            return f"before {self.end}"
        return str(last) if self.first == last else f"{self.first} to {last}"


def find_window(text: str, now: int) -> TimeWindow | None:
    """The first window that a text names, outside quotes; None if it names none. `now`: the moment of the text."""
    return next(iter(find_windows(text, now, 1)), None)


def find_windows(text: str, now: int, most: int) -> list[TimeWindow]:
    """The first few windows that a text names, in order."""
    found: list[TimeWindow] = []
    try:
        for one in _windows(_plain(text[:_LONGEST]), moment_of(now).date()):
            found.append(one)
            if len(found) == most:
                break
    except (OverflowError, ValueError):  # a time outside the years that a calendar has
        pass
    return found


# ── the grammar ───────────────────────────────────────────────────────────────────────────────────────────────


def _any(words: Iterable[str]) -> str:
    """A group that matches any of these words, the longest first."""
    return "|".join(sorted(map(re.escape, words), key=lambda word: (-len(word), word)))


def _parts(table: dict[str, str]) -> dict[str, str]:
    """What `<name>` means in a pattern: the words of `dates`, and the rows of a table, which may contain others."""
    calendar_units = ("days", "weeks", "months", "years")
    units = dates.UNITS.items()
    parts = {
        "unit": _any(word for word, unit in units if unit in calendar_units and len(word) > 1),
        "clock_unit": _any(word for word, unit in units if unit not in calendar_units and len(word) > 3),
        "month": _any(MONTHS),
        "weekday": _any(dates.WEEKDAYS),
        "weekend": _any(dates.WEEKENDS),
        "season": _any(dates.SEASONS),
        "step": _any(dates.STEPS),
        "number": _any({**dict.fromkeys(dates.ONE), **dates.NUMBERS}),
        "few": _any(_FEW),
    }
    for name, pattern in table.items():
        parts[name] = filled(pattern, parts)
    return parts


_TABLE = load("times")
_FEW: dict[str, int] = _TABLE["few"]
_PARTS = _parts(_TABLE["parts"])
_PERIODS = [
    (name, re.compile(filled(pattern, _PARTS))) for name, patterns in _TABLE["periods"].items() for pattern in patterns
]
_AROUND = {name: re.compile(filled(pattern, _PARTS)) for name, pattern in _TABLE["around"].items()}
_FIELD = re.compile(r"(?<!\w)\{?[a-z_]+\}?:(?=\S)\S+")  # title:march
_HOMONYMS: dict[str, list[str]] = _TABLE["homonyms"]
_LANGUAGES = {language: frozenset(words.split()) for language, words in _TABLE["languages"].items()}
_WORD = re.compile(r"[^\W\d_]+")
_AMBIGUOUS_MONTHS = frozenset(["may", "march", "april", "june", "august", "mars", "mar", "jan", "sep", "dec", "mai"])


@dataclass(frozen=True, slots=True)
class _Period:
    """One period in a text, and whether it is one only behind a preposition."""

    start: int
    end: int
    span: Span
    unsure: bool = False


def _plain(text: str) -> str:
    """The text folded, without what is quoted, in one line; as long as the text itself if folding allows."""
    blanked = _AROUND["quoted"].sub(lambda match: "|" * len(match[0]), text)
    folded = "".join(one if len(one) == 1 else character for character in blanked for one in (fold(character),))
    return _FIELD.sub(lambda match: "|" * len(match[0]), folded.replace("\n", " "))


def _windows(text: str, today: date) -> Iterator[TimeWindow]:
    periods = sorted(_periods(text, today), key=lambda one: (one.start, -one.end))
    reached = 0
    for place, period in enumerate(periods, start=1):
        if period.start < reached:
            continue
        before = text[: period.start]
        following = next((one for one in periods[place:] if one.start >= period.end), None)
        between = text[period.end : following.start] if following else ""
        if following and _AROUND["and"].search(between) and _AROUND["between"].search(before):
            first, end = period.span[0], following.span[1]
            if first > following.span[0]:  # from November to March
                first = months_later(first, -12)
            if first >= end:  # the later day comes first
                first, end = following.span[0], period.span[1]
            reached = following.end
            yield _window(text, period.start, reached, first, end)
            continue
        if period.unsure and not _AROUND["preposition"].search(before):
            continue
        reached = period.end
        if match := _AROUND["since"].search(before):
            yield _window(text, match.start(), reached, period.span[0], max(today + DAY, period.span[1]))
        elif match := _AROUND["before"].search(before):
            if period.span[0] < today:  # `before today` says nothing
                yield _window(text, match.start(), reached, None, period.span[0])
        elif match := _AROUND["after"].search(before):
            if period.span[1] < today:
                yield _window(text, match.start(), reached, period.span[1], today + DAY)
        else:
            yield _window(text, period.start, reached, *period.span)


def _window(text: str, start: int, stop: int, first: date | None, end: date) -> TimeWindow:
    return TimeWindow(first, end, text[start:stop].strip(), (start, stop))


def _periods(text: str, today: date) -> Iterator[_Period]:
    """The periods that a text names. Longer ones come before those inside them."""
    taken: list[tuple[int, int]] = []
    for name, pattern in _PERIODS:
        for match in pattern.finditer(text):
            if any(start < match.end() and match.start() < end for start, end in taken):
                continue
            if match[0] in _HOMONYMS and _is_foreign(match[0], text):
                continue
            try:
                span = _READERS[name](match, today) if name in _READERS else one_day(today + DAY * int(name))
            except (OverflowError, ValueError):  # a time outside the years that a calendar has
                continue
            if span is not None and span[0].year > MINYEAR and span[1].year < MAXYEAR:
                taken.append(match.span())
                yield _Period(*match.span(), span, _is_unsure(name, match))


def _is_foreign(name: str, text: str) -> bool:
    """Whether a name is a word of another language here: `hier` means `here` in a German text."""
    own, other = (_LANGUAGES[language] for language in _HOMONYMS[name])
    words = _WORD.findall(text)
    return sum(word in other for word in words) > sum(word in own for word in words)


def _is_unsure(name: str, match: re.Match[str]) -> bool:
    """Whether a name may be another word, so that it needs a preposition to be a time."""
    match name:
        case "month":
            return not match["year"] and (match["month"] in _AMBIGUOUS_MONTHS or len(match["month"]) < 4)
        case "season":
            return not match["year"]
        case "weekday":
            at_end = not match.string[match.end() :].strip(" ?!.")
            return match[0] not in dates.WEEKDAYS_OF["fr"] and not (at_end and match[0] in dates.WEEKDAYS_OF["en"])
        case "year":
            return not _AROUND["german_verb"].search(match.string)
    return False


# ── the days of a phrase ──────────────────────────────────────────────────────────────────────────────────────


def _ago(match: re.Match[str], today: date) -> Span | None:
    """`three weeks ago` is the week around that day: the larger the unit, the vaguer the time."""
    count, unit = _count(match["count"]), dates.UNITS[match["unit"]]
    if count is None:
        return None
    if unit == "days":
        return one_day(today - DAY * count)
    if unit == "weeks":
        return stepped(-count, "week", today)
    if unit == "months":
        day = months_later(today, -count)
        return day - DAY * 15, day + DAY * 16
    day = months_later(today, -12 * count)
    return months_later(day, -1), months_later(day, 1) + DAY


def _recent(match: re.Match[str], today: date) -> Span | None:
    count = _count(match["count"]) if "count" in match.re.groupindex else 1
    if count is None:
        return None
    days = {"days": 1, "weeks": 7}.get(unit := dates.UNITS[match["unit"]])
    first = today - DAY * count * days if days else months_later(today, -count * (12 if unit == "years" else 1))
    return first, today + DAY


def _stepped(match: re.Match[str], today: date) -> Span | None:
    return stepped(dates.STEPS[match["step"]], match["period"], today)


def _weekend(_: re.Match[str], today: date) -> Span:
    """The last weekend that has begun."""
    saturday = today - DAY * ((today.weekday() - 5) % 7)
    return saturday, saturday + DAY * 2


def _iso(match: re.Match[str], today: date) -> Span | None:
    if match["day"]:
        return _date(match, today)
    month = int(match["month"])
    return month_span(int(match["year"]), month) if 1 <= month <= 12 else None


def _slashed(match: re.Match[str], today: date) -> Span | None:
    """03/05 is the third of May; for an American, the fifth of March."""
    if not match["year"] and not (len(match["day"]) == len(match["month"]) == 2):
        return None  # 24/7 and 1/2
    day, month = int(match["day"]), int(match["month"])
    if _is_american() or month > 12 >= day:
        day, month = month, day
    return _last_begun(day, month, match["year"], today)


def _date(match: re.Match[str], today: date) -> Span | None:
    month = MONTHS[match["month"]] if match["month"] in MONTHS else int(match["month"])
    return _last_begun(int(match["day"]), month, match["year"], today)


def _day_month(match: re.Match[str], today: date) -> Span | None:
    last = _date(match, today)
    if last is None or not match["from"]:
        return last
    first = day_in_years(int(match["from"]), MONTHS[match["month"]], [last[0].year])
    return (first[0][0], last[1]) if first and first[0] < last else last


def _month(match: re.Match[str], today: date) -> Span:
    month = MONTHS[match["month"]]
    return month_span(int(match["year"] or today.year - (month > today.month)), month)


def _season(match: re.Match[str], today: date) -> Span:
    season = dates.SEASONS[match["season"]]
    if match["year"]:
        return season_span(int(match["year"]), season)
    spans = [season_span(year, season) for year in range(today.year - 2, today.year + 1)]
    return [span for span in spans if span[0] <= today][-1]


def _weekday(match: re.Match[str], today: date) -> Span | None:
    before = match.string[: match.start()]
    every_week = match[0] in dates.WEEKDAYS_OF["fr"] and _AROUND["every_week"].search(before)
    if every_week or _AROUND["recurring"].search(before):
        return None
    return one_day(today - DAY * ((today.weekday() - dates.WEEKDAYS[match[0]]) % 7))


def _year(match: re.Match[str], today: date) -> Span | None:
    year = int(match["year"])
    if not 1990 <= year <= today.year + 1 or _AROUND["numbered"].search(match.string[: match.start()]):
        return None
    return date(year, 1, 1), date(year + 1, 1, 1)


def _last_begun(day: int, month: int, year: str | None, today: date) -> Span | None:
    """A day of a month; without a year, the last one that began."""
    if not 1 <= month <= 12:
        return None
    if year:
        return next(iter(day_in_years(day, month, [int(year) + 2000 * (len(year) == 2)])), None)
    begun = [span for span in day_in_years(day, month, range(today.year - 8, today.year + 1)) if span[0] <= today]
    return begun[-1] if begun else None


def _count(text: str) -> int | None:
    if text.isdigit():
        return int(text)
    if text in dates.ONE:
        return 1
    return dates.NUMBERS.get(text, _FEW.get(text.removeprefix("a ")))


def _midnight(day: date) -> int:
    if day.year >= MAXYEAR or day.year <= MINYEAR:
        raise OverflowError(day.year)
    return milliseconds(datetime.combine(day, time.min))


def _is_american() -> bool:
    """Whether the user's locale writes the month first."""
    named = next((os.environ[name] for name in ("LC_ALL", "LC_TIME", "LANG") if os.environ.get(name)), "")
    return named.startswith("en_US")


_READERS: dict[str, Callable[[re.Match[str], date], Span | None]] = {
    "iso": _iso,
    "day_month": _day_month,
    "date": _date,
    "slashed": _slashed,
    "ago": _ago,
    "recent": _recent,
    "stepped": _stepped,
    "weekend": _weekend,
    "month": _month,
    "season": _season,
    "weekday": _weekday,
    "year": _year,
}
