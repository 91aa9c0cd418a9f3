"""The window of time that a question names: `last week`, `im März`, `il y a deux mois`, `entre el 3 y el 10 de mayo`.

English, German, French and Spanish. The phrase may be anywhere in a text, so the name of a month or weekday that may be
another word (`may`, `April`) needs a preposition. Of days, months and weekdays without a year the last one that began
is meant. Quoted text is not read.
"""

import os
import re
from collections.abc import Callable, Iterator
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, time, timedelta

from mindex.analyzer import fold
from mindex.lexicon import dates
from mindex.values import dataclass

_DAY = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_LONGEST = 2_000  # characters of a text that are read

Span = tuple[date, date]  # the first day, and the day after the last one


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
        return None if self.first is None else _milliseconds(self.first)

    @property
    def ends_at(self) -> int:
        """The millisecond after the last one."""
        return _milliseconds(self.end)

    @property
    def days(self) -> int:
        return (self.end - self.first).days if self.first is not None else 0

    def __str__(self) -> str:
        last = self.end - _DAY
        if self.first is None:
            return f"before {self.end}"
        return str(last) if self.first == last else f"{self.first} to {last}"


# ── the grammar ───────────────────────────────────────────────────────────────────────────────────────────────


def _any(words: object) -> str:
    """A group that matches any of these words, the longest first."""
    return "|".join(sorted(map(re.escape, words), key=lambda word: (-len(word), word)))  # type: ignore[call-overload]


_UNIT = _any(
    word for word, unit in dates.UNITS.items() if unit in ("days", "weeks", "months", "years") and len(word) > 1
)
_SHORT_UNIT = _any(
    word for word, unit in dates.UNITS.items() if unit in ("seconds", "minutes", "hours") and len(word) > 3
)
_MONTH = _any({**dates.MONTHS, **dates.MONTHS_SHORT})
_WEEKDAY = _any(dates.WEEKDAYS)
_SEASON = _any(dates.SEASONS)
_STEP = _any(dates.STEPS)
_FEW = {"couple of": 2, "couple": 2, "few": 3, "paar": 3, "quelques": 3, "unos": 3, "unas": 3, "pocos": 3, "pocas": 3}
_COUNT = rf"\d{{1,4}}|{_any({**dict.fromkeys(dates.ONE), **dates.NUMBERS})}|(?:a )?(?:{_any(_FEW)})|ein paar"
_YEAR = r"(?:19|20)\d\d"
_WEEKEND = "weekend|wochenende|week-end|fin de semana"
_PERIOD = rf"{_UNIT}|{_WEEKEND}|{_WEEKDAY}|{_SEASON}|{_MONTH}"
_ABOUT = r"(?:(?:about|around|roughly|ungefahr|etwa|rund|environ|alrededor de|unos|unas) )?"
_OF = r"(?:of |de |del )?"
_TO = r"(?:and|to|und|bis|et|au|y|al|a|-|–)"
_ARTICLE = r"(?:the |dem |der |den |le |la |el |l['’])?"
_ORDINAL = r"(?:st|nd|rd|th|er|\.)?"

# Words that make the name of a month, weekday or season a time.
_PREPOSITION = re.compile(
    r"\b(?:in|on|during|since|until|till|before|after|by|from|to|between|and|of|for|around|early|mid|late|through"
    r"|im|am|ab|seit|bis|vor|nach|zwischen|und|vom|von|anfang|mitte|ende|fur|zum"
    r"|en|au|depuis|avant|apres|entre|et|de|du|d|debut|fin|mi|jusqu|pour"
    r"|el|del|desde|hasta|antes|despues|y|a|al|para|principios|mediados|finales)['’ -](?:the |le |la |de |el )?$"
)
_RECURRING = re.compile(r"\b(?:every|each|jeden|jede|chaque|tous les|los|cada|todos los)\s$")
_AMBIGUOUS_MONTHS = frozenset(["may", "march", "april", "june", "august", "mars", "mar", "jan", "sep", "dec", "mai"])
# A number behind these names a thing, not a year.
_NUMBERED = re.compile(r"(?:\b(?:port|version|id|issue|ticket|room|raum|page|seite|line|size|v)\s|[#:./$€£v-])$")

