"""What `mindex install` and `mindex setup` report of the agents of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from mindex.datatypes.reports import IndexReport
from mindex.datatypes.results import Answer
from mindex.datatypes.transfer import ImportReport
from mindex.values import dataclass

SettingsPlace = Literal["user", "project"]
# `absent`: there was nothing to undo. `refused`: the file was not touched, `reason` says why.
Outcome = Literal["installed", "updated", "unchanged", "removed", "restored", "absent", "refused", "shown"]


@dataclass(frozen=True, slots=True)
class InstallResult:
    """What happened, or would happen, to the configuration of one agent."""

    agent: str
    title: str
    scope: SettingsPlace
    path: str
    outcome: Outcome
    reason: str = ""
    snippet: str = ""  # what to paste, where the file was not changed
    diff: str = ""  # what would change, in a dry run
    backup: str = ""
    next_step: str = ""  # how the agent takes notice


@dataclass(frozen=True, slots=True)
class InstallReport:
    """What happened to each agent that was named."""

    results: tuple[InstallResult, ...]
    command: tuple[str, ...] = ()  # that starts the server; empty after an undo
    agent_name: str = ""  # the scope of memories that the entry names; empty: none
    dry_run: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClientStatus:
    """Whether an agent is on this machine, and whether mindex is in its configuration."""

    agent: str
    title: str
    found: str  # what shows that the agent is here; empty: nothing does
    scope: SettingsPlace
    path: str
    state: Literal["installed", "absent", "broken"]
    command: tuple[str, ...] = ()  # of the entry
    starts: bool | None = None  # None: there is no entry, or its command is not tried
    reason: str = ""  # why it does not start, or cannot be read


@dataclass(frozen=True, slots=True)
class AgentList:
    """All agents that mindex knows, as `mindex install --list` shows them."""

    agents: tuple[ClientStatus, ...]


@dataclass(frozen=True, slots=True)
class SetupReport:
    """What `mindex setup` did, and the commands that take it back."""

    install: InstallReport | None  # None: no agent was chosen
    index: IndexReport | None  # None: no folder was chosen
    answer: Answer | None  # to the question; None: nothing was asked
    undo: tuple[str, ...]
    notes: tuple[str, ...] = ()
    several_collections: bool = False  # so that a path alone does not say which file it is
    ready_agents: tuple[str, ...] = ()  # mindex was in them before, as it would be installed
    ready_folders: Mapping[str, str] = field(default_factory=dict)  # indexed before: collection → root
    imports: Mapping[str, ImportReport] = field(default_factory=dict)  # path → what was imported from it
