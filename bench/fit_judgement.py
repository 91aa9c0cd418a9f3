"""Fit the weights of the judgement, and report what they give sets that took no part in fitting them.

    python bench/fit_judgement.py collect FOLDER SET…            # evidence of each set's questions, kept in FOLDER
    python bench/fit_judgement.py collect FOLDER --mixed NAME SET…   # of several sets in one store
    python bench/fit_judgement.py fit FOLDER                     # the table of src/mindex/search/judgement_weights.py
    python bench/fit_judgement.py calibrate FOLDER               # only what makes a hit confident; the order stays
    python bench/fit_judgement.py shipped FOLDER                 # what the present weights give
    python bench/fit_judgement.py left-out FOLDER                # every set judged by weights of the other sets alone
    python bench/fit_judgement.py left-out-calibrated FOLDER     # the same, of `calibrate`

`collect` puts a sample of each set's questions to its own store, and some questions of every other set of its
language, which have no answer there. Each question is also asked in three words (`with_short_forms`). With `--mixed`,
the sets share one store; each question is also asked of the store without its own set's documents. It keeps what the
search itself knows of each candidate (`judgement.evidence`), so that fitting needs neither a model nor a store. The
loss is a sum of two: that a right record comes first among the candidates, and that the best candidate is above zero
log-odds if the question has an answer, and below if it has none. Every pair of a set and a store counts the same.
Needs scipy (`pip install scipy`), which mindex itself does not.
"""

from __future__ import annotations

import argparse
import pickle
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mindex.analyzer import STOP_WORDS, fold, is_unsegmented
from mindex.datatypes import Query, Record
from mindex.search import judgement
from mindex.search.filters import make_filters
from mindex.search.fuse import JUDGED
from mindex.search.judgement_weights import NAMED, NEIGHBOUR, TERMS, WITH_VECTORS
from mindex.search.query import parse
from mindex.search.query_as_name import QueryName, name_of
from mindex.search.retrieval import retrieve
from mindex.search.word_evidence import holds_all
from mindex.store.rules.kind_groups import KindGroup, kind_group
from mindex_eval.assessment import effective_settings
from mindex_eval.cached_models import open_cache
from mindex_eval.language_detection import language_of
from mindex_eval.metrics import mean
from mindex_eval.named_sets import read_named_set
from mindex_eval.question_sets import Question, QuestionSet, answerable, sampled
from mindex_eval.run_questions import QuestionRunner, question_runner, question_runners

OWN, FOREIGN, MIXED = 200, 25, 150  # questions of a set; of each other set; of each set in a mixture
KEPT = 30  # of the nearest candidates, of those with the best words, and of the nearest of each group
GROUPS: tuple[KindGroup, ...] = ("file", "entry", "turn")
NAMES = ("title", "heading", "file", "part", "defined", "literal")
# Weights that may differ between groups of kinds; the others are shared. Beyond these, evidence may only help.
OF_GROUP = ("kind", "cosine", "keyword", "surprise", "question", "length", "words")
HELPS = ("cosine", "keyword", "unread_keyword", "matched_share", "surprise", "look_up", *NAMES, "neighbour")
# What the judgement of a candidate does not depend on, and its confidence does.
CALIBRATED = ("kind", "words", "question")
CALIBRATION_STIFFNESS = 0.02
UNUSED = ("strict",)  # an explicit demand, which is not fitted
BY_WORDS_UNUSED = (*UNUSED, "cosine", "unread", "unread_keyword", "unlisted")
# Questions of these sets have answers in each other's texts.
RELATED = (("lme_sessions_dev", "lme_turns_dev"), ("hatch_docs", "pymdown_docs"))
FOREIGN_SHARE = 0.10  # of the foreign questions of mixtures may have a confident hit
SILENT_SHARE = 0.002  # of the questions with an answer may get "nothing is relevant", set by set
# Decisions, not fitted: of texts with the same words, that with the better BM25 is first; a record that the query names
# comes before those that mention the name.
MIN_KEYWORD = 0.3
MIN_NAMES = {"title": 5.0, "heading": 4.5, "file": 4.0, "part": 3.5, "defined": 5.5, "literal": 2.5}

