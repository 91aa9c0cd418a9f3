"""The models of a memory as a service: list, pull, check and change them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from mindex.config import Settings
from mindex.datatypes import Check, Report, Role
from mindex.datatypes.reports import ListedModel, PullReport, ReembedReport
from mindex.datatypes.spaces import EmbedderSpec, Space, model_title
from mindex.embedding.backfill import OnStored
from mindex.embedding.canary import CanaryEmbedder
from mindex.embedding.permission import embedder_spec_of
from mindex.embedding.reembed import plan_reembed, reembed
from mindex.embedding.selection import EmbedderSelection
from mindex.embedding.upgrade import BUILT_IN_SPEC, FormerVectors
from mindex.errors import MindexError, UsageError
from mindex.providers.base import IN_PROCESS, ProviderSettings, Unavailable, full_name
from mindex.providers.embed.base import Embedder
from mindex.providers.embed.onnx_folder import open_folder
from mindex.providers.factory import Providers
from mindex.providers.generate.base import Generator
from mindex.providers.hub import PulledModel
from mindex.providers.model_check import ModelCheck, check_of, run_checks, seconds_for, with_short_timeout
from mindex.providers.model_list import Choice, is_packaged_or_pulled, list_models, with_speed
from mindex.providers.onnx.folder import pulled_folder
from mindex.providers.rerank.base import Reranker
from mindex.store.base import Store
from mindex.values import dataclass


@dataclass(frozen=True, slots=True)
class Models:
    """`memory.models`: the embedding model of the database, and the models of this machine."""

    _store: Store
    _settings: Settings
    _selection: EmbedderSelection
    _providers: Providers
    _on_stored: OnStored

    @property
    def embedder(self) -> Embedder | None:
        """The embedder of the active space; None when the provider of the settings is `none`."""
        return self._selection.embedder

    def use(self, embedder: Embedder) -> None:
        """Use this embedder instead of the one that the settings and the store name."""
        self._selection.use(embedder)

    def load(self) -> None:
        """Load the embedding model now. Raises EmbeddingError if it cannot be used."""
        self._selection.load()

    @property
    def reranker(self) -> Reranker | None:
        return self._providers.reranker

    @property
    def generator(self) -> Generator | None:
        return self._providers.generator

    # ── changing the embedder ─────────────────────────────────────────────────────────────────────────────────

    def reembed(
        self,
        *,
        provider: str = "",
        model: str = "",
        url: str = "",
        dimensions: int | None = None,
        force: bool = False,
        dry_run: bool = False,
        report: Report | None = None,
    ) -> ReembedReport:
        """Change the embedding model. Searches use the old vectors until the new ones are complete.

        Without arguments, it resumes an interrupted change. If there is none, the model of the settings becomes the
        active one; if the settings name none, the active one stays. `force` embeds everything again, also with the
        active model. `dimensions` truncates the vectors if the provider can (None: the setting). A `dry_run` only
        reports the amount of work. Raises EmbeddingError if the model is not available; then nothing has changed.
        """
        spec, settings = self._target(provider, model, url, dimensions)
        embedder = self._providers.embedder(settings)
        if embedder is None:
            hint = "name a provider, or set embedding.provider to none to do without"
            raise UsageError("the provider `none` has no model", hint)
        if dry_run:
            return plan_reembed(self._store, embedder, force=force)
        done = reembed(self._store, embedder, spec, force=force, report=report, on_stored=self._on_stored)
        return replace(done, notes=(*done.notes, *self._settings_notes()))

    def _target(
        self, provider: str, model: str, url: str, dimensions: int | None
    ) -> tuple[EmbedderSpec, ProviderSettings]:
        """The embedder to change to, of the arguments, an interrupted change, the settings or the active space."""
        selection = self._selection
        spaces = self._store.vectors.spaces(counted=False)
        if not (provider or model or url or dimensions is not None):
            begun = next((space for space in spaces if space.next), None)
            kept = begun or next((space for space in spaces if space.active and not selection.mismatch(space)), None)
            if kept is not None:
                spec = kept.embedder_spec
                if kept.active:
                    replaced = selection.is_upgraded(kept) and not selection.names_former(kept)
                    spec = BUILT_IN_SPEC if replaced else selection.spec_of(kept)
                return spec, selection.permitted(spec)
            return selection.configured_spec, selection.configured
        active = next((space.embedder_spec for space in spaces if space.active), selection.configured_spec)
        named_by_caller = bool(provider)
        provider = provider or self._provider_of(model, active)
        model = full_name(provider, model)
        if url and provider in IN_PROCESS:
            raise UsageError(f"the provider {provider} has no address", "name a provider that is a server, or no url")
        configured = selection.configured
        settings = replace(configured, provider=provider, model=model, url=url, api_key=selection.key_for(provider))
        if provider == configured.provider:
            settings = replace(settings, model=model or configured.model, url=url or configured.url)
        elif provider == active.provider:
            settings = replace(settings, model=model or active.model, dimensions=active.dimensions)
            unnamed = not model and provider in IN_PROCESS
            if not url and (active.url or not named_by_caller or unnamed):  # only the database names the address
                allowed = selection.permitted(active)
                settings = replace(settings, url=allowed.url, keyed=allowed.keyed)
        else:
            settings = replace(settings, dimensions=0)
        if dimensions is not None:
            settings = replace(settings, dimensions=dimensions)
        return embedder_spec_of(settings), settings

    def _provider_of(self, model: str, active: EmbedderSpec) -> str:
        """The provider of a model that is named without one."""
        if self._settings.is_set("embedding.provider"):
            return self._selection.configured_spec.provider
        return "local" if model and is_packaged_or_pulled(full_name("local", model)) else active.provider

    def _settings_notes(self) -> tuple[str, ...]:
        """Notes on settings that do not fit the active space after a change."""
        notes = []
        for space in self._store.vectors.spaces(counted=False):
            if space.active:
                try:
                    self._selection.permitted(space.embedder_spec)
                except MindexError as error:
                    notes.append(str(error))
                if self._selection.mismatch(space):
                    spec = self._selection.configured_spec
                    named = model_title(spec.provider, spec.model)
                    notes.append(f"the settings name {named}: change them to match")
        return tuple(notes)

    # ── the hub ───────────────────────────────────────────────────────────────────────────────────────────────

    def pull(self, name: str, *, revision: str = "", file: str = "", report: Report | None = None) -> PullReport:
        """Download a model of the Hugging Face hub: a preset, or `org/name` with an ONNX export.

        This is the only call that downloads anything. If the model was pulled before, its files are compared with the
        recorded checksums, and repaired. `revision` and `file` choose another commit and another export. Raises
        UsageError and ProviderError; the next call resumes an interrupted download.
        """
        from mindex.entry_points import released_module  # nothing else here looks for an extension

        done = released_module("mindex_providers.hub.pull").pull(name, revision=revision, file=file, report=report)
        model: PulledModel = done.model
        pulled = PullReport(
            model.name,
            model.role,
            model.repo,
            model.revision,
            model.licence,
            model.size,
            done.downloaded,
            str(model.folder),
            use=f"set rerank.provider to local and rerank.model to {model.name}",
        )
        if model.role == "rerank":
            return pulled
        space, _ = open_folder(pulled_folder(model))
        other_provider = self._settings.is_set("embedding.provider") and self._selection.configured.provider != "local"
        return replace(
            pulled,
            use=f"run `mindex reembed {'--provider local ' if other_provider else ''}--model {model.name}`",
            dimensions=space.dimensions,
            pooling=space.pooling,
            query_prefix=space.query_prefix,
            text_prefix=space.text_prefix,
            max_tokens=space.max_tokens,
        )

    # ── listing ───────────────────────────────────────────────────────────────────────────────────────────────

    def list(self, *, measure: bool = False, report: Callable[[str], None] | None = None) -> tuple[ListedModel, ...]:
        """Return all packaged models, the configured ones, and all spaces of this database.

        `measure` benchmarks each installed model; earlier measurements of this machine are shown anyway.
        """
        roles: tuple[Role, ...] = ("embedding", "rerank", "generation")
        configured = {role: self._providers.settings(role) for role in roles}
        # As a database keeps it: a model that is a folder or a file is known by its whole path.
        spec = self._selection.configured_spec
        configured["embedding"] = replace(configured["embedding"], model=spec.model)
        is_set = self._settings.is_set
        chosen: Choice = "model" if is_set("embedding.model") else "provider" if is_set("embedding.provider") else ""
        listed = []
        for one in list_models(list(configured.items()), self._store.vectors.spaces(), chosen):
            settings = configured[one.role]
            ours = one.configured or one.default
            named = settings if ours else replace(settings, provider=one.provider, model=one.name, url="")
            # A server that is not configured is not measured: its address is not known. Nor is a file read that only
            # the database names: a packaged model has an install line.
            measured = measure and one.installed and (ours or bool(one.install))
            listed.append(with_speed(one, named if measured else None, report))
        return tuple(listed)

    # ── checking ──────────────────────────────────────────────────────────────────────────────────────────────

    def check(self) -> tuple[Check, ...]:
        """Check that each configured provider answers, all at once, and the vectors of this memory."""
        spaces = self._store.vectors.spaces()
        space = next((one for one in spaces if one.active), None)
        rerank, generation = self._providers.settings("rerank"), self._providers.settings("generation")
        checks = [self._active_check(space)]
        mismatch = self._selection.mismatch(space).partition(";")[0] if space is not None else ""
        if mismatch:
            settings = self._selection.configured
            make = partial(self._providers.embedder, with_short_timeout(settings))
            checks.append(ModelCheck("embedding", "configured model", make, seconds_for(settings)))
        if rerank.provider != "none":
            checks.append(check_of("rerank", "reranker", rerank))
        if generation.provider != "none":
            checks.append(check_of("generation", "language model", generation))
        results = run_checks(checks)
        if mismatch:
            wanted = results[1]
            failed = replace(wanted, message=f"{mismatch}; and it cannot be had: {wanted.message}")
            hint = "run `mindex reembed`, or change the settings"
            results[1] = Check(wanted.name, False, mismatch, hint) if wanted.ok else failed
        return (*results, *self._check_vectors(spaces))

    def _active_check(self, space: Space | None) -> ModelCheck:
        """The check of the embedder in use; a model in this process is not loaded twice."""
        selection = self._selection
        configured = selection.configured

        def make() -> Embedder | None:
            active = selection.active()
            spec = active.embedder_spec
            if spec is None or spec.provider in IN_PROCESS or isinstance(active.embedder, Unavailable):
                embedder = active.embedder
            else:
                embedder = self._providers.embedder(
                    with_short_timeout(selection.permitted(spec) if active.space else configured)
                )
                embedder = selection.guarded(embedder, space.model if space is not None else None)
            if isinstance(embedder, CanaryEmbedder | FormerVectors):
                embedder.load()  # reaches a server that the breaker keeps others from
                embedder.prove()
                return embedder.inner  # the model that answers, with the hash of its weights
            return embedder

        provider = space.embedder_spec.provider if space is not None else configured.provider
        seconds = seconds_for(replace(configured, provider=provider))
        return ModelCheck("embedding", "embedding model", make, seconds, space.model if space is not None else None)

    def _check_vectors(self, spaces: tuple[Space, ...]) -> Sequence[Check]:
        checks = []
        status = self._selection.status()
        if status.provider != "none":
            message = f"{status.pending} records have no vector" if status.pending else "every record has its vector"
            checks.append(Check("pending vectors", not status.pending, message, "run `mindex backfill`"))
        unfinished = self._selection.unfinished_change(spaces)
        if unfinished is not None:
            message = f"the change to {unfinished.to} is {unfinished.percent} % done"
            checks.append(Check("change of model", False, message, "run `mindex reembed`"))
        unused = [space.name for space in spaces if not space.active and not space.next]
        if unused and any(space.active for space in spaces):
            message = f"vectors of {', '.join(unused)} are left that no search uses"
            checks.append(Check("unused vectors", False, message, "run `mindex optimize`"))
        return checks
