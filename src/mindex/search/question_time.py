"""Time in a question: the window that it names, what it adds to the judgement, and what the answer says about it.

A window has soft edges and is one more term of the judgement: a hit from another time is moved down, never left out.
The dates of a record are those in its text, those of its front matter or path, and when it was created.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import exp, log

from mindex.analyzer import STOP_WORDS, fold
from mindex.clock import DAY_MS
from mindex.datatypes import AllOf, Filters, Hit, QueryTime, Record, Term
from mindex.lexicon import load, words
from mindex.search.judgement import Scores
from mindex.search.query import parse_plain
from mindex.store.base import KeywordQuery, RankingSignals, Store
from mindex.times import names_time
from mindex.times.in_text import TimeWindow, find_window, find_windows
from mindex.values import dataclass, replace

# What a record from the window gains, in log-odds: most of the surprise that a record of a year is from these days.
# Decided, not fitted: no public set has enough questions with a window.
_PER_SURPRISE = 0.9
_DAYS = 365
_LEAST, _MOST = 0.7, 4.5
# A hit from the window makes up for the words that name it (`last week`), which few texts contain.
_FOR_WORDS = 1.0
# Of a question that asks for nothing but a time (`what happened yesterday`), the time is the answer.
_ONLY_TIME = 5.0
_LATEST = 1.0  # what the newest of the best candidates gains, if the latest is asked for
_MAX_LATEST = 20
# The term falls to a third at this distance: a quarter of the window, and at least a day.
_EDGE_SHARE = 0.25
# A record that names another date in its text was written in the window, but need not be about it. The time of a file
# is when it was last written or copied.
_WRITTEN_IN = 0.6
_FILE_TIME = 0.5
_MAX_TEXT = 1_000  # characters of a record in which dates are looked for
_MAX_DATES = 4  # in a text
_LONGEST_SPAN = 93 * DAY_MS  # a year in a text dates nothing, unless a year is asked for
_MAX_EVENT_WORDS = 6

_QUESTION = {name: re.compile(pattern) for name, pattern in load("times")["questions"].items()}
# Words that ask for everything.
_ANYTHING = frozenset(words(load("times")["anything"])) | STOP_WORDS
_WORD = re.compile(r"[^\W_]+")
_FIELD_DATE = re.compile(r"^(?:date|created|published|updated|day|datum|fecha)\s*:\s*['\"]?(\d{4}-\d{2}-\d{2})", re.I)
_PATH_DATE = re.compile(r"(?<!\d)((?:19|20)\d\d-[01]\d-[0-3]\d)(?!\d)")


@dataclass(frozen=True, slots=True)
class _Dated:
    """A span of time that a record is about or from, in milliseconds, and how much it tells."""

    first: int
    end: int
    weight: float


# ── what a question names ─────────────────────────────────────────────────────────────────────────────────────


def time_of(store: Store, text: str, now: int, filters: Filters) -> QueryTime | None:
    """The time that a question names; None if it names none. `now`: the moment at which it is asked."""
    folded, window = fold(text), find_window(text, now)
    if window is not None:
        first, end = window.starts_at, window.ends_at
        if _QUESTION["comparison"].search(folded):
            return None
        ahead = end > now and ((first is not None and first > now) or _QUESTION["plan"].search(folded) is not None)
        only = _asks_only(text, window)
        past = (
            end <= now and _QUESTION["past_tense"].search(folded) is not None
        )  # `is the launch in April` asks for what holds now
        return QueryTime(window.phrase, str(window), first, end, now, past=past, only=only, ahead=ahead)
    if _QUESTION["latest"].search(folded) and not _QUESTION["first"].search(folded):
        return QueryTime("the latest", "newest first", None, now, now, latest=True)
    return _event_time(store, folded, now, filters)


def _asks_only(text: str, window: TimeWindow) -> bool:
    """Whether nothing but the time is asked for: `what happened yesterday`."""
    rest = text[: window.words[0]] + " " + text[window.words[1] :]
    return _ANYTHING.issuperset(_WORD.findall(fold(rest)))


def _event_time(store: Store, text: str, now: int, filters: Filters) -> QueryTime | None:
    """`before the move`: the date of the entry that tells of the move. A plan (`check before the release`) is none."""
    found = _QUESTION["event"].search(text)
    event = _QUESTION["event_words"].search(text[found.end() :]) if found else None
    if found is None or event is None or not _QUESTION["past_tense"].search(text) or _QUESTION["duration"].search(text):
        return None
    record = _entry_about(store, event["words"], 2 if event["clause"] else 1, now, filters)
    if record is None:
        return None
    named = next((one for one in find_windows(_own_text(record), record.created_at, 1) if one.first), None)
    first = record.created_at if named is None else named.starts_at or record.created_at
    end = first + DAY_MS if named is None else named.ends_at
    phrase = f"{found[0]} {event[0].strip()}"
    if found["before"]:
        return QueryTime(phrase, f"before {_day(first)}, by {record.id}", None, first, now, past=True, about=record.id)
    if first > now:
        return None
    shown = f"{_day(first)} to {_day(now)}, by {record.id}"
    # Of an event of today, its own day: nothing can be later.
    return QueryTime(phrase, shown, end if end < now else first, max(now, end), now, about=record.id)


def _entry_about(store: Store, words: str, least: int, now: int, filters: Filters) -> Record | None:
    """The best memory or turn with all of some words, if they are at least this many."""
    tokens = parse_plain(words).tokens[:_MAX_EVENT_WORDS]
    if len(tokens) < least:
        return None
    scope = replace(filters, kinds=("memory", "turn"), before=now)
    found = store.retrieval.keyword(KeywordQuery(AllOf(tuple(map(Term, tokens)))), scope, 3)
    records = store.retrieval.records([hit.id for hit in found.hits])
    return next((one for one in records if one.type == "event"), records[0] if records else None)


# ── the term of the judgement ─────────────────────────────────────────────────────────────────────────────────


def add_time(
    scores: Scores, time: QueryTime, signals: Mapping[str, RankingSignals], records: Mapping[str, Record]
) -> None:
    """Add to the log-odds of the candidates what their dates say, little on the whole: the order changes."""
    if time.latest:
        _add_latest(scores, signals)
        return
    weight = _weight(time)
    gained = {
        id_: weight * _closeness(time, _dates(signals[id_], records.get(id_), time))
        for id_ in scores.total.keys() & signals.keys()
        if id_ != time.about
    }
    before = max(scores.total.values(), default=0.0)
    after = max((total + gained.get(id_, 0.0) for id_, total in scores.total.items()), default=0.0)
    # A day in common makes an answer hardly likelier than its words do.
    surplus = 0.0 if time.only else max(0.0, after - before - _FOR_WORDS)
    for id_ in scores.total:
        scores.add(id_, "time", gained.get(id_, 0.0))
        scores.add(id_, "level", -surplus)


def _weight(time: QueryTime) -> float:
    if time.only:
        return _ONLY_TIME
    days = (time.end - time.first) / DAY_MS if time.first is not None else _DAYS / 2
    return min(_MOST, max(_LEAST, _PER_SURPRISE * log(_DAYS / days)))


def _add_latest(scores: Scores, signals: Mapping[str, RankingSignals]) -> None:
    """The best candidates by age: the newest gains most, the oldest nothing."""
    best = [id_ for id_ in scores.ordered() if id_ in signals][:_MAX_LATEST]
    by_age = sorted(best, key=lambda id_: (signals[id_].created_at, id_))
    for place, id_ in enumerate(by_age):
        scores.add(id_, "time", _LATEST * place / max(1, len(by_age) - 1))


def _closeness(time: QueryTime, dates: Iterable[_Dated]) -> float:
    """1 inside the window, less outside, 0 far away."""
    edge = DAY_MS if time.first is None else max(DAY_MS, _EDGE_SHARE * (time.end - time.first))
    return max((one.weight * exp(-_distance(time, one) / edge) for one in dates), default=0.0)


def _distance(time: QueryTime, one: _Dated) -> int:
    if one.first >= time.end:
        return one.first - time.end + 1
    return max(0, time.first - one.end) if time.first is not None else 0


def _dates(signals: RankingSignals, record: Record | None, time: QueryTime) -> Iterator[_Dated]:
    created = signals.created_at
    if signals.kind != "chunk" and created > time.now + DAY_MS:  # nothing from later can be meant
        return
    named = list(_named_dates(record, created, time)) if record is not None else []
    yield from named
    if time.ahead:
        return
    if signals.kind == "chunk":
        if not named:
            yield _Dated(created, created, _FILE_TIME)
    else:
        yield _Dated(created, created, _WRITTEN_IN if named else 1.0)


def _named_dates(record: Record, created: int, time: QueryTime) -> Iterator[_Dated]:
    """The dates in a text, seen from when it was written, and those of a file."""
    if record.kind == "chunk":
        found = [match[1] for match in map(_FIELD_DATE.match, record.document_fields) if match]
        found += _PATH_DATE.findall(record.path)
        for text in found[:1]:
            day = find_window(text, created)
            if day is not None and day.starts_at is not None:
                created = day.starts_at
                yield _Dated(created, day.ends_at - 1, 1.0)
    longest = max(_LONGEST_SPAN, 2 * (time.end - time.first) if time.first is not None else 0)
    text = _own_text(record)
    if not names_time(text):
        return
    for window in find_windows(text, created, _MAX_DATES):
        first, end = window.starts_at, window.ends_at - 1
        if first is not None and end - first <= longest:
            yield _Dated(first, end, 1.0)


def _own_text(record: Record) -> str:
    """The words in which dates are looked for; of a turn those of the user, which its text puts a date before."""
    return str(record.fields.get("user_message") or record.text)[:_MAX_TEXT]


# ── what the answer says ──────────────────────────────────────────────────────────────────────────────────────


def time_note(time: QueryTime, hits: Sequence[Hit], signals: Mapping[str, RankingSignals]) -> str:
    """The window understood, and the gap if no hit is from it."""
    said = f"'{time.phrase}' is read as {time.shown}; hits from then rank higher"
    if time.latest:
        return f"'{time.phrase}' is asked for: newer hits rank higher"
    distances = [
        (_distance(time, one), one.first)
        for hit in hits
        if hit.record.id in signals
        for one in _dates(signals[hit.record.id], hit.record, time)
    ]
    if not distances:
        return said
    nearest, at = min(distances)
    return said if nearest == 0 else f"{said}; nothing is from then, the nearest is from {_day(at)}"


def _day(moment: int) -> str:
    return str(datetime.fromtimestamp(moment / 1000, UTC).astimezone().date())
