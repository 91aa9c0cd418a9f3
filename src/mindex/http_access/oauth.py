"""Tokens of an OAuth 2 authorization server, checked by asking it (RFC 7662, token introspection).

A JSON Web Token could be checked without asking, but a revoked one would then count until it expires.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from math import inf, nan
from urllib.parse import urlsplit

import httpx2

from mindex.config import Settings
from mindex.datatypes.access_tokens import ALL_AGENTS, LOGIN_PREFIX, Principal, Rights
from mindex.errors import AuthenticationError, ConfigError, ProviderError
from mindex.limits import MAX_NAME
from mindex.values import dataclass

READ_SCOPE, WRITE_SCOPE = "mindex:read", "mindex:write"
_SECONDS = 5.0
_LONGEST_LOGIN = MAX_NAME - len(LOGIN_PREFIX)
_NEXT = "log in again, or ask the server's owner"


@dataclass(frozen=True, slots=True)
class AuthorizationServer:
    """An authorization server, and this server as the resource that its tokens are made for."""

    issuer: str
    resource: str
    introspection_url: str
    client: str
    secret: str

    @classmethod
    def of(cls, settings: Settings, route: str) -> AuthorizationServer | None:
        """The one of the settings, for the resource at a route. Raises ConfigError for half of them."""
        issuer = settings.text("http.authorization_server")
        if not issuer:
            return None
        for key in ("http.authorization_server", "http.public_url", "http.introspection_url"):
            url = urlsplit(settings.text(key))
            is_safe = url.scheme == "https" or url.hostname in ("127.0.0.1", "localhost", "::1")
            if not url.netloc or not is_safe:
                raise ConfigError(f"http.authorization_server needs {key}", "set it to an address with https://")
        return cls(
            issuer,
            settings.text("http.public_url").rstrip("/") + route,
            settings.text("http.introspection_url"),
            settings.text("http.introspection_client"),
            settings.text("http.introspection_secret"),
        )

    def authenticate(self, token: str, agent_of: Callable[[str], str]) -> Principal:
        """Return the principal of an access token. `agent_of` returns the agent of a login, or raises
        AccessDeniedError.

        Raises AuthenticationError, ProviderError.
        """
        claims = self._introspect(token)
        if claims.get("active") is not True or _has_expired(claims.get("exp")):
            raise AuthenticationError("this token is unknown, revoked or expired", _NEXT)
        audience = claims.get("aud")
        if self.resource not in (audience if isinstance(audience, list) else [audience]):
            raise AuthenticationError("this token was not made for this server", f"ask for one for {self.resource}")
        login = claims.get("username") or claims.get("sub")
        login = login.strip() if isinstance(login, str) else ""
        if not login or login == ALL_AGENTS or len(login) > _LONGEST_LOGIN:
            raise AuthenticationError("this token names no user", _NEXT)
        scope = claims.get("scope")
        rights = _rights(scope.split() if isinstance(scope, str) else [])
        return Principal(f"oauth {login}", agent_of(login), rights)

    def _introspect(self, token: str) -> Mapping[str, object]:
        login = httpx2.BasicAuth(self.client, self.secret) if self.client else None
        data = {"token": token, "token_type_hint": "access_token"}
        try:
            answer = httpx2.post(self.introspection_url, data=data, auth=login, timeout=_SECONDS)
            answer.raise_for_status()
            claims = answer.json()
        except (httpx2.HTTPError, ValueError, RecursionError) as error:
            raise ProviderError(
                f"the authorization server could not be asked about this token ({type(error).__name__})",
                "try again; if it stays so, the server's owner checks http.introspection_url",
            ) from error
        if not isinstance(claims, dict):
            raise ProviderError(
                "the authorization server's response is not a JSON object", "check http.introspection_url"
            )
        return claims


def _rights(scopes: list[str]) -> Rights:
    if WRITE_SCOPE in scopes:
        return "write"
    if READ_SCOPE in scopes:
        return "read"
    raise AuthenticationError(f"this token has neither the scope {READ_SCOPE} nor {WRITE_SCOPE}", _NEXT)


def _has_expired(moment: object) -> bool:
    """Whether a time in seconds, which some servers write as text, is over; one that cannot be read is. None is not."""
    if moment is None:
        return False
    try:
        seconds = float(moment) if isinstance(moment, int | float | str) else nan
    except (ValueError, OverflowError):
        seconds = nan
    return not time.time() < seconds < inf
