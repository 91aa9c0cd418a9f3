"""GGUF models on this machine, run by llama.cpp in a process of its own that we start, ask over loopback, and stop."""

from __future__ import annotations

import atexit
import http.client
import json
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from time import monotonic
from typing import Literal
from urllib.parse import urlsplit

from mindex.errors import ProviderError
from mindex.providers.base import usable_cores
from mindex.providers.gguf import read_head
from mindex.providers.model_files import at_path, checksum, keep, recall

Mode = Literal["chat", "embed", "rerank"]

INSTALL = "run: pip install 'mindex[llama-cpp]'"
MOST_TOKENS = 512  # of a text that is embedded or scored
_LEAST_TOKENS = 16
_MOST_CHAT_TOKENS = 8_192
# Its threads wait for each other by spinning: with one more than there are free cores, all of them crawl.
_MOST_THREADS = 8
_LOADING_SECONDS = 300.0
_STOPPING_SECONDS = 2.0
_MOST_DEATHS = 3
_MOST_BYTES = 32_000_000
_RANK = 4
_POOLING = {1: "mean", 2: "cls", 3: "last"}
_MEAN = 1


@dataclass(frozen=True, slots=True)
class GgufModel:
    """A GGUF file and what it says of itself."""

    path: str
    sha256: str
    architecture: str
    tokens: int
    dimensions: int
    pooling: int
    judges: bool
    writes: bool

    @property
    def title(self) -> str:
        return Path(self.path).stem

    @property
    def name(self) -> str:
        """The file's name and the beginning of its checksum: another file of the same name is another model."""
        return f"{self.title}@{self.sha256[:8]}"

    @property
    def pooling_name(self) -> str:
        return _POOLING[self.pooling]


def describe(given: str, setting: str) -> GgufModel:
    """The model at a path; cheap from the second time on. Raises ProviderError that says what is wrong with it."""
    hint = f"let {setting} name a GGUF file"
    if not given:
        raise ProviderError("llama-cpp needs to be told which model", hint)
    with at_path(given, hint) as path:
        if not path.is_file():
            raise ProviderError(f"there is no file {path}", hint)
        known = _remembered(recall("gguf", [path]))
        if known is None:
            known = _read(path, hint)
            keep("gguf", [path], {"model": asdict(known)})
        return known


def _read(path: Path, hint: str) -> GgufModel:
    head = read_head(path, hint)
    pooling, tokens = head.number("pooling_type"), head.number("context_length")
    if tokens is not None and tokens < _LEAST_TOKENS:
        raise ProviderError(f"{path} is a damaged GGUF file", hint)
    return GgufModel(
        str(path),
        checksum([path]),
        head.architecture,
        tokens=tokens or MOST_TOKENS,
        dimensions=head.number("embedding_length") or 0,
        pooling=pooling if pooling in _POOLING else _MEAN,
        judges=head.judges,
        writes=not head.reads_both_ways,
    )


def _remembered(kept: Mapping[str, object] | None) -> GgufModel | None:
    found = kept.get("model") if kept else None
    if not isinstance(found, dict) or set(found) != {field.name for field in fields(GgufModel)}:
        return None
    return GgufModel(**found)


def missing_package() -> ProviderError | None:
    """The error for a machine without llama.cpp itself."""
    from importlib.util import find_spec

    if find_spec("xllamacpp") is not None:
        return None
    return ProviderError("llama-cpp needs the package xllamacpp, which is not installed", INSTALL)


# ── the server ────────────────────────────────────────────────────────────────────────────────────────────────

_servers: dict[tuple[str, Mode], LlamaServer] = {}
_started: set[LlamaServer] = set()
_registering = threading.Lock()


def server_for(model: GgufModel, mode: Mode) -> LlamaServer:
    """The one server of this process for a model in a mode. It is started by the first question."""
    with _registering:
        return _servers.setdefault((f"{model.path}@{model.sha256}", mode), LlamaServer(model, mode))


@atexit.register
def stop_servers() -> None:
    """Stop every server of this process; a later question starts its own again."""
    with _registering:
        stopped = list(_started)
        _started.clear()
    for server in stopped:
        server.stop()


class Rejected(Exception):
    """llama.cpp works, and does not take this request."""


