"""Rows about processes: how soon a server answers, what a single search costs, how much a server holds."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import corpus
from client import BARE_SERVER, Server, mindex_command
from ground import Ground
from measure import Row, Timings, Took, alternate, run_child, told

_MEGABYTE = 1_000_000
_BARE_CLICK = """
import click
@click.command()
@click.argument("query")
def main(query):
    click.echo(query)
main()
"""
_EMBED_ONE = """
import sys
from mindex.providers.embed.local import LocalEmbedder
print(LocalEmbedder().embed_query(sys.argv[1])[0])
"""
# `mindex` that notes when a heavy module is first asked for, by the clock that its parent reads too.
_WATCHED = """
import sys, time
log = sys.argv.pop(1)
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name in ("numpy", "onnxruntime", "tokenizers"):
            with open(log, "a") as file:
                file.write(f"{time.monotonic()} {name}\\n")
sys.meta_path.insert(0, Watch())
from mindex.cli.main import main
main()
"""


def initialize(ground: Ground) -> Row:
    serve = mindex_command("--db", ground.store(ground.sizes.small), "serve")

    def start(command: Sequence[str]) -> Callable[[int], Took]:
        def once(_: int) -> Took:
            with Server(command, ground.work) as server:
                return server.initialize()

        if ground.sizes.starts > 1:
            once(0)  # bytecode is there from now on
        return once

    ours, bare = alternate(ground.sizes.starts, start(serve), start(BARE_SERVER))
    early = _imported_before_answer(ground)
    ratio = ours.over(bare)
    return Row(
        name="initialize",
        measured=f"`mindex serve`, start to `initialize` answered: {told(ours.wall)}",
        baseline=f"a bare SDK server: {told(bare.wall)}",
        ratio=f"{ratio:.2f}×",
        target="≤ 0.35×, no model imported before",
        ok=ratio <= 0.35 and not early,
        note=f"{_of_starts(ours, bare)}; imported before the answer: {', '.join(early) or 'no numpy, no onnxruntime'}",
        numbers={"ratio": ratio, "cpu_ratio": ours.cpu_over(bare), "early": len(early)},
    )


def _imported_before_answer(ground: Ground) -> list[str]:
    log = ground.scratch("imports") / "log"
    log.touch()
    command = [sys.executable, "-c", _WATCHED, str(log), "--db", str(ground.store(ground.sizes.small)), "serve"]
    with Server(command, ground.work) as server:
        server.initialize()
        answered = time.monotonic()
        server.call("search", query="what loads the model")  # the first call that can use it
        while "onnxruntime" not in log.read_text() and time.monotonic() < answered + 20:
            time.sleep(0.05)
    seen = [line.split() for line in log.read_text().splitlines()]
    if not seen:
        return ["nothing, not even later: the check saw no model load"]
    return [name for moment, name in seen if float(moment) < answered]


# ── one search, one process ───────────────────────────────────────────────────────────────────────────────────


def cold_keyword(ground: Ground) -> Row:
    command = mindex_command("--db", ground.store(ground.sizes.small), "search", "--mode", "keyword")
    ours, bare = _cold(ground, 3, command, [sys.executable, "-c", _BARE_CLICK])
    ratio = ours.over(bare)
    return Row(
        name="cold-keyword",
        measured=f"`mindex search --mode keyword`, {ground.sizes.small:,} records: {told(ours.wall)}",
        baseline=f"a bare Python with click: {told(bare.wall)}",
        ratio=f"{ratio:.2f}×",
        target="≤ 3×",
        ok=ratio <= 3,
        note=_of_starts(ours, bare),
        numbers={"ratio": ratio, "cpu_ratio": ours.cpu_over(bare)},
    )


def hook_prompt(ground: Ground) -> Row:
    """Each start is another conversation: what was recalled before is not recalled again."""
    store = ground.store(ground.sizes.large)
    command = mindex_command("--db", store, "hook", "prompt")
    log = store.parent / "hooks.log"  # a hook that fails says so there alone
    log.unlink(missing_ok=True)
    bare_command = [sys.executable, "-c", _BARE_CLICK, "question"]
    questions = ground.questions(3, ground.sizes.starts + 1)

    def prompt(turn: int) -> Took:
        message = {
            "session_id": f"bench-{time.time_ns()}",
            "hook_event_name": "UserPromptSubmit",
            "prompt": questions[turn],
        }
        return run_child(command, ground.work, stdin=json.dumps(message).encode())

    if ground.sizes.starts > 1:  # bytecode is there from now on
        prompt(ground.sizes.starts)
        run_child(bare_command, ground.work)
    ours, bare = alternate(ground.sizes.starts, prompt, lambda _: run_child(bare_command, ground.work))
    shutil.rmtree(store.parent / "hooks")
    ratio = ours.over(bare)
    return Row(
        name="hook-prompt",
        measured=f"`mindex hook prompt`, {ground.sizes.large:,} records: {told(ours.wall)}",
        baseline=f"a bare Python with click: {told(bare.wall)}",
        ratio=f"{ratio:.2f}×",
        target="≤ 3×",
        ok=ratio <= 3 and not log.exists(),
        note=_of_starts(ours, bare),
        numbers={"ratio": ratio, "cpu_ratio": ours.cpu_over(bare)},
    )


def cold_hybrid(ground: Ground) -> Row:
    command = mindex_command("--db", ground.store(ground.sizes.large), "search")
    ours, model = _cold(ground, 4, command, [sys.executable, "-c", _EMBED_ONE])
    ratio = ours.over(model)
    return Row(
        name="cold-hybrid",
        measured=f"`mindex search`, {ground.sizes.large:,} records: {told(ours.wall)}",
        baseline=f"loading the model and embedding one query: {told(model.wall)}",
        ratio=f"{ratio:.2f}×",
        target="≤ 1.5×",
        ok=ratio <= 1.5,
        note=_of_starts(ours, model),
        numbers={"ratio": ratio, "cpu_ratio": ours.cpu_over(model)},
    )


def _cold(ground: Ground, lot: int, ours: list[str], baseline: list[str]) -> list[Timings]:
    """A new question for every start; the first start of each side only leaves its bytecode behind."""
    questions = ground.questions(lot, ground.sizes.starts + 1)
    for command in (ours, baseline) if ground.sizes.starts > 1 else ():
        run_child([*command, questions[-1]], ground.work)
    return alternate(
        ground.sizes.starts,
        lambda turn: run_child([*ours, questions[turn]], ground.work),
        lambda turn: run_child([*baseline, questions[turn]], ground.work),
    )


def _of_starts(ours: Timings, other: Timings) -> str:
    return (
        f"wall, median of {len(ours.runs)} alternating starts; middle half {ours.spread} against {other.spread};"
        f" CPU {ours.cpu_over(other):.2f}×"
    )


# ── resident memory ───────────────────────────────────────────────────────────────────────────────────────────


def resident(ground: Ground) -> Row:
    target = "≤ 300 MB"
    if not Path("/proc/self/status").exists():
        return Row(
            "resident", "resident memory of `mindex serve`", "–", "–", target, None, "skipped: needs Linux's /proc"
        )
    scratch = ground.scratch("resident")
    database = shutil.copyfile(ground.store(ground.sizes.large), scratch / "memory.db")
    taken = 0
    for text in reversed(ground.texts):  # others than those that the model has read for the store
        size = len(corpus.passages([text]))
        if taken + size <= ground.sizes.chunks:
            corpus.write_folder([text], scratch / "new", int(time.time()) - 3600)
            taken += size
    with Server(BARE_SERVER, ground.work) as bare:
        bare.initialize()
        least = bare.memory()
    with Server(mindex_command("--db", database, "serve", "--root", scratch), ground.work) as server:
        server.initialize()
        tiers = [
            server.call("search", query=question).get("tier", "hybrid")
            for question in _asked(ground, 5, ground.sizes.searches)
        ]
        after_searches, file_backed = server.memory(), server.memory("RssFile")
        embedded = server.call("index", path="new")["embedded"]
        after_index = server.memory()
        tiers += [
            server.call("search", query=q).get("tier", "hybrid") for q in _asked(ground, 6, ground.sizes.searches // 5)
        ]
        after_all, peak = server.memory(), server.memory("VmHWM")
    shutil.rmtree(scratch)
    most = max(after_searches, after_index, after_all)
    return Row(
        name="resident",
        measured=f"`mindex serve`, {ground.sizes.large:,} records: {_mb(after_searches)} after {ground.sizes.searches}"
        f" searches, {_mb(after_index)} after it embedded {embedded} chunks, {_mb(after_all)} after more searches",
        baseline=f"a bare SDK server: {_mb(least)}",
        ratio=f"{most / least:.1f}×",
        target=target,
        ok=most <= 300 * _MEGABYTE and "hybrid" in tiers,
        note=f"VmRSS; {_mb(file_backed)} of it are mapped files (model, libraries); peak {_mb(peak)};"
        f" {tiers.count('hybrid')} of {len(tiers)} answers were hybrid",
        numbers={"megabytes": most / _MEGABYTE, "peak": peak / _MEGABYTE, "ratio": most / least},
    )


def _asked(ground: Ground, lot: int, count: int) -> list[str]:
    return ground.questions(lot, max(1, count))


def _mb(size: int) -> str:
    return f"{size / _MEGABYTE:.0f} MB"
