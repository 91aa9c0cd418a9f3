"""A model on a server: one circuit breaker, retries within a deadline, and an error message for every failure."""

import json
import re
import threading
import weakref
from collections.abc import Mapping
from dataclasses import field
from time import monotonic, sleep, time
from typing import Protocol

from mindex.datatypes import Role
from mindex.errors import ProviderError
from mindex.foreign_text import quotation
from mindex.providers.addresses import Address
from mindex.providers.base import ERRORS
from mindex.providers.breaker import Breaker, Outage
from mindex.providers.http import MEGABYTE, Client, Reply, Request, RequestFailed, TimedOut, Unreachable, parse_json
from mindex.providers.keys import can_ask_identity, find_key, find_token, flaw_of, keyring_way
from mindex.values import dataclass

_ATTEMPTS = 4
_MAX_BYTES = 32 * MEGABYTE
_MIN_SECONDS = 0.05
_FIRST_WAIT = 0.25
_LONGEST_WAIT = 8.0
# The share of the configured time-out that a request had when its time-out counts as the configured one.
_NEARLY = 0.95
# Patterns are compiled when a server has answered: while the breaker is open, no time is spent on that.
_TOO_LONG = (
    r"(?i)too (long|large|many (input )?tokens)|(context|input|sequence|prompt|token)[ _-]?(length|limit|window|size)"
    r"|maximum (context|number of tokens|input)|exceeds? .{0,40}(token|length|context)|max(imum)?_?(seq|input|token)"
)
# Ollama's error for a text to which its model gives no finite number.
_NOT_A_NUMBER = r"unsupported value: (NaN|[+-]?Inf)"
_NO_MODEL = r"(?i)model|deployment"


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """What is known of a server before it is called."""

    role: Role
    provider: str
    model: str
    address: Address | None
    timeout: float
    # The error's message and hint when the settings do not suffice to send a request at all.
    problem: str = ""
    remedy: str = ""
    # Hints for when nothing answers, and for when the model is missing.
    start: str = "check your connection"
    missing: str = ""
    title: str = ""  # what messages call the model, instead of its name and server
    given_key: str = field(default="", repr=False)
    key_variables: tuple[str, ...] = ()
    key_header: str = ""  # a separate header, instead of `Authorization: Bearer`
    identity: str = ""  # the scope of the Entra identity that serves instead of a key
    needs_key: bool = False
    asks_keyring: bool = True
    keyed: bool = True  # whether a key may be sent at all

    def __str__(self) -> str:
        return f"{self.provider} at {self.address}" if self.address else self.provider

    @property
    def name(self) -> str:
        """Provider and model; the address if no model is named."""
        return f"{self.provider}/{self.model or self.address or 'default'}"

    @property
    def model_title(self) -> str:
        """The model as messages name it."""
        return self.title or f"{self.model or 'the model'} of {self}"

    def error(self, message: str, hint: str = "") -> ProviderError:
        return ERRORS[self.role](message, hint)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may take; all its attempts together have until the deadline, or the configured time-out."""

    deadline: float | None = None  # by `time.monotonic`
    attempts: int = _ATTEMPTS
    max_bytes: int = _MAX_BYTES
    # For a call that a person requested: it also reaches a server that is down, and waits for a model that is loading.
    insists: bool = False

    def seconds(self, timeout: float) -> float:
        """Return how long the request may take from now on."""
        return timeout if self.deadline is None else min(max(self.deadline - monotonic(), _MIN_SECONDS), timeout)


DEFAULT_LIMITS = Limits()


class Rejected(Exception):
    """The server works, and refuses this request. `reason` is its own explanation."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason

    @property
    def too_long(self) -> bool:
        return self.status == 413 or bool(re.search(_TOO_LONG, self.reason))


class ModelServer(Protocol):
    """A server that runs one model: `Server` across the network, or `LlamaServer` as a child process."""

    @property
    def spec(self) -> ServerSpec: ...

    @property
    def is_down(self) -> bool:
        """Whether it is known not to answer now: its breaker is open, or its process does not run."""

    def post(self, path: str, body: Mapping[str, object], limits: Limits = DEFAULT_LIMITS) -> object:
        """Return the JSON value that the server answers with.

        Raises Rejected when it refuses this request, and the role's error for everything else.
        """

    def check(self) -> None:
        """Raise what `post` would because of an open breaker: before a caller prepares a request. Takes no time."""

    def trouble(self) -> str:
        """Return why a request would not even be sent now; empty when it would. Sends nothing."""

    def refusal(self, rejected: Rejected) -> ProviderError:
        """Return the error for a request that cannot be put in a way the server takes."""

    def invalid_answer(self, what: str, hint: str = "") -> ProviderError:
        """Return the error for an answer that is JSON, but not of the expected form."""


