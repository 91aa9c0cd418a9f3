"""A model that lives on a server: asked through one breaker, with patience, and with every failure put into words."""

from __future__ import annotations

import json
import re
import threading
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from time import monotonic, sleep, time
from typing import Literal

from mindex.errors import EmbeddingError, GenerationError, ProviderError, RerankError
from mindex.providers.addresses import Address
from mindex.providers.breaker import Breaker, Outage
from mindex.providers.http import MEGABYTE, Client, Reply, Request, RequestFailed, TimedOut, Unreachable, parse_json
from mindex.providers.keys import find_key, flaw_of, keyring_way
from mindex.values import dataclass

Role = Literal["embedding", "rerank", "generation"]

ATTEMPTS = 4
MOST_BYTES = 32 * MEGABYTE

_ERRORS: Mapping[str, type[ProviderError]] = {
    "embedding": EmbeddingError,
    "rerank": RerankError,
    "generation": GenerationError,
}
_FIRST_WAIT = 0.25
_LONGEST_WAIT = 8.0
# What preparing a request takes of its time does not count.
_NEARLY = 0.95
# Patterns are compiled when a server says something: while it is left alone, nobody waits for that.
_TOO_LONG = (
    r"(?i)too (long|large|many (input )?tokens)|(context|input|sequence|prompt|token)[ _-]?(length|limit|window|size)"
    r"|maximum (context|number of tokens|input)|exceeds? .{0,40}(token|length|context)|max(imum)?_?(seq|input|token)"
)
# Ollama's way to fail for a text that its model has no number for.
_NOT_A_NUMBER = r"unsupported value: (NaN|[+-]?Inf)"
_NO_MODEL = r"(?i)model|deployment"


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """What is known of a server before it is asked."""

    role: Role
    provider: str
    model: str
    address: Address | None
    timeout: float
    # Said when the settings do not suffice to ask at all.
    problem: str = ""
    remedy: str = ""
    # Said when nothing answers, and when the model is not there.
    start: str = "check your connection"
    missing: str = ""
    given_key: str = field(default="", repr=False)
    key_variables: tuple[str, ...] = ()
    key_header: str = ""  # a header of its own, instead of `Authorization: Bearer`
    needs_key: bool = False
    asks_keyring: bool = True
    keyed: bool = True  # whether a key may be sent at all

    def __str__(self) -> str:
        return f"{self.provider} at {self.address}" if self.address else self.provider

    @property
    def name(self) -> str:
        """Provider and model; where nobody named one, the address stands for it."""
        return f"{self.provider}/{self.model or self.address or 'default'}"

    def error(self, message: str, hint: str = "") -> ProviderError:
        return _ERRORS[self.role](message, hint)


