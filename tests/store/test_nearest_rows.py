"""The nearest rows of many vectors, block by block, are those of one comparison with all of them."""

from __future__ import annotations

import numpy as np
import pytest

from mindex.store.rules.neighbours import NearestRows


@pytest.mark.parametrize("block", [1, 7, 100])
@pytest.mark.parametrize("least", [-1.0, 0.2, 0.9])
def test_blocks_give_the_rows_of_one_comparison(block: int, least: float) -> None:
    random = np.random.default_rng(5)
    queries, rows = (random.normal(size=(count, 8)).astype(np.float32) for count in (6, 100))
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    nearest = NearestRows(queries, 3, least)
    for first in range(0, len(rows), block):
        nearest.add(first, rows[first : first + block])
    for query, (found, cosines) in zip(queries, nearest.found(), strict=True):
        expected = query @ rows.T
        order = [int(row) for row in np.argsort(-expected, kind="stable") if expected[row] >= least][:3]
        assert found.tolist() == order
        assert cosines == pytest.approx(expected[order])
