"""Models as JSON and as text: what there is, and what a change of the embedder did."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from mindex.model.reports import ListedModel, ReembedReport
from mindex.model.spaces import model_title
from mindex.present.record_fields import Json
from mindex.present.text import aligned

_MINUTE = 60


def reembed_json(done: ReembedReport) -> dict[str, Json]:
    shown: dict[str, Json] = {
        "from": done.source,
        "to": done.target,
        "embedded": done.embedded,
        "remaining": done.remaining,
        "seconds": done.seconds,
    }
    if done.rehearsed:
        shown |= {"dry_run": True, "pieces": done.pieces}
    if done.notes:
        shown["notes"] = list(done.notes)
    return shown


def reembed_text(done: ReembedReport) -> str:
    change = f"{done.source} → {done.target}" if done.source and done.source != done.target else done.target
    if done.rehearsed:
        amount = f"{done.remaining} records, {done.pieces} pieces, about {_duration(done.seconds)}"
        return f"{change}: {amount}; nothing was changed"
    lines = [f"{change}: {done.embedded} embedded, {done.remaining} remaining, {done.seconds:g} s"]
    return "\n".join([*lines, *(f"note: {note}" for note in done.notes)])


def _duration(seconds: float) -> str:
    if seconds < _MINUTE:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / _MINUTE)
    return f"{minutes} min" if minutes < _MINUTE else f"{minutes / _MINUTE:.1f} h"


# ── what there is ─────────────────────────────────────────────────────────────────────────────────────────────


def models_json(models: Sequence[ListedModel]) -> dict[str, Json]:
    return {"models": [_model_json(model) for model in models]}


def _model_json(model: ListedModel) -> dict[str, Json]:
    shown: dict[str, Json] = {"name": model.name, "role": model.role, "provider": model.provider}
    if model.dimensions:
        shown["dimensions"] = model.dimensions
    if model.megabytes:
        shown["megabytes"] = model.megabytes
    if model.licence:
        shown["licence"] = model.licence
    shown["installed"] = model.installed
    if model.install and not model.installed:
        shown["install"] = model.install
    shown["configured"] = model.configured
    if model.default:
        shown["default"] = True
    if model.role == "embedding":
        shown["active"] = model.active
    if model.next:
        shown["next"] = True
    if model.vectors is not None:
        shown["vectors"] = model.vectors
    if model.speed:
        shown["milliseconds"] = {name: round(value, 1) for name, value in model.speed.items()}
    if model.trouble:
        shown["trouble"] = model.trouble
    return shown


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
        ", ".join(f"{value:.3g} ms {_a(what)}" for what, value in model.speed.items()),
        ", ".join(_states(model)),
    ]


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _states(model: ListedModel) -> list[str]:
    states = ["searched now"] if model.active else []
    if model.next:
        states.append("being filled")
    if model.vectors is not None and not model.active and not model.next:
        states.append("left over")
    if model.configured:
        states.append("configured")
    if model.default:
        states.append("default")
    if not model.installed:
        states.append("not installed")
    elif model.install:
        states.append("installed")
    return states
