"""Find the principal of a request by its access token. Results are cached for half a second."""

from collections.abc import Callable
from time import monotonic

from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from mindex.datatypes.access_tokens import Principal
from mindex.errors import AuthenticationError

# So long a revoked token may still be served. A request that follows another one needs no look into the database.
_REMEMBERED_SECONDS = 0.5
_MAX_REMEMBERED = 1_000
_THREADS = 4  # separate threads: a request does not wait for a search to end before it is refused

_NO_TOKEN = "this server needs a token", "send one as `Authorization: Bearer TOKEN`; the server's owner makes them"


class Authenticator:
    """Finds the principal of a token. `look_up` raises AuthenticationError for one that does not count."""

    def __init__(self, look_up: Callable[[str], Principal]) -> None:
        self._look_up = look_up
        self._known: dict[str, tuple[Principal, float]] = {}
        self._threads: CapacityLimiter | None = None

    def remembers(self, authorization: str) -> bool:
        """Whether the token of an Authorization header counted when it was last looked up."""
        return _token(authorization) in self._known

    async def principal(self, authorization: str, *, recalled: bool = False) -> Principal:
        """The principal of an Authorization header. Raises AuthenticationError without a token that counts.

        `recalled`: a token that counted when it was last looked up counts still, for as long as none can be looked up.
        """
        token = _token(authorization)
        if not token:
            raise AuthenticationError(*_NO_TOKEN)
        known = self._known.get(token)
        if known is not None and (recalled or monotonic() < known[1]):
            return known[0]
        if self._threads is None:  # it belongs to the event loop, which runs by now
            self._threads = CapacityLimiter(_THREADS)
        try:
            principal = await run_sync(self._look_up, token, limiter=self._threads)
        except AuthenticationError:
            self._known.pop(token, None)
            raise
        if len(self._known) >= _MAX_REMEMBERED:
            self._known.clear()
        self._known[token] = (principal, monotonic() + _REMEMBERED_SECONDS)
        return principal


def _token(authorization: str) -> str:
    """The token of an Authorization header; empty for none."""
    scheme, _, token = authorization.strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
