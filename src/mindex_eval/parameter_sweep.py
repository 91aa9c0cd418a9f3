"""Measures a setting at several values, and which value the other sets would choose for each set."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from mindex.config import Settings
from mindex.datatypes import Report
from mindex.errors import UsageError
from mindex.store.base import Store
from mindex_eval.assessment import EvaluationOptions, effective_settings
from mindex_eval.measured_memory import settings_for, shown_value
from mindex_eval.metrics import mean
from mindex_eval.named_sets import read_named_set
from mindex_eval.question_sets import answerable, sampled
from mindex_eval.results import NDCG, HeldOutSet, Sweep
from mindex_eval.run_questions import measure, question_runner

_FLOOR = "search.floor"


def sweep(
    folders: Sequence[Path],
    swept: Mapping[str, Sequence[str]],
    options: EvaluationOptions,
    cache: Store,
    *,
    variant: str = "hybrid",
    metric: str = NDCG,
    report: Report | None = None,
) -> tuple[Sweep, ...]:
    """Measure each key at its present value and at the given ones, the other keys unchanged, on every set."""
    if _FLOOR in swept:
        raise UsageError(
            f"ranking is measured without a floor, so {_FLOOR} changes nothing here",
            "`mindex eval SET SET --silence` shows the effect of other floors",
        )
    values = {key: _values(options.settings, key, given) for key, given in swept.items()}
    scores: dict[str, dict[str, dict[str, float]]] = {key: {value: {} for value in values[key]} for key in swept}
    sets = [read_named_set(folder, split=options.split, adversarial=options.adversarial) for folder in folders]
    asked = [answerable(found, sampled(found.questions, options.sample)) for found in sets]
    for found, questions in zip(sets, asked, strict=True):
        known: dict[tuple[tuple[str, str], ...], float] = {}  # every key's present value is the same run
        for key, value in [(one, value) for one in swept for value in values[one]]:
            tried = effective_settings({**options.settings, key: value}, (variant,))
            same = tuple((one.setting.key, shown_value(one.value)) for one in settings_for(tried))
            if same not in known:
                with question_runner(found, tried, cache, timed=0, report=report) as runner:
                    run = measure(runner, questions, variant, report, found.name)
                known[same] = run.scores[metric]
            scores[key][value][found.name] = known[same]
    return tuple(
        Sweep(key, metric, variant, values[key][0], by_value, held_out_choices(by_value))
        for key, by_value in scores.items()
    )


def _values(settings: Mapping[str, str], key: str, given: Sequence[str]) -> list[str]:
    """The present value first, then those to try. Every value is validated before anything is measured."""

    def value_of(read: Settings) -> str:
        return next(shown_value(one.value) for one in read if one.setting.key == key)

    if not given:
        raise UsageError(f"no value of {key} is given", f"write --sweep {key}=A,B,C")
    present = settings_for(settings)
    tried = [value_of(settings_for({**settings, key: value}, option="--sweep")) for value in given]
    return list(dict.fromkeys((value_of(present), *tried)))


def held_out_choices(scores: Mapping[str, Mapping[str, float]]) -> tuple[HeldOutSet, ...]:
    """For each set: the value that the other sets choose by their mean, and its score on the set.

    Among equally good values the first one wins: the present value.
    """
    sets = list(next(iter(scores.values()), {}))
    if len(sets) < 2:
        return ()

    def chosen(among: Sequence[str]) -> str:
        return max(scores, key=lambda value: round(mean([scores[value][name] for name in among]), 9))

    found = []
    for name in sets:
        others, best = chosen([other for other in sets if other != name]), chosen([name])
        found.append(HeldOutSet(name, others, scores[others][name], best, scores[best][name]))
    return tuple(found)
