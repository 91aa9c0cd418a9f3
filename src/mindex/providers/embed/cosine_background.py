"""What "unrelated" looks like to a model: where the cosines of questions and texts lie that do not belong together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mindex.providers.embed.server_model_cards import UNRELATED

if TYPE_CHECKING:
    from mindex.model import VectorArray

_LEAST_DEVIATION = 0.02


def background_of(
    as_questions: Callable[[Sequence[str]], VectorArray], as_texts: Callable[[Sequence[str]], VectorArray]
) -> tuple[float, float]:
    """Mean and deviation of the cosine of a question with a text of another topic.

    A model that puts something before its questions sees them further away from texts than texts from each other.
    """
    import numpy as np

    cosines = (as_questions(UNRELATED) @ as_texts(UNRELATED).T)[~np.eye(len(UNRELATED), dtype=bool)]
    spread = max(float(cosines.std()), _LEAST_DEVIATION)  # were they all alike, every difference would look enormous
    return round(float(cosines.mean()), 4), round(spread, 4)
