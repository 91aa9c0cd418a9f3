"""`Site`: what all pages and the API need; `Call`: one request, with the memory as its principal sees it; jobs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.datastructures import ImmutableMultiDict
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from mindex.command_words import in_page_words
from mindex.datatypes import Progress
from mindex.datatypes.access_tokens import Principal
from mindex.datatypes.results import Report
from mindex.errors import AccessDeniedError, ConflictError, MindexError, NotFoundError, UsageError
from mindex.http_access.authentication import Authenticator
from mindex.http_access.current_principal import current_principal
from mindex.http_access.middleware import is_navigation
from mindex.http_access.sessions import Session, Sessions
from mindex.memory import Memory
from mindex.web.forms import check_form
from mindex.web.render import render

if TYPE_CHECKING:
    from mindex.datatypes import Change

logger = logging.getLogger(__name__)

_STATUS = {
    "usage": 400, "config": 400, "authentication": 401, "denied": 403, "forbidden": 403, "not_found": 404,
    "ambiguous": 409, "conflict": 409, "collection": 409, "secret": 422, "unsupported": 501, "busy": 503, "store": 503,
    "provider": 502, "embedding": 502, "rerank": 502, "generation": 502,
}  # fmt: skip

# Nothing of another origin is loaded, nothing inline runs, and no other page shows this one in a frame.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": _POLICY,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    # Not `no-referrer`: browsers would send the Origin `null` with our own forms.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


def status_of(error: MindexError) -> int:
    """The HTTP status of an error."""
    return _STATUS.get(error.kind, 500)


@dataclass
class Job:
    """One job. `result` is what it said at its end, `error` why it failed."""

    name: str
    progress: Progress = field(default_factory=lambda: Progress("start", 0, 0))
    result: str = ""
    error: MindexError | None = None
    is_running: bool = True

    @property
    def percent(self) -> int:
        return min(100, 100 * self.progress.done // self.progress.total) if self.progress.total else 0


class Jobs:
    """At most one job at a time, and the last one that ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.current: Job | None = None

    def start(self, name: str, work: Callable[[Report], str]) -> Job:
        """Start a job in a thread; `work` returns what it did. Raises ConflictError while another one runs."""
        with self._lock:
            if self.current is not None and self.current.is_running:
                raise ConflictError("another job is still running", "wait until it is done")
            job = self.current = Job(name)

        def report(progress: Progress) -> None:
            job.progress = progress

        def run() -> None:
            try:
                job.result = work(report)
            except MindexError as error:
                job.error = error
            except Exception as error:
                logger.exception("%s failed", name)
                job.error = MindexError(f"unexpected {type(error).__name__}", "the server's log says more")
            finally:
                job.is_running = False

        threading.Thread(target=run, name="mindex-job", daemon=True).start()
        return job


