"""GGUF models on this machine: each runs in a llama.cpp process that we start, and call over loopback as a server."""

from __future__ import annotations

import atexit
import json
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from time import monotonic

from mindex.datatypes import Role
from mindex.errors import ProviderError
from mindex.foreign_text import quotation
from mindex.providers.addresses import Address, parse_address
from mindex.providers.base import ERRORS, raise_as, usable_cores
from mindex.providers.http import Client, Reply, Request, RequestFailed, TimedOut, parse_json
from mindex.providers.server import DEFAULT_LIMITS, Limits, Rejected, ServerSpec, error_text
from mindex_providers.gguf import GgufModel

INSTALL = "run: pip install 'mindex[llama-cpp]'"
MAX_TOKENS = 512  # of a text that is embedded or scored
_MAX_CHAT_TOKENS = 8_192
# llama.cpp's threads wait for each other by spinning: with one more than there are free cores, all of them crawl.
_MAX_THREADS = 8
_LOADING_SECONDS = 300.0
_STOPPING_SECONDS = 2.0
_MAX_DEATHS = 3
_RANK_POOLING = 4
_OTHER_FILE = "use another GGUF file"
# The verb of a refusal's message, and its hint.
_REFUSALS: Mapping[Role, tuple[str, str]] = {
    "embedding": ("embed with", _OTHER_FILE),
    "rerank": ("rerank with", _OTHER_FILE),
    "generation": ("ask", "let generation.model name another GGUF file"),
}


def missing_package() -> ProviderError | None:
    """Return the error for a machine without llama.cpp itself; None if it is installed."""
    from importlib.util import find_spec  # looked up at each call: a test replaces it

    if find_spec("xllamacpp") is not None:
        return None
    return ProviderError("llama-cpp needs the package xllamacpp, which is not installed", INSTALL)


class LlamaServer:
    """A ModelServer whose model runs in a child process. Safe to use from several threads.

    It needs no breaker and no retries: a process that ends is started again by the next request, up to three times.
    """

    def __init__(self, role: Role, model: GgufModel, timeout: float, name: str = "") -> None:
        """`name` replaces the model's name where more than the file decides what is cached under it."""
        self.spec = ServerSpec(role, "llama-cpp", name or model.name, None, timeout, title=model.title)
        with _registering:  # one process of this program for a model in a role; the first request starts it
            key = (f"{model.path}@{model.sha256}", role)
            self._process = _processes.setdefault(key, LlamaProcess(model, role))

    @property
    def is_down(self) -> bool:
        return not self._process.is_ready

    def load(self) -> None:
        """Wait until the model is loaded. Raises the role's error when it cannot be, or takes more than 300 s."""
        with raise_as(ERRORS[self.spec.role]):
            self._process.child(_LOADING_SECONDS)

    def post(self, path: str, body: Mapping[str, object], limits: Limits = DEFAULT_LIMITS) -> object:
        """Do as ModelServer says. The time that the model takes to load counts, unless the call insists.

        llama.cpp also gives up a request whose time is up: its connection is closed.
        """
        started, seconds = monotonic(), limits.seconds(self.spec.timeout)
        with raise_as(ERRORS[self.spec.role]):
            child = self._process.child(_LOADING_SECONDS if limits.insists else seconds)
            left = seconds if limits.insists else max(0.05, started + seconds - monotonic())
            try:
                reply = child.send(path, body, left, limits.max_bytes)
                if reply.status == HTTPStatus.OK:
                    return parse_json(reply.body)
            except TimedOut:
                message = f"{self.spec.title} did not answer within {seconds:.3g} s"
                raise ProviderError(message, "use a smaller model") from None
            except RequestFailed as failure:
                raise self._process.failed(child, failure) from None
        reason = error_text(reply.body)
        raise Rejected(reply.status, quotation(reason) if reason.strip() else f"status {reply.status}")

    def tokenize(self, text: str, deadline: float | None = None, **options: bool) -> list[object]:
        """Return the text's tokens, as llama.cpp's `/tokenize` gives them with these options."""
        try:
            answer = self.post("/tokenize", {"content": text, **options}, Limits(deadline))
        except Rejected as rejected:
            raise self.refusal(rejected) from None
        tokens = answer.get("tokens") if isinstance(answer, dict) else None
        return tokens if isinstance(tokens, list) else []

    def check(self) -> None:
        """Nothing is known of a model before its process runs."""

    def trouble(self) -> str:
        return str(missing_package() or "")

    def refusal(self, rejected: Rejected) -> ProviderError:
        verb, hint = _REFUSALS[self.spec.role]
        return self.spec.error(f"llama.cpp cannot {verb} {self.spec.title} ({rejected.reason})", hint)

    def invalid_answer(self, what: str, hint: str = "") -> ProviderError:
        return self.spec.error(f"{self.spec.title} {what}", hint or _REFUSALS[self.spec.role][1])


