"""Print how much of the excerpts of a set answers contain at many token budgets and limits, and the largest falls.

More budget, or more hits, must not make an answer contain less. Each row is a limit, each column a budget. The last
lines name the largest fall from one budget to the next, and from one limit to the next. The first two rows, which the
chart shows, are the view without a limit and the baseline of `mindex eval`.

    python bench/budget_curve.py SET --sample 100 --svg docs/budgets.svg
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

from budget_plot import plot
from mindex.present.answer_view import VIEWS
from mindex_eval.assessment import effective_settings
from mindex_eval.cached_models import open_cache
from mindex_eval.excerpts import BASELINE, AnswerShape, measure_excerpts
from mindex_eval.named_sets import read_named_set
from mindex_eval.question_sets import sampled
from mindex_eval.run_questions import question_runner

VARIANT = "hybrid"
DEFAULT = "mindex"
LIMITS = (3, 5, 8, 12)
BUDGETS = tuple(range(100, 2_001, 50))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", type=Path, metavar="SET", help="a set with excerpts, as `mindex eval` names it")
    parser.add_argument("--view", choices=VIEWS, default="passages", help="the view of `search` (%(default)s)")
    parser.add_argument("--sample", type=int, metavar="N", help="only N questions, the same ones each time")
    parser.add_argument("--budgets", type=numbers, default=BUDGETS, metavar="N,N", help="100 to 2,000 in steps of 50")
    parser.add_argument("--limits", type=numbers, default=LIMITS, metavar="N,N", help="3, 5, 8 and 12")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="also draw the first two rows")
    options = parser.parse_args()
    found = read_named_set(options.set)
    questions = sampled(found.questions, options.sample)
    limits = {f"limit {limit}": AnswerShape(options.view, limit) for limit in options.limits}
    shapes = {DEFAULT: AnswerShape(options.view, None), **limits}
    with closing(open_cache()) as cache, question_runner(found, effective_settings({}, (VARIANT,)), cache) as runner:
        rows = measure_excerpts(runner, found, questions, VARIANT, shapes, options.budgets).rows
    drawn = {name: list(rows[name].shares.values()) for name in (DEFAULT, BASELINE)}
    if options.svg is not None:
        options.svg.write_text(plot(options.budgets, drawn), encoding="utf-8")
    curves = {name: rows[name].shares for name in limits}
    print("budget", *options.budgets, sep="\t")
    for name, curve in {DEFAULT: rows[DEFAULT].shares, BASELINE: rows[BASELINE].shares, **curves}.items():
        print(name, *(f"{share:.3f}" for share in curve.values()), sep="\t")
    print(f"largest fall from one budget to the next: {largest_fall({DEFAULT: rows[DEFAULT].shares, **curves})}")
    by_limit = {f"{budget} tokens": {name: curves[name][budget] for name in curves} for budget in options.budgets}
    print(f"largest fall from one limit to the next: {largest_fall(by_limit)}")


def numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def largest_fall(curves: Mapping[str, Mapping[Any, float]]) -> str:
    """The largest fall between two neighbours of a curve, and where it is."""
    falls = [
        (before - after, f"{name}, {step} → {next_}")
        for name, curve in curves.items()
        for (step, before), (next_, after) in pairwise(curve.items())
    ]
    fall, place = max(falls, default=(0.0, ""))
    return f"{fall:.4f} ({place})" if fall > 0 else "none"


if __name__ == "__main__":
    main()
