"""A loaded ONNX model with its tokenizer: token ids in, one array out, on every usable core."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from mindex.errors import ProviderError
from mindex.providers.base import MAX_CHARACTERS, clean, raise_as, usable_cores
from mindex.user_folders import cache_folder

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession, RunOptions
    from tokenizers import Encoding, Tokenizer

# One run takes at most 8 texts and 512 tokens: longer runs are slower per text (88 → 94 ms for 250 tokens, they fall
# out of the processor's cache) and need memory in proportion; short texts are faster in a batch.
_TEXTS_PER_RUN = 8
_TOKENS_PER_RUN = 512
# A text joins a run if it is at most this number of tokens shorter than the longest: of 64 passages, padding is 1.5 %
# of the tokens instead of 4 %, for 18 % more runs of 0.7 ms each.
_MAX_PADDING = 12
_MAX_WORKERS = 4  # each needs about 70 MB while it runs

_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
REINSTALL_MINDEX = "pip install --force-reinstall mindex"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """What a model is opened from, what messages call it, and the hint that says how to get sound files."""

    weights: Path
    sha256: str
    tokenizer: Path
    called: str
    hint: str
    # Its numbers are scaled by the largest of the whole run: a text's result would depend on the texts beside it.
    scales_by_run: bool = False
    # Another graph of the model, used if the processor gains by int8; see `training/graphs.py`.
    int8_graph: Path | None = None


class OutOfTime(Exception):
    """The deadline passed before the last run."""


def open_engine(files: ModelFiles, outputs: Sequence[str], cache_dir: Path | None = None) -> Engine:
    """Return the model, ready to run. `outputs` are names of its output, the best first; without, its first one.

    Raises ProviderError when the files, or the packages that read them, are missing or broken.
    """
    # Here and below, packages are imported where a model is opened or runs: 300 ms that no search by keyword pays.
    from mindex.providers.onnx.session import NotOpened, import_runtime, open_session

    try:
        import numpy  # noqa: F401 - to find out whether it is installed
        import tokenizers  # noqa: F401 - likewise

        runtime = import_runtime()
    except ImportError as error:
        message = f"the {files.called} needs a package that cannot be imported ({error})"
        raise ProviderError(message, f"run: {REINSTALL_MINDEX}") from error

    tokenizer, padding = _load_tokenizer(files)
    folder = cache_dir or cache_folder()
    try:
        session = open_session(
            files.weights, files.sha256, folder, packed=files.scales_by_run, int8_graph=files.int8_graph
        )
    except NotOpened as error:
        raise ProviderError(f"the {files.called} {files.weights} {error}", files.hint) from error
    return_free_memory()  # where the ready copy had to be made first, 100 MB
    options = runtime.RunOptions()
    # What a run took from the system goes back to it. Without this, indexing leaves 300 MB behind; it costs a query
    # nothing.
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    return Engine(files, tokenizer, padding, session, options, outputs)


class LazyEngine:
    """An engine that is opened at its first use, once for all threads.

    An error is kept and raised again: a broken installation does not heal while the process runs.
    """

    def __init__(self, open_: Callable[[], Engine], kind: type[ProviderError]) -> None:
        """`kind` is the error that `get` raises."""
        self._open = open_
        self._kind = kind
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self.error: ProviderError | None = None

    @property
    def is_open(self) -> bool:
        return self._engine is not None

    def get(self) -> Engine:
        if self._engine:
            return self._engine
        with self._lock:
            if self.error:
                raise self.error.with_traceback(None)
            if not self._engine:
                try:
                    with raise_as(self._kind):
                        self._engine = self._open()
                except self._kind as error:
                    self.error = error
                    raise
            return self._engine


class Engine:
    """A loaded model. Safe to use from several threads."""

    def __init__(
        self,
        files: ModelFiles,
        tokenizer: Tokenizer,
        padding: int,
        session: InferenceSession,
        options: RunOptions,
        outputs: Sequence[str],
    ) -> None:
        self.tokenizer = tokenizer
        self._called = files.called
        self._padding = padding
        self._session = session
        self._options = options
        # Bounds the runs of all batches together, and so the memory they take.
        self._slots = threading.BoundedSemaphore(_workers())
        self._texts_per_run = 1 if files.scales_by_run else _TEXTS_PER_RUN
        self._inputs = {value.name: value.type for value in session.get_inputs()}
        if unknown := set(self._inputs).difference(_INPUTS):
            names = ", ".join(sorted(unknown))
            message = f"the {files.called} {files.weights} wants what mindex does not give: {names}"
            raise ProviderError(message, files.hint)
        shapes = {value.name: value.shape for value in session.get_outputs()}
        self.output = next((name for name in outputs if name in shapes), next(iter(shapes)))
        self.shape: list[object] = list(shapes[self.output] or ())  # numbers, and names of dimensions that vary

    def encode(self, text: str, *, whole: bool = True) -> Encoding:
        """Return the text as tokens; with those that open and close it where it is `whole`."""
        # One at a time: `encode_batch` starts its own threads and then warns on stderr at every fork.
        return self.tokenizer.encode(clean(text, MAX_CHARACTERS), add_special_tokens=whole)

    def run(
        self, encoded: Sequence[Sequence[int]], types: Sequence[Sequence[int]] | None = None
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the model's output for some texts, and the mask that tells their tokens from padding."""
        import numpy as np  # only an open model needs it

        from mindex.providers.onnx.session import native_call  # as in `open_engine`

        shape = (len(encoded), max(1, *map(len, encoded)))
        ids = np.full(shape, self._padding, dtype=np.int64)
        mask = np.zeros(shape, dtype=np.int64)
        kinds = np.zeros(shape, dtype=np.int64)
        for row, tokens in enumerate(encoded):
            ids[row, : len(tokens)] = tokens
            # An empty text, where the tokenizer adds nothing, is one token of padding.
            mask[row, : max(1, len(tokens))] = 1
            if types:
                kinds[row, : len(tokens)] = types[row]
        arrays = dict(zip(_INPUTS, (ids, mask, kinds), strict=True))
        inputs = {
            name: arrays[name].astype(np.int32) if kind == "tensor(int32)" else arrays[name]
            for name, kind in self._inputs.items()
        }
        try:
            with native_call():
                answer: NDArray[Any] = self._session.run([self.output], inputs, self._options)[0]
        except Exception as error:  # ONNX Runtime's errors share no base class
            raise ProviderError(f"the {self._called} failed ({error})", "free some memory and try again") from error
        return answer, mask

    def run_all(
        self, lengths: Sequence[int], run: Callable[[list[int]], None], *, name: str, deadline: float | None = None
    ) -> None:
        """Call `run` with the positions of texts of similar length, in threads, until every text was in a batch.

        `lengths` are those of the texts. Raises OutOfTime when the deadline passes; begun runs are waited for.
        """

        def limited(batch: list[int]) -> None:
            with self._slots:
                if deadline is not None and monotonic() >= deadline:
                    raise OutOfTime
                run(batch)

        batches = _batches(lengths, self._texts_per_run)
        if len(batches) <= 1:
            for batch in batches:
                limited(batch)
            return

        _run_in_threads(limited, batches, name)
        return_free_memory()


