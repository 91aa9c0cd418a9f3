"""How good answers are, as JSON and as tables: one set, several with their mean, sweeps, silence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from mindex.model.evaluation import (
    METRICS,
    Assessment,
    Comparison,
    Failure,
    ForeignPair,
    ForeignTopics,
    Place,
    Scores,
    SearchRun,
    Silence,
    Sweep,
)
from mindex.present.record_fields import Json, explained
from mindex.present.text import explanation

_HEADS = {"ndcg@10": "nDCG@10", "recall@5": "recall@5", "recall@10": "recall@10", "hit@5": "hit@5", "mrr": "MRR"}
_QUESTION_SHOWN = 100
_NOTHING = "–"
_UNSAID = "default"  # of a setting that is empty unless somebody says otherwise, as models' names are


# ── one set, and several ──────────────────────────────────────────────────────────────────────────────────────


def assessments_json(found: Sequence[Assessment], version: str) -> dict[str, Json]:
    """One set is an object of its own; several stand in a list, with their mean beside it."""
    if len(found) == 1:
        return _assessment_json(found[0], version)
    return {
        "sets": [_assessment_json(one, version) for one in found],
        "mean": {way: _run_json(run) for way, run in mean_runs(found).items()},
    }


def _assessment_json(one: Assessment, version: str) -> dict[str, Json]:
    shown: dict[str, Json] = {
        "set": one.name,
        "documents": one.documents,
        "queries": one.questions,
        "runs": {way: _run_json(run) for way, run in one.runs.items()},
        "model": one.model,
        "settings": dict(one.settings),
        "version": version,
    }
    if one.left_out:
        shown["left_out"] = dict(one.left_out)
    if one.slices:
        shown["categories"] = {
            "field": one.label,
            "values": {
                part.name: {
                    "queries": part.questions,
                    "runs": {way: _rounded(scores) for way, scores in part.runs.items()},
                }
                for part in one.slices
            },
        }
    if one.silence is not None:
        shown["silence"] = asdict(one.silence)
    if one.worst:
        shown["worst"] = [_failure_json(failure) for failure in one.worst]
    if one.compared:
        shown["compared"] = [_compared_json(compared) for compared in one.compared]
    if one.notes:
        shown["notes"] = list(one.notes)
    shown["per_query"] = {
        way: {id_: _rounded(scores) for id_, scores in run.per_question.items()} for way, run in one.runs.items()
    }
    return shown


def _run_json(run: SearchRun) -> dict[str, Json]:
    shown: dict[str, Json] = _rounded(run.scores) if run.scores else dict.fromkeys(METRICS)
    shown["tokens"] = round(run.tokens) if run.scores else None
    shown["p50_ms"] = None if run.p50_ms is None else round(run.p50_ms, 1)
    shown["p95_ms"] = None if run.p95_ms is None else round(run.p95_ms, 1)
    shown["timed"] = run.timed
    return shown


def _rounded(scores: Scores) -> dict[str, Json]:
    return {name: as_written(value) for name, value in scores.items()}


def as_written(score: float) -> float:
    """With as many digits as JSON holds of a score."""
    return round(score, 6)


def mean_runs(found: Sequence[Assessment]) -> dict[str, SearchRun]:
    """The mean over sets, each counting the same, of the ways that all of them have. Some have no scores."""
    found = _scored(found)
    shared = [way for one in found[:1] for way in one.runs if all(way in other.runs for other in found)]
    means = {}
    for way in shared:
        runs = [one.runs[way] for one in found]
        means[way] = SearchRun(
            scores={name: _mean([run.scores[name] for run in runs]) for name in METRICS},
            tokens=_mean([run.tokens for run in runs]),
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
    asked = _queries(one.questions)
    if one.silence is not None and not one.questions:
        asked = f"{_queries(one.silence.unanswerable)} without an answer"
    documents = "1 document" if one.documents == 1 else f"{one.documents} documents"
    lines = [f"{one.name}: {documents}, {asked}{left_out}{model}"]
    if one.settings:
        lines.append("with " + " ".join(f"{key}={value}" for key, value in one.settings.items()))
    lines += _table(one.runs)
    if one.slices:
        lines += ["", *_slices(one)]
    if one.silence is not None:
        lines += ["", _silence_text(one.silence)]
    for failure in one.worst:
        lines += ["", *_failure_text(failure)]
    if one.compared:
        lines += ["", *(_compared_text(compared) for compared in one.compared)]
    lines += [f"note: {note}" for note in one.notes]
    return "\n".join(lines)


def _queries(count: int) -> str:
    return "1 query" if count == 1 else f"{count} queries"


def _silence_text(silence: Silence) -> str:
    refused = f"silence: {silence.refused} of {silence.unanswerable} questions without an answer refused"
    return f"{refused}, {silence.silenced} of {silence.answerable} with one silenced" if silence.answerable else refused


def _table(runs: Mapping[str, SearchRun]) -> list[str]:
    rows = [["", *_HEADS.values(), "tokens", "p50 ms", "p95 ms"]]
    for way, run in runs.items():
        scores = [f"{run.scores[name]:.3f}" if run.scores else _NOTHING for name in METRICS]
        tokens = f"{run.tokens:.0f}" if run.scores else _NOTHING
        rows.append([way, *scores, tokens, _ms(run.p50_ms), _ms(run.p95_ms)])
    return columns(rows)


def _ms(value: float | None) -> str:
    return _NOTHING if value is None else f"{value:.1f}"


def _slices(one: Assessment) -> list[str]:
    looked_at = "hybrid" if "hybrid" in one.runs else list(one.runs)[-1]
    rows = [[one.label, "queries", *(f"{way} nDCG@10" for way in one.runs), f"{looked_at} recall@10"]]
    for part in one.slices:
        gained = [f"{part.runs[way]['ndcg@10']:.3f}" for way in one.runs]
        rows.append([part.name, str(part.questions), *gained, f"{part.runs[looked_at]['recall@10']:.3f}"])
    return columns(rows)


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """A table: names to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


