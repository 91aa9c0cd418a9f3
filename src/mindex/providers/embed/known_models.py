"""Embedding models whose dimensions, window and prefixes are known by their names."""

from mindex.datatypes import Model
from mindex.providers.model_files import model_tables

_DEFAULTS = {"max_tokens": 512, "pooling": "mean"}  # of a model whose window or pooling is not known


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
