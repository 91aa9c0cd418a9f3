"""A server with the REST interface of Azure AI Search (2026-04-01), as far as mindex uses it, on a real socket.

It rejects what the service rejects: requests without a key or with another version of the interface, illegal keys and
names, unknown fields and attributes, values of other types, vectors of other dimensions, batches that are too large,
filters and queries that cannot be parsed, changes of existing fields. Writes show after `lag` seconds. `fail` makes
the next requests fail, `refuse` single documents of a batch.
"""

from __future__ import annotations

import itertools
import json
import re
import ssl
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np

from tests.mindex_azure.azure_search_queries import BadRequest, Filter, LuceneQuery

VERSION = "2026-04-01"
KEY = "wire-format-admin-key-0123456789"

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,126}[a-z0-9])?")
_KEY = re.compile(r"[A-Za-z0-9=-][A-Za-z0-9_=-]{0,1023}")
_FIELD = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,127}")
_PATH = re.compile(r"/(?P<kind>indexes|aliases)(?:\('(?P<name>[^']*)'\))?(?P<rest>/.*)?")
_LOOKUP = re.compile(r"/docs\('(?P<key>[^']*)'\)")
_TYPES: dict[str, Any] = {
    "Edm.String": str,
    "Edm.Int32": int,
    "Edm.Int64": int,
    "Edm.Double": (int, float),
    "Edm.Boolean": bool,
    "Collection(Edm.String)": list,
    "Collection(Edm.Single)": list,
}
_FLAGS = {"key", "searchable", "filterable", "sortable", "facetable", "retrievable", "stored"}
_ATTRIBUTES = _FLAGS | {"name", "type", "analyzer", "dimensions", "vectorSearchProfile", "synonymMaps"}
_ANALYZERS = {"whitespace", "keyword", "simple", "standard.lucene", "en.lucene"}
_SEARCH = {
    "search", "count", "facets", "filter", "orderby", "queryType", "scoringProfile", "searchFields", "searchMode",
    "select", "skip", "top", "vectorQueries", "vectorFilterMode",
}  # fmt: skip
_MAX_DOCUMENTS, _MAX_BYTES, _MAX_ROWS, _MAX_SKIPPED = 1_000, 16_000_000, 1_000, 100_000
Row = dict[str, Any]


@dataclass
class Index:
    """An index: its definition, its documents as written, and the writes that do not show yet."""

    definition: dict[str, Any]
    etag: str
    written: dict[str, Row] = field(default_factory=dict)
    shown: dict[str, Row] = field(default_factory=dict)
    hidden: deque[tuple[float, str, Row | None]] = field(default_factory=deque)

    @property
    def fields(self) -> dict[str, dict[str, Any]]:
        return {one["name"]: one for one in self.definition["fields"]}

    @property
    def key(self) -> str:
        return next(name for name, one in self.fields.items() if one.get("key"))

    def rows(self) -> dict[str, Row]:
        while self.hidden and self.hidden[0][0] <= time.monotonic():
            _, key, row = self.hidden.popleft()
            if row is None:
                self.shown.pop(key, None)
            else:
                self.shown[key] = row
        return self.shown


@dataclass
class _Failure:
    status: int
    headers: dict[str, str]
    path: str  # only requests whose path has this in it