@dataclass(frozen=True)
class Site:
    """A server as the pages see it. `memory` returns the memory for the current request.

    `folder` returns the folder that a client names, or raises ForbiddenPathError. Without an `authenticator` no token
    is needed. `shown_error` returns an error as the current principal may see it.
    """

    memory: Callable[[], Memory]
    folder: Callable[[str], Path]
    sessions: Sessions
    authenticator: Authenticator | None
    shown_error: Callable[[MindexError], MindexError]
    jobs: Jobs = field(default_factory=Jobs)

    def page(self, path: str, handler: Callable[[Call], Response]) -> Route:
        """A page that is read."""
        return Route(path, self._endpoint(handler), methods=["GET"])

    def form(self, path: str, handler: Callable[[Call], Response], *, writes: bool = True) -> Route:
        """A form, which must be from a page of the session. One that `writes` needs a principal that may."""

        def checked(call: Call) -> Response:
            check_form(call.form, call.session, call.principal, writes=writes)
            return handler(call)

        return Route(path, self._endpoint(checked), methods=["POST"])

    def add_missing_page(self, app: Starlette) -> None:
        """Answer an unknown path: browsers get a page, other programs only the status."""
        page = self._endpoint(_no_page)

        async def missing(request: Request, error: Exception) -> Response:  # noqa: ARG001 - a handler's signature
            # Paths that need no token have no principal to render a page for.
            if is_navigation(request) and current_principal() is not None:
                return await page(request)
            return PlainTextResponse("Not Found", 404)

        app.add_exception_handler(404, missing)

    def _endpoint(self, handler: Callable[[Call], Response]) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            session, is_new = self.sessions.find(request), False
            if session is None and self.authenticator is None and request.method == "GET":
                session, is_new = self.sessions.begin(""), True
            form = parse_qsl((await request.body()).decode("utf-8", "replace"), keep_blank_values=True)
            response = await run_sync(self._answer, handler, request, session, ImmutableMultiDict(form))
            response.headers.update(HEADERS)
            if is_new and session is not None:
                self.sessions.set_cookie(response, session)
            return response

        return endpoint

    def _answer(
        self,
        handler: Callable[[Call], Response],
        request: Request,
        session: Session | None,
        form: ImmutableMultiDict[str, str],
    ) -> Response:
        principal = current_principal()
        assert principal is not None  # the middleware lets no request through without one
        call = Call(self, request, principal, session, form)
        try:
            return handler(call)
        except MindexError as error:
            shown = self.shown_error(error)
            for_page = MindexError(in_page_words(shown.message), in_page_words(shown.hint))
            return call.render("error.html", code=status_of(error), error=for_page)
        except Exception as error:  # a bug: the page says so, the log has the rest
            logger.exception("%s failed", request.url.path)
            unexpected = MindexError(f"unexpected {type(error).__name__}", "the server's log says more")
            return call.render("error.html", code=500, error=unexpected)


@dataclass(frozen=True)
class Call:
    """One request of a page."""

    site: Site
    request: Request
    principal: Principal
    session: Session | None
    form: ImmutableMultiDict[str, str]

    @property
    def memory(self) -> Memory:
        return self.site.memory()

    @property
    def may_write(self) -> bool:
        return self.principal.may_write and not self.memory.store.read_only

    @property
    def has_entries(self) -> bool:
        """Whether the engine behind the memory stores entries, and not only files."""
        return "entries" in self.memory.store.capabilities

    def given(self, name: str) -> str:
        """A value of the address, or of the form; '' if it is not given."""
        return (self.form.get(name) or self.request.query_params.get(name) or "").strip()

    @property
    def offset(self) -> int:
        """The number of rows to skip. Raises UsageError."""
        text = self.given("offset") or "0"
        if not text.isdecimal() or len(text) > 9:
            raise UsageError(f"'{text}' is not a valid offset", "use a whole number")
        return int(text)

    def named(self, name: str) -> str:
        """A part of the path."""
        return str(self.request.path_params[name])

    def require_owner(self) -> None:
        """Raise AccessDeniedError for a token that sees a part of the server's memory."""
        if not self.principal.is_owner:
            raise AccessDeniedError("this page is for the server's owner", "ask them, or log in with the owner's token")

    def render(self, template: str, *, code: int = 200, **values: Any) -> HTMLResponse:
        """A page, or with the header `X-Fragment` the part of it that a script puts in place."""
        common: Mapping[str, Any] = {
            "call": self,
            "csrf": self.session.csrf if self.session else "",
            "is_fragment": "x-fragment" in self.request.headers,
            "message": self._taken_message(),
        }
        return HTMLResponse(render(template, {**common, **values}), code)

    def _taken_message(self) -> dict[str, str]:
        session = self.session
        if session is None or not session.message or self.request.headers.get("x-fragment"):
            return {}
        shown = {"text": session.message, "undo": session.undo, "id": session.id_of_message}
        session.message = session.undo = session.id_of_message = ""
        return shown

    def done(self, path: str, message: str, change: Change | None = None) -> Response:
        """Go to a page, which shows the message and, of a change, how to undo it."""
        if self.session is not None:
            self.session.message = message
            self.session.undo = str(change.change) if change is not None else ""
            self.session.id_of_message = change.record if change is not None else ""
        return RedirectResponse(path, 303)


def _no_page(call: Call) -> Response:
    raise NotFoundError(f"there is no page {call.request.url.path}", "the menu has all pages")