SHORT = 3  # words of the short form of a question: those that the fewest questions of its set contain
SHORT_FORM = "short"  # its category
WORD = re.compile(r"[^\W_]+(?:[-'’.][^\W_]+)*")
DERIVED = ("title", "heading", "file", "identifier", "keywords")  # categories of the derived questions
WITHOUT = " without it"  # ends the name of a mixture without the question's own set

Numbers = NDArray[np.float64]


@dataclass(slots=True)
class Case:
    """One question to one store: the evidence of its candidates, and which of them are right."""

    set: str
    store: str
    question: str
    category: str
    wanted: int  # documents that answer it
    rows: Numbers  # one row per candidate: TERMS, names, neighbour
    groups: NDArray[np.int8]
    right: NDArray[np.bool_]
    documents: list[str]
    own: NDArray[np.bool_]  # documents of the question's own set
    adjacent: list[tuple[int, int]] = field(default_factory=list)  # rows of turns beside each other

    @property
    def foreign(self) -> bool:
        return not self.wanted


COLUMNS = (*TERMS, *NAMES, "neighbour")


# ── collecting ──────────────────────────────────────────────────────────────────────────────────────────────────


def collect(folder: Path, names: Sequence[Path], mixture: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    sets = [read_named_set(name, one_group=bool(mixture)) for name in names]
    settings = effective_settings({}, ("hybrid",))
    with closing(open_cache()) as cache:
        if mixture:
            cases = []
            with question_runners(sets, settings, cache) as runners:
                for found, runner in zip(sets, runners, strict=True):
                    for question in with_short_forms(found, asked(found, MIXED)):
                        case = case_of(runner, replace(question, group=""), found.name, mixture)
                        cases += [case, without_own_set(case)]
            write(folder / f"{mixture}.pickle", cases)
            return
        languages = {found.name: language_of(one.text for one in found.questions) for found in sets}
        for found in sets:
            path = folder / f"{found.name.replace(':', '-')}.pickle"
            if path.exists():
                continue
            own = with_short_forms(found, asked(found, OWN))
            with question_runner(found, settings, cache, timed=0) as runner:
                cases = [case_of(runner, question, found.name, found.name) for question in own]
                groups = sorted({question.group for question in found.questions})
                for other in sets:
                    related = any({other.name, found.name} == set(pair) for pair in RELATED)
                    if other.folder == found.folder or languages[other.name] != languages[found.name] or related:
                        continue
                    for number, question in enumerate(with_short_forms(other, asked(other, FOREIGN))):
                        foreign = replace(question, gains={}, group=groups[number % len(groups)])
                        cases.append(case_of(runner, foreign, other.name, found.name))
            write(path, cases)


def asked(found: QuestionSet, count: int) -> list[Question]:
    return list(sampled(answerable(found, found.questions), count))


def with_short_forms(found: QuestionSet, questions: Sequence[Question]) -> list[Question]:
    """The questions, and each as a few words, as people also type it. Queries that are names stay as they are."""
    counts = Counter(word for one in found.questions for word in {fold(word) for word in WORD.findall(one.text)})

    def short(question: Question) -> str:
        words = [word for word in WORD.findall(question.text) if fold(word) not in STOP_WORDS and len(word) > 1]
        telling = sorted(dict.fromkeys(words), key=lambda word: counts[fold(word)])[:SHORT]
        return " ".join(word for word in dict.fromkeys(words) if word in telling)

    added = []
    for one in questions:
        is_name = one.labels.get("category") in DERIVED or any(map(is_unsegmented, one.text))
        if not is_name and len(one.text.split()) > SHORT + 1 and (text := short(one)):
            added.append(replace(one, id=f"{one.id} short", text=text, labels={"category": SHORT_FORM}))
    return [*questions, *added]


def write(path: Path, cases: list[Case]) -> None:
    path.write_bytes(pickle.dumps(cases))
    print(path, len(cases), flush=True)


def case_of(runner: QuestionRunner, question: Question, of_set: str, store: str) -> Case:
    """Ask one question, and keep what the search knows of the candidates before any weight is applied."""
    memory = runner.measured.memory
    filters = make_filters(memory.store, "main", **runner._scope(question.group))
    query = Query(question.text, filters, fusion=JUDGED)
    retrieved = retrieve(memory._search._retrieval(query), query, parse(query.text))
    found = judgement.evidence(retrieved.candidates)
    hits = {hit.id: hit for hit in (*retrieved.candidates.keyword, *retrieved.candidates.vector)}
    ids = kept(found, {id_: kind_group(hit.kind) for id_, hit in hits.items()})
    records: dict[str, Record] = {}
    for start in range(0, len(ids), 400):
        records |= {one.id: one for one in memory.store.retrieval.records(ids[start : start + 400])}
    ids = [id_ for id_ in ids if id_ in records]
    turns = [id_ for id_ in ids if records[id_].kind == "turn"][:50]
    beside: tuple[tuple[str, str], ...] = ()
    if turns:
        context = memory.store.retrieval.ranking_context(turns, whole=0, filters=filters, adjacent_to=turns)
        beside = context.adjacent_turns
    names = named(question.text, ids, records, retrieved.candidates.matched_shares)
    places = {id_: place for place, id_ in enumerate(ids)}
    documents = [runner.populated.id_of(records[id_]) for id_ in ids]
    values = [[*found[id_][1], *names.get(id_, (0.0,) * len(NAMES)), 0.0] for id_ in ids]
    return Case(
        of_set,
        store,
        question.text,
        question.labels.get("category", ""),
        len(question.gains),
        np.array(values).reshape(len(ids), len(COLUMNS)),
        np.array([GROUPS.index(kind_group(records[id_].kind)) for id_ in ids], np.int8),
        np.array([question.gains.get(document, 0) > 0 for document in documents], bool),
        documents,
        np.array([is_of(runner, records[id_]) for id_ in ids], bool),
        [(places[a], places[b]) for a, b in beside if a in places and b in places],
    )


def is_of(runner: QuestionRunner, record: Record) -> bool:
    """Whether a record is of the runner's own set."""
    return (f"{record.collection}/{record.path}" if record.path else record.id) in runner.populated.ids


def kept(found: Mapping[str, tuple[Sequence[float], Sequence[float]]], groups: Mapping[str, KindGroup]) -> list[str]:
    """The candidates that can be first: the others only make the fit slow."""

    def best(name: str, ids: Iterable[str]) -> list[str]:
        place = TERMS.index(name)
        return sorted(ids, key=lambda id_: -found[id_][1][place])[:KEPT]

    chosen = [*best("keyword", found), *best("surprise", found)]
    for group in GROUPS:
        chosen += best("cosine", (id_ for id_ in found if groups[id_] == group))
    return list(dict.fromkeys(chosen))


def named(
    text: str, ids: Sequence[str], records: Mapping[str, Record], shares: Mapping[str, float]
) -> dict[str, tuple[float, ...]]:
    """The strength of each name that the query is, as `judgement.add_names` weighs it."""
    query = QueryName.of(text)
    if query is None:
        return {}
    found = {id_: name_of(query, records[id_]) for id_ in ids if holds_all(shares.get(id_, 0.0))}
    strengths = judgement.name_strengths(found, {id_: records[id_].document or id_ for id_ in found})
    return {
        id_: tuple(strengths[id_] if name == one else 0.0 for one in NAMES)
        for id_, (name, _) in found.items()
        if name in NAMES
    }


def without_own_set(case: Case) -> Case:
    """The same question where its own set's documents are not in the store."""
    others = ~case.own
    places = np.cumsum(others) - 1
    return Case(
        case.set,
        f"{case.store}{WITHOUT}",
        case.question,
        case.category,
        0,
        case.rows[others],
        case.groups[others],
        np.zeros(int(others.sum()), bool),
        [document for document, is_kept in zip(case.documents, others, strict=True) if is_kept],
        others[others],
        [(int(places[a]), int(places[b])) for a, b in case.adjacent if others[a] and others[b]],
    )


# ── fitting ─────────────────────────────────────────────────────────────────────────────────────────────────────


class Table:
    """All cases as one matrix: the columns of `COLUMNS`, then those of `OF_GROUP` once more for each group."""

    def __init__(self, cases: Sequence[Case], unused: Sequence[str]) -> None:
        self.cases = cases
        shared = np.concatenate([case.rows for case in cases])
        self.group = np.concatenate([case.groups for case in cases])
        shared[:, [COLUMNS.index(name) for name in unused]] = 0
        columns = [COLUMNS.index(name) for name in OF_GROUP]
        own = [np.where((self.group == place)[:, None], shared[:, columns], 0) for place in range(len(GROUPS))]
        self.rows = np.concatenate([shared, *own], axis=1)
        self.start = np.cumsum([0, *(len(case.rows) for case in cases)])
        self.case = np.repeat(np.arange(len(cases)), np.diff(self.start))
        self.right = np.concatenate([case.right for case in cases])
        self.adjacent = [
            (int(self.start[place]) + a, int(self.start[place]) + b)
            for place, case in enumerate(cases)
            for a, b in case.adjacent
        ]
        counts = Counter((family(case.set), case.store, case.foreign) for case in cases)
        foreign_of = Counter(store for _, store, foreign in counts if foreign)
        self.weight = np.array(
            [
                1 / counts[family(case.set), case.store, case.foreign] / (foreign_of[case.store] if case.foreign else 1)
                for case in cases
            ]
        )
        self.is_foreign = np.array([case.foreign for case in cases])
        self.importance = np.ones(len(cases))  # of being confident or not, beside the order

    def with_neighbours(self, weights: Numbers, floor: float) -> None:
        """Fill the last shared column: the chance of the best turn beside each, by these weights without it."""
        place = COLUMNS.index("neighbour")
        self.rows[:, place] = 0
        chance = 1 / (1 + np.exp(-(self.rows @ weights - floor)))
        for a, b in self.adjacent:
            self.rows[b, place] = max(self.rows[b, place], chance[a])


def fitted(cases: Sequence[Case], unused: Sequence[str]) -> tuple[Table, Numbers, float]:
    """The weights, and the log-odds that become zero: `FOREIGN_SHARE` of the mixtures' foreign questions are above."""
    table = Table(cases, unused)
    weights = minimized(table)
    floor = floor_of(table, weights)
    if table.adjacent:
        table.with_neighbours(weights, floor)
        weights = minimized(table)
        floor = floor_of(table, weights)
    return table, weights, floor


def minimized(table: Table, near: Numbers | None = None, free: Sequence[int] = ()) -> Numbers:
    """The weights with the least loss; those in `free` if given, the others as in `near`."""
    from scipy.optimize import minimize  # type: ignore[import-untyped]  # only fitting needs it

    shared, extra = len(COLUMNS), len(OF_GROUP) * len(GROUPS)
    stiff = np.array([0.02] * shared + [0.3] * extra)
    stiff[COLUMNS.index("kind")] = 1e-4
    bounds: list[tuple[float | None, float | None]]
    bounds = [(0.0 if name in HELPS else None, None) for name in COLUMNS]
    bounds += [(None, None)] * extra
    bounds[COLUMNS.index("keyword")] = (MIN_KEYWORD, None)
    for place in range(len(GROUPS)):  # also of one group, it may only help more
        bounds[shared + place * len(OF_GROUP) + OF_GROUP.index("keyword")] = (0, None)
    for name, least in MIN_NAMES.items():
        bounds[COLUMNS.index(name)] = (least, None)
    answers = ~table.is_foreign & np.logical_or.reduceat(table.right, table.start[:-1])
    rights = np.flatnonzero(table.right)
    per_case = np.add.reduceat(table.right.astype(float), table.start[:-1])
    pair_weight = table.weight[table.case[rights]] / per_case[table.case[rights]]

    def smooth_most(scores: Numbers, softness: float) -> tuple[Numbers, Numbers]:
        """A smooth maximum of each case, and the share of each row in it."""
        scaled = scores / softness
        most = np.maximum.reduceat(scaled, table.start[:-1])
        raised = np.exp(scaled - most[table.case])
        sums = np.add.reduceat(raised, table.start[:-1])
        return (most + np.log(sums)) * softness, raised / sums[table.case]

    def loss(weights: Numbers) -> tuple[float, Numbers]:
        scores = table.rows @ weights
        slope = np.zeros_like(scores)
        # A right record before all wrong ones.
        others, share = smooth_most(np.where(table.right, -1e6, scores), 1.0)
        lead = scores[rights] - others[table.case[rights]]
        value = float(np.sum(pair_weight * np.logaddexp(0, -lead)))
        pull = -pair_weight / (1 + np.exp(np.clip(lead, -50, 50)))
        slope[rights] += pull
        slope -= np.bincount(table.case[rights], weights=pull, minlength=len(table.cases))[table.case] * share
        # The best right record above zero, the best record of a foreign question below.
        for chosen, rows, sign in ((answers, np.where(table.right, scores, -1e6), -1), (table.is_foreign, scores, 1)):
            most, share = smooth_most(rows, 0.3)
            most = np.where(chosen, most, 0.0)
            weight = np.where(chosen, table.weight * table.importance, 0.0)
            value += float(np.sum(weight * np.logaddexp(0, sign * most)))
            slope += (sign * weight / (1 + np.exp(np.clip(-sign * most, -50, 50))))[table.case] * share
        change = weights - near if near is not None else weights
        return value + float(np.sum(stiff * change**2)), table.rows.T @ slope + 2 * stiff * change

    start = np.array([max(0.0, low or 0.0) for low, _ in bounds])
    if near is not None:
        start = near
        bounds = [(None, None) if place in free else (value, value) for place, value in enumerate(near)]
        stiff = np.full(len(near), CALIBRATION_STIFFNESS)
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 400}).x)


