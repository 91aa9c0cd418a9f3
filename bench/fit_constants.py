"""Fit the constants of the judgement that depend on the embedding model, leave-one-set-out.

    python bench/fit_constants.py collect FOLDER SET…   # the evidence of each set's questions, kept in FOLDER
    python bench/fit_constants.py fit FOLDER            # the logistic constants of `search/relevance.py`
    python bench/fit_constants.py try FOLDER [NAME=VALUE…]   # what constants make of the pages

`collect` puts a sample of each set's questions to the set's own store, some of every other set's questions to it, too,
and all of them to one store of several sets. It keeps what the search knows of each candidate, so that `fit` and `try`
need neither a model nor a store. `fit` prints constants from all sets, and what each set would get of constants that
the others chose. `try` gives constants of `search/relevance.py` and `search/fuse.py` other values for one run.
"""

from __future__ import annotations

import argparse
import pickle
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from mindex.search.candidate_scores import CandidateScores
from mindex.search.turn_neighbours import lift_neighbours, lifting_turns

from mindex.evaluate.assessment import effective_settings
from mindex.evaluate.cached_models import open_cache
from mindex.evaluate.language_detection import language_of
from mindex.evaluate.metrics import hit, mean, ndcg
from mindex.evaluate.named_sets import read_named_set
from mindex.evaluate.question_sets import Question, QuestionSet, answerable, sampled
from mindex.evaluate.run_questions import QuestionRunner, question_runner, question_runners
from mindex.providers.packaged_models import BUILT_IN
from mindex.search import fuse, pipeline, relevance, retrieval
from mindex.search.fuse import Candidates, Fused
from mindex.store.rules.kind_groups import KindGroup

SHOWN = 10
FLUENT = 0.9  # texts that are read worse tell nothing about the cosine
FOREIGN_WEIGHT = 2.0  # a wrong answer that is called confident, against a right one that is called weak
OWN, FOREIGN = 150, 25  # questions of a set, and of each other set that are put to its texts
MIXED = ("facts_dev", "prefeval_dev:memory", "locomo_dev", "zoomcamp_faq", "anthropic_docs")


@dataclass(frozen=True, slots=True)
class Case:
    """One question to one store: what was found, and which documents answer it (none, if it is foreign)."""

    set: str
    store: str
    question: str
    gains: Mapping[str, int]
    candidates: Candidates


@dataclass(slots=True)
class Evidence:
    """The cases of one store."""

    cases: list[Case] = field(default_factory=list)
    documents: dict[tuple[str, str], str] = field(default_factory=dict)  # set and record → document
    beside: dict[str, set[str]] = field(default_factory=dict)  # turn → the turns beside it


# ── collecting ──────────────────────────────────────────────────────────────────────────────────────────────────


