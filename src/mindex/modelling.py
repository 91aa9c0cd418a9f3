"""The part of the front door for models: which embedder, reranker and generator this memory works with.

The embedding space belongs to the store: what a memory was embedded with serves, whatever the settings name, until
`reembed` has changed it. Every process follows such a change with its next question.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mindex.config import Settings
from mindex.errors import ConfigError, EmbeddingError
from mindex.model import Model, Progress
from mindex.providers.base import ProviderSettings, full_name
from mindex.providers.embed.base import Embedder, ReportsTrouble, Unavailable, create_embedder
from mindex.store.base import Store
from mindex.values import dataclass

if TYPE_CHECKING:  # a question by keyword waits for nothing of this
    from mindex.embedding.backfill import BackfillResult
    from mindex.model import EmbeddingStatus, Tier
    from mindex.model.reports import ReembedProgress
    from mindex.model.spaces import EmbedderSpec, Space
    from mindex.providers.generate.base import Generator
    from mindex.providers.rerank.base import Reranker

Report = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class ActiveEmbedder:
    """The embedder in use, for which space it was made ('' while nothing is embedded), and how it is made again."""

    space: str
    embedder: Embedder | None
    embedder_spec: EmbedderSpec | None = None


_NONE = ActiveEmbedder("", None)


class Modelling:
    """Mixed into Memory. Every model is made when first needed, and everything works without any of them."""

    settings: Settings
    store: Store

    def __init__(self) -> None:
        self._making = threading.Lock()
        self._filling = threading.Lock()
        self._held: ActiveEmbedder | None = None
        self._brought: ActiveEmbedder | None = None
        self._noted = False

    def _provider_settings(self, role: str) -> ProviderSettings:
        """What the settings say of one role: `embedding`, `rerank` or `generation`."""
        settings = self.settings
        provider, model = settings.text(f"{role}.provider"), settings.text(f"{role}.model")
        return ProviderSettings(
            provider=provider,
            model=full_name(provider, model) if role == "embedding" else model,
            url=settings.text(f"{role}.url"),
            api_key=settings.text(f"{role}.api_key"),
            timeout=settings.number(f"{role}.timeout"),
            dimensions=settings.whole("embedding.dimensions") if role == "embedding" else 0,
        )

    @cached_property
    def reranker(self) -> Reranker | None:
        from mindex.providers.rerank.base import Unavailable, create_reranker

        asked = self._provider_settings("rerank")
        try:
            return create_reranker(asked)
        except ConfigError as error:  # answers go out without it, and say why
            return Unavailable(asked.provider, asked.model, error.message, error.hint)

    @cached_property
    def generator(self) -> Generator | None:
        from mindex.providers.generate.base import Unavailable, create_generator

        asked = self._provider_settings("generation")
        try:
            return create_generator(asked)
        except ConfigError as error:
            return Unavailable(asked.provider, asked.model, error.message, error.hint)

    # ── the embedder ──────────────────────────────────────────────────────────────────────────────────────────

    @property
    def embedder(self) -> Embedder | None:
        """The embedder of the space that is searched now; None where the settings want none."""
        return self.held().embedder

    @embedder.setter
    def embedder(self, embedder: Embedder) -> None:
        """Bring one's own: it serves instead of whatever the settings and the store name."""
        self._brought = ActiveEmbedder("", embedder)

    def held(self) -> ActiveEmbedder:
        """The embedder for what comes next, followed to the space that is searched now. One cheap read."""
        if self._brought is not None:
            return self._brought
        if self.settings.text("embedding.provider") == "none":
            return _NONE
        space = self.store.vectors.active_space()
        held = self._held
        if held is not None and held.space == space:
            return held
        with self._making:
            held = self._held
            if held is None or held.space != space:
                held = self._held = self._follow(space, held)
        return held

    def _follow(self, fingerprint: str, before: ActiveEmbedder | None) -> ActiveEmbedder:
        space = next((one for one in self.store.vectors.spaces(counted=False) if one.fingerprint == fingerprint), None)
        if space is None:  # nothing is embedded yet; or it was replaced this very moment, and the next look finds out
            embedder = self._make_embedder(self._provider_settings("embedding"))
            return ActiveEmbedder(fingerprint, self._watched(embedder), self._named)
        if before is not None and not before.space and _speaks(before.embedder, space.model):
            # The first vectors were our own.
            return replace(before, space=fingerprint, embedder=self._watched(before.embedder, space.model.edition))
        if self._contradiction(space):  # it does not serve, but a provider nobody knows is still an error
            self._make_embedder(self._provider_settings("embedding"))
        return ActiveEmbedder(fingerprint, self._embedder_of(space), space.embedder_spec)

    def _make_embedder(self, asked: ProviderSettings) -> Embedder | None:
        """The one place where embedders are made; who wants something between them and us changes it here."""
        if asked.url:
            from mindex.providers.addresses import know_here

            know_here(asked.url)
        return create_embedder(asked)

    def _watched(self, embedder: Embedder | None, edition: int = 0) -> Embedder | None:
        """The embedder for this edition of a space, kept from storing vectors of a model that it has become."""
        from mindex.embedding.canary import CanaryEmbedder

        if embedder is None or isinstance(embedder, Unavailable):
            return embedder
        return (
            embedder.of(edition)
            if isinstance(embedder, CanaryEmbedder)
            else CanaryEmbedder(embedder, self.store, edition)
        )

    def _embedder_of(self, space: Space) -> Embedder | None:
        """The embedder that a space was made with, or one that says why it cannot be had."""
        try:
            embedder = self._make_embedder(self._asked(space.embedder_spec))
        except (ConfigError, EmbeddingError) as error:
            return Unavailable(space.model, error.message, error.hint)
        if isinstance(embedder, Unavailable):
            return replace(embedder, model=space.model)
        if embedder is not None and _speaks(embedder, space.model):
            return self._watched(embedder, space.model.edition)
        now = embedder.model.dimensions if embedder is not None else 0
        changed = "is no longer the model that this memory was embedded with"
        if now and now != space.model.dimensions:
            changed = f"now has {now} dimensions, this memory was embedded with {space.model.dimensions}"
        return Unavailable(space.model, f"{space.name} {changed}", "run `mindex reembed`")

    def _asked(self, embedder_spec: EmbedderSpec) -> ProviderSettings:
        """How a space's provider is reached now: its key comes from the settings, and so does where it moved to.

        A file may come from anybody: it must not send what is asked and told here to a server of its choice, be it on
        this machine, where another user or something that passes it on may listen; nor a key to any but the settings'
        own; nor have a file of its choice read by a model's machinery.
        """
        from mindex.providers.addresses import is_known_here, is_near
        from mindex.providers.known_servers import customary_url
        from mindex.providers.model_files import names_a_file

        if not "".join((embedder_spec.provider, embedder_spec.model, embedder_spec.url)).isprintable():
            raise EmbeddingError(
                "this memory names a model that no provider can have", "run `mindex reembed --provider local`"
            )
        named = self._provider_settings("embedding")
        theirs = named.provider == embedder_spec.provider
        if names_a_file(embedder_spec.provider, embedder_spec.model) and not (
            theirs and self._named.model == embedder_spec.model
        ):
            raise EmbeddingError(
                f"this memory was embedded with the model {embedder_spec.model}, which the settings do not name",
                f"set embedding.provider to {embedder_spec.provider} and embedding.model to {embedder_spec.model}"
                " if it may be loaded",
            )
        where = embedder_spec.url or customary_url(embedder_spec.provider)
        moved = theirs and self._named.model in ("", embedder_spec.model)
        ours = bool(named.url) and (moved or where == self._named.url)
        customary = theirs and not named.url and not embedder_spec.url
        # Ollama and LM Studio where they always are, or what somebody named on this machine: a file chooses neither.
        usual = where == customary_url(embedder_spec.provider) or is_known_here(where)
        if where and not (ours or customary or (usual and is_near(where))):
            raise EmbeddingError(
                f"this memory was embedded by a server at {where}, which the settings do not name",
                f"set embedding.provider to {embedder_spec.provider} and embedding.url to {where} if it may be asked",
            )
        return replace(
            named,
            provider=embedder_spec.provider,
            model=embedder_spec.model,
            url=named.url if ours else embedder_spec.url,
            api_key=self._key_for(embedder_spec.provider),
            dimensions=embedder_spec.dimensions,
            keyed=ours or customary,
        )

    def _key_for(self, provider: str) -> str:
        """The settings' key: one that was given for one provider is not for another."""
        named = self._provider_settings("embedding")
        return named.api_key if named.provider == provider or not self.settings.said("embedding.provider") else ""

    @cached_property
    def _named(self) -> EmbedderSpec:
        """The embedder that the settings name."""
        return embedder_spec_of(self._provider_settings("embedding"))

    def load_model(self) -> None:
        """Load the embedding model now; raises EmbeddingError when it cannot be had."""
        embedder = self.embedder
        if embedder is not None:
            embedder.load()

    # ── settings that name another one ────────────────────────────────────────────────────────────────────────

    def _contradiction(self, space: Space) -> str:
        """What to say when somebody chose another model than the one that this memory was embedded with."""
        named, embedder_spec = self._named, space.embedder_spec
        other_provider = self.settings.said("embedding.provider") and named.provider != embedder_spec.provider
        other_model = self.settings.said("embedding.model") and named.model not in (
            "",
            embedder_spec.model,
            space.model.name,
        )
        lengths = (embedder_spec.dimensions, space.model.dimensions)
        other_length = self.settings.said("embedding.dimensions") and named.dimensions not in lengths
        if named.provider == "none" or not (other_provider or other_model or other_length):
            return ""
        from mindex.model.spaces import model_title

        wanted = model_title(named.provider, named.model)
        had = space.name
        if other_length:
            wanted += f" with {named.dimensions or 'all its'} dimensions"
            had += f" with {space.model.dimensions}"
        return f"the settings name {wanted}, this memory was embedded with {had}; run `mindex reembed`"

    def model_notes(self) -> tuple[str, ...]:
        """What an answer says beside its content about the choice of the model: once per process."""
        held = self._held
        if self._noted or held is None or not held.space:
            return ()
        self._noted = True
        spaces = self.store.vectors.spaces(counted=False)
        return tuple(filter(None, (self._contradiction(one) for one in spaces if one.fingerprint == held.space)))

    # ── how it stands ─────────────────────────────────────────────────────────────────────────────────────────

    def embedding_status(self) -> EmbeddingStatus:
        """What is searched, what of it is pending, and how far a change of model is. Asks no server."""
        from mindex.model import EmbeddingStatus
        from mindex.model.spaces import visible

        held = self.held()
        if held.embedder is None:
            return EmbeddingStatus("none")
        spaces = self.store.vectors.spaces()
        space = next((one for one in spaces if held.space and one.active), None)
        model = space.model if space is not None else held.embedder.model
        return EmbeddingStatus(
            visible(model.provider),
            visible(model.name),
            model.dimensions,
            self.store.vectors.pending(model),
            note=self._contradiction(space) if space is not None else "",
            reembedding=self._unfinished(spaces),
        )

    def search_tier(self) -> tuple[Tier, str]:
        """How a question would be answered now, and why not by meaning, too. Asks no server, loads no model.

        What nobody has noticed yet is not known: a server that went down since it last answered, for one.
        """
        embedder = self.held().embedder
        if embedder is None:
            return "keyword", ""
        if trouble := embedder.trouble() if isinstance(embedder, ReportsTrouble) else "":
            return "keyword", trouble
        searched = [
            one.model for one in self.store.vectors.spaces(counted=False) if one.fingerprint == self.held().space
        ]
        model = searched[0] if searched else embedder.model
        if self.store.vectors.embedded_records(model, 1):
            return "hybrid", ""
        if self.store.vectors.pending(model):
            return "keyword", "nothing is embedded yet; run `mindex backfill`"
        return "keyword", "nothing was indexed or told yet"

    def _unfinished(self, spaces: tuple[Space, ...]) -> ReembedProgress | None:
        """The change of model that is under way, or was left half done."""
        from mindex.model.reports import ReembedProgress

        for space in spaces:
            if space.next:
                return ReembedProgress(
                    space.name, space.vectors, space.vectors + self.store.vectors.pending(space.model)
                )
        return None

    # ── giving vectors ────────────────────────────────────────────────────────────────────────────────────────

    def _backfilled(
        self, *, batch: int | None = None, most: int | None = None, report: Report | None = None
    ) -> BackfillResult:
        """Embed what waits in the space that is searched, and go on in the next one when that changes meanwhile."""
        from mindex.embedding.backfill import BATCH, BackfillResult, backfill
        from mindex.embedding.entries import link_near_duplicates

        done = BackfillResult(0, 0)
        while True:
            held = self.held()
            if held.embedder is None:
                return done
            left = None if most is None else most - done.embedded
            with self._filling:  # two threads that embed the same records do the same work twice
                part = backfill(
                    self.store,
                    held.embedder,
                    embedder_spec=held.embedder_spec,
                    batch=batch or BATCH,
                    most=left,
                    report=report,
                    stored=link_near_duplicates,
                )
            done = replace(part, embedded=done.embedded + part.embedded)
            if not part.replaced or self.held() is held:
                return done


def _speaks(embedder: Embedder | None, space: Model) -> bool:
    """Whether an embedder makes vectors of this space; one that was never asked need not know their length."""
    if embedder is None:
        return False
    dimensions = embedder.model.dimensions if embedder.loaded else space.dimensions
    return replace(embedder.model, dimensions=dimensions, edition=space.edition).fingerprint == space.fingerprint


def embedder_spec_of(asked: ProviderSettings) -> EmbedderSpec:
    """What a file may hold of how a provider is asked: no login nor query of an address, which may be keys.

    A model that is a folder or a file is found from everywhere.
    """
    from mindex.model.spaces import EmbedderSpec
    from mindex.providers.model_files import names_a_file

    model, url = asked.model, ""
    if asked.url:
        from mindex.providers.addresses import parse_address

        with contextlib.suppress(ValueError):
            url = str(parse_address(asked.url))
    with contextlib.suppress(OSError, RuntimeError, ValueError):
        if model and names_a_file(asked.provider, model) and (path := Path(model).expanduser()).exists():
            model = str(path.resolve())
    return EmbedderSpec(asked.provider, model, url, asked.dimensions)
