"""OData filters and full Lucene queries, parsed and evaluated as Azure AI Search documents them.

Only what the service accepts is accepted: a filter on a field that is not filterable, a text compared with a number, a
lambda that is not an equality, or a query with a dangling operator is a `BadRequest`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Field = Mapping[str, Any]
Row = Mapping[str, Any]
Condition = Callable[[Row], bool]


class BadRequest(Exception):
    """A request that the service rejects, with its status."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


# ── OData ─────────────────────────────────────────────────────────────────────────────────────────────────────

_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<number>-?\d+(?:\.\d+)?)|(?P<name>[A-Za-z_][\w.]*(?:/[A-Za-z_]\w*)*)"
    r"|(?P<sign>[(),:]))"
)
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "gt": lambda a, b: a is not None and a > b,
    "ge": lambda a, b: a is not None and a >= b,
    "lt": lambda a, b: a is not None and a < b,
    "le": lambda a, b: a is not None and a <= b,
}


class Filter:
    """A filter over the fields of an index: `Filter(text, fields)(row)` says whether it admits a document."""

    def __init__(self, text: str, fields: Mapping[str, Field]) -> None:
        self._fields = fields
        self._tokens = _tokens(text)
        self._at = 0
        self._admits = self._either()
        if self._at != len(self._tokens):
            raise BadRequest(f"Invalid expression: Syntax error at '{self._tokens[self._at][1]}'. Parameter: $filter")

    def __call__(self, row: Row) -> bool:
        return self._admits(row)

    def _peek(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _next(self, *expected: str) -> tuple[str, str]:
        if self._at >= len(self._tokens) or (expected and self._tokens[self._at][1] not in expected):
            raise BadRequest(f"Invalid expression: expected {' or '.join(expected) or 'more'}. Parameter: $filter")
        self._at += 1
        return self._tokens[self._at - 1]

    def _either(self) -> Condition:
        parts = [self._each()]
        while self._peek() == "or":
            self._next()
            parts.append(self._each())
        return parts[0] if len(parts) == 1 else lambda row: any(part(row) for part in parts)

    def _each(self) -> Condition:
        parts = [self._one()]
        while self._peek() == "and":
            self._next()
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else lambda row: all(part(row) for part in parts)

    def _one(self) -> Condition:
        if self._peek() == "not":
            self._next()
            inner = self._one()
            return lambda row: not inner(row)
        if self._peek() == "(":
            self._next()
            inner = self._either()
            self._next(")")
            return inner
        kind, name = self._next()
        if kind != "name":
            raise BadRequest(f"Invalid expression: a field is expected, not {name}. Parameter: $filter")
        if name == "search.in":
            return self._among()
        if name == "search.ismatch":
            return self._match()
        if name.endswith(("/any", "/all")):
            return self._lambda(name)
        return self._comparison(name)

    def _field(self, name: str) -> Field:
        found = self._fields.get(name)
        if found is None:
            raise BadRequest(f"Could not find a property named '{name}'. Parameter: $filter")
        if not found.get("filterable"):
            raise BadRequest(f"The field '{name}' is not filterable. Parameter: $filter")
        return found

    def _comparison(self, name: str) -> Condition:
        own = self._field(name)
        if own["type"].startswith("Collection("):
            raise BadRequest(f"The collection '{name}' cannot be compared. Parameter: $filter")
        _, sign = self._next(*_COMPARED)
        kind, text = self._next()
        value = _literal(kind, text, own["type"])
        compare = _COMPARED[sign]
        return lambda row: compare(row.get(name), value)

    def _lambda(self, name: str) -> Condition:
        collection, _, which = name.rpartition("/")
        own = self._field(collection)
        if own["type"] != "Collection(Edm.String)" or which != "any":
            raise BadRequest(f"'{which}' is not used on '{collection}' here. Parameter: $filter")
        self._next("(")
        variable = self._next()[1]
        self._next(":")
        if self._next()[1] != variable or self._next()[1] != "eq":
            raise BadRequest("Invalid lambda: only 'eq' is allowed on a collection of strings. Parameter: $filter")
        kind, text = self._next()
        value = _literal(kind, text, "Edm.String")
        self._next(")")
        return lambda row: value in (row.get(collection) or ())

    def _arguments(self) -> list[str]:
        self._next("(")
        found = [self._next()]
        while self._next(",", ")")[1] == ",":
            found.append(self._next())
        return [text if kind == "name" else _literal(kind, text, "Edm.String") for kind, text in found]

    def _among(self) -> Condition:
        name, values, *delimiters = self._arguments()
        if self._field(name)["type"] != "Edm.String":
            raise BadRequest(f"search.in needs a string field, not '{name}'. Parameter: $filter")
        wanted = set(re.split(f"[{re.escape(delimiters[0] if delimiters else ' ,')}]", values)) - {""}
        return lambda row: row.get(name) in wanted

    def _match(self) -> Condition:
        query, names, *modes = self._arguments()
        if modes and modes[0] not in ("simple", "full"):
            raise BadRequest("Invalid query type of search.ismatch. Parameter: $filter")
        matches = LuceneQuery(query, self._fields, [name.strip() for name in names.split(",")])
        return lambda row: matches.score(row, {}) > 0


def _tokens(text: str) -> list[tuple[str, str]]:
    found, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise BadRequest(f"Invalid expression: Syntax error at position {at}. Parameter: $filter")
        found.append((str(match.lastgroup), match[match.lastgroup or 0]))
        at = match.end()
    return found


def _literal(kind: str, text: str, type_: str) -> Any:
    if type_ == "Edm.String" and kind == "text":
        return text[1:-1].replace("''", "'")
    if type_ in ("Edm.Int32", "Edm.Int64", "Edm.Double") and kind == "number":
        return float(text) if "." in text else int(text)
    if type_ == "Edm.Boolean" and text in ("true", "false"):
        return text == "true"
    if text == "null":
        return None
    raise BadRequest(f"A value of type {type_} is expected, not {text}. Parameter: $filter")


# ── full Lucene syntax ────────────────────────────────────────────────────────────────────────────────────────

_LUCENE = re.compile(r'\s*(?P<part>[()]|(?:(?P<field>\w+):)?(?:"(?P<phrase>[^"]*)"|(?P<term>[^\s()":]+)))')
# Characters with a meaning that no query of ours uses: they would be someone's text.
_SPECIAL = re.compile(r"[-+&|!{}\[\]^~?\\/<>=@#$%;,.`'*]")
Scores = Callable[[Row, Mapping[str, float]], float]


@dataclass
class LuceneQuery:
    """A query in the full syntax; `score` is 0 for a document that does not match."""

    text: str
    fields: Mapping[str, Field]
    search_fields: list[str]
    _parts: list[re.Match[str]] = field(default_factory=list)
    _at: int = 0

    def __post_init__(self) -> None:
        for name in self.search_fields:
            self._searchable(name)
        at, text = 0, self.text.rstrip()
        while at < len(text):
            match = _LUCENE.match(text, at)
            if match is None:
                raise BadRequest(f"Failed to parse query string at position {at}. Parameter: search")
            self._parts.append(match)
            at = match.end()
        self.score: Scores = self._any()
        if self._at != len(self._parts):
            raise BadRequest("Failed to parse query string: unbalanced. Parameter: search")

    def _peek(self) -> str:
        return self._parts[self._at]["part"] if self._at < len(self._parts) else ""

    def _any(self) -> Scores:
        """Operands with one operator between each two; `AND NOT` excludes."""
        operands, operators = [self._operand()], []
        while self._peek() not in ("", ")"):
            operator = self._peek()
            if operator not in ("AND", "OR"):
                raise BadRequest(f"Failed to parse query string: no operator before {operator}. Parameter: search")
            self._at += 1
            if self._peek() == "NOT":
                self._at += 1
                operator = "NOT"
            operators.append(operator)
            operands.append(self._operand())
        if len(set(operators)) > 1:
            raise BadRequest("operators are mixed without parentheses: Lucene would not read it as it is meant")
        return _combined(operands, operators[0] if operators else "OR")

    def _operand(self) -> Scores:
        if self._at >= len(self._parts):
            raise BadRequest("Failed to parse query string: it ends too early. Parameter: search")
        part = self._parts[self._at]
        self._at += 1
        if part["part"] == "(":
            inner = self._any()
            if self._peek() != ")":
                raise BadRequest("Failed to parse query string: ')' is missing. Parameter: search")
            self._at += 1
            return inner
        if part["part"] in (")", "AND", "OR", "NOT"):
            raise BadRequest(f"Failed to parse query string at {part['part']}. Parameter: search")
        names = [part["field"]] if part["field"] else self.search_fields
        for name in names:
            self._searchable(name)
        return _leaf(part, names)

    def _searchable(self, name: str) -> None:
        own = self.fields.get(name)
        if own is None or not own.get("searchable") or own.get("dimensions"):
            raise BadRequest(f"The field '{name}' is not searchable. Parameter: searchFields")


def _combined(operands: list[Scores], operator: str) -> Scores:
    def score(row: Row, weights: Mapping[str, float]) -> float:
        scores = [operand(row, weights) for operand in operands]
        if operator == "NOT":
            return 0.0 if any(scores[1:]) else scores[0]
        return 0.0 if operator == "AND" and not all(scores) else sum(scores)

    return score


def _leaf(part: re.Match[str], names: list[str]) -> Scores:
    term = part["term"] or ""
    prefix = term.endswith("*") and len(term) > 1
    if term == "*":
        return lambda _row, _weights: 1.0
    if _SPECIAL.search(term.removesuffix("*")) or (part["phrase"] and _SPECIAL.search(part["phrase"])):
        raise BadRequest(f"'{part['part']}' has characters that a query of finished tokens does not have")
    sought = part["phrase"].split() if part["phrase"] is not None else [term.removesuffix("*")]

    def count(tokens: list[str]) -> int:
        if prefix:
            return sum(token.startswith(sought[0]) for token in tokens)
        size = len(sought)
        return sum(tokens[at : at + size] == sought for at in range(len(tokens) - size + 1))

    def score(row: Row, weights: Mapping[str, float]) -> float:
        found = 0.0
        for name in names:  # not the service's formula: our engine must not depend on it
            if counted := count((row.get(name) or "").split()):
                found += weights.get(name, 1.0) * (1 + math.log(counted))
        return found

    return score
