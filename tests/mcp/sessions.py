"""What sessions of other programs need: a server as their users start it, and fields that are never twice the same."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping

from mcp import Client, StdioServerParameters

_MINDEX = "from mindex.cli.main import main; main()"


def started(tools: str, *flags: str, env: Mapping[str, str]) -> Client:
    """A client of `mindex serve --tools NAME` in a process of its own."""
    arguments = ["-c", _MINDEX, "serve", "--tools", tools, *flags]
    return Client(StdioServerParameters(command=sys.executable, args=arguments, env={**os.environ, **env}))


class Form:
    """Equal to every text of a form, so that answers can be compared field by field."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and re.fullmatch(self._pattern, other) is not None

    def __hash__(self) -> int:
        return hash(self._pattern)

    def __repr__(self) -> str:
        return f"<{self._pattern}>"


ISO = Form(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
ROW_TIME = Form(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
ANY_TEXT = Form(r"(?s).+")
