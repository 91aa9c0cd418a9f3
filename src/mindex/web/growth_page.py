"""How the memory grew, what is recalled and what never was: charts that the server draws, and the same as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from mindex.datatypes.growth import MemoryGrowth, Period
from mindex.present.growth import period_name
from mindex.present.text import amount
from mindex.web.site import Call, Site

_HEIGHT, _STEP, _GAP = 100, 10, 2  # of a chart, in its own units: the page stretches it


def growth_routes(site: Site) -> list[Route]:
    return [site.page("/growth", _growth)]


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
