"""Query expansion: variants of a query written by a language model, without those that drift from its meaning."""

import hashlib
import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import cache

from mindex.analyzer import STOP_WORDS, analyze, fold
from mindex.errors import GenerationError, ProviderError
from mindex.providers.generate.base import Generator, Prompt
from mindex.search.candidates import z_score
from mindex.search.query_embedding import QueryEmbedder
from mindex.store.base import Store
from mindex.store.cache_kinds import EXPANSION_CACHE
from mindex.values import dataclass

_LONGEST_VARIANT = 300
_LONGEST_ANSWER = 1_200
_LONGEST_SHOWN = 100
_EACH = 2
# A variant whose cosine to the query is fewer deviations above that of unrelated texts has another meaning. Of the
# forty in tests/search/query_variants.tsv, this keeps 22 of 23 that keep the meaning and 5 of 17 that drift; by
# their words, 5 and 7 were kept.
_MIN_CLOSENESS = 1.6
# If no embedding model decides, it is one that shares less of the query's words than this.
_MIN_SHARED = 0.25
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_WORD = re.compile(r"\w+")
# What redaction leaves in a secret's place: no word of the query.
_REDACTED = re.compile(r"\[redacted:[^\]\s]*\]")
# Words of German, folded, that English has not: one of them in a query, and its capitals are those of nouns.
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
    """Variants of one query: for keyword search, for vector search, and an answer it might have."""

    lexical: tuple[str, ...] = ()
    semantic: tuple[str, ...] = ()
    answer: str = ""

    def __bool__(self) -> bool:
        return bool(self.lexical or self.semantic or self.answer)


class QueryExpander:
    """Gets variants from a language model and caches them per query."""

    def __init__(self, generator: Generator, store: Store, seconds: float, redact: Callable[[str], str]) -> None:
        """`redact` removes secrets from a text: neither the model nor the cache gets one."""
        self._generator = generator
        self._store = store
        self._seconds = seconds
        self._redact = redact

    def expand(self, query: str, embedder: QueryEmbedder | None) -> tuple[Variants, str]:
        """Return the variants that keep the meaning, and a note about them."""
        try:
            variants = self._cached(query)
            if variants is None:
                self._generator.check()  # first: looking for secrets takes longer than a search
                redacted = self._redact(query)
                clean = redacted == query
                query = query if clean else " ".join(_REDACTED.sub(" ", redacted).split())
                variants = self._generated(query)
                if clean:  # nothing is cached for a query with a secret, not even under a hash
                    self._store.caches.put(EXPANSION_CACHE, self._key(query), json.dumps(asdict(variants)).encode())
        except ProviderError as error:
            return Variants(), f"not expanded: {error}"
        except Exception as error:  # after any failure of the model, the query itself is still answered
            return Variants(), f"not expanded: the language model failed ({type(error).__name__}: {error})"
        variants = faithful_variants(query, variants, close_variants(query, variants, embedder))
        if not variants:
            return variants, "not expanded: every variant strayed from the question"
        return variants, f"also looked for: {_quoted(variants)}"

    def _cached(self, query: str) -> Variants | None:
        cached = self._store.caches.get(EXPANSION_CACHE, self._key(query))
        return None if cached is None else parsed(cached.decode("utf-8"))

    def _key(self, query: str) -> str:
        return hashlib.sha256(f"{self._generator.name}\n{query}".encode("utf-8", "replace")).hexdigest()

    def _generated(self, query: str) -> Variants:
        """The model's variants, redacted: it may have read a secret elsewhere. Raises GenerationError."""
        if not query:
            raise GenerationError("the query contains only secrets", "ask in other words")
        prompt = Prompt(_SYSTEM, _REQUEST.format(query=query, each=_EACH), 300, _SCHEMA)
        made = parsed(self._generator.generate(prompt, seconds=self._seconds))
        return Variants(
            tuple(map(self._redact, made.lexical)),
            tuple(map(self._redact, made.semantic)),
            self._redact(made.answer),
        )


def parsed(answer: str) -> Variants:
    """A model's answer as variants. Raises GenerationError for an answer of another form."""
    text = answer.strip()
    if text.startswith("```"):
        text = text.strip("`").removeprefix("json").strip()
    try:
        answered = json.loads(text)
    except (ValueError, RecursionError):
        message = "the language model did not answer with JSON"
        raise GenerationError(message, "use a model that follows instructions") from None
    fields = answered if isinstance(answered, dict) else {}
    variants = Variants(
        _texts(fields.get("lexical"), _LONGEST_VARIANT),
        _texts(fields.get("semantic"), _LONGEST_VARIANT),
        next(iter(_texts([fields.get("answer")], _LONGEST_ANSWER)), ""),
    )
    if not variants:
        raise GenerationError("the language model did not return query variants", "try another model")
    return variants


