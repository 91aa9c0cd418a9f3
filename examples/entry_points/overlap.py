"""A reranker: a text is the better, the more words of the query it contains."""

from collections.abc import Sequence

from mindex.extension import ProviderSettings, Reranker

MINDEX_INTERFACE = 1


class Overlap:
    name = "overlap/1"  # scores are cached under it: change it whenever a score may change
    doubt = None
    weight = 0.5
    loaded = True

    def load(self) -> None:
        """Nothing has to be loaded."""

    def score(self, query: str, texts: Sequence[str], *, seconds: float | None = None) -> list[float]:
        words = set(query.lower().split())
        return [float(len(words.intersection(text.lower().split()))) for text in texts]


def create(settings: ProviderSettings) -> Reranker:
    return Overlap()
