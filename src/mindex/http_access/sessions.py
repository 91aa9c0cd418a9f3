"""Sessions of browsers: a cookie replaces a token that was shown once, in a form or by a one-time link.

They are kept in the memory of the server and end with it. A token never goes into a cookie or an address.
"""

from __future__ import annotations

import hmac
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic

from starlette.requests import Request
from starlette.responses import Response

SESSION_SECONDS = 12 * 3600.0  # after the last request
LINK_SECONDS = 300.0  # in which a one-time link must be opened
_MOST = 1_000  # sessions and links: the oldest ends for the next one


@dataclass(slots=True)
class Session:
    """A browser login session. `token` is empty if the server requires none; `message` is shown on the next page."""

    id: str
    token: str
    csrf: str
    until: float
    message: str = ""
    undo: str = ""  # the number of the change that the message is about
    id_of_message: str = field(default="", repr=False)  # the entry that it is about

    def accepts(self, csrf: str) -> bool:
        """Whether a form was made for this session: its hidden field says so."""
        return hmac.compare_digest(self.csrf.encode(), csrf.encode("utf-8", "replace"))


@dataclass
class Sessions:
    """All sessions of a server. `header_only` are paths that no cookie opens; below `read_only` it opens GET only.

    The name of the cookie has the port in it: a browser sends cookies of one host to each of its ports.
    """

    port: int
    secure: bool = False
    header_only: tuple[str, ...] = ()
    read_only: str = ""
    clock: Callable[[], float] = monotonic

    def __post_init__(self) -> None:
        self.cookie = f"mindex_session_{self.port}"
        self._lock = threading.Lock()
        self._sessions: dict[str, Session] = {}
        self._links: dict[str, tuple[str, float]] = {}  # code → (token, until when it can be opened)

    def begin(self, token: str) -> Session:
        """Begin a session for a token that was checked."""
        session = Session(secrets.token_urlsafe(32), token, secrets.token_urlsafe(32), self.clock() + SESSION_SECONDS)
        with self._lock:
            _make_space(self._sessions)
            self._sessions[session.id] = session
        return session

    def find(self, request: Request) -> Session | None:
        """The session of a request's cookie; None for none, or one that has ended."""
        with self._lock:
            session = self._sessions.get(request.cookies.get(self.cookie, ""))
            if session is None:
                return None
            if session.until <= self.clock():
                del self._sessions[session.id]
                return None
            session.until = self.clock() + SESSION_SECONDS
            return session

    def end(self, session: Session) -> None:
        with self._lock:
            self._sessions.pop(session.id, None)

    def authorization(self, request: Request) -> str:
        """Return the Authorization header that the request's cookie replaces; '' if the cookie does not count."""
        path = request.url.path
        if path in self.header_only or (
            self.read_only and path.startswith(self.read_only) and request.method not in ("GET", "HEAD")
        ):
            return ""
        session = self.find(request)
        return f"Bearer {session.token}" if session is not None and session.token else ""

    def set_cookie(self, response: Response, session: Session) -> None:
        response.set_cookie(self.cookie, session.id, path="/", httponly=True, samesite="strict", secure=self.secure)

    # ── one-time links ────────────────────────────────────────────────────────────────────────────────────────

    def make_code(self, token: str) -> str:
        """A code that can be turned into a session once, within `LINK_SECONDS`."""
        code = secrets.token_urlsafe(32)
        with self._lock:
            _make_space(self._links)
            self._links[code] = (token, self.clock() + LINK_SECONDS)
        return code

    def redeem(self, code: str) -> str | None:
        """The token of a one-time code, which does not count again; None if it does not count now."""
        with self._lock:
            token, until = self._links.pop(code, ("", 0.0))
        return token if self.clock() < until else None


def _make_space(kept: dict[str, object] | dict[str, Session] | dict[str, tuple[str, float]]) -> None:
    while len(kept) >= _MOST:
        del kept[next(iter(kept))]
