"""Embedding spaces: the one that is searched, the one that is being filled, and how the embedder of each is made."""

from mindex.datatypes.vectors import Model
from mindex.values import dataclass


@dataclass(frozen=True, slots=True)
class EmbedderSpec:
    """How an embedder is made again, as the settings would say it. Never holds an API key."""

    provider: str
    model: str = ""
    url: str = ""
    dimensions: int = 0  # the requested ones; 0: the model's own


@dataclass(frozen=True, slots=True)
class Space:
    """One embedding space of a store. At most one is active (searched), at most one is next (being filled)."""

    model: Model
    embedder_spec: EmbedderSpec
    vectors: int = 0  # records that have vectors in it
    active: bool = False
    next: bool = False

    @property
    def fingerprint(self) -> str:
        return self.model.fingerprint

    @property
    def name(self) -> str:
        return space_name(self.model)


def space_name(model: Model) -> str:
    """The name of a space in outputs."""
    return visible(model_title(model.provider, model.name))


def model_title(provider: str, model: str) -> str:
    """`provider/model`, or the provider alone; a model that is a path follows a blank."""
    joint = " " if model.startswith(("/", "~", ".", "\\")) else "/"
    return f"{provider}{joint}{model}" if model else provider


def visible(text: str) -> str:
    """The text with its control characters replaced: a name out of a file must not move the cursor of a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
