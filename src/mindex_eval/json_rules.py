"""How the JSON of the classes of `results` deviates from the rule of `mindex.present.to_json`."""

from collections.abc import Mapping
from typing import Any

from mindex.evaluation_parts import WHOLE, Rule

SCORE_DIGITS = 6  # `mindex eval --compare` reads them again


def _digits(*names: str) -> dict[str, int]:
    return dict.fromkeys(names, SCORE_DIGITS)


def _categories(one: Any) -> object:
    """The questions of a set by one of their fields."""
    return {"field": one.label, "values": {part.name: part for part in one.slices}} if one.slices else None


# fmt: off
RULES: Mapping[str, Rule] = {
    "Assessment": Rule(
        shown=("name", "documents", "questions", "runs", "model", "settings", "version", "left_out", "categories",
               "silence", "excerpts", "worst", "compared", "notes", "per_query", "as_shipped_per_query"),
        rename={"name": "set", "questions": "queries"}, always=("version",), digits={"per_query": SCORE_DIGITS},
        views={"categories": _categories,
               "per_query": lambda one: {variant: run.per_question for variant, run in one.runs.items()},
               "as_shipped_per_query": lambda one: {
                   variant: run.shipped.pages for variant, run in one.runs.items() if run.shipped
               } or None},
    ),
    "SearchRun": Rule(
        shown=("metrics", "tokens", "p50_ms", "p95_ms", "timed", "shipped", "without_floor"), flat=("metrics",),
        rename={"shipped": "as_shipped"}, always=("p50_ms", "p95_ms", "timed"),
        digits={"metrics": SCORE_DIGITS, "tokens": WHOLE, "p50_ms": 1, "p95_ms": 1},
    ),
    "ShippedPage": Rule(flat=("scores",), digits={"scores": SCORE_DIGITS}),
    "ShippedRun": Rule(shown=("metrics",), flat=("metrics",), digits={"metrics": SCORE_DIGITS}),
    "Mixture": Rule(
        shown=("variant", "floor", "model", "settings", "documents", "sets", "mean", "notes", "version"),
        rename={"variant": "mode"}, always=("version",),
    ),
    "MixedSet": Rule(
        shown=("name", "documents", "questions", "alone", "together", "stayed", "categories", "per_question"),
        rename={"name": "set", "questions": "queries", "per_question": "per_query"}, digits={"stayed": SCORE_DIGITS},
        views={"categories": _categories},
    ),
    "LeaveOneOut": Rule(
        shown=("variant", "floor", "model", "settings", "sets", "mean", "lowest", "notes", "version"),
        rename={"variant": "mode"}, always=("version",), digits={"mean": SCORE_DIGITS},
    ),
    "LeftOutSet": Rule(
        rename={"name": "set", "questions": "queries"},
        digits=_digits("no_confident", "no_answer") | {"tokens": 1},
    ),
    "Slice": Rule(
        shown=("questions", "runs", "shipped"), rename={"questions": "queries", "shipped": "as_shipped"},
        digits=_digits("runs", "shipped"),
    ),
    "ExcerptRecall": Rule(rename={"questions": "queries"}),
    "ExcerptRow": Rule(
        rename={"shares": "budgets"},
        digits=_digits("shares", "default") | {"tokens": 1, "json_ratio": 3},
    ),
    "Failure": Rule(
        rename={"question": "query"}, digits={"scores": SCORE_DIGITS},
        views={"category": lambda failure: failure.category or None},
    ),
    "Place": Rule(
        shown=("id", "rank", "title", "explain"), always=("rank",),
        views={"title": lambda place: place.hit.record.title if place.hit else None,
               "explain": lambda place: place.hit},
    ),
    "Comparison": Rule(
        shown=("variant", "metric", "questions", "before", "after", "difference", "interval", "p", "verdict"),
        rename={"variant": "mode", "questions": "queries"},
        digits=_digits("before", "after", "difference", "interval") | {"p": 4},
        views={"interval": lambda one: (one.low, one.high)},
    ),
    "Sweep": Rule(
        shown=("key", "metric", "variant", "baseline", "values", "left_out"), rename={"variant": "mode"},
        digits={"values": SCORE_DIGITS},
        views={"values": lambda sweep: [
            {"value": value, "sets": scores, "mean": sweep.means[value]} for value, scores in sweep.scores.items()
        ]},
    ),
    "HeldOutSet": Rule(rename={"name": "set"}, digits=_digits("score", "best_score")),
    "ForeignTopics": Rule(
        shown=("floor", "model", "settings", "languages", "pairs", "mean", "lowest", "floors", "notes"),
        digits={"mean": SCORE_DIGITS},
    ),
    "ForeignPair": Rule(digits=_digits("auroc", "silenced", "refused")),
    "FloorResult": Rule(digits=_digits("silenced", "refused", "lowest_refused")),
}
# fmt: on
