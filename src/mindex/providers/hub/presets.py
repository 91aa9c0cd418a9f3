"""Hub models that are known by a short name: where their ONNX files are, and how each of them reads texts.

Nothing of them is downloaded before `mindex models pull` asks for it.
"""

import re

from mindex.datatypes import Role
from mindex.values import dataclass

# The pooling of a graph that answers with one vector per text.
IN_GRAPH = "graph"

_WORD = "[A-Za-z0-9_][A-Za-z0-9._-]*"
_REPO = re.compile(f"{_WORD}/{_WORD}")
_RETRIEVAL = "Represent this sentence for searching relevant passages: "


@dataclass(frozen=True, slots=True)
class Preset:
    """One row of the table. A reranker has no prefixes, no pooling and no dimensions."""

    name: str
    role: Role
    repo: str  # that has the ONNX export
    weights: str  # the file in it; `pull --file` takes another one
    licence: str
    megabytes: int  # of weights and tokenizer, about
    window: int  # tokens that it reads
    dimensions: int = 0
    query_prefix: str = ""
    text_prefix: str = ""
    pooling: str = ""
    also: tuple[str, ...] = ()  # repositories of the same model that have no ONNX export


PRESETS: tuple[Preset, ...] = (
    Preset(
        "snowflake-arctic-embed-m-v1.5",
        "embedding",
        repo="Snowflake/snowflake-arctic-embed-m-v1.5",
        weights="onnx/model.onnx",
        licence="Apache-2.0",
        megabytes=436,
        window=512,
        dimensions=768,
        query_prefix=_RETRIEVAL,
        pooling="cls",
    ),
    Preset(
        "mxbai-embed-large-v1",
        "embedding",
        repo="mixedbread-ai/mxbai-embed-large-v1",
        weights="onnx/model_quantized.onnx",
        licence="Apache-2.0",
        megabytes=338,
        window=512,
        dimensions=1024,
        query_prefix=_RETRIEVAL,
        pooling="cls",
    ),
    Preset(
        "multilingual-e5-small",
        "embedding",
        repo="intfloat/multilingual-e5-small",
        weights="onnx/model.onnx",
        licence="MIT",
        megabytes=487,
        window=512,
        dimensions=384,
        query_prefix="query: ",
        text_prefix="passage: ",
        pooling="mean",
    ),
    Preset(
        "embeddinggemma-300m",
        "embedding",
        repo="onnx-community/embeddinggemma-300m-ONNX",
        weights="onnx/model_quantized.onnx",
        licence="Gemma",
        megabytes=330,
        window=2048,
        dimensions=768,
        query_prefix="task: search result | query: ",
        text_prefix="title: none | text: ",
        pooling=IN_GRAPH,
        also=("google/embeddinggemma-300m",),
    ),
    Preset(
        "jina-reranker-v1-turbo-en",
        "rerank",
        repo="jinaai/jina-reranker-v1-turbo-en",
        weights="onnx/model.onnx",
        licence="Apache-2.0",
        megabytes=152,
        window=8192,
    ),
    Preset(
        "gte-reranker-modernbert-base",
        "rerank",
        repo="Alibaba-NLP/gte-reranker-modernbert-base",
        weights="onnx/model.onnx",
        licence="Apache-2.0",
        megabytes=602,
        window=8192,
    ),
    Preset(
        "bge-reranker-v2-m3",
        "rerank",
        repo="onnx-community/bge-reranker-v2-m3-ONNX",
        weights="onnx/model_int8.onnx",
        licence="Apache-2.0",
        megabytes=588,
        window=8192,
        also=("BAAI/bge-reranker-v2-m3",),
    ),
)


def preset(name: str) -> Preset | None:
    """Return the preset of this name, or of this repository; None when there is none. Case does not matter."""
    wanted = name.lower()
    return next((one for one in PRESETS if wanted in map(str.lower, (one.name, one.repo, *one.also))), None)


def is_repo(name: str) -> bool:
    """Whether a name has the form `org/name` of a repository at the hub."""
    return _REPO.fullmatch(name) is not None


def hub_name(name: str) -> str:
    """Return the name by which a model is pulled, kept and used: that of its preset, else `org/name` as given."""
    known = preset(name)
    return known.name if known is not None else name
