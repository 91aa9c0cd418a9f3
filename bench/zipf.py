"""Generated text with the statistics of prose: as many different records as asked for, the same on every run.

Words are drawn by the law of Zipf and Mandelbrot: function words make up a third of the text, and however long it gets,
new rare words come. Installed documentation repeats itself after some thousand passages; the keyword index of a million
such passages would hold no rare word at all.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mindex.analyzer import STOP_WORDS

_VOCABULARY = 1_000_000
_SHIFT, _EXPONENT = 2.7, 1.1
_WORDS, _SPREAD = 80, 0.5  # of a record: the median, and the width of the log-normal distribution around it
_SYLLABLES = [first + vowel for first in "b c d f g l m n p r s t v k st tr ch pl".split() for vowel in "aeiou"]
_QUESTION_WORDS, _COMMON = 9, 1_000


class ZipfText:
    """A vocabulary, and texts and questions drawn from it."""

    def __init__(self) -> None:
        ranks = np.arange(1, _VOCABULARY + 1, dtype=np.float64)
        weights = (ranks + _SHIFT) ** -_EXPONENT
        self._cumulative = np.cumsum(weights) / weights.sum()
        self._function_words = sorted(STOP_WORDS)

    def texts(self, count: int, seed: int) -> Iterator[str]:
        """Return `count` texts; another seed gives other texts."""
        draw = np.random.default_rng(seed)
        lengths = np.maximum(8, (_WORDS * np.exp(_SPREAD * draw.standard_normal(count))).astype(int))
        ranks = np.searchsorted(self._cumulative, draw.random(int(lengths.sum()))).tolist()
        at = 0
        for length in lengths.tolist():
            yield " ".join(map(self._word, ranks[at : at + length]))
            at += length

    def questions(self, count: int, seed: int) -> list[str]:
        """Nine of the 1,000 most common words each, as many as real questions have, without function words.

        Their lists together hold as many records as there are times 0.3: those of the questions of SciFact, times 0.8.
        """
        draw = np.random.default_rng(seed)
        least, most = self._cumulative[[len(self._function_words), _COMMON]]
        asked = np.searchsorted(self._cumulative, least + (most - least) * draw.random((count, _QUESTION_WORDS)))
        return [" ".join(map(self._word, ranks)) for ranks in asked.tolist()]

    def _word(self, rank: int) -> str:
        """The word of a rank: syllables that spell its digits, so that a common word is a short one."""
        if rank < len(self._function_words):
            return self._function_words[rank]
        word = ""
        while rank:
            rank, place = divmod(rank, len(_SYLLABLES))
            word += _SYLLABLES[place]
        return word + "n"  # no ending that a stemmer takes off
