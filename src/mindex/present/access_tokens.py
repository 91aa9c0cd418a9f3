"""Tokens of a server as text and JSON: what they give the right to, and, of a new one, the token itself."""

from collections.abc import Sequence

from mindex.clock import to_iso
from mindex.datatypes.access_tokens import ALL_AGENTS, Token
from mindex.present.text import aligned
from mindex.present.to_json import Json

_RIGHTS = {"write": "reads and writes", "read": "reads only", "metrics": "reads the metrics only"}


def new_token_text(secret: str, token: Token) -> str:
    """The token on the first line, so that a script can take it; then what it is for."""
    if token.rights == "metrics":
        acts = f"{token.name}: {_RIGHTS['metrics']}, {_expiry(token)}"
    else:
        whom = "sees every agent" if token.agent == ALL_AGENTS else f"acts as the agent {token.agent}"
        files = f"sees the files of {_files(token)}" if token.collections else "sees all files"
        acts = f"{token.name}: {whom}, {_RIGHTS[token.rights]}, {files}, {_expiry(token)}"
    return f"{secret}\n{acts}\nnote: this is the only time that it is shown; only its hash is stored"


def new_token_json(secret: str, token: Token) -> dict[str, Json]:
    return {"token": secret, **_token_json(token)}


def tokens_text(tokens: Sequence[Token], now: int) -> str:
    if not tokens:
        return "no tokens but the owner's; `mindex token add NAME` makes one"
    rows = [["name", "agent", "rights", "files", "created", "expires"]]
    for one in tokens:
        expires = "never" if one.expires_at is None else to_iso(one.expires_at)
        expired = " (EXPIRED)" if _has_expired(one, now) else ""
        whose = ["–", "–"] if one.rights == "metrics" else [one.agent, _files(one)]
        rows.append([one.name, whose[0], one.rights, whose[1], to_iso(one.created_at), expires + expired])
    return "\n".join(aligned(rows))


def tokens_json(tokens: Sequence[Token], now: int) -> dict[str, Json]:
    return {"tokens": [{**_token_json(one), "expired": _has_expired(one, now)} for one in tokens]}


def _token_json(token: Token) -> dict[str, Json]:
    """A token without its hash, which no reader can use."""
    return {
        "name": token.name,
        "agent": None if token.rights == "metrics" else token.agent,
        "rights": token.rights,
        "collections": list(token.collections),
        "created_at": to_iso(token.created_at),
        "expires_at": None if token.expires_at is None else to_iso(token.expires_at),
    }


def _has_expired(token: Token, now: int) -> bool:
    return token.expires_at is not None and token.expires_at <= now


def _files(token: Token) -> str:
    return ", ".join(token.collections) or "all"


def _expiry(token: Token) -> str:
    return "until it is revoked" if token.expires_at is None else f"until {to_iso(token.expires_at)}"
