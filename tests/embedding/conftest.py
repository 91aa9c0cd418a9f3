"""The model servers and reopened memories of the provider tests, for the tests of embedding."""

from tests.providers.conftest import again, alone, docs, other, server

__all__ = ["again", "alone", "docs", "other", "server"]
