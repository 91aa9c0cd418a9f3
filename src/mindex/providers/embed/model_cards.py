"""What is known of an embedding model: what its name tells, and its card.

The card has properties that are measured once with unrelated texts, and kept in a file.
"""

from pathlib import Path

from mindex.datatypes import Model, VectorArray
from mindex.providers.cache_files import small_file
from mindex.providers.model_files import model_tables
from mindex.values import dataclass

MAX_DIMENSIONS = 65_536
_MIN_DEVIATION = 0.02
_DEFAULTS = {"max_tokens": 512, "pooling": "mean"}  # of a model whose window or pooling is not known

UNRELATED: tuple[str, ...] = tuple(model_tables()["texts"]["unrelated"])


@dataclass(frozen=True, slots=True)
class Card:
    """How long a model's vectors are, and where the cosines of unrelated texts lie."""

    dimensions: int
    mean: float
    std: float


def background_of(queries: VectorArray, texts: VectorArray) -> tuple[float, float]:
    """Return mean and deviation of the cosine of a query with a text of another topic; both arrays are of UNRELATED.

    A model with a query prefix sees queries further away from texts than texts from each other.
    """
    import numpy as np  # 100 ms to import, only for vectors that have arrived

    cosines = (queries @ texts.T)[~np.eye(len(UNRELATED), dtype=bool)]
    deviation = max(float(cosines.std()), _MIN_DEVIATION)  # with none at all, every difference would look enormous
    return round(float(cosines.mean()), 4), round(deviation, 4)


def card_file(provider: str, url: str, model: str, dimensions: int = 0) -> Path:
    """Return where the card of one model on one server is kept between processes."""
    return small_file("cards", provider, url, model, *([str(dimensions)] if dimensions else []))


# ── what a name tells ─────────────────────────────────────────────────────────────────────────────────────────


def space(provider: str, name: str, pooling: str = "") -> Model:
    """Return the space of a model as far as its name tells; 0 dimensions for an unknown name.

    Servers spell names their own way: `nomic-embed-text:latest`, `@cf/baai/bge-m3`, and LM Studio's
    `text-embedding-nomic-embed-text-v1.5`.
    """
    bare = name.lower().rpartition("/")[2].partition("@")[0]
    spellings = (bare, bare.partition(":")[0], bare.partition(":")[0].removeprefix("text-embedding-"))
    models = model_tables()["known"]
    known = next((models[spelling] for spelling in spellings if spelling in models), {"dimensions": 0})
    return Model(provider, name, **{**_DEFAULTS, **known, **({"pooling": pooling} if pooling else {})})
