"""The server that replaces Azure AI Search in the tests rejects the same requests as the service."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from mindex_azure.schema import definition
from tests.mindex_azure.azure_search_queries import BadRequest, Filter, LuceneQuery
from tests.mindex_azure.azure_search_server import KEY, VERSION, AzureSearchServer

pytestmark = pytest.mark.server

FIELDS = [
    {"name": "key", "type": "Edm.String", "key": True, "retrievable": True},
    {"name": "text", "type": "Edm.String", "searchable": True, "analyzer": "whitespace"},
    {"name": "size", "type": "Edm.Int64", "filterable": True, "sortable": True},
    {"name": "names", "type": "Collection(Edm.String)", "filterable": True},
    {
        "name": "vector",
        "type": "Collection(Edm.Single)",
        "searchable": True,
        "dimensions": 3,
        "vectorSearchProfile": "p",
    },
]
VECTORS = {"algorithms": [{"name": "a", "kind": "hnsw"}], "profiles": [{"name": "p", "algorithm": "a"}]}
BY_NAME = {one["name"]: one for one in FIELDS}


class Rest:
    """Requests to the server, with a key and a version by default."""

    def __init__(self, server: AzureSearchServer) -> None:
        self._server = server

    def __call__(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        version: str = VERSION,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        url = f"{self._server.endpoint}{path}" + (f"?api-version={version}" if version else "")
        given = {"api-key": KEY} if headers is None else headers
        content = None if body is None else json.dumps(body).encode()
        request = Request(url, content, {"Content-Type": "application/json", **given}, method=method)
        try:
            with urlopen(request, timeout=10) as answer:
                return answer.status, json.loads(answer.read() or "null")
        except HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def index(self, **changes: object) -> int:
        return self("POST", "/indexes", {"name": "i", "fields": FIELDS, "vectorSearch": VECTORS, **changes})[0]

    def write(self, *rows: Mapping[str, object]) -> tuple[int, Any]:
        actions = [{"@search.action": "upload", **row} for row in rows]
        return self("POST", "/indexes('i')/docs/search.index", {"value": actions})

    def search(self, **body: object) -> tuple[int, Any]:
        return self("POST", "/indexes('i')/docs/search.post.search", body)


@pytest.fixture
def rest(azure_search_server: AzureSearchServer, azure_index: str) -> Rest:
    return Rest(azure_search_server)


@pytest.mark.parametrize(
    ("version", "headers", "status"),
    [
        ("", None, 400),
        ("2020-06-30", None, 400),
        (VERSION, {}, 401),
        (VERSION, {"api-key": "x"}, 403),
        (VERSION, None, 200),
    ],
)
def test_a_request_needs_a_version_and_a_key(
    rest: Rest, version: str, headers: Mapping[str, str] | None, status: int
) -> None:
    assert rest("GET", "/indexes", version=version, headers=headers)[0] == status


@pytest.mark.parametrize(
    "field",
    [
        {"name": "f", "type": "Edm.Strin"},
        {"name": "_f", "type": "Edm.String"},
        {"name": "f", "type": "Edm.Int64", "searchable": True},
        {"name": "f", "type": "Collection(Edm.String)", "sortable": True},
        {"name": "f", "type": "Edm.String", "filtrable": True},
        {"name": "f", "type": "Edm.String", "searchable": True, "analyzer": "whitespaces"},
        {"name": "f", "type": "Collection(Edm.Single)", "searchable": True},
        {
            "name": "f",
            "type": "Collection(Edm.Single)",
            "searchable": True,
            "dimensions": 3,
            "vectorSearchProfile": "q",
        },
        {**FIELDS[4], "name": "f", "filterable": True},
        {"name": "f", "type": "Edm.String", "key": True},
    ],
)
def test_a_field_with_attributes_that_do_not_fit_is_rejected(rest: Rest, field: dict[str, Any]) -> None:
    assert rest.index(fields=[*FIELDS, field]) == 400


def test_existing_fields_cannot_be_changed_but_new_ones_can_be_added(rest: Rest) -> None:
    assert rest.index() == 201
    body = {"name": "i", "vectorSearch": VECTORS}
    assert rest("PUT", "/indexes('i')", {**body, "fields": FIELDS[:-1]})[0] == 400
    assert rest("PUT", "/indexes('i')", {**body, "fields": [*FIELDS[:-1], {**FIELDS[4], "dimensions": 4}]})[0] == 400
    more = [*FIELDS, {"name": "more", "type": "Edm.String"}]
    assert rest("PUT", "/indexes('i')", {**body, "fields": more}, headers={"api-key": KEY, "If-Match": "old"})[0] == 412
    assert rest("PUT", "/indexes('i')", {**body, "fields": more})[0] == 200


@pytest.mark.parametrize(
    "row",
    [
        {"key": "_a"},
        {"key": "a.b"},
        {"key": ""},
        {"text": "no key"},
        {"key": "a", "more": 1},
        {"key": "a", "size": "1"},
        {"key": "a", "names": None},
        {"key": "a", "names": [1]},
        {"key": "a", "vector": [1.0, 2.0]},
        {"key": "a", "text": 1},
    ],
)
def test_a_document_that_does_not_fit_is_rejected(rest: Rest, row: dict[str, object]) -> None:
    rest.index()
    assert rest.write(row)[0] == 400


def test_a_batch_of_more_than_a_thousand_documents_is_rejected(rest: Rest) -> None:
    rest.index()
    assert rest.write(*({"key": str(number)} for number in range(1_000)))[0] == 200
    assert rest.write(*({"key": str(number)} for number in range(1_001)))[0] == 400
    assert rest.write()[0] == 400


@pytest.mark.parametrize(
    "where",
    [
        "text eq 'a'",
        "size eq 'a'",
        "size eq",
        "size = 1",
        "(size eq 1",
        "names eq 'a'",
        "names/any(n: n gt 'a')",
        "nowhere eq 1",
        "names/all(n: n eq 'a')",
        "size eq 1 and",
        "search.in(size, '1', ',')",
        "names/any(n: n eq 'it's')",
        "size eq 1 extra",
    ],
)
def test_a_filter_that_the_service_cannot_read_is_rejected(rest: Rest, where: str) -> None:
    rest.index()
    assert rest.search(search="*", filter=where)[0] == 400


@pytest.mark.parametrize(
    ("where", "admitted"),
    [
        ("size gt 1 and not (size eq 3)", True),
        ("size lt 2 or names/any(n: n eq 'it''s')", True),
        ("names/any(n: n eq 'it') or size ge 3", False),
        ("not names/any(n: n eq 'it''s')", False),
        ("search.ismatch('red AND apple', 'text', 'full', 'any')", True),
        ("size le 2 and not search.ismatch('app*', 'text', 'full', 'any')", False),
    ],
)
def test_a_filter_admits_what_it_says(where: str, admitted: bool) -> None:
    assert Filter(where, BY_NAME)({"size": 2, "names": ["it's"], "text": "a red apple"}) is admitted


@pytest.mark.parametrize(
    "query", ["red AND", "(red", "red apple", "-red", "re?d", "red~1", "nowhere:red", "a AND b OR c"]
)
def test_a_query_that_is_not_of_finished_tokens_is_rejected(query: str) -> None:
    with pytest.raises(BadRequest):
        LuceneQuery(query, BY_NAME, ["text"])


@pytest.mark.parametrize(
    "body",
    [
        {"search": "*", "orderby": "text asc"},
        {"search": "*", "select": "nowhere"},
        {"search": "*", "facets": ["size"]},
        {"search": "*", "skip": 100_001},
        {"search": "*", "limit": 3},
        {"search": "*", "scoringProfile": "none"},
        {"vectorQueries": [{"kind": "vector", "vector": [1.0], "fields": "vector", "k": 3}]},
        {"vectorQueries": [{"kind": "vector", "vector": [1.0, 0.0, 0.0], "fields": "text", "k": 3}]},
    ],
)
def test_a_search_with_parameters_that_do_not_fit_is_rejected(rest: Rest, body: dict[str, object]) -> None:
    rest.index()
    rest.write({"key": "a"})
    assert rest.search(**body)[0] == 400


def test_the_definition_of_the_mindex_index_is_accepted(rest: Rest) -> None:
    body = dict(definition("ours").as_dict())
    assert rest("POST", "/indexes", body)[0] == 201