_DISTANCE = re.compile(
    rf"\b{_ABOUT}(?P<en>{_COUNT}) (?P<en_unit>{_UNIT}) ago\b"
    rf"|\bvor {_ABOUT}(?P<de>{_COUNT}) (?P<de_unit>{_UNIT})\b"
    rf"|\bil y a {_ABOUT}(?P<fr>{_COUNT}) (?P<fr_unit>{_UNIT})\b"
    rf"|\bhace {_ABOUT}(?P<es>{_COUNT}) (?P<es_unit>{_UNIT})\b"
)
_HOURS_AGO = re.compile(
    rf"\b(?:{_COUNT}) (?:{_SHORT_UNIT}) ago\b|\b(?:vor|il y a|hace) {_ABOUT}(?:{_COUNT}) (?:{_SHORT_UNIT})\b"
)
_RECENT = re.compile(
    rf"\b(?:in|over|during|within|for) the (?:last|past) (?P<last>{_UNIT})\b|\bthe past (?P<past>{_UNIT})\b"
    rf"|\b(?:last|past|previous|letzten|vergangenen|ultim[oa]s) (?P<count>{_COUNT}) (?P<unit>{_UNIT})\b"
    rf"|\b(?P<fr>{_COUNT}) derni(?:ers|eres) (?P<fr_unit>{_UNIT})\b"
)
_STEPPED = re.compile(
    rf"\b(?P<before>{_STEP}) (?P<period>{_PERIOD})\b"
    rf"|\b(?P<period_first>{_PERIOD}) (?P<after>dernier|derniere|passe|passee|prochain|prochaine|pasado|pasada"
    r"|proximo|proxima)\b"
)
_PART_OF_DAY = re.compile(
    r"\b(?:this (?:morning|afternoon|evening)|tonight|heute (?:morgen|fruh|mittag|nachmittag|abend)|ce matin|ce soir"
    r"|cet apres-midi|esta (?:manana|tarde|noche))\b|(?P<night>\b(?:last night|gestern abend|hier soir|anoche)\b)"
)
_DAY_WORD = re.compile(
    r"\b(?P<two>day before yesterday|vorgestern|avant-hier|antes de ayer|anteayer)\b"
    r"|\b(?P<one>yesterday|gestern|hier|ayer)\b|\b(?P<none>today|heute|aujourd['’]hui|hoy)\b"
    r"|\b(?P<next>tomorrow|(?<!heute )(?<!am )(?<!guten )(?<!jeden )(?<!gestern )morgen|demain"
    r"|(?<!la )(?<!esta )(?<!cada )(?<!de )manana)\b"
)
_NAMED_WEEKEND = re.compile(r"\b(?:(?:at|on|over) the weekend|am wochenende|le week-end|el fin de semana)\b")
_ISO_DATE = re.compile(r"(?<![\w.-])(\d{4})-(\d{2})(?:-(\d{2}))?(?![\w-])")
_SLASHED = re.compile(r"(?<![\w/.-])(\d{1,2})/(\d{1,2})(?:/(\d{4}|\d{2}))?(?![\w/])")
_DOTTED = re.compile(r"(?<![\w.-])(\d{1,2})\.(\d{1,2})\.(\d{4}|\d{2}(?!\d))?(?![\d.])")
_DAY_MONTH = re.compile(
    rf"(?<![\w.:-])(?:(?:{_WEEKDAY}),? {_ARTICLE})?(?:(?P<from>\d{{1,2}}){_ORDINAL} ?{_TO} ?{_ARTICLE})?"
    rf"(?P<day>\d{{1,2}}){_ORDINAL} {_OF}(?P<month>{_MONTH})\b\.?(?:,? {_OF}(?P<year>{_YEAR})\b)?"
)
_MONTH_DAY = re.compile(
    rf"\b(?:(?:{_WEEKDAY}),? )?(?P<month>{_MONTH})\.? (?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?![\w.:%€$])"
    rf"(?:,? (?P<year>{_YEAR})\b)?"
)
_NAMED_MONTH = re.compile(rf"\b(?P<month>{_MONTH})\b(?:,? {_OF}(?P<year>{_YEAR})\b)?")
_NAMED_SEASON = re.compile(rf"\b(?P<season>{_SEASON})\b(?: {_OF}(?P<year>{_YEAR})\b|(?=\s*(?:$|[?!.,;])))")
_NAMED_WEEKDAY = re.compile(rf"\b(?P<weekday>{_WEEKDAY})\b(?!['’]s)")
_NAMED_YEAR = re.compile(rf"(?<![\w.:/-]){_YEAR}(?![\w:/-]|[.,]\d)")

