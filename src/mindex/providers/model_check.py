"""Checks whether models answer within a short time, and says what is wrong with those that do not."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any

from mindex.datatypes import Check, Model, Role
from mindex.errors import EmbeddingError, MindexError
from mindex.providers.base import IN_PROCESS, ProviderSettings, create_model
from mindex.providers.generate.base import Prompt
from mindex.values import dataclass

_QUERY = "Does this model answer?"
# A model in this process needs time to load; a server is given only this long to answer a check.
_LOADING_SECONDS = 60.0
_ANSWERING_SECONDS = 8.0
# Granted beyond the time-out of a provider, so that its own error arrives.
_GRACE_SECONDS = 1.5


def seconds_for(settings: ProviderSettings) -> float:
    """Return how long a check waits for a model."""
    return _LOADING_SECONDS if settings.provider in IN_PROCESS else min(settings.timeout, _ANSWERING_SECONDS)


def with_short_timeout(settings: ProviderSettings) -> ProviderSettings:
    """Return the settings with a time-out that is no longer than a check waits."""
    return replace(settings, timeout=min(settings.timeout, seconds_for(settings)))


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """The check of one model: `make` returns it, or None if none is configured."""

    role: Role
    name: str
    make: Callable[[], Any]
    seconds: float
    space: Model | None = None  # an embedder's vectors must have its length

    def run(self) -> Check:
        """Make, load and use the model; every failure is a result."""
        try:
            model = self.make()
            if model is None:
                return Check(self.name, True, "none is configured: search is by keyword")
            model.load()  # also reaches a server whose breaker is open
            return Check(self.name, True, self._use(model))
        except MindexError as error:
            return Check(self.name, False, error.message, error.hint)
        except Exception as error:  # a model's library may raise anything; the other checks go on
            return Check(self.name, False, f"it failed ({type(error).__name__}: {error})", "check its settings")

    def _use(self, model: Any) -> str:
        if self.role == "rerank":
            model.score(_QUERY, ["It does.", "Bread is baked."], seconds=self.seconds)
            return f"{model.name} answers"
        if self.role == "generation":
            model.generate(Prompt("You answer with one word.", "Say yes.", max_tokens=8), seconds=self.seconds)
            return f"{model.name} answers"
        length = len(model.embed_query(_QUERY))
        answer = f"{model.model.name} answers with {length} dimensions"
        if self.space is not None and length != self.space.dimensions:
            message = f"{answer}, this memory's vectors have {self.space.dimensions}"
            raise EmbeddingError(message, "run `mindex reembed`")
        return answer + (f", weights sha256:{model.model.sha256}" if model.model.sha256 else "")


def check_of(role: Role, name: str, settings: ProviderSettings) -> ModelCheck:
    """Return the check of the model that these settings name."""
    return ModelCheck(role, name, lambda: create_model(role, with_short_timeout(settings)), seconds_for(settings))


def run_checks(checks: Sequence[ModelCheck]) -> list[Check]:
    """Run the checks at the same time and return their results in order: three servers that hang take one time-out."""
    results: dict[int, Check] = {}

    def run(number: int) -> None:
        results[number] = checks[number].run()

    # Not a pool: its threads would keep the process alive for as long as a server hangs.
    threads = [
        threading.Thread(target=run, args=(number,), name="mindex-check", daemon=True) for number in range(len(checks))
    ]
    started = monotonic()
    for thread in threads:
        thread.start()
    for thread, check in zip(threads, checks, strict=True):
        thread.join(max(0.0, started + check.seconds + _GRACE_SECONDS - monotonic()))
    hint = "is it running, or still loading? try again"
    return [
        results.get(number) or Check(check.name, False, f"no answer within {check.seconds:g} seconds", hint)
        for number, check in enumerate(checks)
    ]
