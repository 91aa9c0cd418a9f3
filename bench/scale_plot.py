"""A plot of cost against size as SVG: both axes logarithmic, so that a cost in proportion to the size is a diagonal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, floor, log10

_WIDTH, _HEIGHT = 720, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 170, 20, 40
_COLOURS = ("#b2182b", "#2166ac", "#1b7837", "#762a83", "#8c510a")


def plot(sizes: Sequence[int], curves: Mapping[str, Sequence[float]]) -> str:
    """One curve of milliseconds for each name."""
    every = [value for values in curves.values() for value in values]
    low, high = floor(log10(min(every))), ceil(log10(max(every)))
    first, last = log10(sizes[0]), log10(sizes[-1])

    def x(size: float) -> float:
        return _LEFT + (log10(size) - first) / max(last - first, 1e-9) * (_WIDTH - _LEFT - _RIGHT)

    def y(value: float) -> float:
        return _HEIGHT - _BOTTOM - (log10(value) - low) / max(high - low, 1) * (_HEIGHT - _TOP - _BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
    ]
    for power in range(low, high + 1):
        at = y(10**power)
        parts.append(f'<line x1="{_LEFT}" y1="{at:.1f}" x2="{_WIDTH - _RIGHT}" y2="{at:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{10**power:g} ms</text>')
    parts += [f'<text x="{x(size):.1f}" y="{_HEIGHT - 14}" text-anchor="middle">{size:,}</text>' for size in sizes]
    labels: list[float] = []
    for (name, values), colour in zip(curves.items(), _COLOURS, strict=False):
        points = " ".join(f"{x(size):.1f},{y(value):.1f}" for size, value in zip(sizes, values, strict=True))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        at = y(values[-1])
        while any(abs(at - other) < 14 for other in labels):  # names must not cover each other
            at += 14
        labels.append(at)
        parts.append(f'<text x="{_WIDTH - _RIGHT + 8}" y="{at + 4:.1f}" fill="{colour}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>\n"])
