"""Runs the questions of a set against a populated memory, one search variant after the other, and measures them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from mindex.datatypes import Answer, Hit, Progress, Report
from mindex.errors import UsageError
from mindex.evaluation_parts import MAX_LIMIT, AnswerView, View, view_answer, view_of
from mindex.store.base import Store
from mindex_eval.measured_memory import MeasuredMemory
from mindex_eval.metrics import DEPTH, mean, mean_scores, percentile, scores_of
from mindex_eval.populate import PopulatedSet, populated_sets
from mindex_eval.question_sets import Question, QuestionSet, sampled
from mindex_eval.results import NDCG, Failure, Place, Scores, SearchRun, Silence

# The options of `Memory.search` for each search variant.
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "keyword": {"mode": "keyword"},
    "vector": {"mode": "vector"},
    "hybrid": {"mode": "hybrid"},
    "hybrid+rerank": {"mode": "hybrid", "rerank": True},
    "hybrid+expand": {"mode": "hybrid", "expand": True},
    "hybrid+expand+rerank": {"mode": "hybrid", "expand": True, "rerank": True},
}
# The number of questions of a variant that are timed; the others take their vectors from the cache of earlier runs.
TIMED = 100
_SHOWN = 5  # hits of an answer whose tokens are counted, in full
_DEEPEST = 1_000


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """The answer to one question: documents in order, each at the rank of its best chunk."""

    ranked: tuple[str, ...]
    hits: tuple[tuple[str, Hit], ...]  # the best chunk of each
    answer: Answer  # the first page
    ms: float | None = None

    @property
    def confident(self) -> bool:
        """Whether the first page holds a hit that is not weak."""
        return any(not hit.weak for hit in self.answer.hits)


@dataclass(frozen=True, slots=True)
class QuestionRunner:
    """Runs questions against one populated memory."""

    measured: MeasuredMemory
    populated: PopulatedSet
    entries: bool  # whether its texts are entries, not files
    timed: frozenset[str] = frozenset()
    sessions: Mapping[str, str] = field(default_factory=dict)  # of its turns: document id → session

    def ask(
        self,
        question: Question,
        variant: str,
        *,
        group: str | None = None,
        depth: int = DEPTH,
    ) -> QuestionResult:
        """Search without a floor, and page on until there are `depth` documents.

        Only the first page is timed, and only for some.
        """
        scope = self._scope(question.group if group is None else group)
        options = {**self._search_options(variant), **scope, "floor": 0.0, "now": question.now or None}
        is_timed = question.id in self.timed
        before = self.measured.providers.calls
        self.measured.embed_queries_anew(is_timed)
        started = perf_counter()
        answer = self.measured.memory.search(question.text, limit=DEPTH, **options)
        ms = (perf_counter() - started) * 1000
        self.measured.embed_queries_anew(False)
        from_models = self.measured.providers.calls > before or "+" not in variant
        found: dict[str, Hit] = {}
        page, seen = answer, 0
        while True:
            for hit in page.hits:
                found.setdefault(self._id_of(question, hit), hit)
            seen += len(page.hits)
            if len(found) >= depth or not page.has_more or not page.hits:
                break
            page = self.measured.memory.search(question.text, limit=MAX_LIMIT, offset=seen, **options)
        return QuestionResult(tuple(found), tuple(found.items()), answer, ms if is_timed and from_models else None)

    def ask_as_shipped(
        self,
        question: Question,
        variant: str,
        *,
        group: str | None = None,
        limit: int | None = None,
        floor: float | None = None,
    ) -> QuestionResult:
        """Ask as users do: one page, with the floor of the settings and the product's limit unless others are given."""
        scope = self._scope(question.group if group is None else group)
        options = self._search_options(variant) | {"floor": floor, "now": question.now or None}
        options |= {} if limit is None else {"limit": limit}
        answer = self.measured.memory.search(question.text, **options, **scope)
        found: dict[str, Hit] = {}
        for hit in answer.hits:
            found.setdefault(self._id_of(question, hit), hit)
        return QuestionResult(tuple(found), tuple(found.items()), answer)

    def page(self, question: Question, variant: str, limit: int) -> Answer:
        """A page of the entry points, from which passages can be shown."""
        options = self._search_options(variant) | self._scope(question.group) | {"now": question.now or None}
        return self.measured.memory.search(question.text, limit=limit, logged=False, passages=True, **options)

    def show(self, answer: Answer, view: View, budget: int | None) -> AnswerView:
        """The answer as the command line and the tools of MCP send it."""
        return view_of(self.measured.memory, answer, view, budget)

    def prepare(self, question: Question, variant: str) -> None:
        """Load the models of a variant. A model that cannot be had is an error: measuring without it is not wanted."""
        self.ask(question, variant.partition("+")[0], depth=1)
        providers = self.measured.providers
        if "rerank" in variant and providers.reranker is not None:
            providers.reranker.load()
        if "expand" in variant and providers.generator is not None:
            providers.generator.load()

    def _search_options(self, variant: str) -> dict[str, Any]:
        """With a reranker in the settings, the variants without reranking switch it off."""
        options = dict(VARIANTS[variant])
        if "rerank" not in options and self.measured.providers.reranker is not None:
            options["rerank"] = False
        return options

    def _scope(self, group: str) -> dict[str, Any]:
        """Each of several groups is a separate store: a collection, an agent, or, of real files, a folder."""
        groups = self.populated.groups
        if not groups:
            return {"path": f"{group}/"} if group else {}
        if len(groups) == 1:
            return {}
        if self.entries:
            return {"agent": groups.get(group, "*")}
        return {"collections": [groups[group]]} if group else {}

    def _id_of(self, question: Question, hit: Hit) -> str:
        record, id_ = hit.record, self.populated.id_of(hit.record)
        for lines in question.lines:
            if id_ == lines.path and record.first_line <= lines.last and record.last_line >= lines.first:
                return lines.id
        return id_


