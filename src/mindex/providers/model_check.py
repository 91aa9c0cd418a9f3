"""Checks whether a configured model answers within a short time, and says what is wrong with it."""

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from mindex.datatypes import Check, Model
from mindex.errors import MindexError
from mindex.providers.embed.base import Embedder
from mindex.providers.generate.base import Generator, Prompt
from mindex.providers.rerank.base import Reranker

_QUERY = "Does this model answer?"
# Granted beyond the time-out of a provider, so that its own error arrives.
_GRACE_SECONDS = 1.5


M = TypeVar("M", Embedder, Reranker, Generator)


def check_embedder(name: str, make: Callable[[], Embedder | None], space: Model | None, seconds: float) -> Check:
    """Return whether an embedder answers, and with vectors of the length that the space has."""

    def use(embedder: Embedder) -> Check:
        length = len(embedder.embed_query(_QUERY))
        model = embedder.model.name
        if space is not None and length != space.dimensions:
            message = f"{model} answers with {length} dimensions, this memory's vectors have {space.dimensions}"
            return Check(name, False, message, "run `mindex reembed`")
        weights = f", weights sha256:{embedder.model.sha256}" if embedder.model.sha256 else ""
        return Check(name, True, f"{model} answers with {length} dimensions{weights}")

    return _check(name, make, use, seconds, none="none is configured: search is by keyword")


def check_reranker(make: Callable[[], Reranker | None], seconds: float) -> Check:
    def use(reranker: Reranker) -> Check:
        reranker.score(_QUERY, ["It does.", "Bread is baked."], seconds=seconds)
        return Check("reranker", True, f"{reranker.name} answers")

    return _check("reranker", make, use, seconds)


def check_generator(make: Callable[[], Generator | None], seconds: float) -> Check:
    def use(generator: Generator) -> Check:
        generator.generate(Prompt("You answer with one word.", "Say yes.", max_tokens=8), seconds=seconds)
        return Check("language model", True, f"{generator.name} answers")

    return _check("language model", make, use, seconds)


def all_at_once(jobs: Sequence[Callable[[], Check]]) -> tuple[Check, ...]:
    """Run the checks at the same time and return their results in order: three servers that hang take one time-out."""
    results: dict[int, Check] = {}

    def run(number: int) -> None:
        results[number] = jobs[number]()

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tuple(results[number] for number in range(len(jobs)))


def _check(
    name: str, make: Callable[[], M | None], use: Callable[[M], Check], seconds: float, none: str = "none is configured"
) -> Check:
    """Make, load and use a model; return a result for every failure and after a time-out."""
    result: list[Check] = []

    def run() -> None:
        try:
            model = make()
            if model is None:
                result.append(Check(name, True, none))
            else:
                model.load()  # also reaches a server whose breaker is open
                result.append(use(model))
        except MindexError as error:
            result.append(Check(name, False, error.message, error.hint))
        except Exception as error:  # a model's library may raise anything; the other checks go on
            result.append(Check(name, False, f"it failed ({type(error).__name__}: {error})", "check its settings"))

    # Not a pool: its threads would keep the process alive for as long as a server hangs.
    thread = threading.Thread(target=run, name="mindex-check", daemon=True)
    thread.start()
    thread.join(seconds + _GRACE_SECONDS)
    if result:
        return result[0]
    return Check(name, False, f"no answer within {seconds:g} seconds", "is it running, or still loading? try again")
