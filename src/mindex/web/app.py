"""The routes of the page and the API, for a server to add to its own."""

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

from mindex.web.api import DESCRIPTION, OPERATIONS, PREFIX, api_routes
from mindex.web.login import LINK, LOGIN, login_routes
from mindex.web.record_pages import record_routes
from mindex.web.render import STATIC
from mindex.web.search_page import search_routes
from mindex.web.site import HEADERS, Site
from mindex.web.upkeep_pages import upkeep_routes

# They say nothing of what is stored, and so need no token.
PUBLIC = ("/static/", LOGIN, LINK, DESCRIPTION)
# Below this path a cookie gives the right to read, and no more.
API = f"{PREFIX}/"
# What metrics count by its name.
ROUTES = frozenset({"/", *(f"{PREFIX}/{one.name}" for one in OPERATIONS)})

_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_FILES = {path.name: path for path in STATIC.iterdir() if path.suffix in _TYPES}


def web_routes(site: Site) -> list[BaseRoute]:
    return [
        *api_routes(site),
        *login_routes(site),
        *search_routes(site),
        *record_routes(site),
        *upkeep_routes(site),
        Route("/static/{name}", _static, methods=["GET"]),
    ]


async def _static(request: Request) -> Response:
    path = _FILES.get(request.path_params["name"])
    if path is None:
        return Response(status_code=404)
    kept = "public, max-age=31536000, immutable" if request.url.query else "no-cache"
    return FileResponse(path, media_type=_TYPES[path.suffix], headers={**HEADERS, "cache-control": kept})