@contextmanager
def question_runner(
    found: QuestionSet,
    settings: Mapping[str, str],
    cache: Store,
    *,
    timed: int = TIMED,
    keep: Path | None = None,
    on: str = "",
    report: Report | None = None,
) -> Iterator[QuestionRunner]:
    """Populate a memory with a set, and open it with these settings. See `populated_sets`."""
    with question_runners((found,), settings, cache, timed=timed, keep=keep, on=on, report=report) as (runner,):
        yield runner


@contextmanager
def question_runners(
    sets: Sequence[QuestionSet],
    settings: Mapping[str, str],
    cache: Store,
    *,
    timed: int = 0,
    keep: Path | None = None,
    on: str = "",
    report: Report | None = None,
) -> Iterator[tuple[QuestionRunner, ...]]:
    """Populate one memory with several sets: a runner for the questions of each."""
    for found in sets:
        entries = [text.is_entry for text in found.texts]
        if any(entries) and not all(entries) and len({text.group for text in found.texts}) > 1:
            raise UsageError(f"{found.folder} mixes turns and texts in groups", "make two sets of it")
    with (
        populated_sets(sets, settings, cache, keep=keep, on=on, report=report) as populated,
        MeasuredMemory(populated[0].database, settings, cache) as measured,
    ):
        yield tuple(
            QuestionRunner(
                measured,
                one,
                any(text.is_entry for text in found.texts),
                frozenset(question.id for question in sampled(found.questions, timed)),
                {text.id: text.session_key for text in found.texts if text.is_turn},
            )
            for found, one in zip(sets, populated, strict=True)
        )


def measure(
    runner: QuestionRunner, questions: Sequence[Question], variant: str, report: Report | None = None, name: str = ""
) -> SearchRun:
    """Measure one search variant over the questions that have an answer."""
    answerable = [question for question in questions if not question.silent]
    if answerable:
        runner.prepare(answerable[0], variant)
    scores: dict[str, Scores] = {}
    tokens: list[float] = []
    times: list[float] = []
    notes: Counter[str] = Counter()
    for done, question in enumerate(answerable):
        if report is not None and done % 10 == 0:
            report(Progress("ask", done, len(answerable), f"{name} {variant}"))
        outcome = runner.ask(question, variant)
        scores[question.id] = scores_of(outcome.ranked, question.gains)
        first = replace(outcome.answer, hits=outcome.answer.hits[:_SHOWN], notes=())
        tokens.append(view_answer(first, "full").tokens)
        if outcome.ms is not None:
            times.append(outcome.ms)
        notes.update(note.partition(";")[0] for note in outcome.answer.notes)  # what follows differs each time
    return SearchRun(
        scores=mean_scores(list(scores.values())) if scores else {},
        tokens=mean(tokens) if tokens else None,
        p50_ms=percentile(times, 0.5) if times else None,
        p95_ms=percentile(times, 0.95) if times else None,
        timed=len(times),
        per_question=scores,
        notes=tuple(f"{count} of {len(answerable)} answers: {note}" for note, count in notes.most_common(5)),
    )


def measure_silence(runner: QuestionRunner, questions: Sequence[Question]) -> Silence:
    """Count the questions that get no confident hit: those with an answer, and those without one."""
    refused: dict[bool, list[bool]] = {False: [], True: []}  # by whether a question has no answer
    for question in questions:
        refused[question.silent].append(not runner.ask_as_shipped(question, "hybrid").confident)
    return Silence(len(refused[False]), sum(refused[False]), len(refused[True]), sum(refused[True]))


def worst_of(
    runner: QuestionRunner, questions: Sequence[Question], run: SearchRun, variant: str, count: int, label: str = ""
) -> tuple[Failure, ...]:
    """The questions with the lowest scores, each with the ranks of its expected documents among all candidates."""
    imperfect = [one for one in questions if one.id in run.per_question and run.per_question[one.id][NDCG] < 1]
    imperfect.sort(key=lambda one: (*(run.per_question[one.id][name] for name in run.scores), one.id))
    failures = []
    for question in imperfect[:count]:
        outcome = runner.ask(question, variant, depth=_DEEPEST)
        places = {id_: Place(id_, rank, hit) for rank, (id_, hit) in enumerate(outcome.hits, start=1)}
        first = next(iter(places.values()), None)
        expected = tuple(places.get(id_, Place(id_, None, None)) for id_ in question.gains)
        category = question.labels.get(label, "")
        failures.append(Failure(question.id, question.text, category, run.per_question[question.id], first, expected))
    return tuple(failures)
