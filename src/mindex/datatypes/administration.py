"""Values of `mindex admin`: what an administrator did to a shared database, and who may see what in it."""

from typing import Literal

from mindex.values import dataclass

GrantKind = Literal["agent", "collection"]


@dataclass(frozen=True, slots=True)
class SetupStep:
    """One statement of `mindex admin init`, and whether it was run, or was not needed."""

    purpose: str
    statement: str
    outcome: Literal["", "done", "there already"] = ""


@dataclass(frozen=True, slots=True)
class Setup:
    """All that a shared database needs of an administrator."""

    db: str
    steps: tuple[SetupStep, ...]
    ran: bool


@dataclass(frozen=True, slots=True)
class Grant:
    """That a login may see, and unless it is read-only write, one agent's entries or one collection's files."""

    login: str
    scope: GrantKind
    name: str
    read_only: bool = False

    def __str__(self) -> str:
        return f"{self.scope} {self.name}{' (read-only)' if self.read_only else ''}"


@dataclass(frozen=True, slots=True)
class Grants:
    """The grants of a database, or those of one login after a change; `notes` say what else follows."""

    grants: tuple[Grant, ...]
    row_security: bool
    notes: tuple[str, ...] = ()
    login: str = ""  # whose grants these are; '' for those of all


@dataclass(frozen=True, slots=True)
class Distribution:
    """How the tables were spread over the machines of a Citus cluster."""

    distributed: tuple[str, ...]  # by their owner: an agent or a collection
    reference: tuple[str, ...]  # whole on every machine
    machines: int
