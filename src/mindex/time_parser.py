"""Times as people write them: `now`, `yesterday 15:00`, `3 days ago`, `2h`, `last week`, `friday`, `march`, ISO 8601.

What `time_window` reads in a question is a time here as well: `letzte Woche`, `hace dos meses`, `last summer`.

A day, week, month or year means its start; weeks begin on Monday. A time without a zone is local: that is what
a person typing a date means.
"""

import re
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, time, timedelta

from mindex.clock import now_ms
from mindex.errors import UsageError
from mindex.lexicon import dates

_HINT_AHEAD = "write 12h, 90d, or a date such as 2027-01-01"
_HINT = "write today, yesterday 15:00, 3 days ago, 2h, 7d, last week, friday, march or 2026-03-01"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_DAY = timedelta(days=1)

_COUNTS = {**dict.fromkeys(dates.ONE, 1), **dates.NUMBERS}
_MONTH_NAMES = {**dates.MONTHS, **dates.MONTHS_SHORT}
_WEEKDAYS = {**dates.WEEKDAYS, **dates.WEEKDAYS_SHORT}

_STEPS = {"last": -1, "this": 0, "next": 1}

_YEAR_OR_MONTH = re.compile(r"(\d{4})(?:-(\d{2}))?")
_DISTANCE = re.compile(r"(in |last |past )?(\d{1,6} ?|[a-z]+ )([a-z]+)( ago)?")
_TIME_OF_DAY = re.compile(r"(?:^| )(?:at )?(\d{1,2})(?::(\d{2}))?(?: ?([ap])\.?m\.?)?$")
_DAY_OF_MONTH = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_YEAR = re.compile(r"\d{4}")


def parse_time(text: str, *, now: int | None = None, ahead: bool = False) -> int:
    """Return the moment that a text names, in milliseconds. Raises UsageError for a text that names none.

    `2h` counts back from now, and `friday` and `march` are the last ones that began. With `ahead`, `2h` counts forward,
    they are the next ones, and a period that has begun means its end: what expires today ends with the day.
    """
    moment = now_ms() if now is None else now
    value = " ".join(text.lower().replace(",", " ").split())
    try:
        named = _iso(text.strip()) or _distance(value, moment, ahead) or _calendar(value, moment, ahead)
        if named is not None:
            return ((named if named.tzinfo else named.astimezone()) - _EPOCH) // _MILLISECOND
        if not ahead and (begins := _window_start(text.strip(), moment)) is not None:
            return begins
    except ValueError:  # no such day
        pass
    except OverflowError:
        raise UsageError(f"'{text}' is outside the years 1 to 9999", "give a time that is nearer") from None
    raise UsageError(f"'{text}' is not a time", _HINT_AHEAD if ahead else _HINT)


def _window_start(text: str, now: int) -> int | None:
    """The beginning of a window that the whole text names: `letzte Woche`, `il y a deux mois`, `last summer`."""
    from mindex.time_window import find_window  # most times are read without its patterns

    window = find_window(text, now)
    return window.starts_at if window is not None and window.words == (0, len(text)) else None


def parse_expiry(value: str | int | None) -> int | None:
    """A time to come: `30d` counts forward from now; milliseconds pass as they are; nothing is for ever."""
    if value is None or value == "":
        return None
    return value if isinstance(value, int) else parse_time(value, ahead=True)


def _iso(value: str) -> datetime | None:
    if match := _YEAR_OR_MONTH.fullmatch(value):
        return datetime(int(match[1]), int(match[2] or 1), 1)
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


def _distance(value: str, now: int, ahead: bool) -> datetime | None:
    """`now`, `5min`, `3 days ago`, `in two weeks`, `last 7 days`."""
    moment = _EPOCH + now * _MILLISECOND
    if value == "now":
        return moment
    if not (match := _DISTANCE.fullmatch(value)):
        return None
    direction, number, unit, ago = match[1], match[2].strip(), match[3], match[4]
    if not number.isdigit() and number not in _COUNTS:
        return None
    count = int(number) if number.isdigit() else _COUNTS[number]
    if unit == "m":
        raise UsageError(f"'{value}' may mean minutes or months", f"write {count}min or {count}mo")
    count *= 1 if direction == "in " or (ahead and not direction and not ago) else -1
    if unit in dates.UNIT_SECONDS:
        return moment + timedelta(seconds=count * dates.UNIT_SECONDS[unit])
    return _months_later(moment.astimezone(), count * dates.UNIT_MONTHS[unit]) if unit in dates.UNIT_MONTHS else None


