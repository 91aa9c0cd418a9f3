"""The tables of `mindex eval`: question sets and their mean, sweeps of a setting, questions without an answer."""

import sys
from collections.abc import Iterable, Mapping, Sequence

from mindex.evaluation_parts import Json, to_json
from mindex.present.text import aligned, explanation, note_lines
from mindex_eval.results import (
    ALL_5,
    ENTRY_FIRST,
    HIT_1,
    HIT_5,
    NDCG,
    NO_ANSWER,
    NO_CONFIDENT,
    RECALL_5,
    RECALL_10,
    SESSION_METRICS,
    SHIPPED_METRICS,
    Assessment,
    Comparison,
    ExcerptRecall,
    Failure,
    ForeignTopics,
    LeaveOneOut,
    MixedSet,
    Mixture,
    Place,
    Scores,
    SearchRun,
    ShippedRun,
    Sweep,
    mean_run,
)

_HEADS = {"ndcg@10": "nDCG@10", "recall@5": "recall@5", "recall@10": "recall@10", "hit@5": "hit@5", "mrr": "MRR"}
_SHIPPED_HEADS = {name: name for name in SHIPPED_METRICS} | {NO_ANSWER: "no answer", NO_CONFIDENT: "none confident"}
_ENTRY_HEAD = {ENTRY_FIRST: "entry first"}
_SESSION_HEADS = {name: name for name in SESSION_METRICS}
_FLOORLESS = (HIT_1, HIT_5, RECALL_5, RECALL_10)  # what the same pages are measured by without a floor
_SHARES = (NO_ANSWER, NO_CONFIDENT, ENTRY_FIRST)
_NO_FLOOR = ", no floor"
_QUESTION_SHOWN = 100
_NOTHING = "–"
_LEGEND = """\
ms: the first page of a question never asked before, its embedding included; tokens: five hits in full
as shipped: one page at the default limit, and of ten hits for @10, with the floor of the settings; no floor: the same
pages with floor 0; no answer, none confident: shares of the questions; all@k, any@k: evidence sessions among k hits"""
_MIXED_LEGEND = """\
nDCG@10 without a floor; the rest as shipped: one page at the default limit, and of ten hits for @10, no filter
no floor: the same pages with floor 0; entry first: a file answers, and a memory or turn comes first
stay: of the questions answered first alone, how many are answered among the first three together"""
_LEFT_OUT_LEGEND = "tokens: the text of the answers without a confident hit, notes included; mean and most"
_EXCERPTS_LEGEND = (
    "columns: token budgets, then without one, with the median tokens of the text; share: runs of four words"
)
_UNSET = "default"  # shown for a setting that is empty until it is set, such as the name of a model


# ── one set, and several ──────────────────────────────────────────────────────────────────────────────────────


def assessments_json(found: Sequence[Assessment]) -> dict[str, Json]:
    """One set is an object; several are a list, with their mean beside it."""
    return to_json(found[0] if len(found) == 1 else {"sets": found, "mean": mean_runs(found)})


def mean_runs(found: Sequence[Assessment]) -> dict[str, SearchRun]:
    """The mean over the sets that have questions, each with the same weight, for each search variant they share."""
    found = _scored(found)
    shared = [variant for one in found[:1] for variant in one.runs if all(variant in other.runs for other in found)]
    return {variant: mean_run([one.runs[variant] for one in found]) for variant in shared}


def _scored(found: Sequence[Assessment]) -> list[Assessment]:
    return [one for one in found if one.questions]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def assessments_text(found: Sequence[Assessment]) -> str:
    blocks = [_assessment_text(one) for one in found]
    if (sets := len(_scored(found))) > 1:
        means = mean_runs(found)
        blocks.append("\n".join([f"mean of {sets} sets", *_table(means), "", *_shipped_table(means)]))
    return "\n\n".join([*blocks, _LEGEND])


def _assessment_text(one: Assessment) -> str:
    left_out = "".join(f", {count} {why} left out" for why, count in one.left_out.items())
    model = f", {one.model}" if one.model else ""
    queries = _queries(one.questions)
    if one.silence is not None and not one.questions:
        queries = f"{_queries(one.silence.unanswerable)} without an answer"
    documents = "1 document" if one.documents == 1 else f"{one.documents} documents"
    lines = [f"{one.name}: {documents}, {queries}{left_out}{model}"]
    lines += [*_settings_lines(one.settings), *_table(one.runs)]
    if one.questions:
        lines += ["", *_shipped_table(one.runs)]
    if one.slices:
        lines += ["", *_slices(one)]
    if (silence := one.silence) is not None:
        silenced = f", {silence.silenced} of {silence.answerable} with one silenced" if silence.answerable else ""
        refused = f"{silence.refused} of {silence.unanswerable} questions without an answer refused"
        lines += ["", f"silence: {refused}{silenced}"]
    if one.excerpts is not None:
        lines += ["", *_excerpts(one.excerpts)]
    for failure in one.worst:
        lines += ["", *_failure_text(failure)]
    if one.compared:
        lines += ["", *(_compared_text(compared) for compared in one.compared)]
    return "\n".join([*lines, *note_lines(one.notes)])


