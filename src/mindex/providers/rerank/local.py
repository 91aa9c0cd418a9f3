"""Cross-encoders on the processor: packaged and pulled ones, and any folder with an ONNX model that reads pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from time import monotonic
from typing import TYPE_CHECKING, Any

from mindex.datatypes import Role
from mindex.errors import ProviderError, RerankError
from mindex.providers.base import ProviderSettings, raise_as
from mindex.providers.model_files import is_path, read_facts, write_facts
from mindex.providers.onnx.engine import Engine, LazyEngine, ModelFiles, OutOfTime, open_engine
from mindex.providers.packaged_models import RERANKER, RERANKERS
from mindex.providers.rerank.base import BUILT_IN_WEIGHT, CHOSEN_WEIGHT, Reranker

if TYPE_CHECKING:
    from tokenizers import Encoding

    from mindex.providers.hub.pulled import PulledModel
    from mindex.providers.onnx.folder import ModelFolder

# A pair of 512 tokens takes three times as long as one of 256, and what is scored is at most a kilobyte long.
_MAX_TOKENS = 256
# Presets of the hub are chosen for their scores, some of them for languages that need more tokens for a kilobyte.
_MAX_PRESET_TOKENS = 512
# A query is never cut in favour of the text, but must leave some tokens for it.
MAX_QUERY_TOKENS = 128
_ROLE: Role = "rerank"
# In logits, chosen by data: see docs/quality.md.
_DOUBTS = {"ms-marco-MiniLM-L-12-v2": (-8.0, -2.0)}


def create(settings: ProviderSettings) -> Reranker:
    """Return the reranker for `settings.model`; the model is loaded when it is first needed. Raises RerankError."""
    wanted = settings.model or RERANKERS[0].name
    for package in RERANKERS:
        if wanted == package.name:
            return LocalReranker(package.name, package.files, _DOUBTS.get(package.name))
    from mindex.providers.hub.pulled import find_pulled  # a packaged model does not need it

    with raise_as(RerankError):
        pulled = find_pulled(_ROLE, wanted)
    if pulled is not None:
        return pulled_reranker(pulled)
    if not is_path(wanted):
        names = ", ".join(package.name for package in RERANKERS)
        message = f"the local provider has no reranker '{wanted}'"
        raise RerankError(message, f"set rerank.model to one of {names}, to a folder, or to a pulled model")
    name, files = open_folder(wanted)
    return LocalReranker(name, lambda: files)


def open_folder(name: str) -> tuple[str, ModelFiles]:
    """Return the name and the files of the cross-encoder at a path. Raises RerankError that says what is missing."""
    from mindex.providers.onnx.folder import model_folder  # 30 ms of imports that a packaged model does not need

    with raise_as(RerankError), model_folder(name, "rerank.model") as folder:
        files = _files_of(folder)
    return f"{folder.name}@{files.sha256[:8]}", files


def pulled_reranker(pulled: PulledModel) -> LocalReranker:
    """Return the reranker that was pulled from the hub. Raises RerankError when its files are not as recorded."""
    # Imported here: 30 ms that a packaged model does not need.
    from mindex.providers.hub.presets import preset
    from mindex.providers.onnx.folder import pulled_folder

    with raise_as(RerankError):
        files = _files_of(pulled_folder(pulled), pulled.check)
    known = preset(pulled.name)
    tokens = min(known.window, _MAX_PRESET_TOKENS) if known is not None else _MAX_TOKENS
    return LocalReranker(f"{pulled.name}@{files.sha256[:8]}", lambda: files, max_tokens=tokens)


def _files_of(folder: ModelFolder, check: Callable[[], None] | None = None) -> ModelFiles:
    """Return the model's files as they were found before; when they are new or changed, after a check of them."""
    files = folder.known_files(RERANKER, read_facts(_ROLE, folder.files))
    if files is None:
        if check is not None:
            check()
        files = folder.read_files(RERANKER)
        write_facts(_ROLE, folder.files, {"sha256": files.sha256, "scales_by_run": files.scales_by_run})
    return files


class LocalReranker:
    """Runs one cross-encoder. Safe to use from several threads."""

    def __init__(
        self,
        model: str,
        files: Callable[[], ModelFiles],
        doubt: tuple[float, float] | None = None,
        *,
        max_tokens: int = _MAX_TOKENS,
    ) -> None:
        """`files` is called when the model is opened. `max_tokens` are those of a pair."""
        self.name = f"local/{model}/{max_tokens}"
        self._max_tokens = max_tokens
        self.doubt = doubt
        self.weight = CHOSEN_WEIGHT if doubt is None else BUILT_IN_WEIGHT
        self._model = model
        self._files = files
        self._engine = LazyEngine(self._open, RerankError)

    @property
    def loaded(self) -> bool:
        return self._engine.is_open

    def load(self) -> None:
        self._engine.get()

    def score(self, query: str, texts: Sequence[str], *, seconds: float | None = None) -> list[float]:
        deadline = None if seconds is None else monotonic() + seconds
        engine = self._engine.get()
        encoded_query = engine.encode(query, whole=False)
        encoded_query.truncate(MAX_QUERY_TOKENS)
        pairs = [encode_pair(engine, encoded_query, text, self._max_tokens) for text in texts]
        scores = [0.0] * len(pairs)

        def run(batch: list[int]) -> None:
            logits, _ = engine.run([pairs[index].ids for index in batch], [pairs[index].type_ids for index in batch])
            for index, values in zip(batch, logits, strict=True):
                scores[index] = _score(values)

        try:
            with raise_as(RerankError):
                engine.run_all([len(pair.ids) for pair in pairs], run, name="mindex-rerank", deadline=deadline)
        except OutOfTime:
            message = f"{self._model} has not scored {len(texts)} texts within {seconds:g} s"
            raise RerankError(message, "raise rerank.timeout") from None
        return scores

    def _open(self) -> Engine:
        files = self._files()
        engine = open_engine(files, ("logits",))
        logits, _ = engine.run([encode_pair(engine, engine.encode("a", whole=False), "b").ids])
        if logits.ndim != 2 or logits.shape[1] not in (1, 2):
            answer = f"'{engine.output}' of shape {list(logits.shape)}"
            raise ProviderError(
                f"the model {files.weights} answers with {answer}: it is not a cross-encoder", files.hint
            )
        if not engine.tokenizer.num_special_tokens_to_add(True):
            raise ProviderError(f"the tokenizer {files.tokenizer} does not say how it joins a pair", files.hint)
        return engine


def encode_pair(engine: Engine, query: Encoding, text: str, max_tokens: int = _MAX_TOKENS) -> Encoding:
    """Return query and text as the model was trained to read them together, the text cut to what the query leaves."""
    tokenizer = engine.tokenizer
    encoded = engine.encode(text, whole=False)
    encoded.truncate(max_tokens - len(query.ids) - tokenizer.num_special_tokens_to_add(True))
    return tokenizer.post_process(query, encoded)


def _score(logits: Any) -> float:
    """Return the one number that says how well the pair fits; of two, the second is for it and the first against it."""
    score = float(logits[-1]) - (float(logits[0]) if len(logits) == 2 else 0.0)
    if not isfinite(score):
        raise RerankError("the reranker answers with a score that is not a number", "use another rerank.model")
    return score
