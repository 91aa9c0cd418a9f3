"""Embedding models on the processor: the built-in one, packaged and pulled ones, any folder with an ONNX model.

Nothing is downloaded here: the weights of the built-in model come with mindex, those of the packaged ones are packages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mindex.datatypes import Model, VectorArray
from mindex.errors import EmbeddingError, ProviderError
from mindex.providers.base import ProviderSettings, raise_as
from mindex.providers.embed.base import Embedder
from mindex.providers.onnx.engine import Engine, LazyEngine, ModelFiles, open_engine
from mindex.providers.packaged_models import BUILT_IN, built_in_files, packaged_model

if TYPE_CHECKING:
    from numpy.typing import NDArray

# A graph that contains the pooling gives one vector per text; the others one per token.
POOLED_OUTPUT = "sentence_embedding"
OUTPUTS = (POOLED_OUTPUT, "last_hidden_state", "token_embeddings")
POOLED = "graph"


def create(settings: ProviderSettings) -> Embedder:
    """Return the embedder for `settings.model`; cheap, since the model is loaded when it is first needed.

    Only a folder that was never seen before is opened at once, to know its space. Raises EmbeddingError.
    """
    wanted = settings.model
    if wanted in ("", BUILT_IN.name):
        return LocalEmbedder()
    if (package := packaged_model("embedding", wanted)) is not None:
        return LocalEmbedder(package.model, package.files)
    # Imported here: the first imports this module, and only a model that is not a package needs them.
    from mindex.providers.embed.onnx_folder import open_folder
    from mindex.providers.onnx.folder import model_folder

    with raise_as(EmbeddingError), model_folder("embedding", wanted) as folder:
        model, files = open_folder(folder)
        return LocalEmbedder(model, lambda: files)


class LocalEmbedder:
    """Runs one model. Safe to use from several threads."""

    def __init__(
        self,
        model: Model = BUILT_IN,
        files: Callable[[], ModelFiles] = built_in_files,
        *,
        cache_dir: Path | None = None,
    ) -> None:
        """`files` is called when the model is opened. `cache_dir` holds its ready copy; the default is good."""
        self.model = model
        self._files = files
        self._cache_dir = cache_dir
        self._engine = LazyEngine(self._open, EmbeddingError)

    @property
    def loaded(self) -> bool:
        return self._engine.is_open

    def load(self) -> None:
        self._engine.get()

    def trouble(self) -> str:
        if self._engine.error is not None:
            return str(self._engine.error)
        try:
            self._files()
        except ProviderError as error:
            return str(error)
        return ""

    def embed_query(self, text: str) -> VectorArray:
        engine = self._engine.get()
        vector: VectorArray = self._run(engine, [engine.encode(self.model.query_prefix + text).ids])[0]
        return vector

    def embed(self, texts: Sequence[str]) -> VectorArray:
        import numpy as np  # here and below: 100 ms to import, which a keyword search does not pay

        engine = self._engine.get()
        encoded = [engine.encode(self.model.text_prefix + text).ids for text in texts]
        vectors = np.empty((len(encoded), self.model.dimensions), dtype=np.float32)

        def run(batch: list[int]) -> None:
            vectors[batch] = self._run(engine, [encoded[index] for index in batch])

        engine.run_all([len(ids) for ids in encoded], run, name="mindex-embed")
        return vectors

    def fluency(self, texts: Sequence[str]) -> list[float]:
        from mindex.providers.embed.fluency import fluency  # its pattern takes 2 ms to compile, and a query needs none

        tokenizer = self._engine.get().tokenizer
        return [fluency(tokenizer, text, self.model.per_han) for text in texts]

    def _open(self) -> Engine:
        files = self._files()
        engine = open_engine(files, OUTPUTS, self._cache_dir)
        width, expected = engine.shape[-1] if engine.shape else None, self.model.dimensions
        if isinstance(width, int) and width != expected:
            message = f"the {files.called} {files.weights} makes {width} dimensions, it should be {expected}"
            raise ProviderError(message, files.hint)
        engine.tokenizer.enable_truncation(self.model.max_tokens)
        return engine

    def _run(self, engine: Engine, encoded: Sequence[Sequence[int]]) -> VectorArray:
        """Return the texts' vectors, scaled to length 1."""
        import numpy as np  # 100 ms to import, only for a loaded model

        with raise_as(EmbeddingError):
            output, mask = engine.run(encoded)
        pooled = output if output.ndim == 2 else pool(output, mask, self.model.pooling)
        expected = (len(encoded), self.model.dimensions)
        if pooled.shape != expected:
            message = f"{self.model.name} answers with {pooled.shape[-1]} dimensions, it should be {expected[-1]}"
            raise EmbeddingError(message, "run `mindex reembed`")
        lengths = np.linalg.norm(pooled, axis=1, keepdims=True)
        if not (np.isfinite(lengths).all() and lengths.all()):
            raise EmbeddingError(f"{self.model.name} answers with a vector that is none", "use another embedding.model")
        vectors: VectorArray = (pooled / lengths).astype(np.float32, copy=False)
        return vectors


def pool(hidden: NDArray[Any], mask: NDArray[Any], pooling: str) -> NDArray[Any]:
    """Return one vector per text, made of those of its tokens; padding is left out."""
    import numpy as np  # 100 ms to import, only for a loaded model

    hidden = hidden.astype(np.float32, copy=False)
    pooled: NDArray[Any]
    if pooling == "cls":
        pooled = hidden[:, 0]
    elif pooling == "last":
        pooled = hidden[np.arange(len(hidden)), mask.sum(axis=1) - 1]
    elif pooling == "max":
        pooled = np.where(mask[:, :, None] == 1, hidden, -np.inf).max(axis=1)
    else:  # the mean, whose length does not matter: it is scaled to 1
        pooled = np.einsum("bth,bt->bh", hidden, mask.astype(np.float32))
    return pooled
