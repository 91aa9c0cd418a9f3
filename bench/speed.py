"""Speed, as ratios against named baselines measured in the same run: `python bench/speed.py`.

Every row measures mindex and its baseline by turns, so that a busy machine slows both, and compares medians. Text is
the documentation of installed packages; most of the 100,000 vectors are real ones with a little noise. What is built
for it (some hundred megabytes) is kept in the work folder, so that the next run starts at once.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import versions
from budgets import budget_search
from entries import entries_bulk, entries_search
from ground import QUICK, Ground, Sizes, say
from indexing import embed_rate, index_rate, unchanged
from measure import Row, load
from mindex import __version__
from outage import cold_down, down
from reembedding import reembed_rate, search_meanwhile
from reranking import rerank, rerank_again
from searching import hybrid_large, hybrid_small, vector_stage
from serving import http_clients, page_search
from starting import cold_hybrid, cold_keyword, hook_prompt, initialize, resident
from telling import adding, bulk, lookup, recall, updating

ROWS: dict[str, Callable[[Ground], Row]] = {
    "hybrid-10k": hybrid_small,
    "hybrid-100k": hybrid_large,
    "budget-10k": budget_search,
    "vector-stage": vector_stage,
    "embed-rate": embed_rate,
    "index-rate": index_rate,
    "unchanged": unchanged,
    "initialize": initialize,
    "cold-keyword": cold_keyword,
    "cold-hybrid": cold_hybrid,
    "hook-prompt": hook_prompt,
    "resident": resident,
    "add": adding,
    "near-lookup": lookup,
    "bulk": bulk,
    "update": updating,
    "recall": recall,
    "entries-bulk": entries_bulk,
    "entries-search": entries_search,
    "rerank": rerank,
    "rerank-again": rerank_again,
    "down": down,
    "cold-down": cold_down,
    "reembed-rate": reembed_rate,
    "meanwhile": search_meanwhile,
    "http-clients": http_clients,
    "page-search": page_search,
}
_WIDTHS = (12, 50, 44, 7, 22, 6)
_TITLES = ("name", "measured", "baseline", "ratio", "target", "")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    work: Path = options.work
    work.mkdir(parents=True, exist_ok=True)
    ground = Ground(work.resolve(), QUICK if options.quick else Sizes())
    rows, loads = [], [load()]
    try:
        if options.against:
            rows += versions.against(ground, options.only or versions.NAMES, options.against)
            loads.append(load())
        for name in () if options.against else options.only or ROWS:
            say(f"measuring {name} ({load()})")
            rows.append(ROWS[name](ground))
            loads.append(load())
    finally:
        ground.clean()
    if options.json:
        print(json.dumps({"loads": loads, "quick": options.quick, "rows": [asdict(row) for row in rows]}, indent=1))
    else:
        print(table(rows))
        machine = f"Python {platform.python_version()}, {platform.machine()}"
        print(f"\nmindex {__version__}, {machine}; {loads[0]} … {loads[-1]}")
        if options.quick:
            print("--quick: sizes too small for the ratios to mean anything")
    return 1 if any(row.ok is False for row in rows) and not options.quick else 0


def table(rows: Sequence[Row]) -> str:
    """One table; a row's note is below it."""
    rule = "─" * (sum(_WIDTHS) + 2 * (len(_WIDTHS) - 1))
    lines = [*_cells(_TITLES), rule]
    for row in rows:
        verdict = {True: "ok", False: "NOT OK", None: "–"}[row.ok]
        lines += _cells((row.name, row.measured, row.baseline, row.ratio, row.target, verdict))
        lines += [f"{'':{_WIDTHS[0]}}  · {line}" for line in textwrap.wrap(row.note, len(rule) - _WIDTHS[0] - 4)]
    return "\n".join([*lines, rule])


def _cells(texts: Sequence[str]) -> list[str]:
    columns = [textwrap.wrap(text, width) or [""] for text, width in zip(texts, _WIDTHS, strict=True)]
    return [
        "  ".join(
            f"{column[line] if line < len(column) else '':{width}}"
            for column, width in zip(columns, _WIDTHS, strict=True)
        ).rstrip()
        for line in range(max(map(len, columns)))
    ]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=ROWS, metavar="NAME", help=f"some of: {', '.join(ROWS)}")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: see that it runs, not how fast")
    parser.add_argument(
        "--against",
        type=Path,
        metavar="PYTHON",
        help=f"compare with the mindex of another interpreter, by turns: {', '.join(versions.NAMES)}",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument(
        "--work",
        type=Path,
        default=Path(tempfile.gettempdir()) / "mindex-bench",
        help="where built stores are kept (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    if options.against and (refused := set(options.only or ()) - {*versions.NAMES}):
        parser.error(f"--against cannot measure {', '.join(sorted(refused))}; use {', '.join(versions.NAMES)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
