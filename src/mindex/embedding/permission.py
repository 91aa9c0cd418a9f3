"""Whether the embedder that a database names may be used.

A database file may come from an unknown author. It must not send queries and texts to a server of its choice (another
user of this machine may listen on a local port), nor a key to any server but the one in the settings, nor have a file
of its choice loaded as a model.
"""

import contextlib
from dataclasses import replace
from pathlib import Path

from mindex.datatypes.spaces import EmbedderSpec
from mindex.errors import EmbeddingError
from mindex.provider_table import default_url
from mindex.providers.addresses import is_remembered, is_this_machine, parse_address
from mindex.providers.base import ProviderSettings
from mindex.providers.model_files import names_a_file


def permitted_settings(spec: EmbedderSpec, configured: ProviderSettings, *, api_key: str) -> ProviderSettings:
    """Returns how the provider of a spec is reached now: the key, and an address that moved, come from the settings.

    Raises EmbeddingError when only the database names the model file or the server.
    """
    if not "".join((spec.provider, spec.model, spec.url)).isprintable():
        raise EmbeddingError(
            "this memory names a model that no provider can have", "run `mindex reembed --provider local`"
        )
    own = embedder_spec_of(configured)
    same_provider = configured.provider == spec.provider
    if names_a_file(spec.provider, spec.model) and not (same_provider and own.model == spec.model):
        from mindex.providers.hub import is_repo  # reads the table of models, and only this error needs it

        raise EmbeddingError(
            f"this memory was embedded with the model {spec.model}, which the settings do not name",
            f"set embedding.provider to {spec.provider} and embedding.model to {spec.model} if it may be loaded"
            + (f", or run `mindex models pull {spec.model}` if it is one of the hub" if is_repo(spec.model) else ""),
        )
    where = spec.url or default_url(spec.provider)
    moved = same_provider and own.model in ("", spec.model)
    configured_address = bool(configured.url) and (moved or where == own.url)
    default_address = same_provider and not configured.url and not spec.url
    # Ollama's and LM Studio's default address, or one that was named on this machine before: the file chose neither.
    usual_address = where == default_url(spec.provider) or is_remembered(where)
    if where and not (configured_address or default_address or (usual_address and is_this_machine(where))):
        raise EmbeddingError(
            f"this memory was embedded by a server at {where}, which the settings do not name",
            f"set embedding.provider to {spec.provider} and embedding.url to {where} if it may be asked",
        )
    return replace(
        configured,
        provider=spec.provider,
        model=spec.model,
        url=configured.url if configured_address else spec.url,
        api_key=api_key,
        dimensions=spec.dimensions,
        keyed=configured_address or default_address,
    )


def embedder_spec_of(settings: ProviderSettings) -> EmbedderSpec:
    """What a database may keep of a provider's settings: no login nor query of an address, which may be keys.

    A model that is a folder or a file is kept with its whole path.
    """
    model, url = settings.model, ""
    if settings.url:
        with contextlib.suppress(ValueError):
            url = str(parse_address(settings.url))
    with contextlib.suppress(OSError, RuntimeError, ValueError):
        if model and names_a_file(settings.provider, model) and (path := Path(model).expanduser()).exists():
            model = str(path.resolve())
    return EmbedderSpec(settings.provider, model, url, settings.dimensions)
