"""Tokens: who may reach a memory through a server, as which agent, and what a presented token gives the right to.

The owner's token is in a file that only the owner can read, beside the database; all others are stored as hashes. A
token has 256 random bits, so its SHA-256 cannot be turned back, and looking one up by its hash tells nothing by its
duration.
"""

import contextlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from mindex.clock import now_ms, to_iso
from mindex.config import Settings
from mindex.datatypes.access_tokens import ALL_AGENTS, LOGIN_PREFIX, Principal, Rights, Token
from mindex.errors import AccessDeniedError, AuthenticationError, NotFoundError, StoreError, UsageError
from mindex.ids import short_hash
from mindex.limits import MAX_NAME
from mindex.private_files import make_private_folder
from mindex.setting_values import Value
from mindex.store.base import Store
from mindex.temporary_files import temporary_file
from mindex.times.typed import parse_expiry
from mindex.values import dataclass

PREFIX = "mdx_"
OWNER = Principal("owner", is_owner=True)
DEFAULT_AGENT = "main"  # of the setting `agent`
_OWNER_FILE = "owner-token"
_RANDOM_BYTES = 32
_LONGEST = 100  # of a presented token; ours have 47 characters
_NAME = re.compile(r"[\w.@+-]{1,64}")


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that was just made: the only time that it can be shown."""

    secret: str
    token: Token


@dataclass(frozen=True, slots=True)
class Tokens:
    """`memory.tokens`: access tokens for `mindex serve --http`."""

    _store: Store
    _folder: Path

    # ── managing ──────────────────────────────────────────────────────────────────────────────────────────────

    def add(
        self,
        name: str,
        *,
        agent: str = "",
        rights: Rights = "write",
        collections: Sequence[str] = (),
        expires: str | int | None = None,
    ) -> NewToken:
        """Create a token for an agent, by default the one with the token's name; `*` sees the entries of all agents.

        Raises UsageError for a name, collection or time that cannot be used, ConflictError for a name that is taken.
        """
        if not _NAME.fullmatch(name):
            raise UsageError(f"'{name}' is not a valid token name", "use 1 to 64 letters, digits and . @ + - _")
        if name == OWNER.name:
            raise UsageError("the server creates the owner's token", "`mindex token show` prints it")
        agent = agent or name
        if len(agent) > MAX_NAME or not agent.strip():
            raise UsageError(
                "this is not a valid agent name",
                f"use at most {MAX_NAME} characters, no secrets, no control characters",
            )
        known = [one.name for one in self._store.files.collections()]
        for collection in collections:
            if collection not in known:
                hint = f"use one of {', '.join(known)}" if known else "index it first, with `mindex index DIR`"
                raise UsageError(f"unknown collection '{collection}'", hint)
        if expires is not None and not str(expires).strip():
            raise UsageError("--expires is empty", "write 12h, 90d or a date, or leave it out")
        expires_at = parse_expiry(expires)
        if expires_at is not None and expires_at <= now_ms():
            raise UsageError(f"--expires {expires} is in the past", "write 30d, or a date in the future")
        secret = _new_secret()
        token = Token(name, _hash(secret), agent, rights, tuple(dict.fromkeys(collections)), now_ms(), expires_at)
        self._store.tokens.add(token)
        return NewToken(secret, token)

    def all(self) -> tuple[Token, ...]:
        """Return all tokens but the owner's, expired ones included, by name."""
        return self._store.tokens.all()

    def revoke(self, name: str) -> None:
        """Remove a token; the next start of a server makes a new one for the owner. Raises NotFoundError."""
        if name == OWNER.name:
            try:
                self._owner_file.unlink()
            except FileNotFoundError:
                raise NotFoundError("there is no owner's token", "`mindex serve --http` creates one") from None
        elif not self._store.tokens.remove(name):
            raise NotFoundError(f"there is no token '{name}'", "`mindex token list` shows all names")

    # ── the owner's token ─────────────────────────────────────────────────────────────────────────────────────

    @property
    def _owner_file(self) -> Path:
        return self._folder / _OWNER_FILE

    def owner_file(self) -> Path:
        """Return the file with the owner's token, and create it if it is missing. Raises StoreError if that fails."""
        path = self._owner_file
        if path.exists():
            return path
        try:
            make_private_folder(path.parent)
            with temporary_file(path) as file:
                file.write(f"{_new_secret()}\n".encode("ascii"))
                file.flush()
                os.fsync(file.fileno())
                with contextlib.suppress(FileExistsError):  # another process was faster: its token counts
                    os.link(file.name, path)
        except OSError as error:
            raise StoreError(
                f"cannot write the owner's token to {path} ({error})", "check the file permissions"
            ) from error
        return path

    def owner_token(self) -> str:
        """Return the owner's token. Raises NotFoundError if there is none, StoreError if other users could read it."""
        path = self._owner_file
        try:
            mode = path.stat().st_mode
            secret = path.read_text(encoding="ascii", errors="replace").strip()
        except FileNotFoundError:
            raise NotFoundError("there is no owner's token yet", "`mindex serve --http 8080` creates it") from None
        except OSError as error:
            raise StoreError(
                f"cannot read the owner's token from {path} ({error})", "check the file permissions"
            ) from error
        remake = "`mindex token revoke owner`, then start the server again"
        if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
            raise StoreError(f"ignoring the token in {path} because other users can read the file", remake)
        if not secret.startswith(PREFIX):
            raise StoreError(f"{path} contains no token", remake)
        return secret

    # ── checking ──────────────────────────────────────────────────────────────────────────────────────────────

    def authenticate(self, secret: str) -> Principal:
        """Return the principal of an access token. Raises AuthenticationError if it is unknown, revoked or expired."""
        hash_ = _hash(secret[:_LONGEST])
        if self._is_owners(hash_):
            return OWNER
        token = self._store.tokens.by_hash(hash_) if "tokens" in self._store.capabilities else None
        if token is None:
            raise AuthenticationError("this token is unknown or was revoked", "ask the server's owner for a new one")
        if token.expires_at is not None and token.expires_at <= now_ms():
            raise AuthenticationError(
                f"this token expired at {to_iso(token.expires_at)}", "ask the server's owner for a new one"
            )
        return token.principal

    def agent_of_login(self, login: str, owners_agent: str) -> str:
        """Return the agent for a login of an authorization server, never the owner's or that of an access token.

        Raises AccessDeniedError for a login with the name of the owner's agent: `owners_agent` or `main`.
        """
        if login in (owners_agent, DEFAULT_AGENT):
            raise AccessDeniedError(
                f"the login '{login}' is refused, because the agent of that name belongs to the server's owner",
                "log in under another name",
            )
        known = self._store.tokens.all() if "tokens" in self._store.capabilities else ()
        taken = {name for token in known for name in (token.name, token.agent)}
        return LOGIN_PREFIX + login if login in taken or login.startswith(LOGIN_PREFIX) else login

    def _is_owners(self, hash_: str) -> bool:
        try:
            return hmac.compare_digest(_hash(self.owner_token()), hash_)
        except (NotFoundError, StoreError):
            return False


def settings_for(principal: Principal, settings: Settings, folder: Path) -> Settings:
    """The settings under which a principal acts: its own agent, and no file that other principals can read."""
    values: dict[str, Value] = {"agent": principal.agent}
    if principal.agent != ALL_AGENTS:
        place = settings.text("export.path")
        exports = Path(place).expanduser() if place else folder / "memory-export"
        values |= {"daily_log.enabled": False, "export.path": str(exports / short_hash("export", principal.agent))}
    return settings.with_values(values, "token")


def _new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)


def _hash(secret: str) -> str:
    return sha256(secret.encode("utf-8", "replace")).hexdigest()