class AzureSearchServer:
    """Started by entering it, on a free port of the loopback address, and stopped at the end."""

    def __init__(self, *, token: str = "", tls: ssl.SSLContext | None = None) -> None:
        """With `token`, that of an identity is asked for instead of a key."""
        self.token = token
        self._tls = tls
        self.indexes: dict[str, Index] = {}
        self.aliases: dict[str, dict[str, Any]] = {}
        self.lag = 0.0
        self.requests: list[str] = []  # method and path, in order
        self._failures: deque[_Failure] = deque()
        self._refused: dict[str, deque[int]] = {}
        self._etags = itertools.count(1)
        self._names = itertools.count(1)
        self.lock = threading.RLock()

    def __enter__(self) -> AzureSearchServer:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        if self._tls is not None:
            self._server.socket = self._tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.endpoint = f"http{'s' if self._tls else ''}://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @contextmanager
    def index(self) -> Iterator[str]:
        """The name of an index that does not exist yet; everything is removed afterwards."""
        self.lag = 0.0
        yield f"test{next(self._names)}"
        with self.lock:
            self.indexes.clear()
            self.aliases.clear()
            self._failures.clear()
            self._refused.clear()
            self.requests.clear()

    # ── what goes wrong ───────────────────────────────────────────────────────────────────────────────────────

    def fail(self, status: int, times: int = 1, *, path: str = "", **headers: str) -> None:
        """Let the next requests fail, those whose path has a text in it."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._failures.extend(_Failure(status, named, path) for _ in range(times))

    def refuse(self, key: str, *statuses: int) -> None:
        """Let the next writes of a document fail with these statuses, one each, within a 207."""
        self._refused[key] = deque(statuses)

    def failure(self, path: str) -> _Failure | None:
        failure = next((one for one in self._failures if one.path in path), None)
        if failure is not None:
            self._failures.remove(failure)
        return failure

    # ── requests ──────────────────────────────────────────────────────────────────────────────────────────────

    def answer(self, method: str, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Any]:
        match = _PATH.fullmatch(path)
        if match is None:
            raise BadRequest(f"there is no resource {path}", 404)
        name, rest = unquote(match["name"] or ""), match["rest"] or ""
        if match["kind"] == "aliases":
            return self._alias(method, name, body)
        if rest.startswith("/docs"):
            return self._documents(method, self._resolved(name), rest, body)
        if rest == "/search.stats":
            stored = self._resolved(name).rows()
            return 200, {"documentCount": len(stored), "storageSize": 100 * len(stored), "vectorIndexSize": 0}
        return self._index(method, name, headers, body)

    def _resolved(self, name: str) -> Index:
        if name in self.aliases:
            name = self.aliases[name]["indexes"][0]
        if name not in self.indexes:
            raise BadRequest(f"The index '{name}' for service was not found.", 404)
        return self.indexes[name]

    def _alias(self, method: str, name: str, body: Any) -> tuple[int, Any]:
        if method == "GET" and name:
            if name not in self.aliases:
                raise BadRequest(f"The alias '{name}' was not found.", 404)
            return 200, self.aliases[name]
        if method == "PUT":
            if not _NAME.fullmatch(name) or body.get("name") != name or len(body.get("indexes", ())) != 1:
                raise BadRequest("The alias is malformed: one name, one index")
            if name in self.indexes or body["indexes"][0] not in self.indexes:
                raise BadRequest("An alias names an index that exists, and has the name of none")
            created = name not in self.aliases
            self.aliases[name] = {"name": name, "indexes": body["indexes"], "@odata.etag": self._etag()}
            return (201 if created else 200), self.aliases[name]
        if method == "DELETE" and name in self.aliases:
            del self.aliases[name]
            return 204, None
        raise BadRequest("this request is not served", 405)

    def _index(self, method: str, name: str, headers: Mapping[str, str], body: Any) -> tuple[int, Any]:
        known = self.indexes.get(name)
        if method == "GET" and not name:
            return 200, {"value": [one.definition for one in self.indexes.values()]}
        if method == "POST" and not name:
            if body.get("name") in self.indexes or body.get("name") in self.aliases:
                raise BadRequest(f"The index '{body.get('name')}' exists.", 409)
            return 201, self._put_index(body, None)
        if known is None and method != "PUT":
            raise BadRequest(f"No index with the name '{name}' was found in the service.", 404)
        if known is not None and headers.get("If-Match", known.etag) != known.etag:
            raise BadRequest("The condition specified using HTTP conditional header(s) is not met.", 412)
        if method == "GET" and known is not None:
            return 200, known.definition
        if method == "PUT":
            return 200 if known else 201, self._put_index(body, known)
        if method == "DELETE":
            del self.indexes[name]
            return 204, None
        raise BadRequest("this request is not served", 405)

    def _put_index(self, body: dict[str, Any], known: Index | None) -> dict[str, Any]:
        check_definition(body)
        if known is not None:
            now = {one["name"]: one for one in body["fields"]}
            for name, one in known.fields.items():
                if name not in now:
                    raise BadRequest(f"Existing field '{name}' cannot be deleted.")
                if {k: v for k, v in one.items() if v} != {k: v for k, v in now[name].items() if v}:
                    raise BadRequest(f"Existing field '{name}' cannot be changed.")
        etag = self._etag()
        definition = {**body, "@odata.etag": etag}
        if known is None:
            self.indexes[body["name"]] = Index(definition, etag)
        else:
            known.definition, known.etag = definition, etag
        return definition

    def _etag(self) -> str:
        return f'"0x{next(self._etags)}"'

    # ── documents ─────────────────────────────────────────────────────────────────────────────────────────────

    def _documents(self, method: str, index: Index, rest: str, body: Any) -> tuple[int, Any]:
        if method == "POST" and rest == "/docs/search.index":
            return self._write(index, body)
        if method == "POST" and rest == "/docs/search.post.search":
            return 200, search(index, body)
        if method == "GET" and (match := _LOOKUP.fullmatch(rest)):
            row = index.rows().get(unquote(match["key"]))
            if row is None:
                raise BadRequest("Document not found.", 404)
            return 200, _selected(index, row, None)
        raise BadRequest("this request is not served", 405)

    def _write(self, index: Index, body: Any) -> tuple[int, Any]:
        actions = body.get("value") if isinstance(body, dict) else None
        if not actions or len(actions) > _MAX_DOCUMENTS:
            raise BadRequest(f"A batch has 1 to {_MAX_DOCUMENTS} actions, this one {len(actions or ())}.")
        for one in actions:
            check_document(index, one)
        results = [self._apply(index, dict(one)) for one in actions]
        return (200 if all(one["status"] for one in results) else 207), {"value": results}

    def _apply(self, index: Index, row: Row) -> Row:
        action, key = row.pop("@search.action"), row[index.key]
        before = index.written.get(key)
        status = 200 if before is not None or action == "delete" else 201
        refusals = self._refused.get(key)
        if refusals:
            status = refusals.popleft()
        elif action == "merge" and before is None:
            status = 404
        if status >= 400:
            return {"key": key, "status": False, "errorMessage": f"refused with {status}", "statusCode": status}
        empty = {name: [] if one["type"] == "Collection(Edm.String)" else None for name, one in index.fields.items()}
        now: Row | None = {**empty, **row}
        if action == "delete":
            now = None
        elif action in ("merge", "mergeOrUpload") and before is not None:
            now = {**before, **row}
        if now is None:
            index.written.pop(key, None)
        else:
            index.written[key] = now
        index.hidden.append((time.monotonic() + self.lag, key, now))
        return {"key": key, "status": True, "errorMessage": None, "statusCode": status}


def remove_index(alias: str) -> None:
    """Remove an alias and its indexes from the service that the environment names."""
    from mindex_azure import schema
    from mindex_azure.address import parse_address
    from mindex_azure.connection import Connection

    connection = Connection(parse_address(f"azure:///{alias}"))
    names = [*schema.old_indexes(connection), schema.index_behind(connection)]
    connection.indexes.delete_alias(alias)
    for name in filter(None, names):
        connection.indexes.delete_index(name)
    connection.close()


# ── what a definition and a document may be ───────────────────────────────────────────────────────────────────


def check_definition(body: Any) -> None:
    if not _NAME.fullmatch(body.get("name", "")) or "--" in body["name"]:
        raise BadRequest("An index name has lower case letters, digits and single dashes.")
    fields = body.get("fields") or []
    names = [one.get("name", "") for one in fields]
    if len(set(names)) != len(names) or not all(_FIELD.fullmatch(name) for name in names):
        raise BadRequest("Field names are letters, digits and underscores, each once.")
    if [one["type"] for one in fields if one.get("key")] != ["Edm.String"]:
        raise BadRequest("An index has one key field, a string.")
    vectors = body.get("vectorSearch") or {}
    algorithms = {one["name"] for one in vectors.get("algorithms", ())}
    profiles = {one["name"] for one in vectors.get("profiles", ()) if one["algorithm"] in algorithms}
    for one in fields:
        _check_field(one, profiles)
    searchable = {one["name"] for one in fields if one.get("searchable") and not one.get("dimensions")}
    for profile in body.get("scoringProfiles") or ():
        if not profile["text"]["weights"].keys() <= searchable:
            raise BadRequest("A scoring profile weighs searchable fields only.")


def _check_field(one: dict[str, Any], profiles: set[str]) -> None:
    name, type_ = one["name"], one.get("type")
    given = {attribute for attribute, value in one.items() if value is not None}
    if not given <= _ATTRIBUTES or type_ not in _TYPES:
        raise BadRequest(f"The field '{name}' has unknown attributes or an unknown type: {sorted(given)}, {type_}.")
    is_vector, is_text = type_ == "Collection(Edm.Single)", type_ in ("Edm.String", "Collection(Edm.String)")
    if is_vector and not (2 <= one.get("dimensions", 0) <= 4096 and one.get("vectorSearchProfile") in profiles):
        raise BadRequest(f"The vector field '{name}' needs dimensions and the profile of an algorithm.")
    if is_vector and (
        not one.get("searchable") or any(one.get(flag) for flag in ("filterable", "sortable", "facetable"))
    ):
        raise BadRequest(f"The vector field '{name}' is searchable, and neither filterable, sortable nor facetable.")
    if one.get("searchable") and not (is_text or is_vector):
        raise BadRequest(f"The field '{name}' of type {type_} cannot be searchable.")
    if one.get("sortable") and type_.startswith("Collection("):
        raise BadRequest(f"The collection '{name}' cannot be sortable.")
    if one.get("analyzer") and (one["analyzer"] not in _ANALYZERS or not one.get("searchable") or not is_text):
        raise BadRequest(f"The field '{name}' cannot have the analyzer '{one['analyzer']}'.")


def check_document(index: Index, action: Row) -> None:
    if action.get("@search.action") not in ("upload", "merge", "mergeOrUpload", "delete"):
        raise BadRequest("An action is upload, merge, mergeOrUpload or delete.")
    key = action.get(index.key)
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise BadRequest(f"Invalid document key: '{key}'. Keys have letters, digits, _, - and =, and begin with no _.")
    for name, value in action.items():
        if name != "@search.action":
            _check_value(index.fields, name, value)


def _check_value(fields: Mapping[str, Any], name: str, value: Any) -> None:
    if name not in fields:
        raise BadRequest(f"The property '{name}' does not exist on type 'search.documentFields'.")
    one = fields[name]
    if value is None:
        if one["type"] == "Collection(Edm.String)":
            raise BadRequest(f"The collection '{name}' cannot be null.")
        return
    if not isinstance(value, _TYPES[one["type"]]) or (isinstance(value, bool) and one["type"] != "Edm.Boolean"):
        raise BadRequest(f"Cannot convert the value of '{name}' to type '{one['type']}'.")
    if one["type"] == "Edm.Int32" and abs(value) >= 2**31:
        raise BadRequest(f"The value of '{name}' does not fit an Int32.")
    if one["type"] == "Collection(Edm.String)" and not all(isinstance(item, str) for item in value):
        raise BadRequest(f"The collection '{name}' holds strings only.")
    if one["type"] == "Collection(Edm.Single)" and len(value) != one["dimensions"]:
        raise BadRequest(f"The vector field '{name}' has {one['dimensions']} dimensions, the value {len(value)}.")
    if one["type"] == "Edm.String" and one.get("filterable") and len(value.encode()) > 32_766:
        raise BadRequest(f"The value of the filterable field '{name}' is larger than 32766 bytes.")


# ── search ────────────────────────────────────────────────────────────────────────────────────────────────────


def search(index: Index, body: Row) -> Row:
    unknown = {name for name, value in body.items() if value is not None} - _SEARCH
    if unknown:
        raise BadRequest(f"The parameters {sorted(unknown)} are not known.")
    top, skip = body.get("top", 50), body.get("skip") or 0
    if top < 0 or not 0 <= skip <= _MAX_SKIPPED:
        raise BadRequest("top and skip are out of range.")
    fields = index.fields
    admits = Filter(body["filter"], fields) if body.get("filter") else None
    rows = [row for row in index.rows().values() if admits is None or admits(row)]
    scored = _nearest(fields, rows, body) if body.get("vectorQueries") else _matching(index, rows, body)
    found = _ordered(fields, scored, body.get("orderby"))
    size = min(top, _MAX_ROWS)
    chosen = found[skip : skip + size]
    names = body.get("select")
    answer: Row = {"value": [{"@search.score": score, **_selected(index, row, names)} for score, row in chosen]}
    if body.get("count"):
        answer["@odata.count"] = len(found)
    if body.get("facets"):
        answer["@search.facets"] = _facets(fields, [row for _, row in found], body["facets"])
    if top > _MAX_ROWS and skip + size < len(found):
        answer["@search.nextPageParameters"] = {**body, "skip": skip + size, "top": top - size}
    return answer


def _matching(index: Index, rows: list[Row], body: Row) -> list[tuple[float, Row]]:
    profiles = {one["name"]: one["text"]["weights"] for one in index.definition.get("scoringProfiles") or ()}
    if (profile := body.get("scoringProfile")) and profile not in profiles:
        raise BadRequest(f"There is no scoring profile '{profile}'.")
    text = body.get("search") or "*"
    if text == "*":
        return [(1.0, row) for row in rows]
    if body.get("queryType") != "full":
        raise BadRequest("only the full syntax is parsed here")
    searchable = [name for name, one in index.fields.items() if one.get("searchable") and not one.get("dimensions")]
    query = LuceneQuery(text, index.fields, _names(body.get("searchFields")) or searchable)
    scores = ((query.score(row, profiles.get(profile or "", {})), row) for row in rows)
    return [(score, row) for score, row in scores if score]


def _nearest(fields: Mapping[str, Any], rows: list[Row], body: Row) -> list[tuple[float, Row]]:
    (query,) = body["vectorQueries"]
    name, vector = query.get("fields", ""), query.get("vector", ())
    if query.get("kind") != "vector" or not fields.get(name, {}).get("dimensions") or query.get("k", 0) < 1:
        raise BadRequest(f"'{name}' is not a vector field, or the query is no vector query.")
    if len(vector) != fields[name]["dimensions"]:
        raise BadRequest(f"The vector field '{name}' has {fields[name]['dimensions']} dimensions, not {len(vector)}.")
    if body.get("vectorFilterMode") not in (None, "preFilter"):
        raise BadRequest("only preFilter is served here")
    rows = [row for row in rows if row.get(name)]
    if not rows:
        return []
    stored, asked = np.asarray([row[name] for row in rows]), np.asarray(vector)
    cosines = stored @ asked / (np.linalg.norm(stored, axis=1) * np.linalg.norm(asked))
    nearest = np.argsort(-cosines, kind="stable")[: query["k"]]
    return [(float(1 / (2 - cosines[at])), rows[at]) for at in nearest]


def _ordered(fields: Mapping[str, Any], scored: list[tuple[float, Row]], order: str | None) -> list[tuple[float, Row]]:
    found = sorted(scored, key=lambda one: -one[0])
    for clause in reversed(_names(order)):
        name, _, direction = clause.partition(" ")
        if direction not in ("", "asc", "desc"):
            raise BadRequest(f"'{clause}' is no order. Parameter: $orderby")
        if name == "search.score()":
            found.sort(key=lambda one: one[0], reverse=direction == "desc")
            continue
        if not fields.get(name, {}).get("sortable"):
            raise BadRequest(f"The field '{name}' is not sortable. Parameter: $orderby")
        found.sort(
            key=lambda one: (one[1].get(name) is not None, one[1].get(name)),
            reverse=direction == "desc",
        )
    return found


def _selected(index: Index, row: Row, select: str | None) -> Row:
    names = _names(select) or ["*"]
    for name in names:
        if name != "*" and not index.fields.get(name, {}).get("retrievable", False):
            raise BadRequest(f"The field '{name}' is not retrievable. Parameter: $select")
    wanted = index.fields if "*" in names else names
    return {name: row.get(name) for name in wanted if index.fields[name].get("retrievable", True)}


def _facets(fields: Mapping[str, Any], rows: list[Row], wanted: list[str]) -> Row:
    found: Row = {}
    for one in wanted:
        name, *options = one.split(",")
        if not fields.get(name, {}).get("facetable"):
            raise BadRequest(f"The field '{name}' is not facetable. Parameter: facet")
        settings = dict(option.split(":") for option in options)
        held = (row.get(name) for row in rows)
        values = Counter(
            value
            for one in held
            if one is not None
            for value in (dict.fromkeys(one) if isinstance(one, list) else [one])
        )
        if "interval" in settings:
            width = int(settings["interval"])
            buckets: Counter[int] = Counter()
            for value, count in values.items():
                buckets[value // width * width] += count
            found[name] = [{"value": value, "count": count} for value, count in sorted(buckets.items())]
        else:
            common = values.most_common(int(settings.get("count", 10)))
            found[name] = [{"value": value, "count": count} for value, count in common]
    return found


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


# ── HTTP ──────────────────────────────────────────────────────────────────────────────────────────────────────


def check_access(token: str, headers: Mapping[str, str], query: str, size: int) -> None:
    """Reject a request of another version, without the key or token, or that is too large."""
    if parse_qs(query).get("api-version") != [VERSION]:
        raise BadRequest("The api-version is missing or not supported.")
    if token and headers.get("Authorization") != f"Bearer {token}":
        raise BadRequest("The token is missing or not valid.", 401)
    if not token and headers.get("api-key") is None:
        raise BadRequest("No key and no token was provided.", 401)
    if not token and headers["api-key"] != KEY:
        raise BadRequest("Access denied due to an invalid key.", 403)
    if size > _MAX_BYTES:
        raise BadRequest("The request is larger than 16 MB.", 413)


def _handler(server: AzureSearchServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _serve(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            content = self.rfile.read(size)
            parts = urlsplit(self.path)
            server.requests.append(f"{self.command} {parts.path}")
            try:
                with server.lock:
                    if failure := server.failure(parts.path):
                        self._send(failure.status, _error(f"made to fail with {failure.status}"), failure.headers)
                        return
                    check_access(server.token, self.headers, parts.query, size)
                    status, answer = server.answer(
                        self.command, parts.path, self.headers, json.loads(content) if content else None
                    )
                self._send(status, answer, {})
            except BadRequest as error:
                self._send(error.status, _error(str(error)), {})

        def _send(self, status: int, answer: Any, headers: Mapping[str, str]) -> None:
            content = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815 - the names of http.server

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the signature of http.server
            """Nothing."""

    return Handler


def _error(message: str) -> Row:
    return {"error": {"code": "", "message": message}}
