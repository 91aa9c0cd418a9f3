"""The query language: plain words are any-of; operators, quotes, prefixes and fields make it strict.

`"exact phrase"`, `AND OR NOT`, `prefix*`, `title:word`, `{content}: x`, parentheses. A query that does not parse
strictly becomes plain words. No text makes this raise, and none reaches an engine unanalysed.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from mindex.analyzer import STOP_WORDS, QueryWord, analyze, analyze_query, fold
from mindex.datatypes import AllOf, AnyOf, KeywordNode, Phrase, Prefix, QueryTerms, Term, Without
from mindex.store.rules.bm25 import wanted_leaves
from mindex.values import dataclass

MAX_QUERY = 4_000  # characters
MAX_LIMIT = 50  # hits of one page
_MAX_DEPTH = 20
# A plain list: the loader of the lexicon would take longer than a search by keyword.
_QUESTION_WORDS = frozenset(
    (Path(__file__).parent.parent / "lexicon" / "question_words.txt").read_text("utf-8").split()
)

_COLUMNS = {
    "title": "title",
    "content": "text",
    "text": "text",
    "summary": "summary",
    "tag": "tags",
    "tags": "tags",
}
FIELDS = "|".join(_COLUMNS)
_LEXER = re.compile(
    rf'"(?P<phrase>[^"]*)"'
    rf"|(?P<field>(?:\{{\s*(?:{FIELDS})\s*\}}\s*:|(?:{FIELDS}):(?=[^\s:/])))"
    r"|(?P<operator>(?:AND|OR|NOT)(?=[\s(]|$))"
    r"|(?P<prefix>[^\s\"()*{}:]+\*(?=[\s()]|$))"
    r"|(?P<open>\()|(?P<close>\))"
    r'|(?P<word>[^\s"()]+)'
)


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """What to look for. `text` is what a model should read; `words` are those that count for the matched share."""

    text: str
    words: tuple[QueryWord, ...]
    node: KeywordNode | None
    strict: bool = False
    pairs: tuple[Phrase, ...] = ()  # of plain words: those that are neighbours in the query

    @property
    def tokens(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(token for word in self.words for token in word.words))

    @property
    def excluded(self) -> KeywordNode | None:
        """What no record that the query finds may match; None if it excludes nothing."""
        return _excluded(self.node) if self.strict and self.node is not None else None

    @property
    def terms(self) -> QueryTerms:
        """What a text can hold of the query, without what the query excludes."""
        leaves = list(wanted_leaves(self.node)) if self.node is not None else []
        tokens = {token for leaf in leaves for token in _leaf_tokens(leaf)}
        telling = tokens - STOP_WORDS or tokens
        return QueryTerms(frozenset(telling), tuple(leaf.token for leaf in leaves if isinstance(leaf, Prefix)))


class _Invalid(Exception):
    """Not a valid strict query."""


def parse(text: str) -> ParsedQuery:
    """Strictly if it uses the language and is valid; as plain words otherwise."""
    text = (
        text[:MAX_QUERY].encode("utf-8", "replace").decode().replace("\0", " ").strip()
    )  # a lone surrogate is not text
    lexemes = [(str(match.lastgroup), match[0]) for match in _LEXER.finditer(text)]
    if any(kind in ("phrase", "field", "operator", "prefix") for kind, _ in lexemes):
        try:
            parsed = _Parser(lexemes).parse()
            # A model reads quotes as they were typed; operators and fields are not for it.
            quoted = all(kind in ("phrase", "word") for kind, _ in lexemes)
            return replace(parsed, text=text) if quoted else parsed
        except _Invalid:
            pass
    return parse_plain(text)


def parse_plain(text: str) -> ParsedQuery:
    """Any of the words, stop words left out unless nothing else is left."""
    words = analyze_query(text)
    telling = tuple(word for word in words if not word.stop) or words
    return ParsedQuery(text, telling, any_of(node for word in telling for node in _loosely(word)), pairs=_pairs(words))


def is_question(text: str) -> bool:
    """Whether a query asks a question, rather than naming what it looks for."""
    stripped = text.strip()
    first = fold(stripped.partition(" ")[0]).strip("¿\"'").partition("'")[0]
    return stripped.endswith(("?", "？")) or first in _QUESTION_WORDS


def _pairs(words: tuple[QueryWord, ...]) -> tuple[Phrase, ...]:
    """Neighbouring tokens of a query, across stop words never. Pairs of characters are such already."""
    found: dict[Phrase, None] = {}
    before = ""
    for word in words:
        tokens = () if word.stop or word.unsegmented else word.words
        for token in tokens:
            if before:
                found[Phrase((before, token))] = None
            before = token
        if not tokens:
            before = ""
    return tuple(found)


def _excluded(node: KeywordNode) -> KeywordNode | None:
    match node:
        case Without(keep, drop):
            return any_of((drop, _excluded(keep)))
        case AllOf(nodes):
            return any_of(map(_excluded, nodes))
        case AnyOf(nodes):  # `(a NOT b) OR c` may find b: only what every side excludes is excluded
            each = [_excluded(one) for one in nodes]
            return None if None in each else all_of(each)
        case _:
            return None


def _leaf_tokens(leaf: Term | Prefix | Phrase) -> tuple[str, ...]:
    match leaf:
        case Term(token):
            return (token,)
        case Phrase(tokens):
            return tokens
        case Prefix():
            return ()


def any_of(nodes: Iterable[KeywordNode | None]) -> KeywordNode | None:
    return _joined(AnyOf, nodes)


def all_of(nodes: Iterable[KeywordNode | None]) -> KeywordNode | None:
    return _joined(AllOf, nodes)


def _joined(kind: type[AnyOf | AllOf], nodes: Iterable[KeywordNode | None]) -> KeywordNode | None:
    distinct = tuple(dict.fromkeys(node for node in nodes if node is not None))
    if len(distinct) > 1:
        return kind(distinct)
    return distinct[0] if distinct else None


def _loosely(word: QueryWord) -> list[KeywordNode]:
    """Every token a word may be found by, each for itself."""
    if word.lone_character:
        return [Prefix(word.words[0])]
    return [Term(token) for token in (*word.words, *word.identifiers)]


def _exactly(word: QueryWord, column: str | None) -> KeywordNode | None:
    """A word as one thing: whole, or its parts side by side."""
    if word.lone_character:
        return Prefix(word.words[0], column)
    nodes: list[KeywordNode] = []
    if len(word.words) == 1:
        nodes.append(Term(word.words[0], column))
    elif word.words:
        nodes.append(Phrase(word.words, column))
    nodes.extend(Term(whole, column) for whole in word.identifiers)
    if column in ("text", "summary") and (word.identifiers or len(word.words) == 1):
        # `typescript` also means the `TypeScript` of a text, which is whole only in the column of identifiers.
        nodes.extend(Term(whole, "identifiers") for whole in word.identifiers or word.words)
    return any_of(nodes)


class _Parser:
    """Recursive descent over the lexemes; raises _Invalid where plain words are the better reading."""

    def __init__(self, lexemes: list[tuple[str, str]]) -> None:
        self._lexemes = lexemes
        self._at = 0
        self._depth = 0
        self._texts: list[str] = []
        self._words: list[QueryWord] = []
        self._negated = 0

    def parse(self) -> ParsedQuery:
        node = self._any(None)
        if self._at < len(self._lexemes) or node is None:
            raise _Invalid
        return ParsedQuery(" ".join(self._texts), tuple(dict.fromkeys(self._words)), node, strict=True)

    def _peek(self) -> tuple[str, str]:
        return self._lexemes[self._at] if self._at < len(self._lexemes) else ("end", "")

    def _take_operator(self, name: str) -> bool:
        if self._peek() != ("operator", name):
            return False
        self._at += 1
        return True

    def _any(self, column: str | None) -> KeywordNode | None:
        nodes = [self._all(column)]
        while self._take_operator("OR"):
            nodes.append(self._all(column))
        return any_of(nodes)

    def _all(self, column: str | None) -> KeywordNode | None:
        wanted = [self._atom(column)]
        unwanted: list[KeywordNode | None] = []
        while True:
            joined = self._take_operator("AND")
            if self._take_operator("NOT"):
                if all_of(wanted) is None:  # `do NOT use tabs`: a word in capitals, not an operator
                    raise _Invalid
                self._negated += 1
                unwanted.append(self._atom(column))
                self._negated -= 1
            elif self._peek()[0] in ("end", "close") or self._peek() == ("operator", "OR"):
                if joined:
                    raise _Invalid
                break
            else:
                wanted.append(self._atom(column))
        keep = all_of(wanted)
        drop = any_of(unwanted)
        if keep is None:
            raise _Invalid
        return keep if drop is None else Without(keep, drop)

    def _atom(self, column: str | None) -> KeywordNode | None:
        kind, text = self._peek()
        self._at += 1
        if kind == "open":
            return self._group(column)
        if kind == "field":
            return self._atom(_COLUMNS[text.strip("{}: \t\n")])
        if kind == "phrase":
            return self._phrase(text[1:-1], column)
        if kind == "prefix":
            return self._prefix(text[:-1], column)
        if kind == "word":
            return self._word(text, column)
        raise _Invalid

    def _group(self, column: str | None) -> KeywordNode | None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _Invalid
        node = self._any(column)
        if self._peek()[0] != "close":
            raise _Invalid
        self._at += 1
        self._depth -= 1
        return node

    def _note(self, text: str, words: Iterable[QueryWord]) -> None:
        if not self._negated:
            self._texts.append(text)
            self._words.extend(words)

    def _phrase(self, text: str, column: str | None) -> KeywordNode | None:
        words = analyze_query(text)
        if len(words) == 1:
            return self._word(text, column)
        self._note(text, (word for word in words if not word.stop))
        tokens = analyze(text).words
        return Phrase(tokens, column) if tokens else None

    def _prefix(self, text: str, column: str | None) -> KeywordNode | None:
        words = analyze_query(text)
        if len(words) != 1 or len(words[0].words) != 1:
            raise _Invalid
        self._note(text, words)
        # The index holds stems: `programming*` must also find the words whose stem is `program`.
        return any_of([Prefix(fold(text), column), Term(words[0].words[0], column)])

    def _word(self, text: str, column: str | None) -> KeywordNode | None:
        words = analyze_query(text)
        telling = tuple(word for word in words if not word.stop)
        self._note(text, telling)
        return all_of(_exactly(word, column) for word in telling)
