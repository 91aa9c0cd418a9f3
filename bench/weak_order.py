"""Print what a page is worth in two orders, as docs/quality.md shows it: by score alone, and confident hits first.

Every question of each set is asked as users do, with the floor, alone and in one memory with all sets. The hits of one
answer are put into both orders, so that nothing else can differ. The columns are nDCG@10, the share of questions whose
first hit is right, and the share with a right one among the first five: by score → confident first.

    python bench/weak_order.py SET… --sample 100
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from mindex.evaluate.assessment import effective_settings
from mindex.evaluate.cached_models import open_cache
from mindex.evaluate.metrics import hit as hit_among
from mindex.evaluate.metrics import mean, ndcg
from mindex.evaluate.named_sets import read_named_set
from mindex.evaluate.question_sets import Question, QuestionSet, answerable, sampled
from mindex.evaluate.run_questions import QuestionRunner, question_runner, question_runners
from mindex.model import Hit
from mindex.search.query import MAX_LIMIT

VARIANT = "hybrid"


def by_score(hit: Hit) -> tuple[float | str, ...]:
    return -hit.score, -hit.relevance, hit.record.id


def confident_first(hit: Hit) -> tuple[float | str, ...]:
    return hit.weak, *by_score(hit)


ORDERS: Sequence[Callable[[Hit], tuple[float | str, ...]]] = (by_score, confident_first)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", type=Path, metavar="SET", help="as `mindex eval` names them")
    parser.add_argument("--sample", type=int, metavar="N", help="only N questions a set, always the same")
    options = parser.parse_args()
    sets = [read_named_set(name) for name in options.sets]
    settings = effective_settings({}, (VARIANT,))
    with closing(open_cache()) as cache:
        alone = []
        for found in sets:
            with question_runner(found, settings, cache, timed=0) as runner:
                alone.append(measured(runner, questions_of(found, options.sample)))
                print(row(found.name, alone[-1]), flush=True)
        print(row("mean, alone", means(alone)), flush=True)
        mixed = [read_named_set(name, one_group=True) for name in options.sets]
        together = []
        with question_runners(mixed, settings, cache) as runners:
            for found, runner in zip(mixed, runners, strict=True):
                together.append(measured(runner, questions_of(found, options.sample, grouped=False)))
                print(row(f"{found.name}, together", together[-1]), flush=True)
        print(row("mean, together", means(together)))


def questions_of(found: QuestionSet, sample: int | None, *, grouped: bool = True) -> list[Question]:
    questions = answerable(found, sampled(found.questions, sample))
    return [one if grouped else replace(one, group="") for one in questions]


def measured(runner: QuestionRunner, questions: Sequence[Question]) -> list[list[float]]:
    """For each order: the means of nDCG@10, first and in five; then the share of pages that differ."""
    scores: list[list[list[float]]] = [[] for _ in ORDERS]
    differing = []
    for question in questions:
        hits = runner.ask_as_shipped(question, VARIANT, limit=MAX_LIMIT).answer.hits
        pages = []
        for order, kept in zip(ORDERS, scores, strict=True):
            ranked = list(dict.fromkeys(runner.populated.id_of(hit.record) for hit in sorted(hits, key=order)))
            pages.append(ranked[:5])
            gains = question.gains
            kept.append([ndcg(ranked, gains), hit_among(ranked, gains, 1), hit_among(ranked, gains, 5)])
        differing.append(float(pages[0] != pages[1]))
    return [*([mean(column) for column in zip(*kept, strict=True)] for kept in scores), [mean(differing)]]


def means(tables: Sequence[list[list[float]]]) -> list[list[float]]:
    return [[mean(values) for values in zip(*rows, strict=True)] for rows in zip(*tables, strict=True)]


def row(name: str, table: list[list[float]]) -> str:
    before, after, (differing,) = table
    cells = (f"{one:.3f} → {other:.3f}" for one, other in zip(before, after, strict=True))
    return f"| {name} | {' | '.join(cells)} | {100 * differing:.0f} % |"


if __name__ == "__main__":
    main()
