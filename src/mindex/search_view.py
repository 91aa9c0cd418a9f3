"""Searches, and cuts the answer to a view and a token budget for an entry point; what is shown counts as accessed."""

from collections.abc import Sequence
from typing import Any

from mindex.memory import Memory
from mindex.model import Answer
from mindex.present.answer_view import AnswerView, View, only_weak, view_answer
from mindex.present.output_formats import within_budget
from mindex.search.query import MAX_LIMIT
from mindex.values import replace


def names_files(view: str, form: str = "text") -> bool:
    """Return whether the output names a file by its path alone."""
    return view in ("compact", "digest") or form in ("md", "csv", "files")


def search_view(
    memory: Memory,
    query: str,
    view: View = "full",
    *,
    limit: int = 5,
    budget: int | None = None,
    form: str = "text",
    explain: bool = False,
    notes: Sequence[str] = (),
    **options: Any,
) -> tuple[Answer, AnswerView]:
    """Return an answer with these notes, and as much of it as the view and the budget show in a format.

    `options` are those of `Memory.search`. The dual view lists all hits, and has `limit` of them in detail.
    """
    is_dual = view == "dual"
    most = MAX_LIMIT if is_dual and limit >= 1 else limit
    answer = memory.search(query, limit=most, logged=False, **options)
    answer = replace(answer, notes=(*answer.notes, *notes))
    several = (names_files(view, form) or only_weak(answer)) and memory.collections.several()
    shown = within_budget(
        lambda most: view_answer(
            answer,
            view,
            budget=most,
            explain=explain,
            details=limit if is_dual else None,
            several_collections=several,
        ),
        form,
        budget,
    )
    memory.log_shown(answer, shown.ids)
    return answer, shown
