"""The table of providers: it names modules that exist, and every provider serves a role."""

from __future__ import annotations

from typing import cast

import pytest

from mindex.datatypes import Role
from mindex.provider_table import BY_ROLE, PROVIDERS, Provider, default_url, trusts_imported_vectors
from mindex.providers.base import ProviderSettings, maker
from mindex.providers.embed.base import create_embedder
from mindex.providers.packaged_models import BUILT_IN
from tests.providers.servers import ModelServer

ROWS: list[tuple[Role, str]] = [(role, provider) for role, providers in BY_ROLE.items() for provider in providers]


def _needs(provider: str) -> list[pytest.MarkDecorator]:
    package = PROVIDERS[provider].package
    return [pytest.mark.extension(package)] if package else []


@pytest.mark.parametrize(
    ("role", "provider"), [pytest.param(role, provider, marks=_needs(provider)) for role, provider in ROWS]
)
def test_every_provider_in_the_table_has_a_module_that_creates_models(role: Role, provider: str) -> None:
    assert callable(maker(role, provider))


def test_every_provider_serves_a_role() -> None:
    assert {provider for _, provider in ROWS} == set(PROVIDERS)


def test_only_vectors_of_models_with_a_verified_checksum_are_imported_without_a_canary() -> None:
    assert trusts_imported_vectors(BUILT_IN.fingerprint)
    assert not trusts_imported_vectors("ollama/nomic-embed-text/768/mean/2048/|")
    assert not trusts_imported_vectors("unknown/model")


def test_a_provider_that_is_not_a_server_has_no_default_address() -> None:
    assert [default_url(name) for name in ("local", "llama-cpp", "unknown")] == ["", "", ""]


def test_a_compatible_server_needs_a_row_and_a_name_alone(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cast(dict[str, Provider], PROVIDERS), "new", Provider("https://new.example"))
    monkeypatch.setitem(cast(dict[Role, tuple[str, ...]], BY_ROLE), "embedding", ("new",))
    embedder = create_embedder(ProviderSettings("new", "a-model", url=server.url, api_key=server.key))
    assert embedder is not None and embedder.embed_query("a harbour").size == embedder.model.dimensions
    assert server.asked[-1].path == "/v1/embeddings"
