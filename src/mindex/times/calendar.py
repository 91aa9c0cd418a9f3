"""Periods of the calendar by their names: `next friday`, `last month`, winter, 29 February. Weeks begin on Monday."""

from collections.abc import Iterable, Sequence
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, timedelta

from mindex.lexicon import dates

DAY = timedelta(days=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
MONTHS = {**dates.MONTHS, **dates.MONTHS_SHORT}
WEEKDAYS = {**dates.WEEKDAYS, **dates.WEEKDAYS_SHORT}

Span = tuple[date, date]  # the first day, and the day after the last one


def moment_of(now: int) -> datetime:
    """The local time of a moment in milliseconds."""
    return (EPOCH + now * MILLISECOND).astimezone()


def milliseconds(moment: datetime) -> int:
    """A moment in milliseconds; a time without a zone is local."""
    return ((moment if moment.tzinfo else moment.astimezone()) - EPOCH) // MILLISECOND


def one_day(day: date) -> Span:
    return day, day + DAY


def month_span(year: int, month: int) -> Span:
    """A month; 0 is December of the year before, 13 January of the next."""
    first = date(year + (month - 1) // 12, (month - 1) % 12 + 1, 1)
    return first, (first + DAY * 31).replace(day=1)


def season_span(year: int, season: int) -> Span:
    """Spring is March to May; winter begins in December of its year."""
    return month_span(year, 3 + 3 * season)[0], month_span(year, 5 + 3 * season)[1]


def day_in_years(day: int, month: int, years: Iterable[int]) -> list[Span]:
    """A day of a month in each of the years that have it: not every year has a 29 February."""
    months = (month_span(year, month) for year in years)
    return [one_day(first + DAY * (day - 1)) for first, end in months if 0 < day <= (end - first).days]


def months_later(day: date, months: int) -> date:
    """The same day of another month, or its last day: a month after 31 January is the end of February."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not MINYEAR < year < MAXYEAR:
        raise OverflowError(year)
    first, end = month_span(year, month + 1)
    return first + DAY * (min(day.day, (end - first).days) - 1)


def stepped(step: int, name: str, today: date) -> Span | None:
    """The last (-1), this (0) or next (1) unit, weekend, weekday, season or month of a name; None if it is another."""
    monday = today - DAY * today.weekday()
    match dates.UNITS.get(name):
        case "days":
            return one_day(today + DAY * step)
        case "weeks":
            return monday + DAY * 7 * step, monday + DAY * 7 * (step + 1)
        case "months":
            return month_span(today.year, today.month + step)
        case "years":
            return date(today.year + step, 1, 1), date(today.year + step + 1, 1, 1)
    if name in dates.WEEKENDS:
        saturday = monday + DAY * (5 + 7 * step)  # on Sunday, the last weekend is the one before
        return saturday, saturday + DAY * 2
    if name in WEEKDAYS:
        days = (one_day(monday + DAY * (WEEKDAYS[name] + 7 * week)) for week in range(-2, 3))
        return _beside(step, today, list(days))
    if name in dates.SEASONS:
        return _beside(step, today, [season_span(today.year + year, dates.SEASONS[name]) for year in range(-2, 3)])
    if name in MONTHS:
        return _beside(step, today, [month_span(today.year + year, MONTHS[name]) for year in range(-2, 3)])
    return None


def _beside(step: int, today: date, spans: Sequence[Span]) -> Span:
    """Of spans in order, the last one that ended before a day, the first one that begins after it, or its own.

    Its own is the one that contains it, or else the middle one: the one of this week or this year.
    """
    if step < 0:
        return [span for span in spans if span[1] <= today][-1]
    if step > 0:
        return next(span for span in spans if span[0] > today)
    return next((span for span in spans if span[0] <= today < span[1]), spans[len(spans) // 2])
