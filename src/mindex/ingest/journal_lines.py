"""Keeps the daily log from being read back: what was told stands in the memory already."""

from __future__ import annotations

from mindex.journal_format import blank_lines, is_daily_log


def without_journal_lines(path: str, text: str) -> str:
    """A daily log without the lines that mindex wrote, each left empty so that line numbers hold.

    Any `memory/YYYY-MM-DD.md` is one, wherever it is indexed: were it only the configured workspace's, a process that
    knows of no workspace would index the lines and the next one drop them again. What people write stays.
    """
    return blank_lines(text) if is_daily_log(path) else text
