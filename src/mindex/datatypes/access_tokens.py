"""Access tokens of a server, and the rights that one gives to the client that presents it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from mindex.values import dataclass

# What a token may do: read and write, only read, or only fetch the server's metrics.
Rights: TypeAlias = Literal["write", "read", "metrics"]
ALL_AGENTS = "*"
# Of the agent of an OAuth login whose name an access token has.
LOGIN_PREFIX = "login:"


@dataclass(frozen=True, slots=True)
class Principal:
    """On whose behalf a request is made: the agent it acts as, what it may do, and whose files it sees.

    With the agent `*` the entries of all agents are seen, and the caller names the agent of an entry that it adds.
    Without `collections` the files of all are seen. The owner of the server has every right, and acts as the agent of
    the settings.
    """

    name: str
    agent: str = ALL_AGENTS
    rights: Rights = "write"
    collections: tuple[str, ...] = ()
    is_owner: bool = False

    @property
    def may_write(self) -> bool:
        return self.rights == "write"

    @property
    def is_unlimited(self) -> bool:
        return self.agent == ALL_AGENTS and self.may_write and not self.collections


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is stored: never the token itself, but its SHA-256 in hexadecimal."""

    name: str
    hash: str
    agent: str
    rights: Rights = "write"
    collections: tuple[str, ...] = ()
    created_at: int = 0
    expires_at: int | None = None

    @property
    def principal(self) -> Principal:
        return Principal(self.name, self.agent, self.rights, self.collections)
