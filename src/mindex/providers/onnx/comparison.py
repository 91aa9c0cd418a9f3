"""Whether one form of an embedding model serves better than another on this processor: asked once, when a copy is made.

Flags of processors do not tell what is gained. Where instructions saturate (AVX2 without VNNI: simulated, one sum in
20,000 and 0.2 % of the result) the vectors differ a little more. So both forms embed the same tokens, and their time
and vectors are compared.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession

# A gain below this would not be worth vectors that differ in the third digit.
_MIN_GAIN = 1.3
# Measured: .999. A canary is taken for that of another model below .95.
_MIN_COSINE = 0.99
_RUNS = 5  # beside busy processes, the fastest of three differed by a fifth for one and the same session
_TEXTS, _TOKENS = 2, 128


def is_better(candidate: InferenceSession, exact: InferenceSession) -> bool:
    """Whether the candidate gives the vectors of the exact form in clearly less time. Takes about half a second."""
    # Whole words and word pieces of all frequencies; a hash of the position is as good as any text.
    ids = 1000 + np.arange(_TEXTS * _TOKENS, dtype=np.int64).reshape(_TEXTS, _TOKENS) * 7919 % 29000
    sessions = (candidate, exact)
    vectors = [_vectors(session, ids) for session in sessions]  # the first run of a session allocates
    if float((vectors[0] * vectors[1]).sum(axis=1).min()) < _MIN_COSINE:
        return False
    runs = [[_seconds(session, ids) for session in sessions] for _ in range(_RUNS)]
    fastest = [min(seconds) for seconds in zip(*runs, strict=True)]
    return bool(fastest[0] * _MIN_GAIN <= fastest[1])


def _seconds(session: InferenceSession, ids: NDArray[Any]) -> float:
    """CPU time of this thread, the one that a session computes in: other processes do not count."""
    start = time.thread_time()
    _vectors(session, ids)
    return time.thread_time() - start


def _vectors(session: InferenceSession, ids: NDArray[Any]) -> NDArray[Any]:
    arrays = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    output = session.run(["last_hidden_state"], arrays)[0].mean(axis=1)
    vectors: NDArray[Any] = output / np.linalg.norm(output, axis=1, keepdims=True)
    return vectors
