"""Assesses one question set: reads it, populates a memory, runs the questions, collects the measurements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mindex import __version__
from mindex.datatypes import Report
from mindex.errors import UsageError
from mindex.store.base import Store
from mindex_eval.as_shipped import measure_both, shipped_scores
from mindex_eval.excerpts import BUDGETS, AnswerShape, measure_excerpts
from mindex_eval.measured_memory import changed_settings, settings_for
from mindex_eval.metrics import mean_scores
from mindex_eval.named_sets import read_named_set
from mindex_eval.question_sets import Question, QuestionSet, sampled
from mindex_eval.results import Assessment, Scores, SearchRun, Slice
from mindex_eval.run_questions import VARIANTS, measure_silence, question_runner, worst_of


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """What to measure, and how."""

    variants: tuple[str, ...] = ()  # empty: all that the settings allow
    rerank: bool = False
    expand: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    split: str = "test"
    sample: int | None = None
    adversarial: bool = False
    category: str = ""
    worst: int = 0
    keep: Path | None = None
    on: str = ""  # the URL of a PostgreSQL database
    shapes: Mapping[str, AnswerShape] = field(default_factory=lambda: {"CLI": AnswerShape()})  # for excerpts
    budgets: tuple[int, ...] = BUDGETS  # for excerpts


def assess(folder: Path, options: EvaluationOptions, cache: Store, report: Report | None = None) -> Assessment:
    """Populate a memory with the set and run its questions in every search variant."""
    variants = variants_of(options)
    settings = effective_settings(options.settings, variants)
    found = read_named_set(folder, split=options.split, adversarial=options.adversarial)
    questions = sampled(found.questions, options.sample)
    label = label_of(found, options.category)
    with question_runner(found, settings, cache, keep=options.keep, on=options.on, report=report) as runner:
        runs = {variant: measure_both(runner, questions, variant, report, found.name) for variant in variants}
        # A stage that did not run must not be measured unnoticed.
        run_notes = [f"{variant}: {note}" for variant, run in runs.items() for note in run.notes]
        inspected = "hybrid" if "hybrid" in runs else variants[-1]
        silent = any(question.silent for question in questions)
        return Assessment(
            name=found.name,
            documents=runner.populated.documents,
            questions=sum(not question.silent for question in questions),
            model=runner.measured.model_name,
            settings=changed_settings(runner.measured.memory.settings),
            runs=runs,
            left_out=found.left_out,
            label=label,
            slices=slices_of(questions, runs, label),
            worst=worst_of(runner, questions, runs[inspected], inspected, options.worst, label),
            silence=measure_silence(runner, questions) if silent else None,
            excerpts=measure_excerpts(runner, found, questions, inspected, options.shapes, options.budgets, report)
            if any(question.excerpts for question in questions)
            else None,
            notes=(*found.notes, *runner.populated.notes, *run_notes),
            version=__version__,
        )


def variants_of(options: EvaluationOptions) -> tuple[str, ...]:
    """The search variants to measure: the requested ones, or all that the configured models allow."""
    unknown = [variant for variant in options.variants if variant not in VARIANTS]
    if unknown:
        raise UsageError(f"unknown mode '{unknown[0]}'", f"use one or more of {', '.join(VARIANTS)}")
    settings = settings_for(options.settings)
    variants = list(options.variants) or ["keyword", "vector", "hybrid"]
    if not options.variants and settings.text("embedding.provider") == "none":
        variants = ["keyword"]
    reranks = options.rerank or (not options.variants and settings.text("rerank.provider") != "none")
    expands = options.expand or (not options.variants and settings.text("generation.provider") != "none")
    variants += ["hybrid+rerank"] * reranks + ["hybrid+expand"] * expands
    if any("expand" in variant for variant in variants) and settings.text("generation.provider") == "none":
        raise UsageError("no language model is configured to expand questions", "set generation.provider")
    return tuple(dict.fromkeys(variants))


def effective_settings(settings: Mapping[str, str], variants: tuple[str, ...]) -> Mapping[str, str]:
    """The settings of a run: keyword search needs no embedder, and reranking without a provider means the local one."""
    if set(variants) == {"keyword"}:
        settings = {**settings, "embedding.provider": "none"}
    if any("rerank" in variant for variant in variants) and settings_for(settings).text("rerank.provider") == "none":
        settings = {**settings, "rerank.provider": "local"}
    return settings


def label_of(found: QuestionSet, category: str) -> str:
    """The field that the questions are split by. Raises UsageError if no question has the `category`."""
    if not category:
        return found.label()
    labels = sorted({name for question in found.questions for name in question.labels})
    if category not in labels:
        known = ", ".join(labels) or "no further field"
        raise UsageError(f"no question of {found.name} has a '{category}'", f"they have {known}")
    return category


def slices_of(questions: Sequence[Question], runs: Mapping[str, SearchRun], label: str) -> tuple[Slice, ...]:
    """The scores of the questions by their value of a field; none without a field."""
    if not label:
        return ()
    members: dict[str, list[str]] = {}
    for question in questions:
        if not question.silent:
            members.setdefault(question.labels.get(label, "(none)"), []).append(question.id)

    def scores(ids: list[str]) -> dict[str, dict[str, float]]:
        return {variant: mean_scores([run.per_question[id_] for id_ in ids]) for variant, run in runs.items()}

    def shipped(ids: list[str]) -> dict[str, Scores]:
        return {
            variant: shipped_scores([run.shipped.pages[id_] for id_ in ids])
            for variant, run in runs.items()
            if run.shipped is not None
        }

    return tuple(Slice(name, len(ids), scores(ids), shipped(ids)) for name, ids in sorted(members.items()))
