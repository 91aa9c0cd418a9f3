"""Measures truth over time: `mindex eval --truth [SET...]`, and its tables.

Rules are compared with the pairs of `truth`; newer-first, windows and the half-year are asked of a real memory. Of sets
with dates it measures the knowledge updates: whether the newest judged text comes before the older ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from mindex import Memory
from mindex.clock import from_iso
from mindex.datatypes import Progress, Report
from mindex.evaluation_parts import NewMemory, find_difference, find_window
from mindex.present.text import aligned
from mindex.store.base import Store
from mindex.temporary_files import temporary_folder
from mindex_eval.measured_memory import MeasuredMemory
from mindex_eval.named_sets import read_named_set
from mindex_eval.question_sets import QuestionSet, hash_of
from mindex_eval.run_questions import question_runner
from mindex_eval.truth import (
    Pair,
    TimeQuestion,
    half_year_entries,
    half_year_questions,
    pairs,
    time_questions,
)

_NEWER_FIRST_PAIRS = 50
_BETWEEN = timedelta(days=30)  # the two memories of a pair
_UPDATES = "knowledge-update"
_PREVIOUS = "previous"  # in a question that asks for the older value
_LANGUAGES = ("en", "de", "fr", "es")


@dataclass(frozen=True, slots=True)
class RuleScores:
    """What the rules make of some pairs. A near miss is compared in both orders."""

    pairs: str
    contradictions: int
    noticed: int
    updates: int
    superseded: int
    near_misses: int
    false_alarms: int
    wrong_supersessions: int

    @property
    def precision(self) -> float:
        return self.noticed / max(1, self.noticed + self.false_alarms)


@dataclass(frozen=True, slots=True)
class Share:
    """How many of some questions came out right."""

    name: str
    right: int
    of: int


@dataclass(frozen=True, slots=True)
class TruthReport:
    """All measurements of truth over time."""

    rules: tuple[RuleScores, ...]
    windows: tuple[Share, ...]
    newer_first: tuple[Share, ...]
    half_year: tuple[Share, ...]
    failures: tuple[str, ...]


def measure_truth(
    folders: Sequence[Path], settings: Mapping[str, str], cache: Store, report: Report | None = None
) -> TruthReport:
    """Measure everything; of the sets, the knowledge updates."""
    failures: list[str] = []
    own, current = _own_pairs(settings, cache, failures), _half_year(settings, cache, failures)
    sets = []
    for number, folder in enumerate(folders):
        if report is not None:
            report(Progress("ask", number, len(folders), folder.name))
        sets += _knowledge_updates(read_named_set(folder), settings, cache, failures)
    return TruthReport(_rules(), _windows(failures), (own, *sets), current, tuple(failures))


@contextmanager
def _empty_memory(settings: Mapping[str, str], cache: Store) -> Iterator[Memory]:
    with (
        temporary_folder("mindex-eval") as folder,
        MeasuredMemory(Path(folder) / "memory.db", settings, cache) as measured,
    ):
        yield measured.memory


# ── rules ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _rules() -> tuple[RuleScores, ...]:
    every = pairs()
    groups: list[tuple[str, Callable[[Pair], bool]]] = [("all", lambda _: True)]
    groups += [(language, lambda pair, language=language: pair.language == language) for language in _LANGUAGES]  # type: ignore[misc]
    groups += [
        ("our own facts", lambda pair: not pair.source),
        ("public changelogs", lambda pair: bool(pair.source)),
        ("held out", lambda pair: pair.half == "held out"),
        ("held out, public", lambda pair: pair.half == "held out" and bool(pair.source)),
    ]
    return tuple(_scores(name, [pair for pair in every if belongs(pair)]) for name, belongs in groups)


def _scores(name: str, rows: Sequence[Pair]) -> RuleScores:
    contradictions = [pair for pair in rows if pair.label != "different"]
    updates = [pair for pair in rows if pair.label == "update"]
    misses = [pair for pair in rows if pair.label == "different"]
    found = [find_difference(*texts) for one in misses for texts in ((one.older, one.newer), (one.newer, one.older))]
    return RuleScores(
        name,
        len(contradictions),
        sum(find_difference(pair.older, pair.newer) is not None for pair in contradictions),
        len(updates),
        sum(_supersedes(pair) for pair in updates),
        len(found),
        sum(one is not None for one in found),
        sum(one is not None and one.is_update for one in found),
    )


def _supersedes(pair: Pair) -> bool:
    found = find_difference(pair.older, pair.newer)
    return found is not None and found.is_update


# ── windows ───────────────────────────────────────────────────────────────────────────────────────────────────


def _windows(failures: list[str]) -> tuple[Share, ...]:
    asked = time_questions()
    wrong = {one for one in asked if _window(one) != (one.first, one.last)}
    failures += [f"window: {one.question} (is {one.first} to {one.last})" for one in asked if one in wrong]
    groups = [("all", asked), *((name, [one for one in asked if one.language == name]) for name in _LANGUAGES)]
    groups += [("public changelogs", [one for one in asked if one.source])]
    groups += [("held out", [one for one in asked if one.half == "held out"])]
    return tuple(Share(name, sum(one not in wrong for one in rows), len(rows)) for name, rows in groups)


def _window(one: TimeQuestion) -> tuple[str, str]:
    found = find_window(one.question, int(datetime.fromisoformat(f"{one.today}T12:00").timestamp() * 1000))
    if found is None or found.first is None:
        return "-", "-"
    return str(found.first), str(found.end - timedelta(days=1))


# ── newer first ───────────────────────────────────────────────────────────────────────────────────────────────


def _own_pairs(settings: Mapping[str, str], cache: Store, failures: list[str]) -> Share:
    """Memories of contradicting pairs, none superseded, searched with the words of the older one."""
    rows = [pair for pair in pairs() if pair.label != "different" and not pair.source]
    chosen = sorted(rows, key=lambda pair: hash_of(f"{pair.older}\t{pair.newer}"))[:_NEWER_FIRST_PAIRS]
    right = 0
    at = from_iso("2026-01-05T12:00:00")
    step = int(_BETWEEN.total_seconds() * 1000)
    options = {**settings, "memory.supersede": "conflict"}
    for number, pair in enumerate(chosen):
        with _empty_memory(options, cache) as memory:
            memory.entries.insert(NewMemory(pair.older), at=at + number)
            newer, _ = memory.entries.insert(NewMemory(pair.newer), at=at + number + step)
            hits = memory.search(pair.older, logged=False).hits
        is_first = bool(hits) and hits[0].record.id == newer.id
        right += is_first
        failures += [] if is_first else [f"newer first: {pair.older} | {pair.newer}"]
    return Share("our own pairs", right, len(chosen))


def _knowledge_updates(
    found: QuestionSet, settings: Mapping[str, str], cache: Store, failures: list[str]
) -> list[Share]:
    """Questions about what changed: the newest judged text comes first; previous values keep their order."""
    dates = {text.id: text.date for text in found.texts}
    asked = [
        one
        for one in found.questions
        if one.labels.get("category") == _UPDATES and not one.silent and len({dates[id_] for id_ in one.gains}) > 1
    ]
    if not asked:
        return []
    first = kept = 0
    of_previous = [one for one in asked if _PREVIOUS in one.text.lower()]
    with question_runner(found, settings, cache) as runner:
        for question in asked:
            outcome = runner.ask(question, "hybrid")
            if question in of_previous:
                kept += all(hit.older is None for _, hit in outcome.hits)
                continue
            newest = max(dates[id_] for id_ in question.gains)
            ranked = [id_ for id_ in outcome.ranked if id_ in question.gains]
            is_first = bool(ranked) and dates[ranked[0]] == newest
            first += is_first
            failures += [] if is_first else [f"newer first: {found.name} {question.id} {question.text}"]
    shares = [Share(f"{found.name}, knowledge updates", first, len(asked) - len(of_previous))]
    return [*shares, Share(f"{found.name}, previous values in their order", kept, len(of_previous))]


# ── half a year ───────────────────────────────────────────────────────────────────────────────────────────────


def _half_year(settings: Mapping[str, str], cache: Store, failures: list[str]) -> tuple[Share, ...]:
    """Half a year of one person's memories and turns: is the current value first, and is any of them hidden?"""
    with _empty_memory(settings, cache) as memory:
        ids: dict[str, str] = {}
        for entry in half_year_entries():
            at = f"{entry.day}T12:00:00+00:00"
            if entry.kind == "turn":
                turn, *_ = memory.conversations.add(entry.text, "Noted.", session_id=entry.day, at=at)
                ids[entry.text] = turn.id
            else:
                ids[entry.text] = memory.entries.insert(NewMemory(entry.text), at=from_iso(at))[0].id
        if memory.models.embedder is not None:
            memory.maintenance.backfill(batch=200)
        asked = half_year_questions()
        now = f"{max(entry.day for entry in half_year_entries())}T23:00:00+00:00"
        first = shown = 0
        for one in asked:
            found = [hit.record.id for hit in memory.search(one.question, now=now, logged=False).hits]
            is_first = found[:1] == [ids[one.newer]]
            first, shown = first + is_first, shown + (ids[one.newer] in found)
            failures += [] if is_first else [f"half a year: {one.question} (is {one.value})"]
        live = len(memory.store.retrieval.records([ids[one.newer] for one in asked]))
    return (
        Share("current value first", first, len(asked)),
        Share("current value on the page", shown, len(asked)),
        Share("current value not superseded", live, len(asked)),
    )


# ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────


def truth_text(report: TruthReport) -> str:
    """The tables as text."""
    head = ("pairs", "noticed", "superseded", "false alarms", "wrong", "precision")
    rules = [
        (
            one.pairs,
            f"{one.noticed} of {one.contradictions}",
            f"{one.superseded} of {one.updates}",
            f"{one.false_alarms} of {one.near_misses}",
            str(one.wrong_supersessions),
            f"{one.precision:.3f}",
        )
        for one in report.rules
    ]
    blocks = ["\n".join(aligned([head, *rules]))]
    for title, shares in (
        ("windows", report.windows),
        ("newer first", report.newer_first),
        ("half a year", report.half_year),
    ):
        rows = [(title, "right"), *((one.name, f"{one.right} of {one.of}") for one in shares)]
        blocks.append("\n".join(aligned(rows)))
    return "\n\n".join([*blocks, "\n".join(report.failures)]).rstrip()