class Rejected(Exception):
    """The server works, and does not take this request."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status
        self.said = said

    @property
    def too_long(self) -> bool:
        return self.status == 413 or bool(re.search(_TOO_LONG, self.said))


class Server:
    """Asks one service. Safe to use from several threads."""

    def __init__(self, service: ServerSpec) -> None:
        self.service = service
        self._breaker = Breaker(service.role, str(service.address), service.model)
        self._lock = threading.Lock()
        self._client: Client | None = None
        self._key: str | None = None

    def post(
        self,
        path: str,
        body: Mapping[str, object],
        *,
        seconds: float | None = None,
        attempts: int = ATTEMPTS,
        most_bytes: int = MOST_BYTES,
        insists: bool = False,
    ) -> object:
        """The JSON value that the server answers with.

        Raises Rejected when it does not take this request, and the role's error for everything else. All attempts
        together take no longer than `seconds`, nor than the settings allow. Whoever `insists`, since a person asked for
        just that, reaches a server that is being left alone, too.
        """
        service = self.service
        if service.address is None:
            raise service.error(service.problem, service.remedy)
        seconds = service.timeout if seconds is None else min(max(seconds, 0.01), service.timeout)
        outage = self._breaker.admit(seconds, insists=insists)
        if outage is not None:  # nothing has been imported yet, nor has the network been touched
            raise self._left_alone(outage)
        request = Request("POST", service.address.at(path), self._headers(service.address), _encoded(body))
        try:
            answer = self._ask(request, service.address, seconds, attempts, most_bytes)
        except RequestFailed as failure:
            what, hint = self._words(failure, seconds)
            message = f"{service} {what}"
            if isinstance(failure, Unreachable):
                message = f"nothing answers at {service.address} ({failure.why})"
            if failure.down:
                self._breaker.failed(what, hint)
            else:
                self._breaker.succeeded()
            raise service.error(message, hint) from None
        except (Rejected, ProviderError):
            self._breaker.succeeded()
            raise
        self._breaker.succeeded()
        return answer

    def trouble(self) -> str:
        """Why a question would not even be sent now; nothing when it would. Nobody is asked for that."""
        try:
            if self.service.address is None:
                raise self.service.error(self.service.problem, self.service.remedy)
            self.check()
            self._headers(self.service.address)
        except ProviderError as error:
            return str(error)
        return ""

    @property
    def left_alone(self) -> bool:
        return self._breaker.outage() is not None

    def check(self) -> None:
        """Raise what `post` would, if the server is being left alone: before somebody prepares what to ask it."""
        outage = self._breaker.outage()
        if outage is not None:
            raise self._left_alone(outage)

    def _left_alone(self, outage: Outage) -> ProviderError:
        again = f"tried again in {self._breaker.left(outage)} seconds"
        return self.service.error(
            f"{self.service} has failed {outage.failures} times, last: {outage.last}",
            f"{again}; {outage.hint}" if outage.hint else again,
        )

    def refusal(self, rejected: Rejected) -> ProviderError:
        """The error for a request that cannot be put in a way the server takes."""
        hint = f"check {self.service.role}.model and {self.service.role}.url"
        if re.search(r"no such model|no models? loaded|model .{0,80}(not found|does not exist)", rejected.said, re.I):
            return self._missing(rejected.said)
        return self.service.error(f"{self.service} refuses the request ({rejected.status}: {rejected.said})", hint)

    def nonsense(self, what: str, hint: str = "") -> ProviderError:
        """The error for an answer that is JSON, but not one that was asked for."""
        return self.service.error(f"{self.service} {what}", hint or f"check {self.service.role}.url and its model")

    # ── asking ────────────────────────────────────────────────────────────────────────────────────────────────

    def _ask(self, request: Request, address: Address, seconds: float, attempts: int, most_bytes: int) -> object:
        client = self._connected(address)
        deadline = monotonic() + seconds
        for attempt in range(attempts):
            try:
                return self._judged(client.send(request, deadline - monotonic(), most_bytes))
            except RequestFailed as failure:
                from random import uniform  # only who waits needs it

                wait = failure.wait or min(_FIRST_WAIT * 2**attempt, _LONGEST_WAIT) * uniform(0.5, 1)
                if not failure.again or attempt + 1 == attempts or monotonic() + wait >= deadline:
                    raise
            sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def _judged(self, reply: Reply) -> object:
        """The answer's value, or what its status means."""
        status = reply.status
        if 200 <= status < 300:
            return self._meant_well(parse_json(reply.body), reply)
        said = self._said(reply.body)
        if status in (400, 413, 422) or (
            status >= 500 and (re.search(_TOO_LONG, said) or re.search(_NOT_A_NUMBER, said))
        ):
            raise Rejected(status, said)
        if status in (401, 403):
            raise self._key_refused(status)
        if status == 404:
            if re.search(_NO_MODEL, said):
                raise self._missing(said)
            raise self.service.error(
                f"{self.service} does not know this address (404)", f"check {self.service.role}.url"
            )
        if status == 407:
            raise RequestFailed("cannot be reached: the proxy wants a login (407)", "put it into HTTPS_PROXY")
        if status == 429:
            wait = _retry_after(reply)
            raise RequestFailed(
                "gets too many requests (429)",
                f"try again in {wait:.0f} s" if wait >= 1 else "try again later",
                again=True,
                wait=wait,
                down=False,
            )
        if status >= 500 or status == 408:
            raise RequestFailed(f"failed ({status}: {said})", "look into its log", again=True, wait=_retry_after(reply))
        raise self.service.error(f"{self.service} answers with status {status} ({said})", "check its address")

    def _meant_well(self, answer: object, reply: Reply) -> object:
        """The answer; some servers say that all is well and then that it is not."""
        if isinstance(answer, Mapping) and (answer.get("error") or answer.get("success") is False):
            raise self.nonsense(f"answers with an error ({self._said(reply.body)})")
        return answer

    def _connected(self, address: Address) -> Client:
        with self._lock:
            if self._client is None:
                self._client = client = Client(address)
                weakref.finalize(self, _close, client)
            return self._client

    # ── keys ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _headers(self, address: Address) -> dict[str, str]:
        headers = {"content-type": "application/json", "accept": "application/json", "user-agent": "mindex"}
        service = self.service
        if self._key is None:
            self._key = self._found_key()
        key, flaw = self._key, flaw_of(self._key)
        if flaw:
            raise service.error(f"the key for {service.provider} holds {flaw}", f"set it again without: {self._ways}")
        if not key and service.needs_key:
            raise service.error(f"{service} wants a key, and there is none", f"set {self._ways}")
        if key and service.key_header:
            headers[service.key_header] = key
        elif key:
            headers["authorization"] = f"Bearer {key}"
        elif address.basic:
            headers["authorization"] = address.basic
        return headers

    def _found_key(self) -> str:
        service = self.service
        if not service.keyed:
            return ""
        return find_key(service.role, service.given_key, service.key_variables, keyring=service.asks_keyring)

    @property
    def _ways(self) -> str:
        """Where a key may stand."""
        role = self.service.role
        if not self.service.keyed:
            return f"{role}.url to {self.service.address}: keys go to no address that the settings do not name"
        variables = [f"MINDEX_{role.upper()}_API_KEY", *self.service.key_variables]
        kept = keyring_way(role) if self.service.asks_keyring else ""
        return f"{' or '.join(variables)} in the environment{kept}"

    # ── words ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _words(self, failure: RequestFailed, seconds: float) -> tuple[str, str]:
        """What it did, to follow its name, and what to do about it."""
        service = self.service
        if isinstance(failure, TimedOut):
            what = f"did not answer within {seconds:.3g} s"
            if seconds < _NEARLY * service.timeout:  # whoever asked waits no longer, whatever the settings say
                return what, "see whether it hangs or is too slow: this question waits no longer for it"
            return what, f"see whether it hangs, or raise {service.role}.timeout"
        if isinstance(failure, Unreachable):
            return f"could not be reached ({failure.why})", service.start
        return failure.why, failure.hint or f"check {service.role}.url"

    def _key_refused(self, status: int) -> ProviderError:
        # What the server says of a key may hold parts of it.
        if not self._key:
            return self.service.error(f"{self.service} wants a key ({status})", f"set {self._ways}")
        return self.service.error(f"{self.service} refuses the key ({status})", f"check {self._ways}")

    def _missing(self, said: str) -> ProviderError:
        service = self.service
        return service.error(
            f"{service} has no model '{service.model}' ({said})", service.missing or f"check {service.role}.model"
        )

    def _said(self, body: bytes) -> str:
        """The server's own words for what went wrong: one line, short, without our secrets."""
        text = _error_text(body)
        for secret in (self._key, *(self.service.address.secrets if self.service.address else ())):
            text = text.replace(secret, "…") if secret else text
        text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return text if len(text) <= 200 else f"{text[:199]}…"