def calibrated(cases: Sequence[Case]) -> tuple[Table, Numbers]:
    """The present weights with others for what does not depend on the candidate: kind, words and question.

    Those of turns stay: free, they make one foreign question in three confident in a store of long turns.
    """
    table = Table(cases, ())
    near = present_weights()
    table.with_neighbours(near, 0.0)
    table.importance = np.array([importance(case) for case in cases])
    free = [len(COLUMNS) + place * len(OF_GROUP) + OF_GROUP.index(name) for place in (0, 1) for name in CALIBRATED]
    return table, minimized(table, near, free)


def importance(case: Case) -> float:
    """A confident foreign hit in a mixed store is the worst, a weak right one of a whole question the least bad."""
    if case.foreign:
        return 3.0 if case.store.endswith(WITHOUT) else 1.0
    return 1.0 if case.category in (SHORT_FORM, "keywords") else 0.6


def floor_of(table: Table, weights: Numbers) -> float:
    """The least log-odds at which `FOREIGN_SHARE` of the foreign questions of mixtures, set by set, are confident."""
    best = bests(table, weights)
    tops = defaultdict(list)
    for case, top in zip(table.cases, best, strict=True):
        if case.foreign and case.store.endswith(WITHOUT):
            tops[case.store, case.set].append(top)
    if not tops:
        return 0.0
    floors = np.linspace(-3, 5, 161)
    shares = [mean([mean([float(top >= floor) for top in own]) for own in tops.values()]) for floor in floors]
    return float(next((floor for floor, share in zip(floors, shares, strict=True) if share <= FOREIGN_SHARE), 5.0))