class Server:
    """A ModelServer across the network. Safe to use from several threads."""

    def __init__(self, spec: ServerSpec) -> None:
        self.spec = spec
        self._breaker = Breaker(spec.role, str(spec.address), spec.model)
        self._lock = threading.Lock()
        self._client: Client | None = None
        self._key: str | None = None

    def post(self, path: str, body: Mapping[str, object], limits: Limits = DEFAULT_LIMITS) -> object:
        spec, address = self.spec, self._address()
        seconds = limits.seconds(spec.timeout)
        outage = self._breaker.admit(seconds, insists=limits.insists)
        if outage is not None:  # nothing has been imported yet, and nothing sent
            raise self._outage_error(outage)
        content = json.dumps(body, allow_nan=False).encode()
        request = Request("POST", address.at(path), self._headers(address), content)
        try:
            answer = self._send(request, address, seconds, limits)
        except RequestFailed as failure:
            what, hint = self._failure_text(failure, seconds)
            message = f"{spec} {what}"
            if isinstance(failure, Unreachable):
                message = f"nothing answers at {address} ({failure.why})"
            if failure.down:
                self._breaker.failed(what, hint)
            else:
                self._breaker.succeeded()
            raise spec.error(message, hint) from None
        except (Rejected, ProviderError):
            self._breaker.succeeded()
            raise
        self._breaker.succeeded()
        return answer

    def trouble(self) -> str:
        try:
            address = self._address()
            self.check()
            self._headers(address, sends=False)
        except ProviderError as error:
            return str(error)
        return ""

    @property
    def is_down(self) -> bool:
        return self._breaker.outage() is not None

    def check(self) -> None:
        outage = self._breaker.outage()
        if outage is not None:
            raise self._outage_error(outage)

    def _address(self) -> Address:
        if self.spec.address is None:
            raise self.spec.error(self.spec.problem, self.spec.remedy)
        return self.spec.address

    def _outage_error(self, outage: Outage) -> ProviderError:
        message = f"{self.spec} has failed {outage.failures} times, last: {outage.last}"
        again = f"tried again in {self._breaker.left(outage)} seconds"
        return self.spec.error(message, f"{again}; {outage.hint}" if outage.hint else again)

    def refusal(self, rejected: Rejected) -> ProviderError:
        hint = f"check {self.spec.role}.model and {self.spec.role}.url"
        if re.search(r"no such model|no models? loaded|model .{0,80}(not found|does not exist)", rejected.reason, re.I):
            return self._missing_model(rejected.reason)
        return self.spec.error(f"{self.spec} refuses the request ({rejected.status}: {rejected.reason})", hint)

    def invalid_answer(self, what: str, hint: str = "") -> ProviderError:
        return self.spec.error(f"{self.spec} {what}", hint or f"check {self.spec.role}.url and its model")

    # ── sending ────────────────────────────────────────────────────────────────────────────────────────────────

    def _send(self, request: Request, address: Address, seconds: float, limits: Limits) -> object:
        client = self._client_for(address)
        deadline = monotonic() + seconds
        for attempt in range(limits.attempts):
            try:
                return self._value_of(client.send(request, deadline - monotonic(), limits.max_bytes))
            except RequestFailed as failure:
                from random import uniform  # 4 ms to import, and only a retry needs it

                wait = failure.wait or min(_FIRST_WAIT * 2**attempt, _LONGEST_WAIT) * uniform(0.5, 1)
                if not failure.again or attempt + 1 == limits.attempts or monotonic() + wait >= deadline:
                    raise
            sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def _value_of(self, reply: Reply) -> object:
        """Return the reply's JSON value, or raise what its status means."""
        status = reply.status
        if 200 <= status < 300:
            answer = parse_json(reply.body)
            # Some servers report an error under a status of success.
            if isinstance(answer, Mapping) and (answer.get("error") or answer.get("success") is False):
                raise self.invalid_answer(f"answers with an error ({self._server_message(reply.body)})")
            return answer
        reason = self._server_message(reply.body)
        if status in (400, 413, 422) or (status >= 500 and re.search(f"{_TOO_LONG}|{_NOT_A_NUMBER}", reason)):
            raise Rejected(status, reason)
        if status in (401, 403):
            raise self._key_refused(status)
        if status == 404:
            if re.search(_NO_MODEL, reason):
                raise self._missing_model(reason)
            raise self.spec.error(f"{self.spec} does not know this address (404)", f"check {self.spec.role}.url")
        if status == 407:
            raise RequestFailed("cannot be reached: the proxy wants a login (407)", "put it into HTTPS_PROXY")
        wait = _retry_after(reply)
        if status == 429:
            hint = f"try again in {wait:.0f} s" if wait >= 1 else "try again later"
            raise RequestFailed("gets too many requests (429)", hint, again=True, wait=wait, down=False)
        if status >= 500 or status == 408:
            raise RequestFailed(f"failed ({status}: {reason})", "look into its log", again=True, wait=wait)
        raise self.spec.error(f"{self.spec} answers with status {status} ({reason})", "check its address")

    def _client_for(self, address: Address) -> Client:
        with self._lock:
            if self._client is None:
                self._client = Client(address)
                weakref.finalize(self, self._client.close)
            return self._client

    # ── keys ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _headers(self, address: Address, *, sends: bool = True) -> dict[str, str]:
        """Return the headers of a request. Without `sends` no identity is asked for: one that may exist suffices."""
        headers = {"content-type": "application/json", "accept": "application/json", "user-agent": "mindex"}
        spec = self.spec
        if self._key is None:
            keyring = spec.asks_keyring
            self._key = find_key(spec.role, spec.given_key, spec.key_variables, keyring=keyring) if spec.keyed else ""
        key, flaw = self._key, flaw_of(self._key)
        if flaw:
            raise spec.error(f"the key for {spec.provider} holds {flaw}", f"set it again without: {self._key_places}")
        if not key and spec.needs_key and spec.keyed and spec.identity:
            token = find_token(spec.identity) if sends else can_ask_identity() and "any"
            if token:
                return {**headers, "authorization": f"Bearer {token}"}
        if not key and spec.needs_key:
            raise spec.error(f"{spec} wants a key, and there is none", f"set {self._key_places}")
        if key and spec.key_header:
            headers[spec.key_header] = key
        elif key:
            headers["authorization"] = f"Bearer {key}"
        elif address.basic:
            headers["authorization"] = address.basic
        return headers

    @property
    def _key_places(self) -> str:
        """Return where the user may put a key, as a hint says it."""
        role = self.spec.role
        if not self.spec.keyed:
            return f"{role}.url to {self.spec.address}: keys go to no address that the settings do not name"
        variables = [f"MINDEX_{role.upper()}_API_KEY", *self.spec.key_variables]
        keyring = keyring_way(role) if self.spec.asks_keyring else ""
        identity = ", or sign in with an Entra identity (`az login`, mindex[azure])" if self.spec.identity else ""
        return f"{' or '.join(variables)} in the environment{keyring}{identity}"

    # ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _failure_text(self, failure: RequestFailed, seconds: float) -> tuple[str, str]:
        """Return what the server did, to follow its name, and what to do about it."""
        spec = self.spec
        if isinstance(failure, TimedOut):
            what = f"did not answer within {seconds:.3g} s"
            if seconds < _NEARLY * spec.timeout:  # the caller waits no longer, even if the settings allow it
                return what, "see whether it hangs or is too slow: this question waits no longer for it"
            return what, f"see whether it hangs, or raise {spec.role}.timeout"
        if isinstance(failure, Unreachable):
            return f"could not be reached ({failure.why})", spec.start
        return failure.why, failure.hint or f"check {spec.role}.url"

    def _key_refused(self, status: int) -> ProviderError:
        # The server's own message may hold parts of the key.
        if not self._key:
            return self.spec.error(f"{self.spec} wants a key ({status})", f"set {self._key_places}")
        return self.spec.error(f"{self.spec} refuses the key ({status})", f"check {self._key_places}")

    def _missing_model(self, reason: str) -> ProviderError:
        spec = self.spec
        return spec.error(f"{spec} has no model '{spec.model}' ({reason})", spec.missing or f"check {spec.role}.model")

    def _server_message(self, body: bytes) -> str:
        """Return the server's own explanation: a short quotation without our secrets."""
        text = error_text(body)
        for secret in (self._key, *(self.spec.address.secrets if self.spec.address else ())):
            text = text.replace(secret, "…") if secret else text
        return quotation(text)


def error_text(body: bytes) -> str:
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
    """Return the seconds that `Retry-After` names, as a number or a date; 0 for anything else."""
    wanted = reply.headers.get("retry-after", "").strip()
    if wanted.replace(".", "", 1).isdigit() and wanted.isascii():
        return float(wanted)
    from email.utils import parsedate_to_datetime  # 27 ms to import, and only a date needs it

    try:
        return max(0.0, parsedate_to_datetime(wanted).timestamp() - time())
    except (ValueError, TypeError, OverflowError):
        return 0.0