# ── processes ─────────────────────────────────────────────────────────────────────────────────────────────────

_processes: dict[tuple[str, Role], LlamaProcess] = {}
_registering = threading.Lock()


@atexit.register
def stop_servers() -> None:
    """Stop every llama.cpp process of this program; a later request starts its own again."""
    with _registering:
        processes = list(_processes.values())
    for process in processes:
        process.stop()


class LlamaProcess:
    """The process that runs one model in one role: started when needed, and again after its end."""

    def __init__(self, model: GgufModel, role: Role) -> None:
        self._model = model
        self._role = role
        self._lock = threading.Lock()
        self._child: _Child | None = None
        self._deaths = 0

    @property
    def is_ready(self) -> bool:
        child = self._child
        return child is not None and child.ready.is_set() and not child.trouble

    def child(self, seconds: float) -> _Child:
        """Return the process, started if it does not run. Raises ProviderError when it does not serve in time."""
        with self._lock:
            if self._child is None:
                self._child = self._start()
            child = self._child
        if not child.ready.wait(max(0.0, seconds)):
            raise ProviderError(f"{self._model.title} is still loading", "try again in a moment")
        if child.trouble:
            raise ProviderError(f"llama.cpp cannot load {self._model.path} ({child.trouble})", _OTHER_FILE)
        return child

    def failed(self, child: _Child, failure: RequestFailed) -> ProviderError:
        """Return the error for a request without an answer; a process that died of it is started again by the next."""
        exit_status = child.exit_status()
        if not exit_status:
            message = f"llama.cpp answers {self._model.title}'s users with nonsense ({failure.why})"
            return ProviderError(message, "try again")
        with self._lock:
            if self._child is child:
                self._child = None
                self._deaths += 1
        child.stop()
        return ProviderError(f"llama.cpp ended over {self._model.title} ({exit_status})", _OTHER_FILE)

    def stop(self) -> None:
        with self._lock:
            child, self._child = self._child, None
        if child is not None:
            child.stop()

    def _start(self) -> _Child:
        if (missing := missing_package()) is not None:
            raise missing
        if self._deaths >= _MAX_DEATHS:
            raise ProviderError(f"llama.cpp has ended {self._deaths} times over {self._model.title}", _OTHER_FILE)
        chats = self._role == "generation"
        poolings = {"embedding": self._model.pooling, "rerank": _RANK_POOLING}
        return _Child(
            model=self._model.path,
            tokens=min(self._model.tokens, _MAX_CHAT_TOKENS if chats else MAX_TOKENS),
            pooling=poolings.get(self._role),
            threads=max(1, min(_MAX_THREADS, usable_cores() // 2)),
        )


class _Child:
    """A running llama_process.py. `ready` is set once it serves, or once `trouble` says why it does not."""

    def __init__(self, **settings: object) -> None:
        """`settings` are those that llama_process.py reads."""
        self._key = secrets.token_urlsafe(24)
        self._address = Address("")
        self._client: Client | None = None
        self.trouble = ""
        self.ready = threading.Event()
        # -P: without the current folder on its path, whose modules may be anyone's.
        program = [sys.executable, "-P", str(Path(__file__).with_name("llama_process.py"))]
        self._process = subprocess.Popen(
            program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
        )
        self._time_limit = threading.Timer(_LOADING_SECONDS, self._process.kill)
        self._time_limit.daemon = True
        self._time_limit.start()
        threading.Thread(target=self._begin, args=(settings,), name="mindex-llama", daemon=True).start()

    def _begin(self, settings: Mapping[str, object]) -> None:
        """Send the program what to serve, and read the address where it does."""
        line = ""
        with suppress(OSError, ValueError):  # the pipes of a program that has ended are closed
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdin.write(json.dumps({**settings, "key": self._key}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        self._time_limit.cancel()
        answer = json.loads(line) if line else {}
        if "url" in answer:
            self._address = parse_address(answer["url"])
            self._client = Client(self._address)
        else:
            self.trouble = answer.get("error") or self.exit_status(wait=_STOPPING_SECONDS) or "it said nothing"
        self.ready.set()

    def send(self, path: str, body: Mapping[str, object], seconds: float, max_bytes: int) -> Reply:
        assert self._client is not None
        headers = {"content-type": "application/json", "authorization": f"Bearer {self._key}"}
        request = Request("POST", self._address.at(path), headers, json.dumps(body).encode())
        return self._client.send(request, seconds, max_bytes)

    def exit_status(self, wait: float = 0.5) -> str:
        """Return how the program ended; empty while it runs."""
        try:
            code = self._process.wait(wait)
        except subprocess.TimeoutExpired:
            return ""
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"

    def stop(self) -> None:
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        if not self.exit_status(_STOPPING_SECONDS):
            self._process.kill()
            self._process.wait()
        self.ready.wait(_STOPPING_SECONDS)
        if self._process.stdout is not None:
            self._process.stdout.close()
        if self._client is not None:
            self._client.close()
