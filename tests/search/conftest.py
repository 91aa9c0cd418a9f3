"""The model server of the provider tests, for the tests of search."""

from tests.providers.conftest import alone, server

__all__ = ["alone", "server"]