def _close(client: Client) -> None:
    with suppress(Exception):  # a request may still be under way; nobody is left to be told
        client.close()


def _encoded(body: Mapping[str, object]) -> bytes:
    return json.dumps(body, allow_nan=False).encode()


def _error_text(body: bytes) -> str:
    """OpenAI, Azure: {error: {message}}; Ollama: {error}; Cloudflare: {errors: [{message}]}; others: {detail}."""
    try:
        found: object = json.loads(body)
    except (ValueError, RecursionError):
        text = body[:2000].decode("utf-8", "replace").strip()
        return "a web page" if text.startswith("<") else text
    for _ in range(4):
        if isinstance(found, Mapping):
            found = next(
                (found[name] for name in ("error", "errors", "message", "detail", "code") if found.get(name)), ""
            )
        elif isinstance(found, list):
            found = found[0] if found else ""
    return found if isinstance(found, str) else json.dumps(found)


def _retry_after(reply: Reply) -> float:
    """What `Retry-After` asks for, in seconds or as a date; 0 when it asks for nothing that makes sense."""
    asked = reply.headers.get("retry-after", "").strip()
    if asked.replace(".", "", 1).isdigit() and asked.isascii():
        return float(asked)
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(asked).timestamp() - time())
    except (ValueError, TypeError, OverflowError):
        return 0.0
