"""Rerankers in GGUF files, run by llama.cpp."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from time import monotonic

from mindex.errors import ProviderError, RerankError
from mindex.providers.base import ProviderSettings, clean, failing_as
from mindex.providers.llama_cpp import MOST_TOKENS, GgufModel, LlamaServer, Rejected, describe, server_for
from mindex.providers.rerank.base import Reranker, Unavailable

_TEXTS_PER_REQUEST = 8
_MOST_QUESTION_TOKENS = 128
_AROUND = 8  # what a model puts before, between and behind question and text, at the most
_OTHER_FILE = "use another GGUF file"
_STAND_IN = "."  # for a text without any


def create(settings: ProviderSettings) -> Reranker:
    """The reranker in the GGUF file that `settings.model` names; llama.cpp is started when it is first needed."""
    try:
        file = describe(settings.model, "rerank.model")
        if not file.judges:  # llama.cpp would score with whatever number comes first
            raise ProviderError(f"{file.path} is no reranker: nothing in it gives scores", _OTHER_FILE)
    except ProviderError as error:
        return Unavailable("llama-cpp", Path(settings.model).stem, error.message, error.hint)
    return LlamaReranker(file, server_for(file, "rerank"), settings.timeout)


class LlamaReranker:
    """One GGUF model. Safe to use from several threads."""

    doubt = None

    def __init__(self, file: GgufModel, server: LlamaServer, timeout: float) -> None:
        self._file = file
        self._server = server
        self._timeout = timeout
        self._most = min(file.tokens, MOST_TOKENS) - _AROUND

    @property
    def name(self) -> str:
        return f"llama-cpp/{self._file.name}/{self._most}"

    @property
    def loaded(self) -> bool:
        return self._server.loaded

    def load(self) -> None:
        with failing_as(RerankError):
            self._server.load()

    def score(self, query: str, texts: Sequence[str], *, seconds: float | None = None) -> list[float]:
        deadline = monotonic() + (self._timeout if seconds is None else seconds)
        if not texts:
            return []
        question, length = self._cut(query, _MOST_QUESTION_TOKENS, deadline)
        scores: list[float] = []
        for start in range(0, len(texts), _TEXTS_PER_REQUEST):
            batch = texts[start : start + _TEXTS_PER_REQUEST]
            cut = [self._cut(text, self._most - length, deadline)[0] for text in batch]
            scores += self._scores(question, cut, deadline)
        return scores

    def _scores(self, question: str, texts: Sequence[str], deadline: float) -> list[float]:
        answer = self._ask("/v1/rerank", {"query": question, "documents": texts, "top_n": len(texts)}, deadline)
        rows = answer.get("results")
        found: dict[object, float] = {}
        for row in rows if isinstance(rows, list) else []:
            score = row.get("relevance_score") if isinstance(row, dict) else None
            if isinstance(score, float | int) and isfinite(score):
                found[row.get("index")] = float(score)
        if len(found) != len(texts) or not all(index in found for index in range(len(texts))):
            raise RerankError(f"{self._file.title} answers with something else than scores", _OTHER_FILE)
        return [found[index] for index in range(len(texts))]

    def _cut(self, text: str, most: int, deadline: float) -> tuple[str, int]:
        """The text's beginning that the model can hold, and how many tokens it is."""
        text = clean(text)
        text = text if text.strip() else _STAND_IN
        while True:
            tokens = self._ask("/tokenize", {"content": text}, deadline).get("tokens")
            count = len(tokens) if isinstance(tokens, list) else 0
            if count <= most or len(text) <= 1:
                return text, count
            text = text[: max(1, min(len(text) * most // count, len(text) - 1))]

    def _ask(self, path: str, body: Mapping[str, object], deadline: float) -> Mapping[str, object]:
        with failing_as(RerankError):
            left = deadline - monotonic()
            if left <= 0:
                raise ProviderError(f"{self._file.title} has not scored all texts in time", "raise rerank.timeout")
            try:
                return self._server.ask(path, body, left)
            except Rejected as error:
                raise ProviderError(f"llama.cpp cannot rerank with {self._file.title} ({error})", _OTHER_FILE) from None
