"""Searches, and cuts the answer to a view and a token budget for an entry point; what is shown counts as accessed."""

from collections.abc import Sequence
from typing import Any

from mindex.datatypes import Answer
from mindex.memory import Memory
from mindex.present.answer_view import PASSAGE_TOKENS, AnswerView, View, view_answer
from mindex.present.output_formats import within_budget
from mindex.search.query import MAX_LIMIT
from mindex.values import replace

_LIMIT = 5


def names_files(view: str, form: str = "text") -> bool:
    """Return whether the output names a file by its path alone."""
    return view in ("passages", "compact", "digest") or form in ("md", "csv", "files")


def search_view(
    memory: Memory,
    query: str,
    view: View = "full",
    *,
    limit: int | None = None,
    budget: int | None = None,
    form: str = "text",
    explain: bool = False,
    notes: Sequence[str] = (),
    **options: Any,
) -> tuple[Answer, AnswerView]:
    """Return an answer with these notes, and as much of it as the view and the budget show in a format.

    `options` are those of `Memory.search`. The dual view lists all hits, and has `limit` of them in detail.
    """
    most = limit_of(view, limit, budget)
    passages = view in ("passages", "dual") or budget is not None
    listed = MAX_LIMIT if view == "dual" and most >= 1 else most
    answer = memory.search(query, limit=listed, logged=False, passages=passages, **options)
    answer = replace(answer, notes=(*answer.notes, *notes))
    shown = view_of(memory, answer, view, budget, details=most, form=form, explain=explain)
    memory.log_shown(answer, shown.ids)
    return answer, shown


def limit_of(view: View, limit: int | None, budget: int | None) -> int:
    """Return the limit, by default five hits; a larger budget has space for passages of more."""
    if limit is not None:
        return limit
    if view == "passages" and budget is not None:
        return min(MAX_LIMIT, max(_LIMIT, budget // PASSAGE_TOKENS))
    return _LIMIT


def view_of(
    memory: Memory,
    answer: Answer,
    view: View,
    budget: int | None,
    *,
    details: int | None = None,
    form: str = "text",
    explain: bool = False,
) -> AnswerView:
    """Return as much of an answer as a view and a budget show in a format."""
    names = names_files(view, form) or budget is not None or any(hit.weak for hit in answer.hits)
    several = names and memory.collections.several()
    return within_budget(
        lambda most: view_answer(
            answer, view, budget=most, explain=explain, details=details, several_collections=several
        ),
        form,
        budget,
    )