def _texts(value: object, longest: int) -> tuple[str, ...]:
    given = value if isinstance(value, list) else []
    texts = (_clean(one)[:longest].strip() for one in given if isinstance(one, str))
    return tuple(text for text in texts if text)[:_EACH]


def _clean(text: str) -> str:
    """The printable characters on one line: JSON may spell lone surrogates and control characters."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def _quoted(variants: Variants) -> str:
    """The variants in quotes for a note, the answer shortened."""
    answer = variants.answer
    if len(answer) > _LONGEST_SHOWN:
        answer = f"{answer[:_LONGEST_SHOWN].rstrip()}…"
    return ", ".join(f"'{text}'" for text in (*variants.lexical, *variants.semantic, answer) if text)


def close_variants(query: str, variants: Variants, embedder: QueryEmbedder | None) -> Container[str] | None:
    """The variants whose vectors are close to the query's; None if no model can tell, or it cannot read the query."""
    if embedder is None or not variants:
        return None
    model = embedder.embedder.model
    if 2 * min(embedder.embedder.fluency([query])) < model.unread + model.fluent:
        return None
    texts = [*variants.lexical, *variants.semantic, *([variants.answer] if variants.answer else [])]
    # One by one, as answers are: each is kept with the queries' vectors, and a search for the answer needs it again.
    pending = [embedder.start(query), *(embedder.start(text, answer=True) for text in texts)]
    own, *vectors = (embedder.finish(one).vector for one in pending)
    if own is None:
        return None
    background = model.background_mean, model.background_std
    near = (vector is not None and z_score(float(own @ vector), background) >= _MIN_CLOSENESS for vector in vectors)
    return {text for text, is_near in zip(texts, near, strict=True) if is_near}


def faithful_variants(query: str, variants: Variants, close: Container[str] | None = None) -> Variants:
    """The variants that keep the meaning, each once per list, without the query itself, however it is written.

    `close`: see `close_variants`.
    """
    words = tuple(_distinct(query, variants.lexical, close))
    meanings = list(_distinct(query, [*variants.semantic, variants.answer], close))
    answer = meanings.pop() if meanings and meanings[-1] == variants.answer else ""
    return Variants(words, tuple(meanings), answer)


def _distinct(query: str, variants: Iterable[str], close: Container[str] | None) -> Iterator[str]:
    known = {analyze(query).words}
    for variant in variants:
        words = analyze(variant).words
        if words in known or not keeps_names(query, variant):
            continue
        if variant in close if close is not None else shares_words(query, variant):
            known.add(words)
            yield variant


def keeps_names(query: str, variant: str) -> bool:
    """Whether a variant keeps every number, name and identifier of the query."""
    if not variant:
        return False
    if not set(_NUMBER.findall(query)) <= set(_NUMBER.findall(variant)):
        return False
    original, other = analyze(query), analyze(variant)
    variant_words = {fold(word) for word in _WORD.findall(variant)}
    for name in _names(query):
        if fold(name) not in variant_words and not set(analyze(name).words) <= set(other.words):
            return False
    return set(original.identifiers) <= {*other.identifiers, *other.words}


def shares_words(query: str, variant: str) -> bool:
    """Whether a variant has enough of the query's words."""
    words = {word for word in analyze(query).words if word not in STOP_WORDS} - _small_words()
    return not words or len(words.intersection(analyze(variant).words)) >= _MIN_SHARED * len(words)


@cache
def _small_words() -> frozenset[str]:
    """German's, as the analyzer has them."""
    return frozenset(analyze(" ".join(_GERMAN)).words)


def _names(query: str) -> list[str]:
    """Words with a capital; the first word of a query has one anyway, unless it goes on in capitals (`SQLite`).

    Where every noun has one, as in German, or most words do, it says nothing either.
    """
    words = _WORD.findall(query)
    inner = [word for word in words if any(letter.isupper() for letter in word[1:])]
    capitals = [word for word in words[1:] if word[0].isupper() and fold(word) not in STOP_WORDS]
    many = len(capitals) > 2 and 2 * len(capitals) >= sum(fold(word) not in STOP_WORDS for word in words)
    if many or not _GERMAN.isdisjoint(map(fold, words)):
        capitals = []
    return [*capitals, *(name for name in inner if fold(name) not in STOP_WORDS)]
