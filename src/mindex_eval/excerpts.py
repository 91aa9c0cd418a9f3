"""Measures how much of the words that answer a question an answer contains as it is sent, by token budget."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from mindex.datatypes import Answer, Progress, Report
from mindex.evaluation_parts import PlainFts5, View, compact_json, count_tokens, limit_of
from mindex_eval.metrics import mean
from mindex_eval.populate import as_markdown
from mindex_eval.question_sets import Question, QuestionSet
from mindex_eval.results import ExcerptRecall, ExcerptRow
from mindex_eval.run_questions import QuestionRunner

BUDGETS = (100, 250, 500, 1_000, 2_000)
BASELINE = "plain FTS5"
_GRAM = 4  # words
_PIECE = 800  # characters of a piece of the baseline
_BASELINE_PIECES = 5  # without a budget
_BYTES = 4  # of a token
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class AnswerShape:
    """How an entry point shows an answer by default. The defaults are those of the command line."""

    view: View = "full"
    limit: int | None = 5  # None: what the view has space for
    budget: int | None = None


@dataclass(frozen=True, slots=True)
class _Sent:
    """One answer as it is sent."""

    text: str
    json: str = ""  # empty: there is only the text


_Ask = Callable[[Question, int | None], _Sent]  # with a token budget, or as the entry point does without one


def measure_excerpts(
    runner: QuestionRunner,
    found: QuestionSet,
    questions: Sequence[Question],
    variant: str,
    shapes: Mapping[str, AnswerShape],
    budgets: Sequence[int] = BUDGETS,
    report: Report | None = None,
) -> ExcerptRecall:
    """Measure the questions with excerpts in each shape, and beside them the baseline."""
    asked = [question for question in questions if question.excerpts]
    rows = {}
    pages: dict[tuple[str, int], Answer] = {}
    for name, shape in shapes.items():
        ask = _through_search(runner, variant, shape, pages)
        rows[name] = _row(ask, asked, budgets, report, f"{found.name} {name}")
    with PlainFts5([piece for text in _texts(found) for piece in pieces_of(text)]) as index:
        rows[BASELINE] = _row(_through_fts5(index), asked, budgets, report, f"{found.name} {BASELINE}")
    return ExcerptRecall(len(asked), rows)


def _row(
    ask: _Ask, questions: Sequence[Question], budgets: Sequence[int], report: Report | None, name: str
) -> ExcerptRow:
    shares: dict[int | None, list[float]] = {budget: [] for budget in (*budgets, None)}
    tokens, ratios = [], []
    for done, question in enumerate(questions):
        if report is not None and done % 10 == 0:
            report(Progress("ask", done, len(questions), name))
        for budget, found in shares.items():
            sent = ask(question, budget)
            found.append(share_of(question.excerpts, sent.text))
            if budget is None:
                tokens.append(count_tokens(sent.text))
                if sent.json:
                    ratios.append(count_tokens(sent.json) / max(1, tokens[-1]))
    by_budget = {budget: mean(found) for budget, found in shares.items() if budget is not None}
    return ExcerptRow(by_budget, mean(shares[None]), median(tokens), median(ratios) if ratios else None)


def share_of(excerpts: Iterable[str], answer: str) -> float:
    """The share of the excerpts' runs of four words that an answer contains; of a shorter excerpt, all its words."""
    words = _WORD.findall(answer.lower())
    wanted: set[tuple[str, ...]] = set()
    for excerpt in excerpts:
        own = _WORD.findall(excerpt.lower())
        wanted |= _grams(own, min(_GRAM, len(own)))
    said = {size: _grams(words, size) for size in {len(gram) for gram in wanted}}
    return mean([float(gram in said[len(gram)]) for gram in wanted])


def _grams(words: Sequence[str], size: int) -> set[tuple[str, ...]]:
    """The runs of this number of words."""
    return {tuple(words[start : start + size]) for start in range(len(words) - size + 1)} if size else set()


def _through_search(
    runner: QuestionRunner, variant: str, shape: AnswerShape, pages: dict[tuple[str, int], Answer]
) -> _Ask:
    """Answers in a shape. `pages` keeps those of each question and limit: a search does not depend on the budget."""

    def ask(question: Question, budget: int | None) -> _Sent:
        allowed = shape.budget if budget is None else budget
        limit = limit_of(shape.view, shape.limit, allowed)
        if (question.id, limit) not in pages:
            pages[question.id, limit] = runner.page(question, variant, limit)
        shown = runner.show(pages[question.id, limit], shape.view, allowed)
        return _Sent(shown.text(), compact_json(shown))

    return ask


def _through_fts5(index: PlainFts5) -> _Ask:
    """Pieces joined by blank lines and cut at the budget; without one, five."""

    def ask(question: Question, budget: int | None) -> _Sent:
        most = _BASELINE_PIECES if budget is None else budget * _BYTES // _PIECE + 2
        joined = "\n\n".join(index.search(_WORD.findall(question.text), most))
        if budget is None:
            return _Sent(joined)
        return _Sent(joined.encode("utf-8", "replace")[: budget * _BYTES].decode("utf-8", "ignore"))

    return ask


def _texts(found: QuestionSet) -> Iterable[str]:
    """The texts of a set as they are populated."""
    if found.root is None:
        return (text.message if text.is_entry else as_markdown(text) for text in found.texts)
    files = sorted(path for path in found.root.rglob("*") if path.is_file())
    return (path.read_text(encoding="utf-8", errors="replace") for path in files)


def pieces_of(text: str) -> Iterator[str]:
    """The text in pieces of at most 800 characters: whole lines, unless one line alone is longer."""
    piece = ""
    for line in text.split("\n"):
        if piece and len(piece) + len(line) > _PIECE:
            yield piece
            piece = ""
        piece += f"{line}\n"
        while len(piece) > _PIECE:
            yield piece[:_PIECE]
            piece = piece[_PIECE:]
    if piece.strip():
        yield piece
