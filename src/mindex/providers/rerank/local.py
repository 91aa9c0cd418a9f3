"""Cross-encoders on the processor: ready-made ones, and any folder with an ONNX model that reads pairs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from mindex.errors import ProviderError, RerankError
from mindex.providers.base import ProviderSettings, failing_as
from mindex.providers.onnx.engine import Engine, ModelFiles, OutOfTime, open_engine
from mindex.providers.packaged_models import RERANKER, RERANKERS
from mindex.providers.rerank.base import Reranker, Unavailable

if TYPE_CHECKING:
    from tokenizers import Encoding

# A pair of 512 tokens takes three times as long as one of 256, and what is scored is at most a kilobyte long.
_MOST_TOKENS = 256
# A question is never cut in favour of the text, but must leave it some room.
_MOST_QUESTION_TOKENS = 128
_ROLE = "rerank"
# In logits, chosen by data: see docs/quality.md.
_DOUBTS = {"ms-marco-MiniLM-L-12-v2": (-8.0, -2.0)}


@dataclass(frozen=True, slots=True)
class Recipe:
    """Which cross-encoder, and where its files are once they are needed."""

    name: str
    files: Callable[[], ModelFiles]
    doubt: tuple[float, float] | None = None


def create(settings: ProviderSettings) -> Reranker:
    """The reranker for `settings.model`; cheap, since the model is loaded when it is first needed."""
    wanted = settings.model or RERANKERS[0].name
    for package in RERANKERS:
        if wanted == package.name:
            return LocalReranker(Recipe(package.name, package.files, _DOUBTS.get(package.name)))

    from mindex.providers.onnx.folder import is_path

    if not is_path(wanted):
        names = ", ".join(package.name for package in RERANKERS)
        return Unavailable(
            "local",
            wanted,
            f"the local provider has no reranker '{wanted}'",
            f"set rerank.model to one of {names}, or to a folder",
        )
    try:
        return LocalReranker(folder_recipe(wanted))
    except RerankError as error:
        return Unavailable("local", Path(wanted).name, error.message, error.hint)


def folder_recipe(given: str) -> Recipe:
    """The cross-encoder at a path. Raises RerankError that says what the folder lacks."""
    from mindex.providers.model_files import keep, recall
    from mindex.providers.onnx.folder import model_folder

    with failing_as(RerankError), model_folder(given, "rerank.model") as folder:
        kept: Mapping[str, object] = recall(_ROLE, folder.files) or {}
        sha256 = kept.get("sha256")
        if isinstance(sha256, str) and len(sha256) == 64:
            scales_by_run = kept.get("scales_by_run") is not False
            files = ModelFiles(folder.weights, sha256, folder.tokenizer, RERANKER, folder.hint, scales_by_run)
        else:
            files = folder.examine(RERANKER)
            keep(_ROLE, folder.files, {"sha256": files.sha256, "scales_by_run": files.scales_by_run})
    return Recipe(f"{folder.name}@{files.sha256[:8]}", lambda: files)


class LocalReranker:
    """Runs one cross-encoder. One instance may be used from any number of threads."""

    def __init__(self, recipe: Recipe, cache_dir: Path | None = None) -> None:
        """`cache_dir` keeps the model's ready copy; it has a good default."""
        self._recipe = recipe
        self._cache_dir = cache_dir
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._failure: RerankError | None = None

    @property
    def doubt(self) -> tuple[float, float] | None:
        return self._recipe.doubt

    @property
    def name(self) -> str:
        return f"local/{self._recipe.name}/{_MOST_TOKENS}"

    @property
    def loaded(self) -> bool:
        return self._engine is not None

    def load(self) -> None:
        self._ready()

    def score(self, query: str, texts: Sequence[str], *, seconds: float | None = None) -> list[float]:
        deadline = None if seconds is None else monotonic() + seconds
        engine = self._ready()
        question = engine.encode(query, whole=False)
        question.truncate(_MOST_QUESTION_TOKENS)
        pairs = [_pair(engine, question, text) for text in texts]
        scores = [0.0] * len(pairs)

        def run(batch: list[int]) -> None:
            logits, _ = engine.run([pairs[index].ids for index in batch], [pairs[index].type_ids for index in batch])
            for index, values in zip(batch, logits, strict=True):
                scores[index] = _score(values)

        try:
            with failing_as(RerankError):
                engine.run_all([len(pair.ids) for pair in pairs], run, name="mindex-rerank", deadline=deadline)
        except OutOfTime:
            raise RerankError(
                f"{self._recipe.name} has not scored {len(texts)} texts within {seconds:g} s", "raise rerank.timeout"
            ) from None
        return scores

    def _ready(self) -> Engine:
        if self._engine:
            return self._engine
        with self._lock:
            if self._failure:  # what is broken or missing does not change while we run
                raise self._failure.with_traceback(None)
            if not self._engine:
                try:
                    with failing_as(RerankError):
                        self._engine = self._open()
                except RerankError as error:
                    self._failure = error
                    raise
            return self._engine

    def _open(self) -> Engine:
        files = self._recipe.files()
        engine = open_engine(files, ("logits",), self._cache_dir)
        logits, _ = engine.run([_pair(engine, engine.encode("a", whole=False), "b").ids])
        if logits.ndim != 2 or logits.shape[1] not in (1, 2):
            raise ProviderError(
                f"the model {files.weights} answers with '{engine.output}' of shape {list(logits.shape)}: "
                "it is no cross-encoder",
                files.hint,
            )
        if not engine.tokenizer.num_special_tokens_to_add(True):
            raise ProviderError(f"the tokenizer {files.tokenizer} does not say how it joins a pair", files.hint)
        return engine


def _pair(engine: Engine, question: Encoding, text: str) -> Encoding:
    """Question and text as the model was taught to read them together, the text cut to what room is left."""
    tokenizer = engine.tokenizer
    told = engine.encode(text, whole=False)
    told.truncate(_MOST_TOKENS - len(question.ids) - tokenizer.num_special_tokens_to_add(True))
    return tokenizer.post_process(question, told)


def _score(logits: Any) -> float:
    """One number says how well the pair fits; of two, the second speaks for it and the first against it."""
    from math import isfinite

    score = float(logits[-1]) - (float(logits[0]) if len(logits) == 2 else 0.0)
    if not isfinite(score):
        raise RerankError("the reranker answers with a score that is no number", "use another rerank.model")
    return score