_BETWEEN = re.compile(
    r"\b(?:between|from|zwischen|vom|von|entre|de|du|del|desde)\s(?:the |dem |den |le |la |el |l['’])?$"
)
_AND = re.compile(
    r"^\s?(?:and|to|until|till|through|und|bis|et|au|a|y|al|hasta|jusqu['’]a|jusqu['’]au|-|–)\s"
    r"(?:in |on |the |dem |den |zum |le |la |el |en |l['’])?$"
)
_SINCE = re.compile(rf"\b(?:since|seit|depuis|desde)\s{_ARTICLE}$")
_BEFORE = re.compile(rf"\b(?:before|until|till|prior to|vor|bis|avant|jusqu['’]a|antes de|hasta)\s?{_ARTICLE}$")
_AFTER = re.compile(rf"\b(?:after|nach|apres|despues de|tras)\s?{_ARTICLE}$")
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|«[^»]*»|„[^“”]*[“”]|`[^`]*`")
_FIELD = re.compile(r"(?<!\w)\{?[a-z_]+\}?:(?=\S)\S+")  # title:march


@dataclass(frozen=True, slots=True)
class _Atom:
    """One period in a text, and whether it is one only behind a preposition."""

    start: int
    end: int
    span: Span
    unsure: bool = False


def find_window(text: str, now: int) -> TimeWindow | None:
    """The first window that a text names, outside quotes; None if it names none. `now`: the moment of the text."""
    today = (_EPOCH + now * _MILLISECOND).astimezone().date()
    plain = _plain(text[:_LONGEST])
    try:
        return next(_windows(plain, today), None)
    except (OverflowError, ValueError):  # a time outside the years that a calendar has
        return None


def find_windows(text: str, now: int, most: int) -> list[TimeWindow]:
    """The first few windows that a text names, in order."""
    today = (_EPOCH + now * _MILLISECOND).astimezone().date()
    found: list[TimeWindow] = []
    try:
        for one in _windows(_plain(text[:_LONGEST]), today):
            found.append(one)
            if len(found) == most:
                break
    except (OverflowError, ValueError):
        pass
    return found


def _plain(text: str) -> str:
    """The text folded, without what is quoted, in one line; as long as the text itself if folding allows."""
    blanked = _QUOTED.sub(lambda match: "|" * len(match[0]), text)
    folded = "".join(one if len(one) == 1 else character for character in blanked for one in (fold(character),))
    return _FIELD.sub(lambda match: "|" * len(match[0]), folded.replace("\n", " "))


def _windows(text: str, today: date) -> Iterator[TimeWindow]:
    atoms = sorted(_atoms(text, today), key=lambda one: (one.start, -one.end))
    place = 0
    reached = 0
    while place < len(atoms):
        atom = atoms[place]
        place += 1
        if atom.start < reached:
            continue
        before = text[: atom.start]
        following = next((one for one in atoms[place:] if one.start >= atom.end), None)
        if following is not None and _AND.search(text[atom.end : following.start]) and _BETWEEN.search(before):
            first, end = atom.span[0], following.span[1]
            if first > following.span[0]:  # from November to March
                first = _years_later(first, -1)
            if first >= end:  # the later day comes first
                first, end = following.span[0], atom.span[1]
            reached = following.end
            yield _window(text, atom.start, following.end, first, end)
            continue
        if atom.unsure and not _PREPOSITION.search(before):
            continue
        reached = atom.end
        if match := _SINCE.search(before):
            yield _window(text, match.start(), atom.end, atom.span[0], max(today + _DAY, atom.span[1]))
        elif match := _BEFORE.search(before):
            if atom.span[0] < today:  # `before today` says nothing
                yield _window(text, match.start(), atom.end, None, atom.span[0])
        elif match := _AFTER.search(before):
            if atom.span[1] < today:
                yield _window(text, match.start(), atom.end, atom.span[1], today + _DAY)
        else:
            yield _window(text, atom.start, atom.end, *atom.span)


def _window(text: str, start: int, stop: int, first: date | None, end: date) -> TimeWindow:
    return TimeWindow(first, end, text[start:stop].strip(), (start, stop))


def _atoms(text: str, today: date) -> Iterator[_Atom]:
    """The periods that a text names. Longer ones come before those inside them."""
    taken: list[tuple[int, int]] = []
    for pattern, read in _READERS:
        for match in pattern.finditer(text):
            if any(start < match.end() and match.start() < end for start, end in taken):
                continue
            try:
                found = read(match, today)
            except (OverflowError, ValueError):  # a time outside the years that a calendar has
                continue
            if found is None or found[0][0].year <= MINYEAR or found[0][1].year >= MAXYEAR:
                continue
            span, unsure = found
            taken.append(match.span())
            yield _Atom(match.start(), match.end(), span, unsure)


_Found = tuple[Span, bool] | None


def _sure(span: Span | None) -> _Found:
    return None if span is None else (span, False)


def _one_day(day: date) -> Span:
    return day, day + _DAY


def _distance(match: re.Match[str], today: date) -> _Found:
    """`three weeks ago` is the week around that day: the larger the unit, the vaguer the time."""
    for language in ("en", "de", "fr", "es"):
        if match[language]:
            count, unit = _number(match[language]), dates.UNITS[match[f"{language}_unit"]]
            if count is None:
                return None
            if unit == "days":
                return _sure(_one_day(today - _DAY * count))
            if unit == "weeks":
                day = today - _DAY * (7 * count)
                return _sure((monday := day - _DAY * day.weekday(), monday + _DAY * 7))
            day = _months_later(today, -count * (12 if unit == "years" else 1))
            if unit == "months":
                return _sure((day - _DAY * 15, day + _DAY * 16))
            return _sure((_months_later(day, -1), _months_later(day, 1) + _DAY))
    return None


def _recent(match: re.Match[str], today: date) -> _Found:
    name = match["unit"] or match["fr_unit"]
    count = _number(match["count"] or match["fr"]) if name else 1
    unit = dates.UNITS[name or match["last"] or match["past"]]
    if count is None:
        return None
    if unit in ("days", "weeks"):
        return _sure((today - _DAY * count * (7 if unit == "weeks" else 1), today + _DAY))
    return _sure((_months_later(today, -count * (12 if unit == "years" else 1)), today + _DAY))


def _stepped(match: re.Match[str], today: date) -> _Found:
    step = dates.STEPS[match["before"] or match["after"]]
    return _sure(_step(step, match["period"] or match["period_first"], today))


def _step(step: int, name: str, today: date) -> Span | None:
    monday = today - _DAY * today.weekday()
    unit = dates.UNITS.get(name)
    if unit == "days":
        return _one_day(today + _DAY * step)
    if unit == "weeks":
        return monday + _DAY * 7 * step, monday + _DAY * 7 * (step + 1)
    if unit == "months":
        return _month(today.year, today.month + step)
    if unit == "years":
        return date(today.year + step, 1, 1), date(today.year + step + 1, 1, 1)
    if name in _WEEKEND.split("|"):
        saturday = monday + _DAY * 5
        if step < 0 and today >= saturday:  # on Sunday, the last weekend is the one before
            step = -1
        return saturday + _DAY * 7 * step, saturday + _DAY * (7 * step + 2)
    if name in dates.WEEKDAYS:
        number = dates.WEEKDAYS[name]
        if step < 0:
            return _one_day(today - _DAY * ((today.weekday() - number - 1) % 7 + 1))
        if step > 0:
            return _one_day(today + _DAY * ((number - today.weekday() - 1) % 7 + 1))
        return _one_day(monday + _DAY * number)
    if name in dates.SEASONS:
        return _season_beside(step, dates.SEASONS[name], today)
    month = {**dates.MONTHS, **dates.MONTHS_SHORT}[name]
    if step < 0:
        return _month(today.year - (month >= today.month), month)
    return _month(today.year + (step > 0 and month <= today.month), month)


def _last_weekend(today: date) -> Span:
    """The last weekend that has begun."""
    saturday = today - _DAY * ((today.weekday() - 5) % 7)
    return saturday, saturday + _DAY * 2


def _season(year: int, season: int) -> Span:
    """Spring is March to May; winter begins in December of its year."""
    return _month(year, 3 + 3 * season)[0], _month(year, 5 + 3 * season)[1]


def _season_beside(step: int, season: int, today: date) -> Span:
    years = [_season(year, season) for year in range(today.year - 2, today.year + 3)]
    if step < 0:
        return [span for span in years if span[1] <= today][-1]
    if step > 0:
        return next(span for span in years if span[0] > today)
    return next((span for span in years if span[0] <= today < span[1]), _season(today.year, season))


def _day_word(match: re.Match[str], today: date) -> _Found:
    step = {"two": -2, "one": -1, "none": 0, "next": 1}[match.lastgroup or "none"]
    return _sure(_one_day(today + _DAY * step))


def _part_of_day(match: re.Match[str], today: date) -> _Found:
    return _sure(_one_day(today - _DAY) if match["night"] else _one_day(today))


def _iso(match: re.Match[str], _today: date) -> _Found:
    year, month = int(match[1]), int(match[2])
    if match[3]:
        return _sure(_valid(year, month, int(match[3])))
    return _sure(_month(year, month)) if 1 <= month <= 12 and year >= MINYEAR else None


def _slashed(match: re.Match[str], today: date) -> _Found:
    """03/05 is the third of May; for an American, the fifth of March."""
    if not match[3] and not (len(match[1]) == len(match[2]) == 2):
        return None  # 24/7 and 1/2
    day, month = int(match[1]), int(match[2])
    if _is_american() or month > 12 >= day:
        day, month = month, day
    return _sure(_dated(day, month, match[3], today))


def _dotted(match: re.Match[str], today: date) -> _Found:
    return _sure(_dated(int(match[1]), int(match[2]), match[3], today))


def _day_month(match: re.Match[str], today: date) -> _Found:
    month = {**dates.MONTHS, **dates.MONTHS_SHORT}[match["month"]]
    last = _dated(int(match["day"]), month, match["year"], today)
    if last is not None and match["from"]:
        first = _valid(last[0].year, month, int(match["from"]))
        if first is not None and first < last:
            return _sure((first[0], last[1]))
    return _sure(last)


def _month_day(match: re.Match[str], today: date) -> _Found:
    month = {**dates.MONTHS, **dates.MONTHS_SHORT}[match["month"]]
    return _sure(_dated(int(match["day"]), month, match["year"], today))


def _named_month(match: re.Match[str], today: date) -> _Found:
    name = match["month"]
    month = {**dates.MONTHS, **dates.MONTHS_SHORT}[name]
    if match["year"]:
        return _sure(_month(int(match["year"]), month))
    span = _month(today.year - (month > today.month), month)
    return span, name in _AMBIGUOUS_MONTHS or len(name) < 4


def _named_season(match: re.Match[str], today: date) -> _Found:
    season = dates.SEASONS[match["season"]]
    if match["year"]:
        return _sure(_season(int(match["year"]), season))
    spans = [_season(year, season) for year in range(today.year - 2, today.year + 1)]
    return [span for span in spans if span[0] <= today][-1], True


def _named_weekday(match: re.Match[str], today: date) -> _Found:
    name = match["weekday"]
    day = today - _DAY * ((today.weekday() - dates.WEEKDAYS[name]) % 7)
    is_french = name in _FRENCH_WEEKDAYS
    before = match.string[: match.start()]
    if _RECURRING.search(before):
        return None
    if is_french:  # `le lundi` is every Monday
        return None if re.search(r"\b(?:le|du|au|les|ce|de)\s$", before) else (_one_day(day), False)
    at_end = not match.string[match.end() :].strip(" ?!.")
    return _one_day(day), not (at_end and name in _ENGLISH_WEEKDAYS)


def _named_year(match: re.Match[str], today: date) -> _Found:
    year = int(match[0])
    if not 1990 <= year <= today.year + 1 or _NUMBERED.search(match.string[: match.start()]):
        return None
    return (date(year, 1, 1), date(year + 1, 1, 1)), not _GERMAN_VERB.search(match.string)


_FRENCH_WEEKDAYS = frozenset("lundi mardi mercredi jeudi vendredi samedi dimanche".split())
_ENGLISH_WEEKDAYS = frozenset("monday tuesday wednesday thursday friday saturday sunday".split())
_GERMAN_VERB = re.compile(r"\b(?:habe|haben|hat|hatte|hatten|war|waren|wurde|wurden|bin|sind|ist) ")  # `habe ich 2024`


def _dated(day: int, month: int, year: str | None, today: date) -> Span | None:
    """A day of a month; without a year, the last one that began."""
    if year:
        number = int(year)
        return _valid(number + 2000 if number < 100 else number, month, day)
    for step in range(9):  # not every year has a 29 February
        span = _valid(today.year - step, month, day)
        if span is not None and span[0] <= today:
            return span
    return None


def _valid(year: int, month: int, day: int) -> Span | None:
    try:
        return _one_day(date(year, month, day))
    except (ValueError, OverflowError):
        return None


def _month(year: int, month: int) -> Span:
    """A month; 0 is December of the year before, 13 January of the next."""
    first = date(year + (month - 1) // 12, (month - 1) % 12 + 1, 1)
    return first, (first + _DAY * 31).replace(day=1)


def _months_later(day: date, months: int) -> date:
    """The same day of another month, or its last day."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not MINYEAR < year < MAXYEAR:
        raise OverflowError(year)
    first, end = _month(year, month + 1)
    return first + _DAY * (min(day.day, (end - first).days) - 1)


def _years_later(day: date, years: int) -> date:
    return _months_later(day, 12 * years)


def _number(text: str) -> int | None:
    if text.isdigit():
        return int(text)
    plain = text.removeprefix("a ") if text != "a " else text
    if plain in _FEW or text == "ein paar":
        return _FEW.get(plain, 3)
    return 1 if plain in dates.ONE or text in dates.ONE else dates.NUMBERS.get(plain)


def _milliseconds(day: date) -> int:
    if day.year >= MAXYEAR or day.year <= MINYEAR:
        raise OverflowError(day.year)
    return (datetime.combine(day, time.min).astimezone() - _EPOCH) // _MILLISECOND


def _is_american() -> bool:
    """Whether the user's locale writes the month first."""
    named = next((os.environ[name] for name in ("LC_ALL", "LC_TIME", "LANG") if os.environ.get(name)), "")
    return named.startswith("en_US")


_READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], _Found]], ...] = (
    (_ISO_DATE, _iso),
    (_DAY_MONTH, _day_month),
    (_MONTH_DAY, _month_day),
    (_SLASHED, _slashed),
    (_DOTTED, _dotted),
    (_DISTANCE, _distance),
    (_HOURS_AGO, lambda _, today: _sure(_one_day(today))),
    (_RECENT, _recent),
    (_PART_OF_DAY, _part_of_day),
    (_STEPPED, _stepped),
    (_NAMED_WEEKEND, lambda _, today: _sure(_last_weekend(today))),
    (_DAY_WORD, _day_word),
    (_NAMED_MONTH, _named_month),
    (_NAMED_SEASON, _named_season),
    (_NAMED_WEEKDAY, _named_weekday),
    (_NAMED_YEAR, _named_year),
)
