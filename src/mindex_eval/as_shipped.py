"""Measures pages as users get them, with the floor of the settings, and the same pages without a floor."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from mindex.datatypes import Progress, Report
from mindex_eval.metrics import hit, mean, recall
from mindex_eval.question_sets import Question
from mindex_eval.results import (
    ALL_5,
    ALL_10,
    ANY_5,
    ANY_10,
    ENTRY_FIRST,
    HIT_1,
    HIT_5,
    NO_ANSWER,
    NO_CONFIDENT,
    RECALL_5,
    RECALL_10,
    Scores,
    SearchRun,
    ShippedPage,
    ShippedRun,
)
from mindex_eval.run_questions import QuestionResult, QuestionRunner, measure

_LONGER = 10  # hits of the longer page; the shorter one has the product's default


def measure_both(
    runner: QuestionRunner, questions: Sequence[Question], variant: str, report: Report | None = None, name: str = ""
) -> SearchRun:
    """Measure the ranking of one search variant, and its pages as shipped and without a floor."""
    run = measure(runner, questions, variant, report, name)
    shipped = measure_pages(runner, questions, variant, report, f"{name} {variant} as shipped")
    bare = measure_pages(runner, questions, variant, report, f"{name} {variant} without floor", floor=0.0)
    return replace(run, shipped=shipped, without_floor=bare)


def measure_pages(
    runner: QuestionRunner,
    questions: Sequence[Question],
    variant: str,
    report: Report | None = None,
    name: str = "",
    *,
    floor: float | None = None,
) -> ShippedRun:
    """Measure the pages of one search variant over the questions that have an answer."""
    answerable = [question for question in questions if not question.silent]
    pages = {}
    for done, question in enumerate(answerable):
        if report is not None and done % 10 == 0:
            report(Progress("ask", done, len(answerable), name))
        short = runner.ask_as_shipped(question, variant, floor=floor)
        long = runner.ask_as_shipped(question, variant, floor=floor, limit=_LONGER)
        pages[question.id] = shipped_page(question, short, long, runner.sessions, by_files=not runner.entries)
    return ShippedRun(shipped_scores(list(pages.values())), pages)


def shipped_page(
    question: Question,
    short: QuestionResult,
    long: QuestionResult,
    sessions: Mapping[str, str] = MappingProxyType({}),
    *,
    by_files: bool = False,
) -> ShippedPage:
    """The measures of the default page, and of one with ten hits, of one question.

    sessions: those of turns, by document. by_files: files answer the question, so that an entry does not.
    """
    gains, hits = question.gains, short.answer.hits
    scores = {
        HIT_1: hit(short.ranked, gains, 1),
        HIT_5: hit(short.ranked, gains, 5),
        RECALL_5: recall(short.ranked, gains, 5),
        RECALL_10: recall(long.ranked, gains, 10),
    }
    if evidence := {sessions[id_] for id_, gain in gains.items() if gain > 0 and id_ in sessions}:
        for result, every, some in ((short, ALL_5, ANY_5), (long, ALL_10, ANY_10)):
            found = evidence & {sessions.get(id_) for id_ in result.ranked}
            scores |= {every: float(found == evidence), some: float(bool(found))}
    if by_files:
        scores[ENTRY_FIRST] = float(bool(hits) and hits[0].record.kind != "chunk")
    right = (rank for rank, id_ in enumerate(short.ranked, start=1) if gains.get(id_, 0) > 0)
    return ShippedPage(next(right, None), len(hits), sum(not one.weak for one in hits), scores)


def shipped_scores(pages: Sequence[ShippedPage]) -> Scores:
    """The means of some pages; each metric over the pages that have it."""
    if not pages:
        return {}
    names = dict.fromkeys(name for page in pages for name in page.scores)
    return {name: mean([page.scores[name] for page in pages if name in page.scores]) for name in names} | {
        NO_ANSWER: mean([float(page.hits == 0) for page in pages]),
        NO_CONFIDENT: mean([float(page.confident == 0) for page in pages]),
    }