def collect(folder: Path, names: Sequence[Path]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    sets = [read_named_set(name) for name in names]
    languages = {one.name: language_of(question.text for question in one.questions) for one in sets}
    settings = effective_settings({}, ("hybrid",))
    with closing(open_cache()) as cache, recording() as (seen, adjacent):
        for found in sets:
            path = folder / f"{found.name.replace(':', '-')}.pickle"
            if path.exists():
                continue
            others = [
                one for one in sets if one.folder != found.folder and languages[one.name] == languages[found.name]
            ]
            evidence = Evidence()
            with question_runner(found, settings, cache, timed=0) as runner:
                ask(runner, evidence, found.name, found.name, asked(found, OWN), seen, adjacent)
                groups = sorted({question.group for question in found.questions})
                for other in others:
                    foreign = [
                        replace(one, gains={}, group=groups[number % len(groups)])
                        for number, one in enumerate(asked(other, FOREIGN))
                    ]
                    ask(runner, evidence, other.name, found.name, foreign, seen, adjacent)
            path.write_bytes(pickle.dumps(evidence))
            print(path, len(evidence.cases), flush=True)
        path = folder / "together.pickle"
        mixed = [
            read_named_set(name, one_group=True)
            for name in names
            if any(name.name == one.partition(":")[0] for one in MIXED)
        ]
        mixed = [read_named_set(Path(f"{one.folder}:memory")) if one.name == "prefeval_dev" else one for one in mixed]
        if path.exists() or len(mixed) < len(MIXED):
            return
        evidence = Evidence()
        with question_runners(mixed, settings, cache) as runners:
            for found, runner in zip(mixed, runners, strict=True):
                own = [replace(one, group="") for one in asked(found, 100)]
                ask(runner, evidence, found.name, "together", own, seen, adjacent)
            folders = {one.folder for one in mixed}
            for other in sets:
                if other.folder not in folders and languages[other.name] == "en":
                    foreign = [replace(one, gains={}, group="") for one in asked(other, 100)]
                    ask(runners[0], evidence, other.name, "together", foreign, seen, adjacent)
        path.write_bytes(pickle.dumps(evidence))
        print(path, len(evidence.cases), flush=True)


def asked(found: QuestionSet, count: int) -> list[Question]:
    return list(sampled(answerable(found, found.questions), count))


@contextmanager
def recording() -> Iterator[tuple[list[Candidates], list[tuple[str, str]]]]:
    """What every search of the block judges, and the turns that lie beside each other."""
    seen: list[Candidates] = []
    adjacent: list[tuple[str, str]] = []

    class Recording(CandidateScores):
        def __init__(self, candidates: Candidates, fused: Fused, *, compares_kinds: bool) -> None:
            seen.append(candidates)
            super().__init__(candidates, fused, compares_kinds=compares_kinds)

    module = vars(pipeline)

    def lift_and_record(pairs: Sequence[tuple[str, str]], *others: Any) -> None:
        adjacent.extend(pairs)
        lift_neighbours(pairs, *others)

    module.update(CandidateScores=Recording, lift_neighbours=lift_and_record)
    try:
        yield seen, adjacent
    finally:
        module.update(CandidateScores=CandidateScores, lift_neighbours=lift_neighbours)


def ask(
    runner: QuestionRunner,
    evidence: Evidence,
    of_set: str,
    store: str,
    questions: Sequence[Question],
    seen: list[Candidates],
    adjacent: list[tuple[str, str]],
) -> None:
    for question in questions:
        seen.clear()
        runner.ask_as_shipped(question, "hybrid")
        candidates = replace(
            seen[0],
            keyword=[replace(hit, signals=None) for hit in seen[0].keyword],
            vector=[replace(hit, signals=None) for hit in seen[0].vector],
            signals={},
        )
        # Documents of other sets in one store have ids of their own.
        ids = [hit.id for hit in (*candidates.keyword, *candidates.vector)]
        missing = [id_ for id_ in dict.fromkeys(ids) if (of_set, id_) not in evidence.documents]
        for record in runner.measured.memory.store.retrieval.records(missing):
            evidence.documents[(of_set, record.id)] = runner.populated.id_of(record)
        evidence.cases.append(Case(of_set, store, question.text, question.gains, candidates))
    for turn, next_to_it in adjacent:
        evidence.beside.setdefault(turn, set()).add(next_to_it)
        evidence.beside.setdefault(next_to_it, set()).add(turn)
    adjacent.clear()


# ── trying ──────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Constants:
    """The constants that are no part of a module, as the product has them."""

    blend: float = 0.4
    neighbours: float = 0.1
    floor: float = 0.3
    background: tuple[float, float] = (BUILT_IN.background_mean, BUILT_IN.background_std)


@dataclass(frozen=True, slots=True)
class Page:
    """The candidates of one case in order, and how relevant each is."""

    case: Case
    order: list[str]
    scores: CandidateScores
    documents_of: dict[str, str]

    @property
    def documents(self) -> list[str]:
        return list(dict.fromkeys(self.documents_of.values()))

    @property
    def confidence(self) -> float:
        return max((self.scores.relevances[id_] for id_ in self.order[:SHOWN]), default=0.0)


def judged(evidence: Evidence, case: Case, constants: Constants) -> Page:
    """What the product makes of a case."""
    model = replace(BUILT_IN, background_mean=constants.background[0], background_std=constants.background[1])
    own = case.candidates
    if own.has_vector:
        own = replace(
            own,
            cosines={hit.id: retrieval._usual(hit.score, model) for hit in own.vector},
            cosine_zscores={hit.id: fuse.standardised(hit.score, constants.background) for hit in own.vector},
        )
    fused = fuse.fuse("blend", own, constants.blend)
    scores = CandidateScores(own, fused, compares_kinds=not own.strict)
    if scores.turns and not own.strict:
        beside = [(id_, one) for id_ in lifting_turns(fused, scores.turns) for one in evidence.beside.get(id_, ())]
        lift_neighbours(beside, scores.fused, scores.relevances, constants.neighbours)
        scores.settle()
    order = scores.ordered(scores.fused)
    return Page(case, order, scores, {id_: evidence.documents[case.set, id_] for id_ in order[:60]})


def pages_of(folder: Path, constants: Constants) -> dict[str, list[Page]]:
    return {
        store: [judged(evidence, case, constants) for case in evidence.cases]
        for store, evidence in read(folder).items()
    }


@cache
def read(folder: Path) -> dict[str, Evidence]:
    return {path.stem: pickle.loads(path.read_bytes()) for path in sorted(folder.glob("*.pickle"))}


def figures(pages: Mapping[str, list[Page]], floor: float) -> Iterator[tuple[str, list[float]]]:
    """Per store and set of questions: nDCG@10, first, in five, without a confident hit."""
    for store, own in pages.items():
        for name in dict.fromkeys(page.case.set for page in own):
            some = [page for page in own if page.case.set == name]
            answered = [page for page in some if page.case.gains]
            silent = mean([float(page.confidence < floor) for page in some])
            found = [
                [
                    ndcg(page.documents[:10], page.case.gains),
                    hit(page.documents, page.case.gains, 1),
                    hit(page.documents, page.case.gains, 5),
                ]
                for page in answered
            ]
            yield f"{name} → {store}", [*(mean(column) for column in zip(*found, strict=True)), silent]


def given(constants: Constants, values: Sequence[str]) -> None:
    """`blend=.45`, or `relevance._RELEVANT.entry=-5,13,.05,-.2` for a constant of a module."""
    for one in values:
        name, _, text = one.partition("=")
        numbers = tuple(float(part) for part in text.split(","))
        value: Any = numbers[0] if len(numbers) == 1 else numbers
        if "." not in name:
            setattr(constants, name, value)
            continue
        module, constant, *group = name.split(".")
        where = {"relevance": relevance, "fuse": fuse, "retrieval": retrieval}[module]
        if group:
            getattr(where, constant)[group[0]] = relevance._Weights(*numbers)
        else:
            setattr(where, constant, value)


# ── fitting ─────────────────────────────────────────────────────────────────────────────────────────────────────


def logistic(
    rows: np.ndarray, labels: np.ndarray, weights: np.ndarray, fixed: np.ndarray, usual: np.ndarray, spread: np.ndarray
) -> np.ndarray:
    """Newton's method; coefficients are expected at `usual`, give or take `spread`. `fixed` adds to the log-odds."""
    found, stiff = usual.copy(), 1 / spread**2
    for _ in range(50):
        chance = 1 / (1 + np.exp(-np.clip(rows @ found + fixed, -30, 30)))
        gradient = rows.T @ (weights * (labels - chance)) - stiff * (found - usual)
        curve = (rows * (weights * chance * (1 - chance))[:, None]).T @ rows + np.diag(stiff)
        step = np.linalg.solve(curve, gradient)
        found = found + step
        if np.abs(step).max() < 1e-6:
            break
    return found


@dataclass(frozen=True, slots=True)
class Row:
    """One candidate, as a logistic sees it."""

    set: str
    group: KindGroup
    cosine: float
    surprise: float
    words: int
    pages: int
    right: bool


def row_of(page: Page, id_: str, *, right: bool) -> Row:
    own = page.case.candidates
    hits = {hit.id: hit for hit in (*own.keyword, *own.vector)}
    group = page.scores.groups[id_]
    least = min((own.cosines[hit.id] for hit in own.vector if page.scores.groups[hit.id] == group), default=0.0)
    size = hits[id_].collection_size
    return Row(
        page.case.set, group, own.cosines.get(id_, least), own.surprises.get(id_, 0.0), min(own.words, 10), size, right
    )


def page_rows(pages: Mapping[str, list[Page]]) -> list[list[Row]]:
    """Of each page the right hit that stands first; of a foreign question all hits, since any of them could be trusted.

    Pages of texts that the model hardly reads are left out: there the words decide.
    """
    found = []
    for page in (one for own in pages.values() for one in own):
        case = page.case
        if case.candidates.strict or case.candidates.look_up or case.candidates.model_fluency < FLUENT:
            continue
        shown = page.order[:SHOWN]
        if case.gains:
            shown = [id_ for id_ in shown if page.documents_of[id_] in case.gains][:1]
        found.append([row_of(page, id_, right=bool(case.gains)) for id_ in shown])
    return [rows for rows in found if rows]


def fit_relevance(pages: Sequence[list[Row]], group: KindGroup) -> list[float]:
    """Every set counts the same, and foreign questions `FOREIGN_WEIGHT` times as much as one's own.

    Which of a foreign page's hits is the most relevant depends on the constants, so it is asked again with each.
    """
    weights = relevance._RELEVANT[group]
    usual = np.array([weights.constant, weights.cosine, weights.surprise, weights.words])
    spread = np.array([3.0, 6.0, 0.1, 0.1 if group != "file" else 1e-6])
    own = [[row for row in rows if row.group == group] for rows in pages]
    own = [rows for rows in own if rows]
    counts = Counter((rows[0].set, rows[0].right) for rows in own)
    sets = Counter(right for _, right in counts)
    page_weights = np.array(
        [
            100 * (1 if rows[0].right else FOREIGN_WEIGHT) / counts[rows[0].set, rows[0].right] / sets[rows[0].right]
            for rows in own
        ]
    )
    labels = np.array([float(rows[0].right) for rows in own])
    found = usual
    for _ in range(10):
        hardest = [max(rows, key=lambda row: float(features(row) @ found) + among(row)) for rows in own]
        table, fixed = np.array([features(row) for row in hardest]), np.array([among(row) for row in hardest])
        found = (found + logistic(table, labels, page_weights, fixed, usual, spread)) / 2
    return [float(value) for value in found]


def features(row: Row) -> np.ndarray:
    return np.array([1.0, row.cosine, row.surprise, float(row.words)])


def among(row: Row) -> float:
    return relevance._odds_among(row.pages) if row.pages else 0.0


def family(name: str) -> str:
    """The set, however it is told and whichever group of it is asked."""
    return name.partition("@")[0].partition(":")[0]


def fit(folder: Path, constants: Constants) -> None:
    pages = page_rows(pages_of(folder, constants))
    groups: Sequence[KindGroup] = ("file", "entry", "turn")
    for group in groups:
        sets = sorted({family(rows[0].set) for rows in pages if rows[0].right and rows[0].group == group})
        for left_out in ("", *sets):
            rest = [rows for rows in pages if family(rows[0].set) != left_out]
            if any(rows[0].right and rows[0].group == group for rows in rest):
                values = ",".join(f"{value:.3g}" for value in fit_relevance(rest, group))
                print(f"relevance._RELEVANT.{group}={values}", f"without {left_out}" if left_out else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("collect", "fit", "try"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("rest", nargs="*", metavar="SET or NAME=VALUE")
    options = parser.parse_args()
    if options.step == "collect":
        collect(options.folder, [Path(name) for name in options.rest])
        return
    constants = Constants()
    given(constants, options.rest)
    if options.step == "try":
        for name, values in figures(pages_of(options.folder, constants), constants.floor):
            print(f"{name:42}", "  ".join(f"{value:.3f}" for value in values))
        return
    fit(options.folder, constants)


if __name__ == "__main__":
    main()
