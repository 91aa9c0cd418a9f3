"""Rows about reranking: what it costs beside the cross-encoder's own work, and what the same question costs again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from ground import Ground
from measure import Row, Timings, alternate, timed, told
from mindex.config import load_settings
from mindex.datatypes import Answer
from mindex.errors import ProviderError
from mindex.memory import Memory
from mindex.providers.base import ProviderSettings
from mindex.providers.factory import ConfiguredProviders
from mindex.providers.rerank.base import create_reranker
from mindex.providers.rerank.local import MAX_QUERY_TOKENS, LocalReranker, encode_pair
from mindex.search.ranking import RERANKED

# What is measured is what it costs: an answer that goes out without it on a busy machine would say nothing.
_PATIENT = {"rerank.timeout": 600}
_LOT = 7


class _Listener(LocalReranker):
    """Takes the place of the reranker and records its arguments."""

    def __init__(self, reranker: LocalReranker) -> None:
        super().__init__("listener", reranker._files)  # its scores are kept apart from real ones
        self.heard: dict[str, list[str]] = {}

    def score(self, query: str, texts: Sequence[str], *, seconds: float | None = None) -> list[float]:  # noqa: ARG002 - as the protocol says
        self.heard[query] = list(texts)
        return [0.0 for _ in texts]


def rerank(ground: Ground) -> Row:
    """Both sides read the same pairs in the same batches; the cross-encoder alone has them as tokens already."""
    target = "≤ 1.1×"
    reranker = _loaded()
    if isinstance(reranker, str):
        return Row("rerank", f"rerank of {RERANKED} candidates", "–", "–", target, None, f"skipped: {reranker}")
    questions = ground.questions(_LOT, ground.sizes.reranked)
    database = ground.store(ground.sizes.small)
    listener = _Listener(reranker)
    with _memory(ground, database, listener) as memory:
        for question in questions:  # and their vectors are in the cache for all that follows
            _ask(memory, question, rerank=True)
        memory.store.settle()
    with _memory(ground, database, reranker) as memory:
        alone = [_alone(reranker, question, listener.heard[question]) for question in questions]
        ours, without, own = alternate(
            len(questions),
            lambda turn: timed(lambda: _reranked(memory, questions[turn])),
            lambda turn: timed(lambda: _ask(memory, questions[turn], rerank=False)),
            lambda turn: timed(alone[turn]),
        )
    # Candidates are of different lengths from question to question: a median of ratios, not a ratio of medians.
    turns = list(zip(ours.runs, without.runs, own.runs, strict=True))
    ratios = sorted((with_.wall - plain.wall) / model.wall for with_, plain, model in turns)
    ratio = median(ratios)
    cpu = sum(with_.cpu - plain.cpu for with_, plain, _ in turns) / sum(model.cpu for _, _, model in turns)
    count = median(len(texts) for texts in listener.heard.values())
    added = Timings(ours.runs).wall - without.wall
    return Row(
        name="rerank",
        measured=f"rerank of {count:.0f} candidates, scores not cached: {told(added)} on top of {told(without.wall)}",
        baseline=f"the cross-encoder on the same pairs, as tokens: {told(own.wall)}",
        ratio=f"{ratio:.2f}×",
        target=target,
        ok=ratio <= 1.1,
        note=f"wall, median of {len(turns)} new questions, {ratios[0]:.2f}–{ratios[-1]:.2f}; longest search"
        f" {told(max(run.wall for run in ours.runs))}; {reranker.name}; CPU {cpu:.2f}×",
        numbers={"ratio": ratio, "cpu_ratio": cpu, "candidates": count, "seconds": added},
    )


def rerank_again(ground: Ground) -> Row:
    target = "≤ 10 %"
    reranker = _loaded()
    if isinstance(reranker, str):
        return Row("rerank-again", "a question asked again", "–", "–", target, None, f"skipped: {reranker}")
    questions = ground.questions(_LOT, 2 * ground.sizes.reranked)[ground.sizes.reranked :]
    first, again = [], []
    with _memory(ground, ground.store(ground.sizes.small), reranker) as memory:
        for question in questions:
            first.append(timed(lambda question=question: _reranked(memory, question)))
            memory.store.settle()  # what an answer leaves to be written is written within half a second
            again.append(timed(lambda question=question: _reranked(memory, question)))
    new, old = Timings(first), Timings(again)
    share = old.over(new)
    return Row(
        name="rerank-again",
        measured=f"search with rerank of a question asked before: {told(old.wall)}",
        baseline=f"the first time: {told(new.wall)}",
        ratio=f"{share:.1%}",
        target=target,
        ok=share <= 0.1,
        note=f"wall, median of {len(questions)}; middle half {old.spread} against {new.spread};"
        f" CPU {old.cpu_over(new):.1%}",
        numbers={"ratio": share, "cpu_ratio": old.cpu_over(new)},
    )


def _memory(ground: Ground, database: Path, reranker: LocalReranker) -> Memory:
    settings = load_settings({"db": str(database), **_PATIENT})
    providers = ConfiguredProviders(settings)
    providers.reranker = reranker  # loaded already: loading it again is not part of the cost
    memory = Memory(settings=settings, providers=providers)
    memory.models.use(ground.embedder)
    memory.search(ground.questions(9, 1)[0])  # the index of vectors is in memory from now on
    return memory


def _ask(memory: Memory, question: str, *, rerank: bool) -> Answer:
    return memory.search(question, floor=0, rerank=rerank)  # without a floor there are always forty


def _reranked(memory: Memory, question: str) -> None:
    answer = _ask(memory, question, rerank=True)
    if any(hit.trace.rerank is None for hit in answer.hits):
        raise RuntimeError(f"not reranked: {question!r} {answer.notes}")


def _loaded() -> LocalReranker | str:
    """The reranker that `rerank.provider = local` means, or why there is none."""
    reranker = create_reranker(ProviderSettings("local"))
    assert isinstance(reranker, LocalReranker)
    try:
        reranker.load()
    except ProviderError as error:
        return f"{error}"
    return reranker


def _alone(reranker: LocalReranker, question: str, texts: Sequence[str]) -> Callable[[], None]:
    """Nothing but the model's runs, in the batches that the product makes."""
    engine = reranker._engine.get()
    asked = engine.encode(question, whole=False)
    asked.truncate(MAX_QUERY_TOKENS)
    pairs = [encode_pair(engine, asked, text) for text in texts]

    def run(batch: list[int]) -> None:
        engine.run([pairs[index].ids for index in batch], [pairs[index].type_ids for index in batch])

    return lambda: engine.run_all([len(pair.ids) for pair in pairs], run, name="bench-rerank")
