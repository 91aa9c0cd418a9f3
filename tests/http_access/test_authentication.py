"""Which Authorization headers name an access token."""

from __future__ import annotations

import anyio
import pytest

from mindex.datatypes.access_tokens import Principal
from mindex.errors import AuthenticationError
from mindex.http_access.authentication import Authenticator

ADA = Principal("ada", "ada")


def authenticator() -> Authenticator:
    def look_up(token: str) -> Principal:
        if token != "mdx_x":
            raise AuthenticationError("unknown token")
        return ADA

    return Authenticator(look_up)


@pytest.mark.parametrize("header", ["Bearer mdx_x", "bearer mdx_x", " BEARER   mdx_x "])
def test_a_bearer_token_names_its_principal(header: str) -> None:
    assert anyio.run(authenticator().principal, header) is ADA


@pytest.mark.parametrize(
    "header", ["", "mdx_x", "Bearer", "Basic mdx_x", "Token mdx_x", "Bearers mdx_x", "Basic Bearer"]
)
def test_another_scheme_than_bearer_is_refused(header: str) -> None:
    known = authenticator()
    anyio.run(known.principal, "Bearer mdx_x")  # a token that is remembered does not help another scheme
    with pytest.raises(AuthenticationError):
        anyio.run(known.principal, header)
    assert not known.remembers(header)
