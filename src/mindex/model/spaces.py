"""Embedding spaces: which one a memory is searched in, which one is being filled, and what is known of models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from mindex.model.kept import Model

Role: TypeAlias = Literal["embedding", "rerank", "generation"]


@dataclass(frozen=True, slots=True)
class Made:
    """How an embedder is made again, in the words of the settings. A key is never among them."""

    provider: str
    model: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class Space:
    """One embedding space that a database holds vectors of. At most one is searched, at most one being filled."""

    model: Model
    made: Made
    vectors: int = 0  # records that have theirs
    active: bool = False
    next: bool = False

    @property
    def fingerprint(self) -> str:
        return self.model.fingerprint

    @property
    def name(self) -> str:
        return space_name(self.model)


def space_name(model: Model) -> str:
    """What people call a space."""
    return f"{model.provider}/{model.name}"


@dataclass(frozen=True, slots=True)
class Reembedding:
    """A change of model that is not finished: so many of so many records have their new vectors."""

    to: str
    done: int
    total: int

    @property
    def percent(self) -> int:
        return 100 * self.done // self.total if self.total else 100


@dataclass(frozen=True, slots=True)
class Reembedded:
    """What a change of model did, or, rehearsed, what it would do."""

    source: str  # '' where nothing was embedded before
    target: str
    embedded: int
    remaining: int
    seconds: float
    notes: tuple[str, ...] = ()
    rehearsed: bool = False
    pieces: int = 0  # of a rehearsal: texts that the model would be given


@dataclass(frozen=True, slots=True)
class KnownModel:
    """One line of `mindex models`: a ready-made model, what is configured, or a space of this database."""

    name: str
    role: Role
    provider: str
    dimensions: int = 0
    megabytes: float = 0.0
    licence: str = ""
    installed: bool = True
    install: str = ""  # the line that gets it
    configured: bool = False
    active: bool = False
    next: bool = False
    vectors: int | None = None  # records of this database that have theirs; None where it holds none of its space
    speed: Mapping[str, float] = field(default_factory=dict)  # milliseconds: `text` of 250 tokens, `query`, `pair`
    trouble: str = ""  # why it could not be measured
