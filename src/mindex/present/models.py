"""The text of `mindex models` and `mindex reembed`."""

from collections.abc import Sequence
from itertools import groupby

from mindex.model.reports import ListedModel, ReembedReport
from mindex.model.spaces import model_title
from mindex.present.text import aligned, note_lines

_MINUTE = 60


def reembed_text(done: ReembedReport) -> str:
    change = f"{done.source} → {done.target}" if done.source and done.source != done.target else done.target
    if done.dry_run:
        amount = f"{done.remaining} records, {done.pieces} pieces, about {_duration(done.seconds)}"
        return f"{change}: {amount}; nothing was changed"
    line = f"{change}: {done.embedded} embedded, {done.remaining} remaining, {done.seconds:g} s"
    return "\n".join([line, *note_lines(done.notes)])


def _duration(seconds: float) -> str:
    if seconds < _MINUTE:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / _MINUTE)
    return f"{minutes} min" if minutes < _MINUTE else f"{minutes / _MINUTE:.1f} h"


# ── the list of models ────────────────────────────────────────────────────────────────────────────────────────


def models_text(models: Sequence[ListedModel]) -> str:
    lines: list[str] = []
    for role, those in groupby(models, key=lambda model: model.role):
        listed = list(those)
        rows = [["", "model", "dimensions", "size", "licence", "vectors", "speed here", "state"]]
        rows += [_row(model) for model in listed]
        used = [column for column in range(len(rows[0])) if column < 2 or any(row[column] for row in rows[1:])]
        table = aligned([[row[column] for column in used] for row in rows])
        lines += [*([""] if lines else []), f"{role}:", *table]
        lines += [
            f"  to get {model.name}: {model.install}" for model in listed if model.install and not model.installed
        ]
        lines += [f"  {model.name}: {model.trouble}" for model in listed if model.trouble]
    return "\n".join(lines)


def _row(model: ListedModel) -> list[str]:
    marks = {"→": model.next, "*": model.active or (model.configured and model.role != "embedding")}
    return [
        next((mark for mark, holds in marks.items() if holds), ""),
        model_title(model.provider, model.name),
        str(model.dimensions or ""),
        f"{model.megabytes:g} MB" if model.megabytes else "",
        model.licence,
        "" if model.vectors is None else f"{model.vectors:,}",
        ", ".join(f"{value:.3g} ms {_with_article(what)}" for what, value in model.speed.items()),
        ", ".join(_states(model)),
    ]


def _with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _states(model: ListedModel) -> list[str]:
    states = {
        "searched now": model.active,
        "being filled": model.next,
        "left over": model.vectors is not None and not model.active and not model.next,
        "configured": model.configured,
        "default": model.default,
        "not installed": not model.installed,
        "installed": model.installed and model.install,
    }
    return [state for state, holds in states.items() if holds]
