"""Measures answers as users get them: one page at the default limit, with the floor of the settings."""

from collections.abc import Sequence
from dataclasses import replace

from mindex.evaluate.metrics import mean
from mindex.evaluate.question_sets import Question
from mindex.evaluate.run_questions import QuestionResult, QuestionRunner, measure
from mindex.model import Progress, Report
from mindex.model.evaluation import HIT_1, HIT_5, NO_ANSWER, NO_CONFIDENT, Scores, SearchRun, ShippedPage, ShippedRun


def measure_both(
    runner: QuestionRunner, questions: Sequence[Question], variant: str, report: Report | None = None, name: str = ""
) -> SearchRun:
    """Measure the ranking of one search variant, and its answers as shipped."""
    run = measure(runner, questions, variant, report, name)
    return replace(run, shipped=measure_shipped(runner, questions, variant, report, name))


def measure_shipped(
    runner: QuestionRunner, questions: Sequence[Question], variant: str, report: Report | None = None, name: str = ""
) -> ShippedRun:
    """Measure one search variant as shipped over the questions that have an answer."""
    answerable = [question for question in questions if not question.silent]
    pages = {}
    for done, question in enumerate(answerable):
        if report is not None and done % 10 == 0:
            report(Progress("ask", done, len(answerable), f"{name} {variant} as shipped"))
        pages[question.id] = shipped_page(question, runner.ask_as_shipped(question, variant))
    return ShippedRun(shipped_scores(list(pages.values())) if pages else {}, pages)


def shipped_page(question: Question, result: QuestionResult) -> ShippedPage:
    right = (rank for rank, id_ in enumerate(result.ranked, start=1) if question.gains.get(id_, 0) > 0)
    hits = result.answer.hits
    return ShippedPage(next(right, None), len(hits), sum(not hit.weak for hit in hits))


def shipped_scores(pages: Sequence[ShippedPage]) -> Scores:
    """The metrics of some first pages."""

    def share(counted: Sequence[bool]) -> float:
        return mean([float(one) for one in counted])

    return {
        HIT_1: share([page.rank == 1 for page in pages]),
        HIT_5: share([page.rank is not None and page.rank <= 5 for page in pages]),
        NO_ANSWER: share([page.hits == 0 for page in pages]),
        NO_CONFIDENT: share([page.confident == 0 for page in pages]),
    }
