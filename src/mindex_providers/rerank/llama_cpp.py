"""Rerankers in GGUF files, run by llama.cpp. Texts are cut by tokens, since it refuses what is too long."""

from collections.abc import Sequence
from time import monotonic

from mindex.errors import ProviderError
from mindex.providers.base import MAX_CHARACTERS, ProviderSettings, clean_for_server
from mindex.providers.rerank.base import CHOSEN_WEIGHT, Reranker
from mindex.providers.rerank.remote import endpoint
from mindex_providers.gguf import GgufModel, describe
from mindex_providers.llama_cpp import MAX_TOKENS, LlamaServer

_MAX_QUERY_TOKENS = 128
_TOKENS_AROUND = 8  # what a model puts before, between and after query and text, at the most


def create(settings: ProviderSettings) -> Reranker:
    """Return the reranker in the GGUF file that `settings.model` names; llama.cpp is started at first use.

    Raises ProviderError for a file that is not a reranker.
    """
    file = describe(settings.model, "rerank.model")
    if not file.judges:  # llama.cpp would use the first number as the score
        raise ProviderError(f"{file.path} is not a reranker: it has no scoring head", "use another GGUF file")
    return LlamaReranker(file, settings.timeout)


class LlamaReranker:
    """One GGUF model. Safe to use from several threads."""

    doubt = None
    weight = CHOSEN_WEIGHT

    def __init__(self, file: GgufModel, timeout: float) -> None:
        self._max_tokens = min(file.tokens, MAX_TOKENS) - _TOKENS_AROUND
        self._server = LlamaServer("rerank", file, timeout, f"{file.name}/{self._max_tokens}")
        self._reranker = endpoint(self._server, "/v1/rerank")
        self.name = self._reranker.name
        self.load = self._reranker.load

    @property
    def loaded(self) -> bool:
        return not self._server.is_down

    def score(self, query: str, texts: Sequence[str], *, seconds: float | None = None) -> list[float]:
        deadline = monotonic() + (self._server.spec.timeout if seconds is None else seconds)
        if not texts:
            return []
        query, length = self._cut(query, _MAX_QUERY_TOKENS, deadline)
        cut = [self._cut(text, self._max_tokens - length, deadline)[0] for text in texts]
        return self._reranker.score(query, cut, seconds=deadline - monotonic())

    def _cut(self, text: str, most: int, deadline: float) -> tuple[str, int]:
        """Return the text's beginning within a limit of tokens, and their number."""
        text = clean_for_server(text, MAX_CHARACTERS)
        while True:
            if monotonic() >= deadline:
                raise self._server.invalid_answer("has not scored all texts in time", "raise rerank.timeout")
            count = len(self._server.tokenize(text, deadline))
            if count <= most or len(text) <= 1:
                return text, count
            text = text[: max(1, min(len(text) * most // count, len(text) - 1))]
