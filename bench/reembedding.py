"""Rows about a change of model: how fast it goes, and what searching costs while another process is at it."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

from client import mindex_command
from ground import Ground
from measure import Row, Timings, Took, alternate, child_environment, timed, told
from mindex.config import Settings, load_settings
from mindex.datatypes.spaces import EmbedderSpec
from mindex.embedding_text import embedding_pieces
from mindex.memory import Memory
from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import Embedder
from mindex.providers.factory import ConfiguredProviders
from mindex.providers.packaged_models import BUILT_IN, packaged_models

_LOT = 8
# What the store was embedded with before; it gets no more requests.
_BEFORE = EmbedderSpec("ollama", "all-minilm")
_BEGUN_SECONDS = 120


class _LoadedModel(ConfiguredProviders):
    """Uses the model that is loaded already: loading it again is not part of a rate."""

    def __init__(self, settings: Settings, loaded: Embedder) -> None:
        super().__init__(settings)
        self._loaded = loaded

    def embedder(self, settings: ProviderSettings) -> Embedder | None:
        return self._loaded if settings.provider == BUILT_IN.provider else super().embedder(settings)


def reembed_rate(ground: Ground) -> Row:
    """Other records in each turn; the baseline reads the very pieces that are made of them, all at once."""
    scratch = ground.scratch("reembed")
    rounds, size = ground.sizes.rounds, ground.sizes.chunks
    texts = [ground.passages[turn * size : (turn + 1) * size] for turn in range(rounds)]
    pieces: list[list[str]] = []
    for turn, passages in enumerate(texts):
        ground.fill(scratch / f"{turn}.db", passages, _BEFORE)
        with Memory(scratch / f"{turn}.db") as memory:
            records = memory.store.retrieval.list(memory.filters(), limit=size).records
            pieces.append([piece for record in records for piece in embedding_pieces(record)])

    def reembed(turn: int) -> Took:
        settings = load_settings({"db": str(scratch / f"{turn}.db")})
        with Memory(settings=settings, providers=_LoadedModel(settings, ground.embedder)) as memory:
            took = timed(lambda: memory.models.reembed(provider=BUILT_IN.provider, model=BUILT_IN.name))
            if memory.store.vectors.active_space() != BUILT_IN.fingerprint or memory.store.vectors.pending(BUILT_IN):
                raise RuntimeError("the change of model is not complete")
        return took

    ours, embedding = alternate(rounds, reembed, lambda turn: timed(lambda: ground.embedder.embed(pieces[turn])))
    shutil.rmtree(scratch)
    # Turns are of different sizes: a median of ratios, not a ratio of medians.
    pairs = list(zip(embedding.runs, ours.runs, strict=True))
    shares = sorted(one.wall / other.wall for one, other in pairs)
    share = shares[len(shares) // 2]
    cpu = sum(one.cpu for one, _ in pairs) / sum(other.cpu for _, other in pairs)
    count = sum(map(len, texts))
    return Row(
        name="reembed-rate",
        measured=f"memory.models.reembed: {_rate(count, ours)} records/s",
        baseline=f"the embedder on the same texts: {_rate(count, embedding)} records/s",
        ratio=f"{share:.0%}",
        target="≥ 90 %",
        ok=share >= 0.9,
        note=f"wall, median of {rounds} turns, {shares[0]:.0%}–{shares[-1]:.0%}; {count:,} records in"
        f" {sum(map(len, pieces)):,} pieces; CPU {cpu:.0%}",
        numbers={"ratio": share, "cpu_ratio": cpu},
    )


def _rate(count: int, timings: Timings) -> str:
    return f"{count / sum(run.wall for run in timings.runs):.1f}"


# ── searching at the same time ───────────────────────────────────────────────────────────────────────────────────────


def search_meanwhile(ground: Ground) -> Row:
    """Idle before and after, the other process between; it has far more to embed than there is time for."""
    target = "every answer hybrid"
    package = packaged_models("embedding")[0]
    model = package.model
    if not package.installed:
        skipped = f"skipped: {model.name} is not installed; {package.install}"
        return Row("meanwhile", "searching while another process re-embeds", "–", "–", target, None, skipped)
    scratch = ground.scratch("meanwhile")
    database = Path(shutil.copyfile(ground.store(ground.sizes.small), scratch / "memory.db"))
    questions = ground.questions(_LOT)
    quarter = max(1, len(questions) // 4)
    with Memory(database) as memory:
        memory.models.load()
        memory.search(ground.questions(9, 1)[0])
        before, tiers = _searches(memory, questions[:quarter])
        command = mindex_command("--db", database, "reembed", "--provider", model.provider, "--model", model.name)
        with (scratch / "reembed.log").open("wb") as log:
            child = subprocess.Popen(command, env=child_environment(ground.work), cwd=scratch, stdout=log, stderr=log)
        try:
            _wait_until_begun(memory, child, scratch / "reembed.log")
            busy, more = _searches(memory, questions[quarter:-quarter])
            embedded = next(space.vectors for space in memory.store.vectors.spaces() if space.next)
        finally:
            child.kill()
            child.wait()
        after, rest = _searches(memory, questions[-quarter:])
    shutil.rmtree(scratch)
    idle, meanwhile = Timings([*before, *after]), Timings(busy)
    tiers += [*more, *rest]
    ratio = meanwhile.over(idle)
    return Row(
        name="meanwhile",
        measured=f"hybrid search of {ground.sizes.small:,} records while another process re-embeds them:"
        f" {told(meanwhile.wall)}",
        baseline=f"while no process does: {told(idle.wall)}",
        ratio=f"{ratio:.2f}×",
        target=target,
        ok=all(tier == "hybrid" for tier in tiers),
        note=f"wall, median of {len(busy)} and {len(idle.runs)} new questions; middle half {meanwhile.spread} against"
        f" {idle.spread}; {tiers.count('hybrid')} of {len(tiers)} answers were hybrid;"
        f" {embedded} records had their new vectors at the end",
        numbers={"ratio": ratio, "hybrid": tiers.count("hybrid") / len(tiers)},
    )


def _searches(memory: Memory, questions: list[str]) -> tuple[list[Took], list[str]]:
    tiers: list[str] = []

    def ask(question: str) -> None:
        tiers.append(memory.search(question, floor=0).tier)

    return [timed(lambda question=question: ask(question)) for question in questions], tiers


def _wait_until_begun(memory: Memory, child: subprocess.Popen[bytes], log: Path) -> None:
    """Until it has stored its first vectors: from then on it does nothing but embed."""
    until = time.monotonic() + _BEGUN_SECONDS
    while not any(space.next and space.vectors for space in memory.store.vectors.spaces()):
        if child.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"`mindex reembed` did not begin:\n{log.read_text(errors='replace')}")
        time.sleep(0.1)