def _settings_lines(settings: Mapping[str, str]) -> list[str]:
    return ["with " + " ".join(f"{key}={value}" for key, value in settings.items())] if settings else []


def _queries(count: int) -> str:
    return "1 query" if count == 1 else f"{count} queries"


def _table(runs: Mapping[str, SearchRun]) -> list[str]:
    rows = [["", *_HEADS.values(), "tokens", "p50 ms", "p95 ms"]]
    for variant, run in runs.items():
        scores = [_cell(score, 3) for score in run.metrics.values()]
        rows.append([variant, *scores, _cell(run.tokens, 0), _cell(run.p50_ms, 1), _cell(run.p95_ms, 1)])
    return _columns(rows)


def _shipped_table(runs: Mapping[str, SearchRun]) -> list[str]:
    """The pages as shipped and without a floor; those of turns also by session."""
    pages = {variant: run.shipped.scores for variant, run in runs.items() if run.shipped is not None}
    bare = {variant: run.without_floor.scores for variant, run in runs.items() if run.without_floor is not None}
    rows = [["as shipped", *_SHIPPED_HEADS.values()]]
    sessions = [["by session", *_SESSION_HEADS.values()]]
    for variant, scores in pages.items():
        rows.append([variant, *_shipped_cells(scores, _SHIPPED_HEADS)])
        floorless = {name: bare.get(variant, {}).get(name) for name in _FLOORLESS}
        rows.append([f"{variant}{_NO_FLOOR}", *_shipped_cells(floorless, _SHIPPED_HEADS)])
        if ALL_5 in scores:
            sessions.append([variant, *_shipped_cells(scores, _SESSION_HEADS)])
            sessions.append([f"{variant}{_NO_FLOOR}", *_shipped_cells(bare.get(variant, {}), _SESSION_HEADS)])
    lines = _columns(rows)
    return [*lines, "", *_columns(sessions)] if len(sessions) > 1 else lines


def _shipped_cells(scores: Mapping[str, float | None], heads: Mapping[str, str]) -> list[str]:
    return [_shipped_cell(name, scores.get(name)) for name in heads]


def _shipped_cell(name: str, score: float | None) -> str:
    """Hits as the other table has them, what is missing in per cent."""
    if score is None:
        return _NOTHING
    return f"{score:.1%}" if name in _SHARES else f"{score:.3f}"


def _cell(value: float | None, digits: int) -> str:
    return _NOTHING if value is None else f"{value:.{digits}f}"


def _slices(one: Assessment) -> list[str]:
    inspected = "hybrid" if "hybrid" in one.runs else list(one.runs)[-1]
    rows = [[one.label, "queries", *(f"{variant} nDCG@10" for variant in one.runs), f"{inspected} recall@10"]]
    for part in one.slices:
        gained = [f"{part.runs[variant]['ndcg@10']:.3f}" for variant in one.runs]
        rows.append([part.name, str(part.questions), *gained, f"{part.runs[inspected]['recall@10']:.3f}"])
    pages = [[f"{one.label}, {inspected} as shipped", *_SHIPPED_HEADS.values()]]
    pages += [[part.name, *_shipped_cells(part.shipped.get(inspected, {}), _SHIPPED_HEADS)] for part in one.slices]
    return [*_columns(rows), "", *_columns(pages)]


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    return aligned(rows, widest=sys.maxsize, numbers=True)


def _excerpts(found: ExcerptRecall) -> list[str]:
    budgets = next(iter(found.rows.values())).shares
    rows = [["share of the excerpts", *(f"{budget:,}" for budget in budgets), "default", "tokens", "JSON ÷ text"]]
    for name, row in found.rows.items():
        shares = [_cell(share, 3) for share in (*row.shares.values(), row.default)]
        rows.append([name, *shares, f"{row.tokens:,.0f}", _cell(row.json_ratio, 2)])
    return [*_columns(rows), _EXCERPTS_LEGEND]


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
        for one in sweep.left_out:
            choice, best = one.chosen or _UNSET, one.best or _UNSET
            chosen.append([one.name, choice, f"{one.score:.4f}", best, f"{one.best_score:.4f}"])
        gets = _mean([one.score for one in sweep.left_out])
        now = sweep.means[sweep.baseline]
        lines += ["", *_columns(chosen), f"mean of what is left out {gets:.4f}, of the present value {now:.4f}"]
    return "\n".join(lines)


# ── questions without an answer ───────────────────────────────────────────────────────────────────────────────


