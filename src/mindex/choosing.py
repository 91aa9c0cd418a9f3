"""The part of the front door for choosing models: changing the embedder, listing what there is, testing what is set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from mindex.errors import MindexError, UsageError
from mindex.model.spaces import model_title
from mindex.modelling import Modelling, Report, embedder_spec_of
from mindex.providers.base import IN_PROCESS, ProviderSettings, full_name

if TYPE_CHECKING:
    from mindex.model import Check
    from mindex.model.reports import ListedModel, ReembedReport, Role
    from mindex.model.spaces import EmbedderSpec, Space
    from mindex.providers.embed.base import Embedder
    from mindex.providers.model_list import Choice

# What runs in this process needs time to load; a server is asked for an answer only this long.
_LOADING_SECONDS = 60.0
_ANSWERING_SECONDS = 8.0


class Choosing(Modelling):
    """Mixed into Memory."""

    # ── another embedder ──────────────────────────────────────────────────────────────────────────────────────

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
        """Change the model that this memory is embedded with. The old vectors serve until the new ones are complete.

        Without arguments an unfinished change is resumed, else the model that a setting names is changed to; where
        none does (defaults name nothing), what is searched stays. `force` embeds everything again, also with the model
        that is searched already; `dimensions` are asked for where a provider can shorten vectors (None: as the settings
        say). A `dry_run` says how much there is to do. Raises EmbeddingError when the model cannot be had: nothing has
        changed then.
        """
        from mindex.embedding.entries import link_near_duplicates
        from mindex.embedding.reembed import reembed, rehearse

        embedder_spec, asked = self._target(provider, model, url, dimensions)
        embedder = self._make_embedder(asked)
        if embedder is None:
            raise UsageError(
                "`none` embeds nothing", "name a provider, or set embedding.provider to none to do without"
            )
        if dry_run:
            return rehearse(self.store, embedder, force=force)
        done = reembed(self.store, embedder, embedder_spec, force=force, report=report, stored=link_near_duplicates)
        return replace(done, notes=(*done.notes, *self._after_change()))

    def _target(
        self, provider: str, model: str, url: str, dimensions: int | None = None
    ) -> tuple[EmbedderSpec, ProviderSettings]:
        """Whom to change to, by who said so: the call, an unfinished change, the settings, what is searched."""
        spaces = self.store.vectors.spaces(counted=False)
        if not (provider or model or url or dimensions is not None):
            kept = next((space for space in spaces if space.next), None) or self._settled(spaces)
            if kept is not None:
                return kept.embedder_spec, self._asked(kept.embedder_spec)
            return self._named, self._provider_settings("embedding")
        active = next((space.embedder_spec for space in spaces if space.active), self._named)
        called = bool(provider)
        provider = provider or self._provider_of(model, active)
        model = full_name(provider, model)
        if url and provider in IN_PROCESS:
            raise UsageError(f"the provider {provider} has no address", "name a provider that is a server, or no url")
        named = self._provider_settings("embedding")
        asked = replace(named, provider=provider, model=model, url=url, api_key=self._key_for(provider))
        if provider == named.provider:
            asked = replace(asked, model=model or named.model, url=url or named.url)
        elif provider == active.provider:
            asked = replace(asked, model=model or active.model, dimensions=active.dimensions)
            nameless = not model and provider in IN_PROCESS
            if not url and (active.url or not called or nameless):  # nobody but the file says where
                allowed = self._asked(active)
                asked = replace(asked, url=allowed.url, keyed=allowed.keyed)
        else:
            asked = replace(asked, dimensions=0)
        if dimensions is not None:
            asked = replace(asked, dimensions=dimensions)
        return embedder_spec_of(asked), asked

    def _settled(self, spaces: tuple[Space, ...]) -> Space | None:
        """What is searched, unless the settings name something else."""
        return next((space for space in spaces if space.active and not self._contradiction(space)), None)

    def _provider_of(self, model: str, active: EmbedderSpec) -> str:
        """Whose model is meant, when nobody says so."""
        if self.settings.said("embedding.provider"):
            return self._named.provider
        from mindex.providers.model_list import is_ready_made

        return "local" if model and is_ready_made(full_name("local", model)) else active.provider

    def _after_change(self) -> tuple[str, ...]:
        """What the settings have to say from now on."""
        notes = []
        for space in self.store.vectors.spaces(counted=False):
            if space.active:
                try:
                    self._asked(space.embedder_spec)
                except MindexError as error:
                    notes.append(str(error))
                if self._contradiction(space):
                    named = model_title(self._named.provider, self._named.model)
                    notes.append(f"the settings name {named}: change them to match")
        return tuple(notes)

    # ── what there is ─────────────────────────────────────────────────────────────────────────────────────────

    def models(self, *, measure: bool = False, report: Callable[[str], None] | None = None) -> tuple[ListedModel, ...]:
        """Every ready-made model, what is configured, and every space of this database.

        `measure` has each installed one work for a moment; what was measured before on this machine is shown anyway.
        """
        from mindex.providers.model_list import list_models, with_speed

        roles: tuple[Role, ...] = ("embedding", "rerank", "generation")
        asked = {role: self._provider_settings(role) for role in roles}
        # As a database holds it: a model that is a folder or a file is known by its whole path.
        asked["embedding"] = replace(asked["embedding"], model=self._named.model)
        shown = []
        for one in list_models(list(asked.items()), self.store.vectors.spaces(), self._chosen()):
            settings = asked[one.role]
            ours = one.configured or one.default
            named = settings if ours else replace(settings, provider=one.provider, model=one.name, url="")
            # A server that nobody configured is not asked: its address is not known.
            # Nor is a file read that only the database names: what is ready-made says how it is installed.
            measured = measure and one.installed and (ours or bool(one.install))
            shown.append(with_speed(one, named if measured else None, report))
        return tuple(shown)

    def _chosen(self) -> Choice:
        """By what somebody chose the embedder of the settings."""
        if self.settings.said("embedding.model"):
            return "model"
        return "provider" if self.settings.said("embedding.provider") else ""

    # ── whether they answer ───────────────────────────────────────────────────────────────────────────────────

    def model_checks(self) -> tuple[Check, ...]:
        """Each configured provider asked for a sign of life, all at once; and how this memory's vectors stand."""
        from mindex.providers.generate.base import create_generator
        from mindex.providers.model_check import all_at_once, check_generator, check_reranker
        from mindex.providers.rerank.base import create_reranker

        spaces = self.store.vectors.spaces()
        space = next((one for one in spaces if one.active), None)
        rerank, generation = self._provider_settings("rerank"), self._provider_settings("generation")
        jobs: list[Callable[[], Check]] = [lambda: self._check_searched(space)]
        if space is not None and self._contradiction(space):
            jobs.append(lambda: self._check_wanted(space))
        if rerank.provider != "none":
            jobs.append(lambda: check_reranker(lambda: create_reranker(_hurried(rerank)), _seconds(rerank)))
        if generation.provider != "none":
            jobs.append(lambda: check_generator(lambda: create_generator(_hurried(generation)), _seconds(generation)))
        return (*all_at_once(jobs), *self._vector_checks(spaces))

    def _check_searched(self, space: Space | None) -> Check:
        """The embedder in use. A server is asked in a hurry; what runs in here is not loaded twice."""
        from mindex.embedding.canary import CanaryEmbedder
        from mindex.providers.embed.base import Unavailable
        from mindex.providers.model_check import check_embedder

        asked = self._provider_settings("embedding")

        def make() -> Embedder | None:
            held = self.held()
            if (
                held.embedder_spec is None
                or held.embedder_spec.provider in IN_PROCESS
                or isinstance(held.embedder, Unavailable)
            ):
                embedder = held.embedder
            else:
                embedder = self._make_embedder(_hurried(self._asked(held.embedder_spec) if held.space else asked))
                embedder = self._watched(embedder, space.model.edition if space is not None else 0)
            if isinstance(embedder, CanaryEmbedder):
                embedder.load()  # reaches a server that others leave alone for a while
                embedder.prove()
            return embedder

        provider = space.embedder_spec.provider if space is not None else asked.provider
        return check_embedder(
            "embedding model",
            make,
            space.model if space is not None else None,
            _seconds(replace(asked, provider=provider)),
        )

    def _check_wanted(self, space: Space) -> Check:
        """The embedder that the settings name, where this memory was embedded with another."""
        from mindex.model import Check
        from mindex.providers.model_check import check_embedder

        asked = self._provider_settings("embedding")
        name = "configured model"
        answers = check_embedder(name, lambda: self._make_embedder(_hurried(asked)), None, _seconds(asked))
        said = self._contradiction(space).partition(";")[0]
        if answers.ok:
            return Check(name, False, said, "run `mindex reembed`, or change the settings")
        return Check(name, False, f"{said}; and it cannot be had: {answers.message}", answers.fix)

    def _vector_checks(self, spaces: tuple[Space, ...]) -> list[Check]:
        from mindex.model import Check

        checks = []
        status = self.embedding_status()
        if status.provider != "none":
            message = f"{status.pending} records have no vector" if status.pending else "every record has its vector"
            checks.append(Check("pending vectors", not status.pending, message, "run `mindex backfill`"))
        unfinished = self._unfinished(spaces)
        if unfinished is not None:
            message = f"the change to {unfinished.to} is {unfinished.percent} % done"
            checks.append(Check("change of model", False, message, "run `mindex reembed`"))
        unused = [space.name for space in spaces if not space.active and not space.next]
        if unused and any(space.active for space in spaces):
            message = f"vectors of {', '.join(unused)} are left that nobody searches"
            checks.append(Check("unused vectors", False, message, "run `mindex optimize`"))
        return checks


def _seconds(asked: ProviderSettings) -> float:
    return _LOADING_SECONDS if asked.provider in IN_PROCESS else min(asked.timeout, _ANSWERING_SECONDS)


def _hurried(asked: ProviderSettings) -> ProviderSettings:
    return replace(asked, timeout=min(asked.timeout, _seconds(asked)))
