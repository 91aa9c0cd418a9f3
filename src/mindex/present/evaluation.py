"""The tables of `mindex eval`: question sets and their mean, sweeps of a setting, questions without an answer."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from mindex.model.evaluation import (
    METRICS,
    Assessment,
    Comparison,
    Failure,
    ForeignTopics,
    Place,
    SearchRun,
    Silence,
    Sweep,
)
from mindex.present.text import aligned, explanation, note_lines
from mindex.present.to_json import Json, to_json

_HEADS = {"ndcg@10": "nDCG@10", "recall@5": "recall@5", "recall@10": "recall@10", "hit@5": "hit@5", "mrr": "MRR"}
_QUESTION_SHOWN = 100
_NOTHING = "–"
_UNSET = "default"  # shown for a setting that is empty until it is set, such as the name of a model


# ── one set, and several ──────────────────────────────────────────────────────────────────────────────────────


def assessments_json(found: Sequence[Assessment]) -> dict[str, Json]:
    """One set is an object of its own; several are a list, with their mean beside it."""
    return to_json(found[0] if len(found) == 1 else {"sets": found, "mean": mean_runs(found)})


def mean_runs(found: Sequence[Assessment]) -> dict[str, SearchRun]:
    """The mean over the sets that have questions, each with the same weight, for each search variant they share."""
    found = _scored(found)
    shared = [variant for one in found[:1] for variant in one.runs if all(variant in other.runs for other in found)]
    means = {}
    for variant in shared:
        runs = [one.runs[variant] for one in found]
        means[variant] = SearchRun(
            scores={name: _mean([run.scores[name] for run in runs]) for name in METRICS},
            tokens=_mean_known([run.tokens for run in runs]),
            p50_ms=_mean_known([run.p50_ms for run in runs]),
            p95_ms=_mean_known([run.p95_ms for run in runs]),
            timed=sum(run.timed for run in runs),
        )
    return means


def _scored(found: Sequence[Assessment]) -> list[Assessment]:
    return [one for one in found if one.questions]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _mean_known(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return _mean(known) if known else None


def assessments_text(found: Sequence[Assessment]) -> str:
    blocks = [_assessment_text(one) for one in found]
    if (sets := len(_scored(found))) > 1:
        blocks.append("\n".join([f"mean of {sets} sets", *_table(mean_runs(found))]))
    blocks.append(
        "ms: the first page of a question never asked before, its embedding included; tokens: five hits in full"
    )
    return "\n\n".join(blocks)


def _assessment_text(one: Assessment) -> str:
    left_out = "".join(f", {count} {why} left out" for why, count in one.left_out.items())
    model = f", {one.model}" if one.model else ""
    queries = _queries(one.questions)
    if one.silence is not None and not one.questions:
        queries = f"{_queries(one.silence.unanswerable)} without an answer"
    documents = "1 document" if one.documents == 1 else f"{one.documents} documents"
    lines = [f"{one.name}: {documents}, {queries}{left_out}{model}"]
    lines += [*_settings_lines(one.settings), *_table(one.runs)]
    if one.slices:
        lines += ["", *_slices(one)]
    if one.silence is not None:
        lines += ["", _silence_text(one.silence)]
    for failure in one.worst:
        lines += ["", *_failure_text(failure)]
    if one.compared:
        lines += ["", *(_compared_text(compared) for compared in one.compared)]
    return "\n".join([*lines, *note_lines(one.notes)])


def _settings_lines(settings: Mapping[str, str]) -> list[str]:
    return ["with " + " ".join(f"{key}={value}" for key, value in settings.items())] if settings else []


def _queries(count: int) -> str:
    return "1 query" if count == 1 else f"{count} queries"


def _silence_text(silence: Silence) -> str:
    refused = f"silence: {silence.refused} of {silence.unanswerable} questions without an answer refused"
    return f"{refused}, {silence.silenced} of {silence.answerable} with one silenced" if silence.answerable else refused


def _table(runs: Mapping[str, SearchRun]) -> list[str]:
    rows = [["", *_HEADS.values(), "tokens", "p50 ms", "p95 ms"]]
    for variant, run in runs.items():
        scores = [f"{run.scores[name]:.3f}" if run.scores else _NOTHING for name in METRICS]
        tokens = _NOTHING if run.tokens is None else f"{run.tokens:.0f}"
        rows.append([variant, *scores, tokens, _ms(run.p50_ms), _ms(run.p95_ms)])
    return _columns(rows)


def _ms(value: float | None) -> str:
    return _NOTHING if value is None else f"{value:.1f}"


def _slices(one: Assessment) -> list[str]:
    inspected = "hybrid" if "hybrid" in one.runs else list(one.runs)[-1]
    rows = [[one.label, "queries", *(f"{variant} nDCG@10" for variant in one.runs), f"{inspected} recall@10"]]
    for part in one.slices:
        gained = [f"{part.runs[variant]['ndcg@10']:.3f}" for variant in one.runs]
        rows.append([part.name, str(part.questions), *gained, f"{part.runs[inspected]['recall@10']:.3f}"])
    return _columns(rows)


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    return aligned(rows, widest=sys.maxsize, numbers=True)


# ── the worst answers ─────────────────────────────────────────────────────────────────────────────────────────


def _failure_text(failure: Failure) -> list[str]:
    category = f" ({failure.category})" if failure.category else ""
    question = " ".join(failure.question.split())[:_QUESTION_SHOWN]
    name, says = (question, "") if failure.id == failure.question else (failure.id, f": {question}")
    lines = [f"{name}{category}, nDCG@10 {failure.scores['ndcg@10']:.3f}{says}"]
    if failure.first is not None:
        lines += _place_text("first", failure.first)
    for place in failure.expected:
        lines += _place_text("expected", place)
    return lines


def _place_text(what: str, place: Place) -> list[str]:
    if place.hit is None:
        return [f"  {what} {place.id}: not among the candidates"]
    why = explanation(place.hit)
    return [f"  {what} {place.id}: rank {place.rank}, score {place.hit.score:.4f}", f"    why: {why}"]


# ── comparison with an earlier run ────────────────────────────────────────────────────────────────────────────


def _compared_text(one: Comparison) -> str:
    return (
        f"{one.variant}: {one.verdict}, {one.metric} {one.before:.3f} → {one.after:.3f}"
        f" ({one.difference:+.4f}, 95 % {one.low:+.4f} to {one.high:+.4f}, p {one.p:.4f},"
        f" {_queries(one.questions)})"
    )


# ── sweeps of a setting ───────────────────────────────────────────────────────────────────────────────────────


def sweeps_text(sweeps: Sequence[Sweep]) -> str:
    return "\n\n".join(map(_sweep_text, sweeps))


def _sweep_text(sweep: Sweep) -> str:
    sets = list(next(iter(sweep.scores.values())))
    several = ["mean"] if len(sets) > 1 else []
    rows = [[sweep.key, *sets, *several]]
    for value, scores in sweep.scores.items():
        name = f"{value or _UNSET} (now)" if value == sweep.baseline else value
        total = [f"{sweep.means[value]:.4f}"] * len(several)
        rows.append([name, *(f"{scores[one]:.4f}" for one in sets), *total])
    lines = [f"{sweep.metric} of {sweep.variant}", *_columns(rows)]
    if sweep.left_out:
        chosen = [["left out", "others choose", "it gets", "its own best", "that gives"]]
        chosen += [
            [one.name, one.chosen or _UNSET, f"{one.score:.4f}", one.best or _UNSET, f"{one.best_score:.4f}"]
            for one in sweep.left_out
        ]
        gets = _mean([one.score for one in sweep.left_out])
        now = sweep.means[sweep.baseline]
        lines += ["", *_columns(chosen), f"mean of what is left out {gets:.4f}, of the present value {now:.4f}"]
    return "\n".join(lines)


# ── questions without an answer ───────────────────────────────────────────────────────────────────────────────


def silence_text(found: ForeignTopics) -> str:
    rows = [["questions → texts", "AUROC", "own silenced", "foreign refused"]]
    rows += [
        [f"{pair.questions} → {pair.texts}", f"{pair.auroc:.4f}", f"{pair.silenced:.1%}", f"{pair.refused:.1%}"]
        for pair in found.pairs
    ]
    rows.append(
        ["mean", f"{found.mean['auroc']:.4f}", *(f"{found.mean[name]:.1%}" for name in ("silenced", "refused"))]
    )
    lowest = found.lowest
    model = f", {found.model}" if found.model else ""
    lines = [f"floor {found.floor:g}{model}: own questions that got no answer, foreign ones that got none"]
    lines += [*_settings_lines(found.settings), *_columns(rows)]
    lines.append(f"lowest: {lowest.questions} → {lowest.texts}, {lowest.refused:.1%} refused")
    tried = [["other floors", "own silenced", "foreign refused", "lowest pair"]]
    tried += [
        [f"{one.floor:g}", f"{one.silenced:.1%}", f"{one.refused:.1%}", f"{one.lowest_refused:.1%}"]
        for one in found.floors
    ]
    return "\n".join([*lines, "", *_columns(tried), *note_lines(found.notes)])