def silence_text(found: ForeignTopics) -> str:
    def row(name: str, auroc: float, silenced: float, refused: float) -> list[str]:
        return [name, f"{auroc:.4f}", f"{silenced:.1%}", f"{refused:.1%}"]

    rows = [["questions → texts", "AUROC", "own silenced", "foreign refused"]]
    rows += [row(f"{one.questions} → {one.texts}", one.auroc, one.silenced, one.refused) for one in found.pairs]
    rows.append(row("mean", **found.mean))
    lowest = found.lowest
    model = f", {found.model}" if found.model else ""
    lines = [f"floor {found.floor:g}{model}: own questions that got no confident hit, foreign ones that got none"]
    lines += [*_settings_lines(found.settings), *_columns(rows)]
    lines.append(f"lowest: {lowest.questions} → {lowest.texts}, {lowest.refused:.1%} refused")
    tried = [["other floors", "own silenced", "foreign refused", "lowest pair"]]
    tried += [
        [f"{one.floor:g}", f"{one.silenced:.1%}", f"{one.refused:.1%}", f"{one.lowest_refused:.1%}"]
        for one in found.floors
    ]
    return "\n".join([*lines, "", *_columns(tried), *note_lines(found.notes)])


# ── sets in one memory ────────────────────────────────────────────────────────────────────────────────────────


def mixture_text(found: Mixture) -> str:
    heads = _SHIPPED_HEADS | _ENTRY_HEAD
    rows = [["alone → together", "queries", "nDCG@10", *heads.values(), "stay"]]
    bare = [["no floor", *_FLOORLESS]]
    sessions = [["by session", *_SESSION_HEADS.values()]]
    for one in found.sets:
        stay = _NOTHING if one.stayed is None else f"{one.stayed:.1%}"
        ranked = _pair(NDCG, one.alone.scores, one.together.scores)
        alone, together = _pages(one.alone.shipped), _pages(one.together.shipped)
        rows.append([one.name, str(one.questions), ranked, *_pairs(alone, together, heads), stay])
        bare.append(
            [one.name, *_pairs(_pages(one.alone.without_floor), _pages(one.together.without_floor), _FLOORLESS)]
        )
        if ALL_5 in together:
            sessions.append([one.name, *_pairs(alone, together, _SESSION_HEADS)])
    stayed = [one.stayed for one in found.sets if one.stayed is not None]
    means = found.mean
    mean = f"{_mean(stayed):.1%}" if stayed else _NOTHING
    alone, together = _pages(means["alone"].shipped), _pages(means["together"].shipped)
    ranked = _pair(NDCG, means["alone"].scores, means["together"].scores)
    rows.append(["mean", "", ranked, *_pairs(alone, together, heads), mean])
    alone, together = _pages(means["alone"].without_floor), _pages(means["together"].without_floor)
    bare.append(["mean", *_pairs(alone, together, _FLOORLESS)])
    head = f"{found.variant}, {len(found.sets)} sets in one memory: {found.documents} documents, floor {found.floor:g}"
    model = f", {found.model}" if found.model else ""
    lines = [f"{head}{model}", *_settings_lines(found.settings), *_columns(rows), "", *_columns(bare)]
    if len(sessions) > 1:
        lines += ["", *_columns(sessions)]
    for one in found.sets:
        if one.slices:
            lines += ["", *_mixed_slices(one)]
    return "\n".join([*lines, *note_lines(found.notes), "", _MIXED_LEGEND])


def _mixed_slices(one: MixedSet) -> list[str]:
    heads = _SHIPPED_HEADS | _ENTRY_HEAD
    rows = [[f"{one.name}, {one.label}", "queries", "nDCG@10", *heads.values()]]
    for part in one.slices:
        ranked = _pair(NDCG, part.runs["alone"], part.runs["together"])
        alone, together = part.shipped.get("alone", {}), part.shipped.get("together", {})
        rows.append([part.name, str(part.questions), ranked, *_pairs(alone, together, heads)])
    return _columns(rows)


def _pages(run: ShippedRun | None) -> Scores:
    return run.scores if run else {}


def _pairs(alone: Scores, together: Scores, names: Iterable[str]) -> list[str]:
    return [_pair(name, alone, together) for name in names]


def _pair(name: str, alone: Scores, together: Scores) -> str:
    """`alone → together`; a metric that neither has is one dash."""
    before, after = _shipped_cell(name, alone.get(name)), _shipped_cell(name, together.get(name))
    return f"{before} → {after}" if (before, after) != (_NOTHING, _NOTHING) else _NOTHING


def left_out_text(found: LeaveOneOut) -> str:
    rows = [["left out and asked", "queries", "none confident", "no answer", "tokens", "most"]]
    for one in found.sets:
        shares = f"{one.no_confident:.1%}", f"{one.no_answer:.1%}"
        rows.append([one.name, str(one.questions), *shares, f"{one.tokens:.0f}", str(one.most_tokens)])
    mean = found.mean
    shares = f"{mean['no_confident']:.1%}", f"{mean['no_answer']:.1%}"
    most = max(one.most_tokens for one in found.sets)
    rows.append(["mean", "", *shares, f"{mean['tokens']:.0f}", str(most)])
    model = f", {found.model}" if found.model else ""
    head = f"{found.variant}, floor {found.floor:g}{model}: questions put to the other sets in one memory"
    lines = [head, *_settings_lines(found.settings), *_columns(rows)]
    lines.append(f"lowest: {found.lowest.name}, {found.lowest.no_confident:.1%} without a confident hit")
    return "\n".join([*lines, *note_lines(found.notes), "", _LEFT_OUT_LEGEND])
