"""Embedding models whose dimensions, window and prefixes are known by their names."""

from dataclasses import replace

from mindex.datatypes import Model

# Where a model's window is not known: what most models read at least.
_TOKENS = 512
_BGE = "Represent this sentence for searching relevant passages: "


def _known(dimensions: int, tokens: int = _TOKENS, query: str = "", text: str = "", pooling: str = "mean") -> Model:
    return Model("", "", dimensions, pooling, query, text, tokens)


_MODELS = {
    "nomic-embed-text": _known(768, 2048, "search_query: ", "search_document: "),
    "nomic-embed-text-v1.5": _known(768, 2048, "search_query: ", "search_document: "),
    "text-embedding-3-small": _known(1536, 8191),
    "text-embedding-3-large": _known(3072, 8191),
    "text-embedding-ada-002": _known(1536, 8191),
    "all-minilm": _known(384, 256),
    "all-minilm-l6-v2": _known(384, 256),
    "bge-small-en-v1.5": _known(384, query=_BGE, pooling="cls"),
    "bge-base-en-v1.5": _known(768, query=_BGE, pooling="cls"),
    "bge-large-en-v1.5": _known(1024, query=_BGE, pooling="cls"),
    "bge-large": _known(1024, query=_BGE, pooling="cls"),
    "bge-m3": _known(1024, 8192, pooling="cls"),
    "mxbai-embed-large": _known(1024, query=_BGE, pooling="cls"),
    "mxbai-embed-large-v1": _known(1024, query=_BGE, pooling="cls"),
    "snowflake-arctic-embed": _known(1024, query=_BGE, pooling="cls"),
    "snowflake-arctic-embed2": _known(1024, 8192, "query: ", pooling="cls"),
    "multilingual-e5-small": _known(384, query="query: ", text="passage: "),
    "multilingual-e5-base": _known(768, query="query: ", text="passage: "),
    "multilingual-e5-large": _known(1024, query="query: ", text="passage: "),
    "embeddinggemma": _known(768, 2048, "task: search result | query: ", "title: none | text: "),
    "embeddinggemma-300m": _known(768, 2048, "task: search result | query: ", "title: none | text: "),
}


def space(provider: str, name: str, pooling: str = "") -> Model:
    """Return the space of a model as far as its name tells; 0 dimensions for an unknown name.

    Servers spell names their own way: `nomic-embed-text:latest`, `@cf/baai/bge-m3`, and LM Studio's
    `text-embedding-nomic-embed-text-v1.5`.
    """
    bare = name.lower().rpartition("/")[2].partition("@")[0]
    spellings = (bare, bare.partition(":")[0], bare.partition(":")[0].removeprefix("text-embedding-"))
    known = next((_MODELS[spelling] for spelling in spellings if spelling in _MODELS), None)
    model = replace(known or _known(0), provider=provider, name=name)
    return replace(model, pooling=pooling) if pooling else model
