"""The part of the front door for models: which embedder, reranker and generator this memory works with."""

from __future__ import annotations

from functools import cached_property

from mindex.config import Settings
from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import Embedder, create_embedder
from mindex.providers.generate.base import Generator, create_generator
from mindex.providers.rerank.base import Reranker, create_reranker
from mindex.store.base import Store


class Modelling:
    """Mixed into Memory. Every model is made when first needed, and everything works without any of them."""

    settings: Settings
    store: Store

    def _provider_settings(self, role: str) -> ProviderSettings:
        """What the settings say of one role: `embedding`, `rerank` or `generation`."""
        settings = self.settings
        return ProviderSettings(
            provider=settings.text(f"{role}.provider"),
            model=settings.text(f"{role}.model"),
            url=settings.text(f"{role}.url"),
            api_key=settings.text(f"{role}.api_key"),
            timeout=settings.number(f"{role}.timeout"),
        )

    @cached_property
    def embedder(self) -> Embedder | None:
        return create_embedder(self._provider_settings("embedding"))

    @cached_property
    def reranker(self) -> Reranker | None:
        return create_reranker(self._provider_settings("rerank"))

    @cached_property
    def generator(self) -> Generator | None:
        return create_generator(self._provider_settings("generation"))

    def load_model(self) -> None:
        """Load the embedding model now; raises EmbeddingError when it cannot be had."""
        if self.embedder is not None:
            self.embedder.load()
