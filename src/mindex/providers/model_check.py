"""Asks a model for a sign of life, within a time that nobody minds, and puts into words what is wrong with it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from mindex.errors import MindexError
from mindex.model import Check, Model
from mindex.providers.embed.base import Embedder
from mindex.providers.generate.base import Generator, Prompt
from mindex.providers.rerank.base import Reranker

_QUESTION = "Does this model answer?"
# Given on top of what a provider is told to take at the most, so that it can say itself what went wrong.
_GRACE_SECONDS = 1.5


def check_embedder(name: str, make: Callable[[], Embedder | None], space: Model | None, seconds: float) -> Check:
    """Whether an embedder answers, and with vectors that fit those of a space."""

    def ask() -> Check:
        embedder = make()
        if embedder is None:
            return Check(name, True, "none is configured: search is by keyword")
        embedder.load()  # reaches a server that others leave alone for a while
        length = len(embedder.embed_query(_QUESTION))
        model = embedder.model
        if space is not None and length != space.dimensions:
            return Check(
                name,
                False,
                f"{model.name} answers with {length} dimensions, this memory's vectors have {space.dimensions}",
                "run `mindex reembed`",
            )
        return Check(name, True, f"{model.name} answers with {length} dimensions")

    return _within(seconds, name, ask)


def check_reranker(make: Callable[[], Reranker | None], seconds: float) -> Check:
    def ask() -> Check:
        reranker = make()
        if reranker is None:
            return Check("reranker", True, "none is configured")
        reranker.load()
        reranker.score(_QUESTION, ["It does.", "Bread is baked."], seconds=seconds)
        return Check("reranker", True, f"{reranker.name} answers")

    return _within(seconds, "reranker", ask)


def check_generator(make: Callable[[], Generator | None], seconds: float) -> Check:
    def ask() -> Check:
        generator = make()
        if generator is None:
            return Check("language model", True, "none is configured")
        generator.load()
        generator.generate(Prompt("You answer with one word.", "Say yes.", max_tokens=8), seconds=seconds)
        return Check("language model", True, f"{generator.name} answers")

    return _within(seconds, "language model", ask)


def all_at_once(jobs: Sequence[Callable[[], Check]]) -> tuple[Check, ...]:
    """Every check's outcome, in order: three servers that hang are waited for once."""
    found: dict[int, Check] = {}

    def run(number: int) -> None:
        found[number] = jobs[number]()

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tuple(found[number] for number in range(len(jobs)))


def _within(seconds: float, name: str, ask: Callable[[], Check]) -> Check:
    """The outcome of a check, whatever it fails with, and however long it would take."""
    outcome: list[Check] = []

    def run() -> None:
        try:
            outcome.append(ask())
        except MindexError as error:
            outcome.append(Check(name, False, error.message, error.hint))
        except Exception as error:  # whatever a model's library fails with, the other checks go on
            outcome.append(Check(name, False, f"it failed ({type(error).__name__}: {error})", "check its settings"))

    # Not a pool: its threads would keep the process alive for as long as a server hangs.
    thread = threading.Thread(target=run, name="mindex-check", daemon=True)
    thread.start()
    thread.join(seconds + _GRACE_SECONDS)
    if outcome:
        return outcome[0]
    return Check(name, False, f"no answer within {seconds:g} seconds", "is it running, or still loading? try again")
