"""The words of a query by their weight in one store: which are rare, and how much of them records contain."""

from collections.abc import Sequence

from mindex.analyzer import analyze
from mindex.datatypes import Record
from mindex.search.query import parse
from mindex.search.word_evidence import idf, shares, surprisal_by_id
from mindex.store.base import Store


def rare_words(store: Store, query: str, share: float) -> str:
    """The words of a query without the most common ones, as long as these weigh less than a share of it.

    No record without one of them holds that share of the query, and searching for common words takes longest.
    Words that no record contains have weight, but are also left out; '' when no other ones are left.
    """
    sought = parse(query).terms.tokens
    tokens = {word: sought.intersection(analyze(word).words) for word in query.split()}
    counts = store.retrieval.term_statistics(tuple(sought))
    weights = {token: idf(count, counts.records) for token, count in counts.frequency.items()}
    weighed = {word: sum(weights.get(token, 0.0) for token in found) for word, found in tokens.items()}
    left, kept = share * sum(weighed.values()), set(weighed)
    for word, weight in sorted(weighed.items(), key=lambda one: one[1]):
        left -= weight
        if left <= 0:
            break
        kept.discard(word)
    known = {token for token, count in counts.frequency.items() if count}
    return " ".join(word for word, found in tokens.items() if word in kept and not known.isdisjoint(found))


def word_matches(store: Store, query: str, records: Sequence[Record]) -> dict[str, tuple[float, float]]:
    """The share of a query that each record holds, and how unlikely that is by chance, in nats; by id."""
    tokens = tuple(parse(query).terms.tokens)
    words = {record.id: analyze(f"{record.title} {record.text}").words for record in records}
    matched = {id_: frozenset(tokens).intersection(found) for id_, found in words.items()}
    counts = store.retrieval.term_statistics(tokens)
    lengths = {id_: len(found) for id_, found in words.items()}
    held, by_chance = shares(tokens, matched, counts), surprisal_by_id(tokens, matched, lengths, counts)
    return {id_: (held[id_], by_chance[id_]) for id_ in words}
