"""Servers of models, as the tests of the core's providers have them."""

from tests.providers.conftest import again, alone, docs, other, server

__all__ = ["again", "alone", "docs", "other", "server"]