def _months_later(moment: datetime, months: int) -> datetime:
    """The same day and time in another month, or its last day: a month after 31 January is the end of February."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    if not MINYEAR <= year < MAXYEAR:
        raise OverflowError(year)
    last_day = (datetime(year + (month == 11), (month + 1) % 12 + 1, 1) - _DAY).day
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last_day), tzinfo=None)


def _calendar(value: str, now: int, ahead: bool) -> datetime | None:
    """`yesterday 15:00`, `last week`, `friday`, `march`, `5 march 2026`."""
    local = (_EPOCH + now * _MILLISECOND).astimezone().replace(tzinfo=None)
    clock = None
    if (match := _TIME_OF_DAY.search(value)) and (match[2] or match[3]):
        clock = _time_of_day(int(match[1]), int(match[2] or 0), match[3])
        value = value[: match.start()].removesuffix(" at")
    words = value.removeprefix("on ").split()
    if not words and clock is None:
        return None
    periods = _periods(words or ["today"], local.date())
    spans = [(datetime.combine(first, clock or time.min), datetime.combine(end, time.min)) for first, end in periods]
    if clock is not None:
        spans = [(start, start) for start, _ in spans]
    if not spans:
        return None
    if ahead:
        return next((max(start, end if start <= local else start) for start, end in spans if end > local), spans[-1][0])
    return next((start for start, _ in reversed(spans) if start <= local), spans[0][0])


def _time_of_day(hour: int, minute: int, half: str | None) -> time:
    if half and not 1 <= hour <= 12:
        raise ValueError(f"{hour}{half}m")
    return time(hour % 12 + 12 * (half == "p") if half else hour, minute)


def _periods(words: list[str], today: date) -> list[tuple[date, date]]:
    """The first day of each period that the words may name, and the day after it, in order of time."""
    if any(word in _MONTH_NAMES for word in words):
        return _months_and_their_days(words, today)
    match words:
        case ["today" | "yesterday" | "tomorrow" as name]:
            return _days(today + _DAY * {"yesterday": -1, "today": 0, "tomorrow": 1}[name])
        case ["last" | "this" | "next" as which, "week"]:
            monday = today + _DAY * (7 * _STEPS[which] - today.weekday())
            return [(monday, monday + _DAY * 7)]
        case ["last" | "this" | "next" as which, "month"]:
            return [_month(today.year, today.month + _STEPS[which])]
        case ["last" | "this" | "next" as which, "year"]:
            return [(date(today.year + _STEPS[which], 1, 1), date(today.year + _STEPS[which] + 1, 1, 1))]
        case [name] if name in _WEEKDAYS:
            day = today + _DAY * (_WEEKDAYS[name] - today.weekday())
            return _days(day - _DAY * 7, day, day + _DAY * 7)
        case ["last", name] if name in _WEEKDAYS:
            return _days(today - _DAY * ((today.weekday() - _WEEKDAYS[name] - 1) % 7 + 1))
        case ["next", name] if name in _WEEKDAYS:
            return _days(today + _DAY * ((_WEEKDAYS[name] - today.weekday() - 1) % 7 + 1))
    return []


def _months_and_their_days(words: list[str], today: date) -> list[tuple[date, date]]:
    match words:
        case [name]:
            return [_month(today.year + step, _MONTH_NAMES[name]) for step in (-1, 0, 1)]
        case ["last", name]:
            return [_month(today.year - (_MONTH_NAMES[name] >= today.month), _MONTH_NAMES[name])]
        case ["next", name]:
            return [_month(today.year + (_MONTH_NAMES[name] <= today.month), _MONTH_NAMES[name])]
        case [name, year] if _YEAR.fullmatch(year):
            return [_month(int(year), _MONTH_NAMES[name])]
        case [name, day, *rest] if name in _MONTH_NAMES:
            return _days_of_month(day, _MONTH_NAMES[name], rest, today)
        case [day, name, *rest] if name in _MONTH_NAMES:
            return _days_of_month(day, _MONTH_NAMES[name], rest, today)
    return []


def _days(*days: date) -> list[tuple[date, date]]:
    return [(day, day + _DAY) for day in days]


def _month(year: int, month: int) -> tuple[date, date]:
    """A month; 0 is December of the year before, 13 January of the next."""
    first = date(year + (month - 1) // 12, (month - 1) % 12 + 1, 1)
    return first, (first + _DAY * 31).replace(day=1)


def _days_of_month(day: str, month: int, rest: list[str], today: date) -> list[tuple[date, date]]:
    """`march 5`, in the years around today, or `march 5 2026`."""
    number = _DAY_OF_MONTH.fullmatch(day)
    if number is None or len(rest) > 1 or (rest and not _YEAR.fullmatch(rest[0])):
        return []
    years = [int(rest[0])] if rest else range(today.year - 8, today.year + 9)  # not every year has a 29 February
    months = [_month(year, month) for year in years]
    offset = _DAY * (int(number[1]) - 1)
    return _days(*(first + offset for first, end in months if first <= first + offset < end))
