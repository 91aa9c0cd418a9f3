"""The time that a query names. Few queries name one, so the class is made when one does."""

from mindex.values import dataclass


@dataclass(frozen=True, slots=True)
class QueryTime:
    """A window in milliseconds: hits from then rank higher. `first` is None if the window has no beginning."""

    phrase: str  # of the query
    shown: str  # what it is read as: `2026-06-08 to 2026-06-14`
    first: int | None
    end: int  # the millisecond after the last one
    now: int  # when the question is asked
    past: bool = False  # the query asks for what was: a window that has ended, in the past tense
    only: bool = False  # the query asks for nothing else
    ahead: bool = False  # the query asks for plans or advice: when a record was created says nothing
    latest: bool = False  # the query asks for the newest of several; the window says nothing
    about: str = ""  # the id of the entry that dates the window: `before the move`
