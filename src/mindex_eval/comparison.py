"""Compares two runs: a paired significance test on the questions that both have."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mindex.errors import NotFoundError, UsageError
from mindex_eval.json_rules import SCORE_DIGITS
from mindex_eval.results import METRICS, NDCG, Assessment, Comparison

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SEED = 20_240_229
_FLIPS = 10_000
_AT_ONCE = 500  # rows of random numbers in memory at a time
_INTERVAL = (2.5, 97.5)

PerQuestion = Mapping[str, Mapping[str, Mapping[str, float]]]  # way → question → metric → score


def read_earlier(path: Path) -> dict[str, PerQuestion]:
    """The scores by question of an earlier `mindex eval --json`, by set."""
    try:
        read = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise NotFoundError(
            f"there is no file {path}", "create it with `mindex eval SET --json > OTHER.json`"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"cannot read {path}: {error}", "create it with `mindex eval SET --json`") from None
    sets = read.get("sets", [read]) if isinstance(read, dict) else None
    try:
        found = {one["set"]: _checked(one["per_query"]) for one in sets or ()}
    except (KeyError, TypeError, ValueError, AttributeError):
        found = {}
    if not found:
        raise UsageError(f"{path} contains no scores by question", "create it with `mindex eval SET --json`")
    return found


def _checked(per_query: Mapping[str, Mapping[str, Mapping[str, float]]]) -> PerQuestion:
    return {
        str(variant): {
            str(id_): {name: float(scores[name]) for name in METRICS if name in scores}
            for id_, scores in questions.items()
        }
        for variant, questions in per_query.items()
    }


def compared(now: Assessment, earlier: Mapping[str, PerQuestion], metric: str = NDCG) -> Assessment:
    """The assessment with what changed since the earlier run of the same set."""
    before = earlier.get(now.name)
    if before is None:
        return replace(now, notes=(*now.notes, f"the other run does not know the set '{now.name}'"))
    found = tuple(_compare_variants(now, before, metric))
    if not found:
        return replace(now, notes=(*now.notes, "the other run shares no mode and question with this one"))
    return replace(now, compared=found)


def _compare_variants(now: Assessment, before: PerQuestion, metric: str) -> Iterator[Comparison]:
    """Both sides rounded as a file holds them: equal scores must not differ in digits that were not written."""
    for variant, run in now.runs.items():
        earlier = before.get(variant, {})
        shared = sorted(id_ for id_ in run.per_question if metric in earlier.get(id_, {}))
        if shared:
            old = [round(earlier[id_][metric], SCORE_DIGITS) for id_ in shared]
            new = [round(run.per_question[id_][metric], SCORE_DIGITS) for id_ in shared]
            yield compare(variant, metric, old, new)


def compare(variant: str, metric: str, old: list[float], new: list[float]) -> Comparison:
    """Paired scores of the same questions: a randomisation test, and an interval for the mean difference."""
    import numpy as np  # a lean installation has none, and measures keywords

    differences = np.array(new) - np.array(old)
    before, after = float(np.mean(old)), float(np.mean(new))
    interval = bootstrap_interval(differences)
    return Comparison(variant, metric, len(old), before, after, *interval, randomisation_p(differences))


def randomisation_p(differences: "NDArray[np.float64]") -> float:
    """The two-sided p value of a paired randomisation test."""
    # Sums in different orders differ in their last digits: what is equal must count as equal.
    observed = abs(differences.mean()) * (1 - 1e-9)
    means = _resampled(differences, 2, lambda signs: (signs * 2 - 1) * differences)
    return (int((abs(means) >= observed).sum()) + 1) / (_FLIPS + 1)


def bootstrap_interval(differences: "NDArray[np.float64]") -> tuple[float, float]:
    """The 95 % bootstrap interval of the mean difference."""
    import numpy as np  # as above

    means = _resampled(differences, len(differences), lambda drawn: differences[drawn])
    low, high = np.percentile(means, _INTERVAL)
    return float(low), float(high)


def _resampled(
    differences: "NDArray[np.float64]",
    numbers: int,
    sample: "Callable[[NDArray[np.int64]], NDArray[np.float64]]",
) -> "NDArray[np.float64]":
    """The means of samples, each made of as many random numbers below `numbers` as there are differences."""
    import numpy as np  # as above

    random = np.random.default_rng(_SEED)
    rows = [min(_AT_ONCE, _FLIPS - start) for start in range(0, _FLIPS, _AT_ONCE)]
    return np.concatenate(
        [sample(random.integers(0, numbers, (count, len(differences)))).mean(axis=1) for count in rows]
    )