def _run_in_threads(run: Callable[[list[int]], None], batches: Sequence[list[int]], name: str) -> None:
    """Call `run` with each batch, in this thread and others. Raises what the first of them raised.

    No executor: once the interpreter begins to end it takes nothing more, while the caller's thread may go on.
    """
    waiting, taking = iter(batches), threading.Lock()
    failures: list[BaseException] = []

    def work() -> None:
        while not failures:
            with taking:
                batch = next(waiting, None)
            if batch is None:
                return
            try:
                run(batch)
            except BaseException as error:  # raised below, in the caller's thread
                failures.append(error)

    others = min(_workers(), len(batches)) - 1
    threads = [threading.Thread(target=work, name=name, daemon=True) for _ in range(others)]
    for thread in threads:
        thread.start()
    try:
        work()
        for thread in threads:
            thread.join()
    except BaseException as error:  # Ctrl-C between two runs: the threads finish theirs and stop
        failures.append(error)
    if failures:
        raise failures[0]


def _load_tokenizer(files: ModelFiles) -> tuple[Tokenizer, int]:
    """Return the tokenizer, which neither cuts nor pads, and the id of its padding."""
    from tokenizers import Tokenizer  # only an open model needs it

    try:
        tokenizer = Tokenizer.from_buffer(files.tokenizer.read_bytes())
    except Exception as error:  # tokenizers raises bare Exceptions
        raise ProviderError(f"the tokenizer {files.tokenizer} cannot be read ({error})", files.hint) from error
    known = [tokenizer.token_to_id(token) for token in ("[PAD]", "<pad>")]
    padding = (tokenizer.padding or {}).get("pad_id", next((id_ for id_ in known if id_ is not None), 0))
    # Files ask for all sorts of lengths, and often for padding up to them.
    tokenizer.no_padding()
    tokenizer.no_truncation()
    # "[SEP]" in a text is only characters, and does not end it.
    tokenizer.encode_special_tokens = True
    return tokenizer, int(padding)


def _workers() -> int:
    return min(usable_cores(), _MAX_WORKERS)


def _batches(lengths: Sequence[int], most: int) -> list[list[int]]:
    """Group positions by length, so that little is padded; the longest first, so that no core ends on a long one."""
    batches: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        longest = lengths[batches[-1][0]] if batches else 0
        limit = min(most, _TOKENS_PER_RUN // max(longest, 1))
        if batches and len(batches[-1]) < limit and longest - lengths[index] <= _MAX_PADDING:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches


def return_free_memory() -> None:
    """glibc keeps freed blocks for later, up to 200 MB after a large batch; ask it to give them back."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none, and keeps less
        if trim:
            trim(0)
