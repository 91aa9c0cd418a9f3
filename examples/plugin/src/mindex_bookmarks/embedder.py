"""An embedder without a model: texts that share many groups of three letters have a high cosine."""

from collections.abc import Sequence
from zlib import crc32

import numpy as np

from mindex.extension import Embedder, Model, ProviderSettings, VectorArray

_DIMENSIONS = 256


class Trigrams:
    """Count the trigrams of a text in as many dimensions as `_DIMENSIONS`, each in the one that its checksum names."""

    model = Model("trigrams", "crc32", _DIMENSIONS, background_mean=0.1, background_std=0.05)
    loaded = True

    def load(self) -> None:
        """Nothing has to be loaded."""

    def embed(self, texts: Sequence[str]) -> VectorArray:
        vectors = np.zeros((len(texts), _DIMENSIONS), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            letters = f"  {text.lower()}  "
            for start in range(len(letters) - 2):
                row[crc32(letters[start : start + 3].encode()) % _DIMENSIONS] += 1
            row /= np.linalg.norm(row)
        return vectors

    def embed_query(self, text: str) -> VectorArray:
        vector: VectorArray = self.embed([text])[0]
        return vector

    def fluency(self, texts: Sequence[str]) -> list[float]:
        return [1.0] * len(texts)


def create(settings: ProviderSettings) -> Embedder:
    return Trigrams()
