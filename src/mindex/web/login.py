"""Login and logout of a browser: a form for a token, or a one-time link (`http_access.sessions` makes its code)."""

from __future__ import annotations

from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from mindex.errors import AuthenticationError, MindexError, StoreError
from mindex.http_access.current_principal import error_before_login
from mindex.web.paths import safe_next
from mindex.web.render import render
from mindex.web.site import HEADERS, Call, Site, status_of

LOGIN, LINK = "/login", "/open/"
_EXPIRED = AuthenticationError(
    "this link was used already or is too old", "run `mindex web` again, or log in with a token"
)


def _login_page(next_: str, error: MindexError | None = None) -> Response:
    status = 200 if error is None else status_of(error)
    return HTMLResponse(render("login.html", {"next": next_, "error": error}), status, HEADERS)


def _log_in_and_go(site: Site, token: str, target: str) -> Response:
    """Begin a session with a token, and lead to a path of the site."""
    response = RedirectResponse(target, 303, HEADERS)
    site.sessions.set_cookie(response, site.sessions.begin(token))
    return response


def login_routes(site: Site) -> list[Route]:
    async def form(request: Request) -> Response:
        if site.authenticator is None:
            return RedirectResponse("/", 303, HEADERS)
        return _login_page(safe_next(request.query_params.get("next", "/")))

    async def log_in(request: Request) -> Response:
        given = parse_qs((await request.body()).decode("utf-8", "replace"))
        token, target = given.get("token", [""])[0].strip(), safe_next(given.get("next", ["/"])[0])
        if site.authenticator is None:
            return RedirectResponse("/", 303, HEADERS)
        try:
            await site.authenticator.principal(f"Bearer {token}")
        except StoreError:
            return _login_page(target, error_before_login())
        except MindexError as error:
            return _login_page(target, error)
        return _log_in_and_go(site, token, target)

    async def open_link(request: Request) -> Response:
        token = site.sessions.redeem(request.path_params["code"])
        return _login_page("/", _EXPIRED) if token is None else _log_in_and_go(site, token, "/")

    return [
        Route(LOGIN, form, methods=["GET"]),
        Route(LOGIN, log_in, methods=["POST"]),
        Route(LINK + "{code}", open_link, methods=["GET"]),
        site.form("/logout", _log_out, writes=False),
    ]


def _log_out(call: Call) -> Response:
    if call.session is not None:
        call.site.sessions.end(call.session)
    return RedirectResponse(LOGIN, 303)
