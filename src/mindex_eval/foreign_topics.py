"""Measures silence on foreign topics: the questions of one set have no answer in the texts of another."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mindex.datatypes import Progress, Report
from mindex.errors import UsageError
from mindex.store.base import Store
from mindex_eval.assessment import EvaluationOptions, effective_settings
from mindex_eval.language_detection import language_of
from mindex_eval.measured_memory import changed_settings
from mindex_eval.metrics import auroc, mean
from mindex_eval.named_sets import read_named_set
from mindex_eval.question_sets import Question, answerable, hash_of, sampled
from mindex_eval.results import FloorResult, ForeignPair, ForeignTopics
from mindex_eval.run_questions import QuestionRunner, question_runner

DEFAULT_SAMPLE = 100
_FLOORS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7)


@dataclass(frozen=True, slots=True)
class _Outcomes:
    """Some answers: the relevance of each top hit and the best one of each page, and how many had no confident hit."""

    relevances: tuple[float, ...]
    best: tuple[float, ...]
    silent: int

    @property
    def share(self) -> float:
        return self.silent / len(self.relevances)

    def below(self, floor: float) -> float:
        return mean([float(value < floor) for value in self.best])


def foreign_topics(
    folders: Sequence[Path],
    options: EvaluationOptions,
    cache: Store,
    *,
    variant: str = "hybrid",
    report: Report | None = None,
) -> ForeignTopics:
    """Measure every ordered pair of sets in one language: own questions against those of the other set."""
    sets = [read_named_set(folder, split=options.split, adversarial=options.adversarial) for folder in folders]
    asked = {one.name: sampled(answerable(one, one.questions), options.sample or DEFAULT_SAMPLE) for one in sets}
    languages = {one.name: language_of(question.text for question in one.questions) for one in sets}
    settings = effective_settings(options.settings, (variant,))
    pairs: list[ForeignPair] = []
    outcomes: list[tuple[_Outcomes, _Outcomes]] = []
    model, floor, changed = "", 0.0, {}
    for texts in sets:
        foreign_sets = [one for one in sets if one is not texts and languages[one.name] == languages[texts.name]]
        if not foreign_sets:
            continue
        with question_runner(texts, settings, cache, timed=0, report=report) as runner:
            model, effective = runner.measured.model_name, runner.measured.memory.settings
            floor, changed = effective.number("search.floor"), changed_settings(effective)
            own = _ask_all(runner, asked[texts.name], variant, None, report, f"{texts.name} own")
            groups = sorted({question.group for question in texts.questions})
            for other in foreign_sets:
                label = f"{other.name} → {texts.name}"
                foreign = _ask_all(runner, asked[other.name], variant, groups, report, label)
                counts = len(own.relevances), len(foreign.relevances)
                shares = auroc(own.relevances, foreign.relevances), own.share, foreign.share
                pairs.append(ForeignPair(other.name, texts.name, *counts, *shares))
                outcomes.append((own, foreign))
    if not pairs:
        known = ", ".join(f"{name} {language}" for name, language in languages.items())
        raise UsageError(f"no two of these sets are in one language ({known})", "name at least two that are")
    alone = [name for name in languages if all(name not in (pair.questions, pair.texts) for pair in pairs)]
    notes = tuple(f"{name} is the only set in its language ({languages[name]})" for name in alone)
    return ForeignTopics(floor, model, changed, languages, tuple(pairs), _other_floors(outcomes), notes)


def _other_floors(outcomes: Sequence[tuple[_Outcomes, _Outcomes]]) -> tuple[FloorResult, ...]:
    """What other floors would do, from the answers without a floor: close enough to choose among them."""
    found = []
    for floor in _FLOORS:
        refused = [foreign.below(floor) for _, foreign in outcomes]
        found.append(FloorResult(floor, mean([own.below(floor) for own, _ in outcomes]), mean(refused), min(refused)))
    return tuple(found)


def _ask_all(
    runner: QuestionRunner,
    questions: Sequence[Question],
    variant: str,
    groups: Sequence[str] | None,
    report: Report | None,
    name: str,
) -> _Outcomes:
    """Run each question twice: without a floor for the relevance of the top hit, and with the floor of the settings."""
    relevances, best, silent = [], [], 0
    for done, question in enumerate(questions):
        if report is not None and done % 10 == 0:
            report(Progress("ask", done, len(questions), name))
        group = question.group if groups is None else _group_for(groups, question)
        page = runner.ask(question, variant, group=group, depth=1).answer.hits
        relevances.append(page[0].relevance if page else 0.0)
        best.append(max((hit.relevance for hit in page), default=0.0))
        silent += not runner.ask_as_shipped(question, variant, group=group).confident
    return _Outcomes(tuple(relevances), tuple(best), silent)


def _group_for(groups: Sequence[str], question: Question) -> str:
    """A group for a foreign question: always the same one, spread over all groups."""
    return groups[int(hash_of(question.id), 16) % len(groups)]
