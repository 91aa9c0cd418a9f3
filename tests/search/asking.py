"""What tests of several stages share."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mindex.clock import now_ms
from mindex.datatypes import Answer, Hit


def moment() -> str:
    """Now; everything after this call is later."""
    now = now_ms()
    while now_ms() <= now:
        pass
    return datetime.fromtimestamp(now / 1000, UTC).isoformat(timespec="milliseconds")


def stages(hit: Hit) -> dict[str, float]:
    return {stage.name: stage.change for stage in hit.trace.stages}


def ids(answer: Answer) -> list[str]:
    return [hit.record.id for hit in answer.hits]


def adds_up(answer: Answer) -> bool:
    """Whether what the stages added is the score, for every hit, and the order is that of the scores."""
    scores = [hit.score for hit in answer.hits]
    summed = [sum(stage.change for stage in hit.trace.stages) for hit in answer.hits]
    return summed == pytest.approx(scores) and scores == sorted(scores, reverse=True)
