"""A model card: the measured properties of an embedding model, made once of unrelated texts and kept in a file."""

from dataclasses import asdict
from pathlib import Path

from mindex.datatypes import VectorArray
from mindex.providers.cache_files import read_small, small_file, write_small
from mindex.values import dataclass

MAX_DIMENSIONS = 65_536
_MIN_DEVIATION = 0.02

# No two of these are about the same thing: their cosines are those of unrelated texts.
UNRELATED = (
    "The bread dough has to rest for twelve hours before it goes into the oven.",
    "Interest on the loan is charged at the end of every quarter.",
    "A goalkeeper may leave the penalty area, but not with the ball in his hands.",
    "The database keeps one row for every order and two for a return.",
    "Whales breathe air and feed their young with milk.",
    "Turn the key to the left and pull the handle towards you.",
    "In 1648 the peace treaty ended thirty years of war.",
    "This function raises an error when the list is empty.",
    "Her second violin concerto was first performed in Vienna.",
    "Take two tablets after meals, and no more than six a day.",
    "The night train leaves from platform nine at half past eleven.",
    "Volcanic soil is rich in minerals and drains well.",
    "Please sign the contract on the last page and send it back.",
    "Light from that galaxy has been travelling for two billion years.",
    "The roof was repaired with slate from the old quarry.",
    "Children learn the past tense before they can explain it.",
    "Our office is closed on public holidays and on Fridays in August.",
    "Mix the blue pigment with linseed oil until it is smooth.",
    "The court ruled that the search had been unlawful.",
    "Wolves were seen again in the valley last winter.",
    "Restart the router and wait until the green lamp is steady.",
    "He could not remember who had given him the silver ring.",
    "Cotton shirts should be washed at forty degrees.",
    "The vaccine must be kept below minus twenty degrees.",
)


@dataclass(frozen=True, slots=True)
class Card:
    """How long a model's vectors are, and where the cosines of unrelated texts lie."""

    dimensions: int
    mean: float
    std: float


def background_of(queries: VectorArray, texts: VectorArray) -> tuple[float, float]:
    """Return mean and deviation of the cosine of a query with a text of another topic; both arrays are of UNRELATED.

    A model with a query prefix sees queries further away from texts than texts from each other.
    """
    import numpy as np  # 100 ms to import, only for vectors that have arrived

    cosines = (queries @ texts.T)[~np.eye(len(UNRELATED), dtype=bool)]
    deviation = max(float(cosines.std()), _MIN_DEVIATION)  # with none at all, every difference would look enormous
    return round(float(cosines.mean()), 4), round(deviation, 4)


class CardFile:
    """The card of one model on one server, kept between processes."""

    def __init__(self, provider: str, url: str, model: str, dimensions: int = 0) -> None:
        self._of = {"provider": provider, "url": url, "model": model}
        shortened = (str(dimensions),) if dimensions else ()
        self._path: Path = small_file("cards", provider, url, model, *shortened)

    def read(self) -> Card | None:
        found = read_small(self._path) or {}
        dimensions, mean, std = (found.get(name) for name in ("dimensions", "mean", "std"))
        if not isinstance(dimensions, int) or not isinstance(mean, int | float) or not isinstance(std, int | float):
            return None
        sensible = 0 < dimensions <= MAX_DIMENSIONS and -1 <= mean <= 1 and _MIN_DEVIATION <= std <= 1
        return Card(dimensions, float(mean), float(std)) if sensible else None

    def write(self, card: Card) -> None:
        write_small(self._path, {**self._of, **asdict(card)})
