"""Measures several sets in one memory: each set's questions beside the texts of the others, or without its own."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mindex import __version__
from mindex.datatypes import Progress, Report
from mindex.errors import UsageError
from mindex.evaluation_parts import count_tokens, view_answer
from mindex.store.base import Store
from mindex_eval.as_shipped import measure_both
from mindex_eval.assessment import EvaluationOptions, effective_settings, slices_of
from mindex_eval.foreign_topics import DEFAULT_SAMPLE
from mindex_eval.measured_memory import changed_settings, settings_for
from mindex_eval.metrics import mean
from mindex_eval.named_sets import read_named_set
from mindex_eval.question_sets import Question, QuestionSet, answerable, sampled
from mindex_eval.results import LeaveOneOut, LeftOutSet, MixedSet, Mixture
from mindex_eval.run_questions import QuestionResult, QuestionRunner, question_runner, question_runners


def mixture(
    names: Sequence[Path],
    options: EvaluationOptions,
    cache: Store,
    *,
    variant: str = "hybrid",
    report: Report | None = None,
) -> Mixture:
    """Ask each set's questions in a separate memory, and in one that holds all sets."""
    sets = _read(names, options)
    asked = [_unfiltered(answerable(found, sampled(found.questions, options.sample))) for found in sets]
    settings = effective_settings(options.settings, (variant,))
    alone = []
    for found, questions in zip(sets, asked, strict=True):
        with question_runner(found, settings, cache, timed=0, report=report) as runner:
            alone.append(measure_both(runner, questions, variant, report, found.name))
    mixed = []
    with question_runners(sets, settings, cache, keep=options.keep, on=options.on, report=report) as runners:
        for found, questions, own, runner in zip(sets, asked, alone, runners, strict=True):
            beside = measure_both(runner, questions, variant, report, f"{found.name} together")
            label = found.label()
            slices = slices_of(questions, {"alone": own, "together": beside}, label)
            documents = runner.populated.documents
            mixed.append(MixedSet(found.name, documents, len(questions), own, beside, label, slices))
        measured = runners[0].measured
        notes = [
            *_named(sets, [found.notes for found in sets]),
            *_named(sets, [runner.populated.notes for runner in runners]),
            *_named(sets, [one.together.notes for one in mixed]),
        ]
        return Mixture(
            variant=variant,
            floor=measured.memory.settings.number("search.floor"),
            model=measured.model_name,
            settings=changed_settings(measured.memory.settings),
            documents=sum(one.documents for one in mixed),
            sets=tuple(mixed),
            notes=tuple(notes),
            version=__version__,
        )


def leave_one_out(
    names: Sequence[Path],
    options: EvaluationOptions,
    cache: Store,
    *,
    variant: str = "hybrid",
    report: Report | None = None,
) -> LeaveOneOut:
    """Put each set's questions to a memory that holds all the other sets: they have no answer there."""
    sets = _read(names, options)
    settings = effective_settings(options.settings, (variant,))
    effective = settings_for(settings)
    found: list[LeftOutSet] = []
    model = ""
    for one in sets:
        others = [other for other in sets if other.folder != one.folder]  # two groups of it are one topic
        if not others:
            raise UsageError(f"without {one.folder.name} no set is left", "name sets of several folders")
        questions = sampled(answerable(one, one.questions), options.sample or DEFAULT_SAMPLE)
        with question_runners(others, settings, cache, report=report) as (runner, *_):
            model = runner.measured.model_name
            results = _ask_all(runner, one.name, _unfiltered(questions), variant, report)
            found.append(left_out_set(one.name, results))
    return LeaveOneOut(
        variant=variant,
        floor=effective.number("search.floor"),
        model=model,
        settings=changed_settings(effective),
        sets=tuple(found),
        notes=_named(sets, [one.notes for one in sets]),
        version=__version__,
    )


def _read(names: Sequence[Path], options: EvaluationOptions) -> list[QuestionSet]:
    if len(names) < 2:
        raise UsageError("--together needs several sets", "pass at least two sets")
    sets = [
        read_named_set(name, split=options.split, adversarial=options.adversarial, one_group=True) for name in names
    ]
    for name, times in Counter(found.name for found in sets).items():
        if times > 1:
            raise UsageError(f"two of these sets are {name}", "name it once, or another group of it")
    return sets


def _named(sets: Sequence[QuestionSet], notes: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Notes about sets, each with the name of its set."""
    return tuple(f"{found.name}: {note}" for found, own in zip(sets, notes, strict=True) for note in own)


def _unfiltered(questions: Sequence[Question]) -> tuple[Question, ...]:
    """The questions without their groups: nothing narrows where they are searched."""
    return tuple(replace(question, group="") for question in questions)


def _ask_all(
    runner: QuestionRunner, name: str, questions: Sequence[Question], variant: str, report: Report | None
) -> list[QuestionResult]:
    results = []
    for done, question in enumerate(questions):
        if report is not None and done % 10 == 0:
            report(Progress("ask", done, len(questions), f"{name} left out"))
        results.append(runner.ask_as_shipped(question, variant))
    return results


def left_out_set(name: str, results: Sequence[QuestionResult]) -> LeftOutSet:
    """What foreign questions got: confidence, silence, and the tokens of answers without a confident hit."""
    tokens = [count_tokens(view_answer(one.answer).text()) for one in results if not one.confident]
    return LeftOutSet(
        name=name,
        questions=len(results),
        no_confident=mean([float(not one.confident) for one in results]),
        no_answer=mean([float(not one.answer.hits) for one in results]),
        tokens=mean(tokens),
        most_tokens=max(tokens, default=0),
    )
