"""Cross-encoders on the processor: packaged and pulled ones, and any folder with an ONNX model that reads pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from time import monotonic
from typing import TYPE_CHECKING, Any

from mindex.errors import ProviderError, RerankError
from mindex.providers.base import ProviderSettings, raise_as
from mindex.providers.model_files import write_facts
from mindex.providers.onnx.engine import Engine, LazyEngine, ModelFiles, OutOfTime, open_engine
from mindex.providers.packaged_models import packaged_model, packaged_models
from mindex.providers.rerank.base import BUILT_IN_WEIGHT, CHOSEN_WEIGHT, Reranker

if TYPE_CHECKING:
    from tokenizers import Encoding

    from mindex.providers.onnx.folder import ModelFolder

# A pair of 512 tokens takes three times as long as one of 256, and what is scored is at most a kilobyte long.
_MAX_TOKENS = 256
# Presets of the hub are chosen for their scores, some of them for languages that need more tokens for a kilobyte.
_MAX_PRESET_TOKENS = 512
# A query is never cut in favour of the text, but must leave some tokens for it.
MAX_QUERY_TOKENS = 128
# In logits, chosen by data: see docs/quality.md.
_DOUBTS = {"ms-marco-MiniLM-L-12-v2": (-8.0, -2.0)}


def create(settings: ProviderSettings) -> Reranker:
    """Return the reranker for `settings.model`; the model is loaded when it is first needed. Raises RerankError."""
    wanted = settings.model or packaged_models("rerank")[0].model.name
    if (package := packaged_model("rerank", wanted)) is not None:
        return LocalReranker(wanted, package.files, _DOUBTS.get(wanted))
    from mindex.providers.onnx.folder import model_folder  # 30 ms of imports that a packaged model does not need

    with raise_as(RerankError), model_folder("rerank", wanted) as folder:
        return open_folder(folder)


def open_folder(folder: ModelFolder) -> LocalReranker:
    """Return the cross-encoder in a folder. Raises ProviderError when the files are not as they were pulled."""
    facts = folder.cached_facts()
    if facts is None:
        facts = folder.read_facts()
        write_facts(folder.role, folder.parts, facts)
    files = folder.files(facts)
    tokens = min(folder.preset.window, _MAX_PRESET_TOKENS) if folder.preset is not None else _MAX_TOKENS
    return LocalReranker(folder.name(files), lambda: files, max_tokens=tokens)


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
