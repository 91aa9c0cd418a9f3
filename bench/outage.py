"""Rows about models that are not there: what a search costs while every configured server is down."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from client import mindex_command
from ground import Ground
from measure import Row, Timings, alternate, child_output, run_child, timed, told
from mindex.datatypes import Answer
from mindex.datatypes.spaces import EmbedderSpec
from mindex.memory import Memory
from mindex.providers.breaker import FAILURES

_LOT = 8
# The vectors of the store are this model's, so that nothing but its server could embed a question.
_MADE = EmbedderSpec("ollama", "all-minilm")
_KEYWORD = {"embedding.provider": "none"}
_TARGET = "≤ 1.2×"


@contextmanager
def _dead() -> Iterator[dict[str, str]]:
    """Settings that name three servers which refuse every connection."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound and not listening: no other process can take the port
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
        yield {
            "embedding.provider": _MADE.provider,
            "embedding.model": _MADE.model,
            "embedding.url": address,
            "rerank.provider": "http",
            "rerank.model": "any",
            "rerank.url": f"{address}/v1/rerank",
            "generation.provider": "openai",
            "generation.model": "any",
            "generation.url": f"{address}/v1",
        }


def down(ground: Ground) -> Row:
    questions = ground.questions(_LOT)
    database = ground.store(ground.sizes.small, _MADE)
    with _dead() as settings, Memory(database, options=settings) as without:
        for question in ground.questions(9, FAILURES + 1):
            answer = _asked(without, question)
        _check_left_alone(answer.notes)
        with Memory(database, options=_KEYWORD) as words:
            words.search(questions[0], mode="keyword")
            ours, keyword = alternate(
                len(questions),
                lambda turn: timed(lambda: _asked(without, questions[turn])),
                lambda turn: timed(lambda: words.search(questions[turn], mode="keyword")),
            )
        _check_left_alone(_asked(without, questions[-1]).notes)
    return _row("down", f"search of {ground.sizes.small:,} records", "in a running process", ours, keyword)


def cold_down(ground: Ground) -> Row:
    database = ground.store(ground.sizes.small, _MADE)
    command = mindex_command("--db", database, "search")
    asked, keyword = [*command, "--expand", "--rerank"], [*command, "--mode", "keyword"]
    questions = ground.questions(_LOT, ground.sizes.starts)
    with _dead() as settings:
        servers, none = _environment(settings), _environment(_KEYWORD)
        for question in ground.questions(9, FAILURES + 1):
            said = child_output([*asked, "--json", question], ground.work, servers)
            run_child([*keyword, question], ground.work, none)
        _check_left_alone(json.loads(said)["notes"])
        ours, words = alternate(
            ground.sizes.starts,
            lambda turn: run_child([*asked, questions[turn]], ground.work, servers),
            lambda turn: run_child([*keyword, questions[turn]], ground.work, none),
        )
    return _row("cold-down", f"`mindex search`, {ground.sizes.small:,} records", "from its start on", ours, words)


def _row(name: str, what: str, how: str, ours: Timings, keyword: Timings) -> Row:
    ratio = ours.over(keyword)
    return Row(
        name=name,
        measured=f"{what}, embedder, reranker and language model down, {how}: {told(ours.wall)}",
        baseline=f"the keyword tier alone: {told(keyword.wall)}",
        ratio=f"{ratio:.2f}×",
        target=_TARGET,
        ok=ratio <= 1.2,
        note=f"wall, median of {len(ours.runs)} by turns; middle half {ours.spread} against {keyword.spread};"
        f" CPU {ours.cpu_over(keyword):.2f}×; --expand and --rerank are asked for, the breakers are open",
        numbers={"ratio": ratio, "cpu_ratio": ours.cpu_over(keyword)},
    )


def _asked(memory: Memory, question: str) -> Answer:
    return memory.search(question, expand=True, rerank=True)


def _check_left_alone(notes: tuple[str, ...]) -> None:
    """Every model must be missed by a note that says that its server is being left alone."""
    for said in ("no vectors: ollama", "not expanded: openai", "not reranked: http"):
        if not any(note.startswith(said) and f"has failed {FAILURES} times" in note for note in notes):
            raise RuntimeError(f"no breaker is open for '{said}': {notes}")


def _environment(settings: Mapping[str, str]) -> dict[str, str]:
    return {f"MINDEX_{key.replace('.', '_').upper()}": value for key, value in settings.items()}
