"""A memory that is measured: like any other, but it keeps nothing of what it is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from mindex.config import Configured, Settings, load_settings
from mindex.errors import ConfigError, UsageError
from mindex.evaluate.cached_models import CachedEmbedder, CachedGenerator, CachedReranker
from mindex.memory import Memory
from mindex.model import Answer, Record
from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import Embedder
from mindex.providers.generate.base import Generator
from mindex.providers.rerank.base import Reranker
from mindex.store.base import Store
from mindex.store.sqlite.store import SqliteStore

# Of no concern here: where this user's words are kept, and whose they are.
_NOT_MEASURED = ("db", "agent", "workspace.path")


class MeasuredMemory(Memory):
    """The last question finds it as the first did: it has no caches of its own, and being found lifts nobody.

    What models say comes from a cache that all runs share.
    """

    def __init__(self, db: Path, settings: Mapping[str, str], cache: Store) -> None:
        self._cache = cache
        super().__init__(settings=settings_for(settings, db))

    def __enter__(self) -> MeasuredMemory:
        return self

    def _open_store(self) -> Store:
        return SqliteStore(self.settings.database, cache_rows=0)

    def _note_access(
        self, records: Sequence[Record], action: str, query: str = "", answer: Answer | None = None
    ) -> None:
        """Nobody is remembered for having been found."""

    def _make_embedder(self, asked: ProviderSettings) -> Embedder | None:
        inner = super()._make_embedder(asked)
        return None if inner is None else CachedEmbedder(inner, self._cache)

    def _watched(self, embedder: Embedder | None, edition: int = 0) -> Embedder | None:  # noqa: ARG002 - as the base has it
        """What comes out of the cache says nothing of what the model has become."""
        return embedder

    @cached_property
    def reranker(self) -> Reranker | None:
        inner = super().reranker
        return None if inner is None else CachedReranker(inner, self._cache)

    @cached_property
    def generator(self) -> Generator | None:
        inner = super().generator
        return None if inner is None else CachedGenerator(inner, self._cache)

    def paying(self, fresh: bool) -> None:
        """Whether questions are embedded as if nobody had asked them before."""
        embedder = self.embedder
        if isinstance(embedder, CachedEmbedder):
            embedder.fresh = fresh

    @property
    def asked(self) -> int:
        """How often a reranker or a generator itself had to work."""
        models = (self.reranker, self.generator)
        return sum(model.asked for model in models if isinstance(model, CachedReranker | CachedGenerator))


def settings_for(given: Mapping[str, str], db: Path | None = None, *, option: str = "--set") -> Settings:
    """The user's settings, with those of this run on top. A key or a value that is none is an error of `option`."""
    flags: dict[str, object] = {**given, "workspace.path": "", "agent": "main", "db": str(db) if db else None}
    known = {one.setting.key: one.setting for one in load_settings({})}
    for key, value in given.items():
        if key not in known:
            raise UsageError(f"there is no setting '{key}'", "`mindex config` lists the settings")
        if key in _NOT_MEASURED:
            raise UsageError(f"{key} says nothing about answers", "leave it out")
        try:
            known[key].parse(value)
        except ValueError as error:
            raise UsageError(f"{option} {key}={value} is wrong: {error}", f"it means: {known[key].meaning}") from None
    try:
        return load_settings(flags)
    except ConfigError as error:  # each is right by itself, and so is what the user has configured
        raise UsageError(f"{option} does not fit: {error.message}", error.hint) from None


def changed_settings(settings: Settings) -> dict[str, str]:
    """Those that are not at their defaults, secrets left out."""

    def differs(one: Configured) -> bool:
        setting = one.setting
        return not setting.secret and setting.key not in _NOT_MEASURED and one.value != setting.default

    return {one.setting.key: shown_value(one.value) for one in settings if differs(one)}


def shown_value(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
