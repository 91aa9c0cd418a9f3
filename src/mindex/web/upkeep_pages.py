"""Pages about the memory itself: collections, growth, health, secrets, settings and models. Most are for the owner."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from mindex.datatypes import Check
from mindex.datatypes.growth import MemoryGrowth, Period
from mindex.datatypes.results import Report
from mindex.errors import UsageError
from mindex.memory import Memory
from mindex.present.administration import settings_json
from mindex.present.entries import secrets_removed_text
from mindex.present.growth import period_name
from mindex.present.reports import index_text
from mindex.present.text import amount
from mindex.web.site import Call, Site

_HEIGHT, _STEP, _GAP = 100, 10, 2  # of a chart, in its own units: the page stretches it
_COMMAND = re.compile(r"mindex (optimize|backfill|reembed|index)\b")


def upkeep_routes(site: Site) -> list[Route]:
    return [
        site.page("/collections", _collections),
        site.form("/collections/index", _index),
        site.form("/collections/remove", _remove),
        site.page("/job", lambda call: call.render("job.html", job=call.site.jobs.current)),
        site.page("/doctor", _doctor),
        site.form("/doctor/run", _run),
        site.page("/secrets", _secrets),
        site.form("/secrets/remove", _remove_secrets),
        site.page("/settings", _settings),
        site.page("/models", _models),
        site.page("/growth", _growth),
    ]


def _visible_job(call: Call) -> object:
    """The job that runs: its text names folders, so who sees a part of the files sees none."""
    return None if call.principal.collections else call.site.jobs.current


# ── collections ───────────────────────────────────────────────────────────────────────────────────────────────


def _collections(call: Call) -> Response:
    return call.render("collections.html", status=call.memory.status(), job=_visible_job(call))


def _index(call: Call) -> Response:
    """Index a folder, a collection or all of them, in the background."""
    memory, path = call.memory, call.given("path")
    folders = [call.site.folder(path)] if path else []
    if folders and not folders[0].is_dir():
        raise UsageError(f"there is no folder {folders[0]}", "check the path")
    call.site.jobs.start(
        f"index {path or 'all collections'}", lambda report: index_text(memory.index(*folders, report=report))
    )
    return call.done("/collections", "Indexing has started.")


def _remove(call: Call) -> Response:
    call.require_owner()  # it would be gone for all agents
    name = call.given("name")
    chunks = call.memory.collections.remove(name)
    return call.done("/collections", f"{name} was removed with {chunks:,} chunks; its files stay as they are.")


# ── health ────────────────────────────────────────────────────────────────────────────────────────────────────


def _doctor(call: Call) -> Response:
    call.require_owner()
    memory = call.memory
    checks = [(check, _action(check)) for check in memory.doctor()]
    return call.render(
        "doctor.html",
        checks=checks,
        status=memory.status(),
        statistics=memory.maintenance.statistics() if call.has_entries else None,
        job=_visible_job(call),
    )


def _action(check: Check) -> str:
    """The command that a failed check suggests, if a button can run it."""
    found = _COMMAND.search(check.fix) if not check.ok else None
    return found[1] if found else ""


def _run(call: Call) -> Response:
    """Do in the background what a check suggests."""
    call.require_owner()
    memory, action = call.memory, call.given("action")
    actions: dict[str, Callable[[Report], str]] = {
        "optimize": lambda _: _optimize_report(memory),
        "backfill": lambda report: "{} embedded, {} remaining".format(*memory.maintenance.backfill(report=report)),
        "reembed": lambda report: f"{memory.models.reembed(report=report).embedded} embedded",
        "index": lambda report: index_text(memory.index(report=report)),
    }
    if action not in actions:
        raise UsageError(f"unknown action '{action}'", f"use one of {', '.join(actions)}")
    call.site.jobs.start(action, actions[action])
    return call.done("/doctor", f"{action.capitalize()} has started.")


def _optimize_report(memory: Memory) -> str:
    memory.maintenance.optimize()
    return "optimized"


def _secrets(call: Call) -> Response:
    call.require_owner()
    is_scanned = call.given("scan") == "1"
    found = call.memory.maintenance.scan() if is_scanned else ()
    return call.render("secrets.html", is_scanned=is_scanned, found=found)


def _remove_secrets(call: Call) -> Response:
    call.require_owner()
    if call.given("sure") != "yes":
        raise UsageError(
            "entries with a secret are deleted permanently, with their history", "tick the box to confirm that"
        )
    return call.done("/secrets", secrets_removed_text(call.memory.maintenance.remove_secrets()))


# ── settings and models ───────────────────────────────────────────────────────────────────────────────────────


def _settings(call: Call) -> Response:
    call.require_owner()
    return call.render("settings.html", settings=settings_json(call.memory.settings))


def _models(call: Call) -> Response:
    call.require_owner()
    memory = call.memory
    return call.render("models.html", models=memory.models.list(), status=memory.status())


# ── growth ────────────────────────────────────────────────────────────────────────────────────────────────────
# Charts that the server draws, and the same as a table.


def _growth(call: Call) -> Response:
    growth = call.memory.maintenance.statistics(growth=True).growth
    assert growth is not None
    periods = growth.periods
    charts = (
        _chart("Entries", "entry", growth, [(one.entries_total, one.entries) for one in periods]),
        _chart("Chunks of files", "chunk", growth, [(one.chunks_total, one.chunks) for one in periods]),
        _chart("Recalls", "recall", growth, [(one.recalls, one.recalls) for one in periods]),
    )
    names = [period_name(one, growth.unit) for one in periods]
    return call.render("growth.html", growth=growth, charts=charts, rows=list(zip(names, periods, strict=True)))


def _chart(title: str, one: str, growth: MemoryGrowth, values: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """A chart with a bar per period: its whole height, and of that the upper part that the period added."""
    several = "entries" if one == "entry" else ""
    most = max((whole for whole, _ in values), default=0) or 1
    bars = []
    for place, ((whole, added), period) in enumerate(zip(values, growth.periods, strict=True)):
        height, upper = (round(_HEIGHT * value / most, 2) for value in (whole, added))
        text = f"{period_name(period, growth.unit)}: {amount(whole, one, several)}"
        more = f", {added:,} of them new" if added and whole != added else ""
        bars.append({"x": place * _STEP, "y": _HEIGHT - height, "height": height, "upper": upper, "text": text + more})
    return {
        "title": title,
        "is_empty": not any(whole for whole, _ in values),
        "width": len(values) * _STEP - _GAP,
        "bar_width": _STEP - _GAP,
        "bars": bars,
        "label": _label(title, growth, values),
        "most": max((whole for whole, _ in values), default=0),
    }


def _label(title: str, growth: MemoryGrowth, values: Sequence[tuple[int, int]]) -> str:
    """What a chart shows, in a sentence, for who does not see it."""

    def at(place: int) -> str:
        period: Period = growth.periods[place]
        return f"{values[place][0]:,} in the {growth.unit} of {period_name(period, growth.unit)}"

    peak = max(range(len(values)), key=lambda place: values[place][0])
    return f"{title} by {growth.unit}: {at(0)}, {at(-1)}; the most are {at(peak)}"
