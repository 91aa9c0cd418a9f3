"""A question in other words: variants that a language model wrote, thrown away where they drift from what was asked."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import cache

from mindex.analyzer import STOP_WORDS, analyze, fold
from mindex.errors import GenerationError, ProviderError
from mindex.providers.generate.base import Generator, Prompt
from mindex.store.base import Store
from mindex.values import dataclass

CACHE = "expansion"
_LONGEST_VARIANT = 300
_LONGEST_ANSWER = 1_200
_LONGEST_SHOWN = 100
_EACH = 2
# A variant that shares less of the question's words than this asks something else.
_LEAST_SHARED = 0.25
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_WORD = re.compile(r"\w+")
# What a boundary leaves in a secret's place: no word of the question.
_REDACTED = re.compile(r"\[redacted:[^\]\s]*\]")
# Words of German, folded, that English has not: one of them in a question, and its capitals are those of nouns.
_GERMAN = frozenset(
    """
    auf aus bei beim das dem den der des durch ein eine einem einen einer eines fur gibt gegen haben hat ich im ist kann
    kein keine mein meine mit nach nicht oder ohne seit sich sind uber und unser unsere unter vom von wann warum welche
    welchem welchen welcher welches wem wen wenn wer werden wie wieviel wird wo woher wohin wurde zu zum zur zwischen
    """.split()
)
_SYSTEM = (
    "You reword search queries for a document search engine. Keep every number, name and identifier exactly as it is "
    "written. Answer with JSON only."
)
_REQUEST = (
    "Query: {query}\n\nGive\n"
    '- "lexical": {each} short keyword versions of the query, with synonyms of its words,\n'
    '- "semantic": {each} questions that mean the same in other words,\n'
    '- "answer": one or two sentences that such a document might hold as the answer.'
)
_SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "lexical": {"type": "array", "items": {"type": "string"}, "maxItems": _EACH},
        "semantic": {"type": "array", "items": {"type": "string"}, "maxItems": _EACH},
        "answer": {"type": "string"},
    },
    "required": ["lexical", "semantic", "answer"],
}


@dataclass(frozen=True, slots=True)
class Variants:
    """Other words for one question: to look for literally, to look for by meaning, and an answer it might have."""

    lexical: tuple[str, ...] = ()
    semantic: tuple[str, ...] = ()
    answer: str = ""

    def __bool__(self) -> bool:
        return bool(self.lexical or self.semantic or self.answer)


class QueryExpander:
    """Asks a language model for variants; what it said once about a question is kept."""

    def __init__(self, generator: Generator, store: Store, seconds: float, boundary: Callable[[str], str]) -> None:
        """`boundary` takes secrets out of a text: neither the model nor the cache is given one."""
        self._generator = generator
        self._store = store
        self._seconds = seconds
        self._boundary = boundary

    def expand(self, query: str) -> tuple[Variants, str]:
        """Variants that ask for the same, and a note on what became of it."""
        try:
            said = self._kept(query)
            if said is None:
                self._generator.check()  # first: looking for secrets takes longer than a search
                asked = self._boundary(query)
                clean = asked == query
                query = query if clean else " ".join(_REDACTED.sub(" ", asked).split())
                said = self._said(query)
                if clean:  # of a question that held a secret nothing is kept, not even under a hash
                    self._store.caches.put(CACHE, self._key(query), json.dumps(asdict(said)).encode())
        except ProviderError as error:
            return Variants(), f"not expanded: {error}"
        except Exception as error:  # whatever a model fails with, the question as it was asked is answered
            return Variants(), f"not expanded: the language model failed ({type(error).__name__}: {error})"
        variants = faithful_ones(query, said)
        if not variants:
            return variants, "not expanded: every variant strayed from the question"
        return variants, f"also looked for: {_quoted(variants)}"

    def _kept(self, query: str) -> Variants | None:
        kept = self._store.caches.get(CACHE, self._key(query))
        return None if kept is None else parsed(kept.decode("utf-8"))

    def _key(self, query: str) -> str:
        return hashlib.sha256(f"{self._generator.name}\n{query}".encode("utf-8", "replace")).hexdigest()

    def _said(self, query: str) -> Variants:
        """What the model says, without what looks like a secret: it may have read one elsewhere."""
        if not query:
            raise GenerationError("nothing of the question is left without its secrets", "ask in other words")
        prompt = Prompt(_SYSTEM, _REQUEST.format(query=query, each=_EACH), 300, _SCHEMA)
        said = parsed(self._generator.generate(prompt, seconds=self._seconds))
        return Variants(
            tuple(map(self._boundary, said.lexical)),
            tuple(map(self._boundary, said.semantic)),
            self._boundary(said.answer),
        )


def parsed(answer: str) -> Variants:
    """A model's answer as variants; whatever is not of the form that was asked for is an error, never a guess."""
    text = answer.strip()
    if text.startswith("```"):
        text = text.strip("`").removeprefix("json").strip()
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        raise GenerationError(
            "the language model did not answer with JSON", "use a model that follows instructions"
        ) from None
    said = said if isinstance(said, dict) else {}
    variants = Variants(
        _texts(said.get("lexical"), _LONGEST_VARIANT),
        _texts(said.get("semantic"), _LONGEST_VARIANT),
        next(iter(_texts([said.get("answer")], _LONGEST_ANSWER)), ""),
    )
    if not variants:
        raise GenerationError("the language model answered with something else than variants", "try another model")
    return variants