def bests(table: Table, weights: Numbers) -> Numbers:
    return np.asarray(np.maximum.reduceat(table.rows @ weights, table.start[:-1]))


def family(name: str) -> str:
    """The set, however it is stored and whichever group of it is asked."""
    return name.partition("@")[0].partition(":")[0]


# ── reports ─────────────────────────────────────────────────────────────────────────────────────────────────────


def report(table: Table, weights: Numbers, floor: float, only: str = "") -> None:
    """Per set and store: first, recall@5, nDCG@10, without a confident hit; of foreign questions, confident ones."""
    scores = table.rows @ weights
    rows = defaultdict(list)
    for place, case in enumerate(table.cases):
        own = scores[table.start[place] : table.start[place + 1]]
        top = float(own.max(initial=-9.0))
        if only and family(case.set) != only:
            continue
        if case.foreign:
            rows[f"foreign in {case.store}"].append([float(top >= floor)])
            continue
        order = np.argsort(-own, kind="stable")
        right: dict[str, bool] = {}
        for one in order:
            right.setdefault(case.documents[one], bool(case.right[one]))
        found = list(right.values())
        gains = sum(one / np.log2(rank + 2) for rank, one in enumerate(found[:10]))
        ideal = sum(1 / np.log2(rank + 2) for rank in range(min(case.wanted, 10)))
        label = f"{case.set} in {case.store} {case.category if case.category in (*DERIVED, SHORT_FORM) else ''}".strip()
        rows[label].append([float(found[0]), sum(found[:5]) / case.wanted, gains / ideal, float(top < floor)])
    for label, values in sorted(rows.items()):
        print(f"{label:60} {len(values):4}", "  ".join(f"{value:.3f}" for value in np.mean(np.array(values), axis=0)))