class LlamaServer:
    """One model in a process of its own. Safe to use from several threads."""

    def __init__(self, model: GgufModel, mode: Mode) -> None:
        self._model = model
        self._mode = mode
        self._lock = threading.Lock()
        self._child: _Child | None = None
        self._deaths = 0

    @property
    def loaded(self) -> bool:
        child = self._child
        return child is not None and child.ready.is_set() and not child.trouble

    def load(self, seconds: float | None = None) -> None:
        """Wait until the model is there. Raises ProviderError when it is not, or not in time."""
        self._running(monotonic() + (_LOADING_SECONDS if seconds is None else seconds))

    def ask(self, path: str, body: Mapping[str, object], seconds: float) -> Mapping[str, object]:
        """What the server answers. Raises Rejected for a request it does not take, ProviderError for all else.

        A question whose time is up is given up by the server, too: its connection is closed.
        """
        deadline = monotonic() + seconds
        child = self._running(deadline)
        try:
            status, answer = child.post(path, body, max(0.05, deadline - monotonic()))
        except TimeoutError:
            raise ProviderError(
                f"{self._model.title} did not answer within {seconds:.3g} s",
                "use a smaller model",
            ) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._failed(child, error) from None
        if status == http.HTTPStatus.OK:
            return answer
        fault = answer.get("error")
        said = str(fault.get("message", "")) if isinstance(fault, dict) else ""
        raise Rejected(" ".join(said.split())[:200] or f"status {status}")

    def stop(self) -> None:
        with self._lock:
            child, self._child = self._child, None
        if child is not None:
            child.stop()

    def _running(self, deadline: float) -> _Child:
        with self._lock:
            if self._child is None:
                self._child = self._start()
            child = self._child
        if not child.ready.wait(max(0.0, deadline - monotonic())):
            raise ProviderError(f"{self._model.title} is still loading", "try again in a moment")
        if child.trouble:
            raise ProviderError(f"llama.cpp cannot load {self._model.path} ({child.trouble})", "use another GGUF file")
        return child

    def _start(self) -> _Child:
        if (lacking := missing_package()) is not None:
            raise lacking
        if self._deaths >= _MOST_DEATHS:
            raise ProviderError(
                f"llama.cpp has ended {self._deaths} times over {self._model.title}", "use another GGUF file"
            )
        with _registering:
            _started.add(self)
        chat = self._mode == "chat"
        return _Child(
            {
                "model": self._model.path,
                "mode": self._mode,
                "tokens": min(self._model.tokens, _MOST_CHAT_TOKENS if chat else MOST_TOKENS),
                "pooling": _RANK if self._mode == "rerank" else self._model.pooling,
                "threads": max(1, min(_MOST_THREADS, usable_cores() // 2)),
            }
        )

    def _failed(self, child: _Child, error: Exception) -> ProviderError:
        """The error for a question that got no answer; a server that died over it is started again for the next."""
        ended = child.ended()
        if not ended:
            return ProviderError(f"llama.cpp answers {self._model.title}'s users with nonsense ({error})", "try again")
        with self._lock:
            if self._child is child:
                self._child = None
                self._deaths += 1
        child.stop()
        return ProviderError(f"llama.cpp ended over {self._model.title} ({ended})", "use another GGUF file")


class _Child:
    """A running program, from its start. `ready` is set once it serves, or `trouble` says why it does not."""

    def __init__(self, settings: Mapping[str, object]) -> None:
        self._key = secrets.token_urlsafe(24)
        self._address = ("", 0)
        self.trouble = ""
        self.ready = threading.Event()
        # Without the folder we are in on its path: that may be anybody's.
        program = [sys.executable, "-P", str(Path(__file__).with_name("llama_process.py"))]
        self._process = subprocess.Popen(
            program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
        )
        self._patience = threading.Timer(_LOADING_SECONDS, self._process.kill)
        self._patience.daemon = True
        self._patience.start()
        threading.Thread(target=self._begin, args=(settings,), name="mindex-llama", daemon=True).start()

    def _begin(self, settings: Mapping[str, object]) -> None:
        """Tell the program what to serve, and hear where it does."""
        line = ""
        with suppress(OSError, ValueError):  # a program that has ended takes nothing, and says nothing
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdin.write(json.dumps({**settings, "key": self._key}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        self._patience.cancel()
        said = json.loads(line) if line else {}
        if "url" in said:
            url = urlsplit(said["url"])
            self._address = (url.hostname or "", url.port or 0)
        else:
            self.trouble = said.get("error") or self.ended(wait=_STOPPING_SECONDS) or "it said nothing"
        self.ready.set()

    def post(self, path: str, body: Mapping[str, object], seconds: float) -> tuple[int, Mapping[str, object]]:
        connection = http.client.HTTPConnection(*self._address, timeout=seconds)
        try:
            headers = {"content-type": "application/json", "authorization": f"Bearer {self._key}"}
            connection.request("POST", path, json.dumps(body), headers)
            response = connection.getresponse()
            answer = json.loads(response.read(_MOST_BYTES))
        finally:
            connection.close()
        if not isinstance(answer, dict):
            raise ValueError("no object")
        return response.status, answer

    def ended(self, wait: float = 0.5) -> str:
        """How the program ended; nothing while it runs."""
        try:
            code = self._process.wait(wait)
        except subprocess.TimeoutExpired:
            return ""
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"

    def stop(self) -> None:
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        if not self.ended(_STOPPING_SECONDS):
            self._process.kill()
            self._process.wait()
        self.ready.wait(_STOPPING_SECONDS)
        if self._process.stdout is not None:
            self._process.stdout.close()
