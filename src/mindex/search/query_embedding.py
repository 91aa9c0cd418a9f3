"""The vector of a query: from the cache, from the model, or none, with the reason."""

import hashlib
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from mindex.datatypes import Model, VectorArray
from mindex.errors import EmbeddingError
from mindex.providers.embed.base import Embedder
from mindex.store.base import Store
from mindex.store.cache_kinds import QUERY_CACHE
from mindex.values import dataclass

# Before the key of a text that is not a query: a model may read the two differently.
_ANSWERS = "an answer\n"


@dataclass(frozen=True, slots=True)
class QueryVector:
    """A vector, or a note that says why there is none."""

    vector: VectorArray | None
    note: str = ""


class Pending:
    """A vector that is being made. Importing the library's Future takes longer than a breaker that is open."""

    def __init__(self, make: Callable[[], VectorArray]) -> None:
        self._make = make
        self._made: VectorArray | BaseException | None = None
        self._done = threading.Event()
        self._given_up = False

    def run(self) -> None:
        if self._given_up:
            return
        try:
            self._made = self._make()
        except BaseException as error:  # raised where the result is read
            self._made = error
        self._done.set()

    def result(self, seconds: float | None) -> VectorArray:
        """Raises what the making failed with, or TimeoutError; then a making that has not begun is skipped."""
        if not self._done.wait(seconds):
            self._given_up = True
            raise TimeoutError
        made = self._made
        assert made is not None
        if isinstance(made, BaseException):
            raise made
        return made


class QueryEmbedder:
    """Embed queries in a separate thread, so that the keyword search can run at the same time.

    `wait` bounds how long a query may wait for a model that is still loading; None waits until it is there, so
    that two runs of a command never differ. `timeout` bounds how long a loaded one may take for a query.
    """

    def __init__(self, embedder: Embedder, store: Store, wait: float | None = None, timeout: float = 30.0) -> None:
        self.embedder = embedder
        self._store = store
        self._wait = wait
        self._timeout = timeout
        self._waiting: SimpleQueue[Pending | None] = SimpleQueue()
        self._worker: threading.Thread | None = None
        self._starting = threading.Lock()

    def start(self, text: str, *, answer: bool = False) -> Pending:
        """Begin to embed a query; or a possible `answer`, which is embedded as texts are."""
        # Looked up here: another thread would have to open the file once more for it.
        kept = self._store.caches.get(QUERY_CACHE, self._key(text, answer=answer))
        return self._submit(lambda: self._embed(text, kept, answer=answer))

    def texts(self, texts: Sequence[str]) -> QueryVector:
        """Vectors of some texts, one row each, within the time of a query."""
        return self.finish(self._submit(lambda: self.embedder.embed(texts)))

    def _submit(self, embed: Callable[[], VectorArray]) -> Pending:
        pending = Pending(embed)
        self._waiting.put(pending)
        with self._starting:
            if self._worker is None:
                # A daemon: a server that hangs does not keep a process from its end, as an executor's thread would.
                self._worker = threading.Thread(target=self._work, name="mindex-query", daemon=True)
                self._worker.start()
        return pending

    def _work(self) -> None:
        while (pending := self._waiting.get()) is not None:
            pending.run()

    def finish(self, pending: Pending, *, patient: bool = False) -> QueryVector:
        """The vector, as soon as it is there or waiting longer is useless.

        A `patient` caller, who can do nothing without it, gives a model that is loading the time of a loaded one.
        """
        loaded = self.embedder.loaded
        wait = self._wait if self._wait is None or not patient else max(self._wait, self._timeout)
        try:
            return QueryVector(pending.result(self._timeout if loaded else wait))
        except TimeoutError:
            slow = f"took longer than {self._timeout:g} s" if loaded else "is still loading"
            return QueryVector(None, f"the embedding model {slow}; answered by keyword")
        except EmbeddingError as error:
            return QueryVector(None, f"no vectors: {error}")
        except Exception as error:  # after any failure of the model, the keyword candidates remain
            return QueryVector(None, f"no vectors: the embedding model failed ({type(error).__name__}: {error})")

    def _embed(self, text: str, kept: bytes | None, *, answer: bool) -> VectorArray:
        if kept is not None and len(kept) == 4 * self.embedder.model.dimensions:
            import numpy as np  # not before there is a vector: with its server down, a query needs none

            return np.frombuffer(kept, np.float32)
        vector: VectorArray = self.embedder.embed([text])[0] if answer else self.embedder.embed_query(text)
        # The key again: a model whose dimensions came from its server has another fingerprint by now.
        self._store.caches.put(QUERY_CACHE, self._key(text, answer=answer), vector.astype("float32").tobytes())
        return vector

    def _key(self, text: str, *, answer: bool) -> str:
        # Over vectors of a former model, which other processes search with that model, it is not the space's.
        model: Model = getattr(self.embedder, "queried_with", self.embedder.model)
        parts = f"{model.fingerprint}\n{_ANSWERS if answer else ''}{text}"
        return hashlib.sha256(parts.encode("utf-8", "replace")).hexdigest()

    def close(self) -> None:
        self._waiting.put(None)