def _texts(value: object, longest: int) -> tuple[str, ...]:
    given = value if isinstance(value, list) else []
    texts = (_clean(one)[:longest].strip() for one in given if isinstance(one, str))
    return tuple(text for text in texts if text)[:_EACH]


def _clean(text: str) -> str:
    """One line of what can be seen: JSON may spell halves of characters, and what moves a terminal's cursor."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def _quoted(variants: Variants) -> str:
    """For a note: what a model wrote in quotes, and of an answer only how it begins."""
    answer = variants.answer
    if len(answer) > _LONGEST_SHOWN:
        answer = f"{answer[:_LONGEST_SHOWN].rstrip()}…"
    return ", ".join(f"'{text}'" for text in (*variants.lexical, *variants.semantic, answer) if text)


def faithful_ones(query: str, said: Variants) -> Variants:
    """Those that ask for the same, each once in its half, and not the question itself, however it is written."""
    words = tuple(_others(query, said.lexical))
    meanings = list(_others(query, [*said.semantic, said.answer]))
    answer = meanings.pop() if meanings and meanings[-1] == said.answer else ""
    return Variants(words, tuple(meanings), answer)


def _others(query: str, variants: Iterable[str]) -> Iterator[str]:
    known = {analyze(query).words}
    for variant in variants:
        words = analyze(variant).words
        if words not in known and is_faithful(query, variant):
            known.add(words)
            yield variant


def is_faithful(query: str, variant: str) -> bool:
    """Whether a variant keeps every number and name of the question, and enough of its words."""
    if not variant:
        return False
    if not set(_NUMBER.findall(query)) <= set(_NUMBER.findall(variant)):
        return False
    original, other = analyze(query), analyze(variant)
    said = {fold(word) for word in _WORD.findall(variant)}
    for name in _names(query):
        if fold(name) not in said and not set(analyze(name).words) <= set(other.words):
            return False
    if not set(original.identifiers) <= {*other.identifiers, *other.words}:
        return False
    words = {word for word in original.words if word not in STOP_WORDS} - _small_words()
    return not words or len(words.intersection(other.words)) >= _LEAST_SHARED * len(words)


@cache
def _small_words() -> frozenset[str]:
    """German's, as the analyzer has them."""
    return frozenset(analyze(" ".join(_GERMAN)).words)


def _names(query: str) -> list[str]:
    """Words with a capital; the first word of a question has one anyway, unless it goes on in capitals (`SQLite`).

    Where every noun has one, as in German, or most words do, it says nothing either.
    """
    words = _WORD.findall(query)
    inner = [word for word in words if any(letter.isupper() for letter in word[1:])]
    capitals = [word for word in words[1:] if word[0].isupper() and fold(word) not in STOP_WORDS]
    many = len(capitals) > 2 and 2 * len(capitals) >= sum(fold(word) not in STOP_WORDS for word in words)
    if many or not _GERMAN.isdisjoint(map(fold, words)):
        capitals = []
    return [*capitals, *(name for name in inner if fold(name) not in STOP_WORDS)]
