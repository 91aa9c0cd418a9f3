"""Embedding spaces: which one a memory is searched in, which one is being filled, and how each is made again."""

from __future__ import annotations

from mindex.model.records import Model
from mindex.values import dataclass


@dataclass(frozen=True, slots=True)
class EmbedderSpec:
    """How an embedder is made again, in the words of the settings. A key is never among them."""

    provider: str
    model: str = ""
    url: str = ""
    dimensions: int = 0  # that were asked for; 0: the model's own


@dataclass(frozen=True, slots=True)
class Space:
    """One embedding space that a database holds vectors of. At most one is searched, at most one being filled."""

    model: Model
    embedder_spec: EmbedderSpec
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
    return visible(model_title(model.provider, model.name))


def model_title(provider: str, model: str) -> str:
    """What people call a provider's model, if one is named; a path keeps its own slashes."""
    joint = " " if model.startswith(("/", "~", ".", "\\")) else "/"
    return f"{provider}{joint}{model}" if model else provider


def visible(text: str) -> str:
    """What a file says of a model, as a terminal may be given it: nothing that would move its cursor."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
