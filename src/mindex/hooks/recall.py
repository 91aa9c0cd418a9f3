"""Before a prompt: confident hits only, by keyword, or by the model of a server that runs already."""

import re
from collections.abc import Collection, Sequence

from mindex.analyzer import STOP_WORDS, analyze
from mindex.datatypes import Answer, Hit
from mindex.memory import Memory
from mindex.present.hooks import RecalledLine, recall_text, recalled_line

_MAX_HITS = 8  # that are looked at: some were shown before
_MIN_WORDS, _MAX_WORDS = 2, 60
# The user did not ask for a recall, so it must be surer than a search: the least relevance with a model; by keyword,
# the least share of the question's words that a hit holds, and the least surprise (nats), without which two common
# words are enough. docs/agents.md has what that costs and saves.
_FLOOR, _MIN_SHARE, _MIN_SURPRISE = 0.7, 0.42, 13.0
# A turn beside a good hit is worth showing in a search, and here only if it alone is half as good.
_OWN_SHARE = 0.5


def question_of(prompt: str) -> str:
    """Return what a prompt is searched for; '' for a command, an answer such as `yes, go on`, or an empty prompt."""
    text = prompt.strip()
    if text.startswith(("/", "!", "#")):
        return ""
    # Quotes and operators would make it a strict query; a prompt is plain words.
    plain = " ".join(re.sub(r'["“”(){}*:]', " ", text).lower().split()[:_MAX_WORDS])
    meant = set(analyze(plain).words) - STOP_WORDS
    return plain if len(meant) >= _MIN_WORDS else ""


def recall(
    memory: Memory, question: str, *, shown: Collection[str], session: str, agent: str, by_keyword: bool
) -> tuple[RecalledLine, ...]:
    """Return the confident hits for a question that were not shown in this conversation and are not part of it."""
    scope = agent or None
    if not by_keyword:
        floor = max(_FLOOR, memory.settings.number("search.floor"))
        answer = memory.search(question, limit=_MAX_HITS, floor=floor, rerank=False, agent=scope, logged=False)
        if answer.tier == "hybrid":
            lines = _lines(answer, answer.hits, shown, session)
            _log_shown(memory, answer, lines)
            return lines
    # No record without the rarer words holds enough of the question: the common ones need not be searched.
    rare = memory.rare_words(question, _MIN_SHARE)
    if not rare:
        return ()
    answer = memory.search(rare, limit=_MAX_HITS, mode="keyword", floor=0.0, rerank=False, agent=scope, logged=False)
    matches = memory.word_matches(question, [hit.record for hit in answer.hits])
    hits = [
        hit
        for hit in answer.hits
        if matches[hit.record.id][0] >= _MIN_SHARE and matches[hit.record.id][1] >= _MIN_SURPRISE
    ]
    lines = _lines(answer, hits, shown, session)
    _log_shown(memory, answer, lines)
    return lines


def _log_shown(memory: Memory, answer: Answer, lines: tuple[RecalledLine, ...]) -> None:
    """Log an access to what the text of these lines shows."""
    _, ids = recall_text(lines)
    memory.log_shown(answer, ids)


def _lines(answer: Answer, hits: Sequence[Hit], shown: Collection[str], session: str) -> tuple[RecalledLine, ...]:
    if answer.tier == "substring":
        return ()
    best = max(map(_own_score, answer.hits), default=0.0)
    return tuple(
        recalled_line(hit, answer.terms, answer.term_weights)
        for hit in hits
        if not hit.weak
        and hit.record.id not in shown
        and hit.record.fields.get("session_id") != session
        and _own_score(hit) >= _OWN_SHARE * best
    )


def _own_score(hit: Hit) -> float:
    """Return the score of a hit without what the turns beside it add."""
    return hit.score - sum(stage.change for stage in hit.trace.stages if stage.name == "neighbours")