def print_table(table: Table, weights: Numbers, floor: float, name: str) -> None:
    """The lines of judgement_weights.py."""
    by_group = {}
    for place, group in enumerate(GROUPS):
        own = dict(zip(COLUMNS, weights[: len(COLUMNS)], strict=True))
        start = len(COLUMNS) + place * len(OF_GROUP)
        for column, change in zip(OF_GROUP, weights[start : start + len(OF_GROUP)], strict=True):
            own[column] += change
        own["kind"] -= floor
        own["strict"] = 1.0
        by_group[group] = own
        print(f'{name} "{group}": ({", ".join(f"{own[term]:.3g}" for term in TERMS)}),')
    named_weights = ", ".join(f'"{one}": {by_group["file"][one]:.3g}' for one in NAMES)
    print(f"{name} NAMED = {{{named_weights}}}  NEIGHBOUR = {by_group['file']['neighbour']:.3g}")
    print(f"{name} MIN_LOG_ODDS, MIN_COSINE = {silent_below(table, weights, floor)}")


def silent_below(table: Table, weights: Numbers, floor: float) -> tuple[float, float]:
    """The log-odds and the cosine below which nothing is relevant: most foreign questions are, and few others."""
    best = bests(table, weights) - floor
    place = COLUMNS.index("cosine")
    nearest = np.maximum.reduceat(table.rows[:, place], table.start[:-1]) / 10 + judgement.USUAL_COSINE

    def share(foreign: bool, odds: float, cosine: float) -> float:
        below: dict[str, list[float]] = defaultdict(list)
        for case, top, near in zip(table.cases, best, nearest, strict=True):
            if case.foreign == foreign:
                below[case.store if foreign else family(case.set)].append(float(top < odds and near < cosine))
        return mean([mean(found) for found in below.values()])

    limits = [(odds, cosine) for odds in np.arange(-4, -1, 0.25) for cosine in (*np.arange(0.1, 0.5, 0.05), 9.0)]
    allowed = [one for one in limits if share(False, *one) <= SILENT_SHARE]
    return max(allowed, key=lambda one: share(True, *one), default=(-9.0, 0.0))


