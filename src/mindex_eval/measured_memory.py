"""The memory that an evaluation measures: the product's own, with cached models and a store that keeps no usage."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from mindex import Memory
from mindex.config import Configured, Settings, load_settings
from mindex.errors import ConfigError, UsageError
from mindex.evaluation_parts import ConfiguredProviders, Generator, ProviderSettings, Reranker, open_store
from mindex.store.base import Store
from mindex_eval.cached_models import CachedEmbedder, CachedGenerator, CachedReranker

# Settings that say nothing about answers: where this user's entries are stored, and for which agent.
_NOT_MEASURED = ("db", "agent", "workspace.path")


class CachedProviders:
    """The models of the settings, behind a cache that all evaluation runs share."""

    # A vector from the cache says nothing about what the model is now.
    checks_canaries = False

    def __init__(self, settings: Settings, cache: Store) -> None:
        self._configured = ConfiguredProviders(settings)
        self._cache = cache
        self.settings = self._configured.settings

    def embedder(self, settings: ProviderSettings) -> CachedEmbedder | None:
        embedder = self._configured.embedder(settings)
        return None if embedder is None else CachedEmbedder(embedder, self._cache)

    @cached_property
    def reranker(self) -> Reranker | None:
        reranker = self._configured.reranker
        return None if reranker is None else CachedReranker(reranker, self._cache)

    @cached_property
    def requested_reranker(self) -> Reranker:
        return self.reranker or CachedReranker(self._configured.requested_reranker, self._cache)

    @cached_property
    def generator(self) -> Generator | None:
        generator = self._configured.generator
        return None if generator is None else CachedGenerator(generator, self._cache)

    @property
    def calls(self) -> int:
        """How often a reranker or a generator itself had to work."""
        models = (self.reranker, self.generator)
        return sum(model.calls for model in models if isinstance(model, CachedReranker | CachedGenerator))


class MeasuredMemory:
    """A memory and its cached models. It keeps no caches and no accesses: the last query finds it as the first did."""

    def __init__(self, db: str | Path, settings: Mapping[str, str], cache: Store) -> None:
        effective_settings = settings_for(settings, db)
        self.providers = CachedProviders(effective_settings, cache)
        store = open_store(effective_settings.database, cache_rows=0, logs_access=False)
        self.memory = Memory(settings=effective_settings, store=store, providers=self.providers)

    def __enter__(self) -> MeasuredMemory:
        return self

    def __exit__(self, *_: object) -> None:
        self.memory.close()

    @property
    def model_name(self) -> str:
        """The name of the embedding model; empty without one."""
        embedder = self.memory.models.embedder
        return embedder.model.name if embedder else ""

    def embed_queries_anew(self, anew: bool) -> None:
        """Whether queries are embedded as if they had never been embedded before: their time is measured."""
        embedder = self.memory.models.embedder
        if isinstance(embedder, CachedEmbedder):
            embedder.fresh = anew


def settings_for(given: Mapping[str, str], db: str | Path | None = None, *, option: str = "--set") -> Settings:
    """The user's settings, with those of this run on top. A key or a value that is none is an error of `option`."""
    flags: dict[str, object] = {**given, "workspace.path": "", "agent": "main", "db": str(db) if db else None}
    known = {one.setting.key: one.setting for one in load_settings({})}
    for key, value in given.items():
        if key not in known:
            raise UsageError(f"there is no setting '{key}'", "`mindex config` lists the settings")
        if key in _NOT_MEASURED:
            raise UsageError(f"{key} does not affect answers", "leave it out")
        try:
            known[key].parse(value)
        except ValueError as error:
            raise UsageError(
                f"{option} {key}={value} is not valid: {error}", f"correct {key}: {known[key].meaning}"
            ) from None
    try:
        return load_settings(flags)
    except ConfigError as error:  # each alone is right, and so is what the user has configured
        raise UsageError(f"{option} does not fit: {error.message}", error.hint) from None


def changed_settings(settings: Settings) -> dict[str, str]:
    """Those that are not at their defaults, secrets left out."""

    def differs(one: Configured) -> bool:
        setting = one.setting
        return not setting.secret and setting.key not in _NOT_MEASURED and one.value != setting.default

    return {one.setting.key: shown_value(one.value) for one in settings if differs(one)}


def shown_value(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
