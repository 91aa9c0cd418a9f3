"""The table of providers: it names modules that exist, and every provider serves a role."""

from __future__ import annotations

from importlib import import_module

import pytest

from mindex.provider_table import MODULES, PROVIDERS, default_url, trusts_imported_vectors
from mindex.providers.embed.local import MINILM

ROWS = [(provider, module) for modules in MODULES.values() for provider, module in modules.items()]


@pytest.mark.parametrize(("provider", "module"), ROWS)
def test_every_module_in_the_table_creates_models(provider: str, module: str) -> None:
    assert provider in PROVIDERS
    assert callable(import_module(f"mindex.providers.{module}").create)


def test_every_provider_serves_a_role() -> None:
    assert {provider for provider, _ in ROWS} == set(PROVIDERS)


def test_only_vectors_of_models_with_a_verified_checksum_are_imported_without_a_canary() -> None:
    assert trusts_imported_vectors(MINILM.fingerprint)
    assert not trusts_imported_vectors("ollama/nomic-embed-text/768/mean/2048/|")
    assert not trusts_imported_vectors("unknown/model")


def test_a_provider_that_is_no_server_has_no_default_address() -> None:
    assert [default_url(name) for name in ("local", "llama-cpp", "unknown")] == ["", "", ""]