def fit(folder: Path) -> None:
    cases = list(read(folder))
    for name, unused, chosen in (
        ("WITH_VECTORS", UNUSED, cases),
        ("BY_WORDS", BY_WORDS_UNUSED, [by_words(case) for case in cases]),
    ):
        table, weights, floor = fitted([case for case in chosen if len(case.rows)], unused)
        report(table, weights, floor)
        print_table(table, weights, floor, name)


def by_words(case: Case) -> Case:
    """The case as a search without vectors sees it: its keyword candidates alone."""
    found = case.rows[:, TERMS.index("keyword")] > 0
    places = np.cumsum(found) - 1
    return replace(
        case,
        rows=case.rows[found],
        groups=case.groups[found],
        right=case.right[found],
        documents=[one for one, is_found in zip(case.documents, found, strict=True) if is_found],
        own=case.own[found],
        adjacent=[(int(places[a]), int(places[b])) for a, b in case.adjacent if found[a] and found[b]],
    )


def shipped(folder: Path) -> None:
    """Report what the weights of `judgement_weights` give."""
    table, weights = Table([case for case in read(folder) if len(case.rows)], ()), present_weights()
    table.with_neighbours(weights, 0.0)
    report(table, weights, 0.0)


def present_weights() -> Numbers:
    by_group = [
        dict(zip(COLUMNS, (*WITH_VECTORS[group], *(NAMED[name] for name in NAMES), NEIGHBOUR), strict=True))
        for group in GROUPS
    ]
    shared = [0.0 if name in OF_GROUP else by_group[0][name] for name in COLUMNS]
    return np.array([*shared, *(own[name] for own in by_group for name in OF_GROUP)])


