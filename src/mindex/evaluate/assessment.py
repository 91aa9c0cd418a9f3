"""A set, from its folder to what was measured of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mindex.errors import UsageError
from mindex.evaluate.measured_memory import MeasuredMemory, changed_settings, settings_for
from mindex.evaluate.metrics import mean_scores
from mindex.evaluate.populate import filled
from mindex.evaluate.question_sets import Question, QuestionSet, read_set, sampled
from mindex.evaluate.run_questions import WAYS, measure, measure_silence, question_runner_for, worst_of
from mindex.model import Progress
from mindex.model.evaluation import Assessment, SearchRun, Slice
from mindex.store.base import Store

Report = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """What is to be measured, and how."""

    ways: tuple[str, ...] = ()  # none: all that the settings allow
    rerank: bool = False
    expand: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    split: str = "test"
    sample: int | None = None
    adversarial: bool = False
    category: str = ""
    worst: int = 0
    keep: Path | None = None


def assess(folder: Path, wanted: EvaluationOptions, cache: Store, report: Report | None = None) -> Assessment:
    """Fill a memory with the set, ask its questions in every way, and say what came of it."""
    ways = ways_of(wanted)
    settings = effective(wanted.settings, ways)
    found = read_set(folder, split=wanted.split, adversarial=wanted.adversarial)
    questions = sampled(found.questions, wanted.sample)
    label = _label(found, wanted.category)
    with (
        filled(found, settings, cache, keep=wanted.keep, report=report) as made,
        MeasuredMemory(made.database, settings, cache) as measured,
    ):
        memory = measured.memory
        asker = question_runner_for(found, made, measured)
        runs = {way: measure(asker, questions, way, report, found.name) for way in ways}
        looked_at = "hybrid" if "hybrid" in runs else ways[-1]
        silent = any(question.silent for question in questions)
        return Assessment(
            name=found.name,
            documents=made.documents,
            questions=sum(not question.silent for question in questions),
            model="" if memory.models.embedder is None else memory.models.embedder.model.name,
            settings=changed_settings(memory.settings),
            runs=runs,
            left_out=found.left_out,
            label=label,
            slices=_slices(questions, runs, label),
            worst=worst_of(asker, questions, runs[looked_at], looked_at, wanted.worst, label),
            silence=measure_silence(asker, questions) if silent else None,
            notes=(*found.notes, *made.notes, *_said(runs)),
        )


def ways_of(wanted: EvaluationOptions) -> tuple[str, ...]:
    """The rows of the table: those asked for, or all that the configured models allow."""
    unknown = [way for way in wanted.ways if way not in WAYS]
    if unknown:
        raise UsageError(f"there is no mode '{unknown[0]}'", f"use some of {', '.join(WAYS)}")
    settings = settings_for(wanted.settings)
    ways = list(wanted.ways) or ["keyword", "vector", "hybrid"]
    if not wanted.ways and settings.text("embedding.provider") == "none":
        ways = ["keyword"]
    reranks = wanted.rerank or (not wanted.ways and settings.text("rerank.provider") != "none")
    expands = wanted.expand or (not wanted.ways and settings.text("generation.provider") != "none")
    ways += ["hybrid+rerank"] * reranks + ["hybrid+expand"] * expands
    if any("expand" in way for way in ways) and settings.text("generation.provider") == "none":
        raise UsageError("no language model is configured to expand questions", "set generation.provider")
    return tuple(dict.fromkeys(ways))


def effective(settings: Mapping[str, str], ways: tuple[str, ...]) -> Mapping[str, str]:
    """The settings of a run: words alone need no vectors, and whoever wants a reranker but named none has the local."""
    if set(ways) == {"keyword"}:
        settings = {**settings, "embedding.provider": "none"}
    if any("rerank" in way for way in ways) and settings_for(settings).text("rerank.provider") == "none":
        settings = {**settings, "rerank.provider": "local"}
    return settings


def _label(found: QuestionSet, asked: str) -> str:
    if not asked:
        return found.label()
    labels = sorted({name for question in found.questions for name in question.labels})
    if asked not in labels:
        raise UsageError(
            f"no question of {found.name} has a '{asked}'", f"they have {', '.join(labels) or 'no further field'}"
        )
    return asked


def _slices(questions: tuple[Question, ...], runs: Mapping[str, SearchRun], label: str) -> tuple[Slice, ...]:
    if not label:
        return ()
    members: dict[str, list[str]] = {}
    for question in questions:
        if not question.silent:
            members.setdefault(question.labels.get(label, "(none)"), []).append(question.id)
    return tuple(
        Slice(name, len(ids), {way: mean_scores([run.per_question[id_] for id_ in ids]) for way, run in runs.items()})
        for name, ids in sorted(members.items())
    )


def _said(runs: Mapping[str, SearchRun]) -> list[str]:
    """What answers said about themselves: a stage that did not run is not to be measured unnoticed."""
    return [f"{way}: {note}" for way, run in runs.items() for note in run.notes]
