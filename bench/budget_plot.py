"""A chart of the share of the excerpts against the token budget, as SVG that is legible on light and dark pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

_WIDTH, _HEIGHT = 640, 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 130, 16, 46
_STYLE = """
text { fill: #24292f; font: 12px sans-serif } .grid { stroke: #d0d7de } .line { fill: none; stroke-width: 2.5 }
.c0 { stroke: #0969da } .c1 { stroke: #9a6700; stroke-dasharray: 6 4 } text.c0 { fill: #0969da; stroke: none }
text.c1 { fill: #9a6700; stroke: none }
@media (prefers-color-scheme: dark) {
text { fill: #c9d1d9 } .grid { stroke: #444c56 }
.c0 { stroke: #58a6ff } .c1 { stroke: #d29922 } text.c0 { fill: #58a6ff } text.c1 { fill: #d29922 }
}
"""


def plot(budgets: Sequence[int], curves: Mapping[str, Sequence[float]]) -> str:
    """One line for each of two names."""

    def x(budget: float) -> float:
        return _LEFT + budget / budgets[-1] * (_WIDTH - _LEFT - _RIGHT)

    def y(share: float) -> float:
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        f"<title>Share of the answering text in an answer, by token budget: {', '.join(curves)}</title>",
        f"<style>{_STYLE}</style>",
    ]
    for percent in range(0, 101, 25):
        at = y(percent / 100)
        parts.append(f'<line class="grid" x1="{_LEFT}" y1="{at:.1f}" x2="{_WIDTH - _RIGHT}" y2="{at:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{percent} %</text>')
    parts += [
        f'<text x="{x(budget):.1f}" y="{_HEIGHT - 28}" text-anchor="middle">{budget:,}</text>'
        for budget in range(0, budgets[-1] + 1, 500)
    ]
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{_HEIGHT - 8}" text-anchor="middle">tokens of the answer, at most</text>')
    for number, (name, shares) in enumerate(curves.items()):
        points = " ".join(f"{x(one):.1f},{y(share):.1f}" for one, share in zip(budgets, shares, strict=True))
        parts.append(f'<polyline class="line c{number}" points="{points}"/>')
        at = y(shares[-1]) + (4 if number == 0 else 14)
        parts.append(f'<text class="c{number}" x="{_WIDTH - _RIGHT + 8}" y="{at:.1f}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>\n"])