# ── the worst ─────────────────────────────────────────────────────────────────────────────────────────────────


def _failure_json(failure: Failure) -> dict[str, Json]:
    shown: dict[str, Json] = {"id": failure.id, "query": failure.question}
    if failure.category:
        shown["category"] = failure.category
    shown["scores"] = _rounded(failure.scores)
    shown["first"] = None if failure.first is None else _place_json(failure.first)
    shown["expected"] = [_place_json(place) for place in failure.expected]
    return shown


def _place_json(place: Place) -> dict[str, Json]:
    shown: dict[str, Json] = {"id": place.id, "rank": place.rank}
    if place.hit is not None:
        shown["title"] = place.hit.record.title
        shown["explain"] = explained(place.hit.trace, place.hit.relevance)
    return shown


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
    why = explanation(explained(place.hit.trace, place.hit.relevance))
    return [f"  {what} {place.id}: rank {place.rank}, score {place.hit.score:.4f}", f"    why: {why}"]


# ── comparing ─────────────────────────────────────────────────────────────────────────────────────────────────


def _compared_json(one: Comparison) -> dict[str, Json]:
    return {
        "mode": one.way,
        "metric": one.metric,
        "queries": one.questions,
        "before": round(one.before, 6),
        "after": round(one.after, 6),
        "difference": round(one.difference, 6),
        "interval": [round(one.low, 6), round(one.high, 6)],
        "p": round(one.p, 4),
        "verdict": one.verdict,
    }


def _compared_text(one: Comparison) -> str:
    return (
        f"{one.way}: {one.verdict}, {one.metric} {one.before:.3f} → {one.after:.3f}"
        f" ({one.difference:+.4f}, 95 % {one.low:+.4f} to {one.high:+.4f}, p {one.p:.4f},"
        f" {_queries(one.questions)})"
    )


# ── sweeping ──────────────────────────────────────────────────────────────────────────────────────────────────


def sweeps_json(sweeps: Sequence[Sweep]) -> dict[str, Json]:
    return {"sweeps": [_sweep_json(one) for one in sweeps]}


def _sweep_json(sweep: Sweep) -> dict[str, Json]:
    shown: dict[str, Json] = {
        "key": sweep.key,
        "metric": sweep.metric,
        "mode": sweep.way,
        "baseline": sweep.baseline,
        "values": [
            {"value": value, "sets": _rounded(scores), "mean": round(_mean(list(scores.values())), 6)}
            for value, scores in sweep.scores.items()
        ],
    }
    if sweep.left_out:
        shown["left_out"] = [
            {
                "set": one.name,
                "chosen": one.chosen,
                "score": round(one.score, 6),
                "best": one.best,
                "best_score": round(one.best_score, 6),
            }
            for one in sweep.left_out
        ]
    return shown