def calibrate(folder: Path) -> None:
    table, weights = calibrated([case for case in read(folder) if len(case.rows)])
    report(table, weights, 0.0)
    print_table(table, weights, 0.0, "WITH_VECTORS")


def left_out_calibrated(folder: Path) -> None:
    cases = [case for case in read(folder) if len(case.rows)]
    for name in sorted({family(case.set) for case in cases}):
        _, weights = calibrated(without(name, cases))
        own = Table([case for case in cases if family(case.set) == name], ())
        own.with_neighbours(weights, 0.0)
        print(f"── {name}, calibrated by the other sets", flush=True)
        report(own, weights, 0.0)


def without(name: str, cases: Sequence[Case]) -> list[Case]:
    """The cases that have neither the questions nor the texts of a set."""
    return [case for case in cases if name not in (family(case.set), family(case.store.replace("-memory", "")))]


def left_out(folder: Path) -> None:
    cases = [case for case in read(folder) if len(case.rows)]
    for name in sorted({family(case.set) for case in cases}):
        _, weights, floor = fitted(without(name, cases), UNUSED)
        own = Table([case for case in cases if family(case.set) == name], UNUSED)
        own.with_neighbours(np.where(np.arange(len(weights)) == COLUMNS.index("neighbour"), 0, weights), floor)
        print(f"── {name}, judged by the other sets (floor {floor:.2f})", flush=True)
        report(own, weights, floor)


def read(folder: Path) -> Iterator[Case]:
    for path in sorted(folder.glob("*.pickle")):
        yield from pickle.loads(path.read_bytes())


STEPS = {
    "fit": fit,
    "calibrate": calibrate,
    "shipped": shipped,
    "left-out": left_out,
    "left-out-calibrated": left_out_calibrated,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("collect", *STEPS))
    parser.add_argument("folder", type=Path)
    parser.add_argument("sets", nargs="*", type=Path, metavar="SET")
    parser.add_argument("--mixed", default="", metavar="NAME", help="all sets in one store, kept under this name")
    options = parser.parse_intermixed_args()
    if options.step == "collect":
        collect(options.folder, options.sets, options.mixed)
    else:
        STEPS[options.step](options.folder)


if __name__ == "__main__":
    main()
