"""Makes the models that the settings name: an embedder, a reranker, a language model. Each is made when first used."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from mindex.config import Settings
from mindex.providers.base import ProviderSettings, full_name
from mindex.providers.embed.base import Embedder, create_embedder

if TYPE_CHECKING:  # a keyword search needs neither
    from mindex.providers.generate.base import Generator
    from mindex.providers.rerank.base import Reranker


class Providers(Protocol):
    """Where a memory gets its models from. Another implementation replaces them all (`Memory(providers=…)`)."""

    @property
    def checks_canaries(self) -> bool:
        """Whether embedders are compared with the canary of their space: False when vectors come from a cache."""

    def settings(self, role: str) -> ProviderSettings:
        """What the settings say of one role: `embedding`, `rerank` or `generation`."""

    def embedder(self, settings: ProviderSettings) -> Embedder | None:
        """Make an embedder; None for the provider `none`. Raises ConfigError for an unknown provider."""

    @property
    def reranker(self) -> Reranker | None: ...

    @property
    def requested_reranker(self) -> Reranker:
        """The configured reranker, or the local one when none is configured and a search asks for reranking."""

    @property
    def generator(self) -> Generator | None: ...


class ConfiguredProviders:
    """The models of the settings. Reranker and generator are made once and say themselves when they cannot be had."""

    checks_canaries = True

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def settings(self, role: str) -> ProviderSettings:
        settings = self._settings
        provider, model = settings.text(f"{role}.provider"), settings.text(f"{role}.model")
        return ProviderSettings(
            provider=provider,
            model=full_name(provider, model) if role == "embedding" else model,
            url=settings.text(f"{role}.url"),
            api_key=settings.text(f"{role}.api_key"),
            timeout=settings.number(f"{role}.timeout"),
            dimensions=settings.whole("embedding.dimensions") if role == "embedding" else 0,
        )

    def embedder(self, settings: ProviderSettings) -> Embedder | None:
        if settings.url:
            # Imported here: most memories have no server, and parsing addresses is not free.
            from mindex.providers.addresses import remember_address

            remember_address(settings.url)
        return create_embedder(settings)

    @cached_property
    def reranker(self) -> Reranker | None:
        from mindex.providers.rerank.base import create_reranker  # most searches need none

        return create_reranker(self.settings("rerank"))

    @cached_property
    def requested_reranker(self) -> Reranker:
        from mindex.providers.rerank.base import create_reranker  # most searches need none

        reranker = self.reranker or create_reranker(replace(self.settings("rerank"), provider="local"))
        assert reranker is not None  # only the provider `none` has none
        return reranker

    @cached_property
    def generator(self) -> Generator | None:
        from mindex.providers.generate.base import create_generator  # most searches need none

        return create_generator(self.settings("generation"))