def sweeps_text(sweeps: Sequence[Sweep]) -> str:
    return "\n\n".join(map(_sweep_text, sweeps))


def _sweep_text(sweep: Sweep) -> str:
    sets = list(next(iter(sweep.scores.values())))
    several = ["mean"] if len(sets) > 1 else []
    rows = [[sweep.key, *sets, *several]]
    for value, scores in sweep.scores.items():
        name = f"{value or _UNSAID} (now)" if value == sweep.baseline else value
        total = [f"{_mean(list(scores.values())):.4f}"] * len(several)
        rows.append([name, *(f"{scores[one]:.4f}" for one in sets), *total])
    lines = [f"{sweep.metric} of {sweep.way}", *columns(rows)]
    if sweep.left_out:
        chosen = [["left out", "others choose", "it gets", "its own best", "that gives"]]
        chosen += [
            [one.name, one.chosen or _UNSAID, f"{one.score:.4f}", one.best or _UNSAID, f"{one.best_score:.4f}"]
            for one in sweep.left_out
        ]
        gets = _mean([one.score for one in sweep.left_out])
        now = _mean(list(sweep.scores[sweep.baseline].values()))
        lines += ["", *columns(chosen), f"mean of what is left out {gets:.4f}, of the present value {now:.4f}"]
    return "\n".join(lines)


# ── silence ───────────────────────────────────────────────────────────────────────────────────────────────────


def silence_json(found: ForeignTopics) -> dict[str, Json]:
    shown: dict[str, Json] = {
        "floor": found.floor,
        "model": found.model,
        "settings": dict(found.settings),
        "languages": dict(found.languages),
        "pairs": [_pair_json(pair) for pair in found.pairs],
        "mean": {name: round(value, 6) for name, value in _pair_means(found).items()},
        "lowest": _pair_json(_lowest(found)),
        "floors": [
            {
                "floor": one.floor,
                "silenced": round(one.silenced, 6),
                "refused": round(one.refused, 6),
                "lowest_refused": round(one.lowest, 6),
            }
            for one in found.tried
        ],
    }
    if found.notes:
        shown["notes"] = list(found.notes)
    return shown


def _pair_json(pair: ForeignPair) -> dict[str, Json]:
    return {
        "questions": pair.questions,
        "texts": pair.texts,
        "own": pair.own,
        "foreign": pair.foreign,
        "auroc": round(pair.auroc, 6),
        "silenced": round(pair.silenced, 6),
        "refused": round(pair.refused, 6),
    }


def _pair_means(found: ForeignTopics) -> dict[str, float]:
    return {
        "auroc": _mean([pair.auroc for pair in found.pairs]),
        "silenced": _mean([pair.silenced for pair in found.pairs]),
        "refused": _mean([pair.refused for pair in found.pairs]),
    }


def _lowest(found: ForeignTopics) -> ForeignPair:
    return min(found.pairs, key=lambda pair: (pair.refused, pair.auroc))


def silence_text(found: ForeignTopics) -> str:
    rows = [["questions → texts", "AUROC", "own silenced", "foreign refused"]]
    rows += [
        [f"{pair.questions} → {pair.texts}", f"{pair.auroc:.4f}", f"{pair.silenced:.1%}", f"{pair.refused:.1%}"]
        for pair in found.pairs
    ]
    means = _pair_means(found)
    rows.append(["mean", f"{means['auroc']:.4f}", f"{means['silenced']:.1%}", f"{means['refused']:.1%}"])
    lowest = _lowest(found)
    model = f", {found.model}" if found.model else ""
    lines = [f"floor {found.floor:g}{model}: own questions that got no answer, foreign ones that got none"]
    if found.settings:
        lines.append("with " + " ".join(f"{key}={value}" for key, value in found.settings.items()))
    lines += columns(rows)
    lines.append(f"lowest: {lowest.questions} → {lowest.texts}, {lowest.refused:.1%} refused")
    tried = [["other floors", "own silenced", "foreign refused", "lowest pair"]]
    tried += [
        [f"{one.floor:g}", f"{one.silenced:.1%}", f"{one.refused:.1%}", f"{one.lowest:.1%}"] for one in found.tried
    ]
    lines += ["", *columns(tried)]
    lines += [f"note: {note}" for note in found.notes]
    return "\n".join(lines)
