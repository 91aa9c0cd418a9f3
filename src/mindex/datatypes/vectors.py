"""Models of each role, and the vectors that embedding models make."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from mindex.values import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    VectorArray: TypeAlias = NDArray[np.float32]
else:  # numpy takes longer to import than a search by keyword takes
    VectorArray = Any

Role: TypeAlias = Literal["embedding", "rerank", "generation"]


@dataclass(frozen=True, slots=True)
class Model:
    """An embedding space. Vectors of different fingerprints are never compared."""

    provider: str
    name: str
    dimensions: int
    pooling: str = "mean"
    query_prefix: str = ""
    text_prefix: str = ""
    max_tokens: int = 256
    # Mean and deviation of the cosine of random pairs: the values of unrelated texts.
    background_mean: float = 0.05
    background_std: float = 0.11
    # Of the weights, or what the provider reports of them; '' if it is not known.
    sha256: str = ""
    # Words per word piece at which it reads nothing of a language, and at which it reads it well; and for how many
    # words a Han character counts that is a separate piece.
    unread: float = 0.50
    fluent: float = 0.75
    per_han: float = 0.0
    # Raised when everything is embedded again under the same name: older vectors are not comparable.
    edition: int = 0

    @property
    def fingerprint(self) -> str:
        prefixes = f"{self.query_prefix}|{self.text_prefix}"
        weights = f"@{self.sha256}" if self.sha256 else ""
        edition = f"#{self.edition}" if self.edition else ""
        settings = f"{self.dimensions}/{self.pooling}/{self.max_tokens}/{prefixes}"
        return f"{self.provider}/{self.name}/{settings}{weights}{edition}"

    def may_be(self, other: "Model") -> bool:
        """Whether two fingerprints are equal, or differ only in a hash of the weights that one of them lacks."""
        if self.sha256 and other.sha256:
            return self.fingerprint == other.fingerprint
        return replace(self, sha256="").fingerprint == replace(other, sha256="").fingerprint


@dataclass(frozen=True, slots=True)
class RecordVectors:
    """The vectors of one record, one per piece, and how fluently the model reads its text (words per word piece)."""

    record: str
    vectors: Sequence[Sequence[float]] | VectorArray
    fluency: float = 1.0
    of: str = ""  # hash of the embedded text (`embedding_text`): the vectors are refused if the record has another one
