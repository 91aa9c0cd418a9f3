"""What the processes of `torture.py` write down: one line of JSON for each intention, acknowledgement and failure.

A line that was written is on its way to the disk when the process goes on, so the check afterwards is exact.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Line = dict[str, Any]


class Log:
    """The file of one process; a process that is killed and started again goes on with it."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab")

    def write(self, *, durable: bool = False, **line: object) -> None:
        self._file.write(json.dumps(line).encode() + b"\n")
        self._file.flush()
        if durable:
            os.fsync(self._file.fileno())


def read_log(path: Path) -> Iterator[Line]:
    """The complete lines of a log, which a process may be writing."""
    data = path.read_bytes() if path.exists() else b""
    for line in data[: data.rfind(b"\n") + 1].splitlines():
        yield json.loads(line)


@dataclass
class Written:
    """What a writer's log says: the state that its acknowledged writes left, and what it was about to do."""

    texts: dict[str, str] = field(default_factory=dict)  # of live records, by id
    forgotten: dict[str, str] = field(default_factory=dict)
    purged: set[str] = field(default_factory=set)
    pending: Line | None = None  # an intention without an acknowledgement
    touched: set[str] = field(default_factory=set)  # ids that an intention of a change names
    acknowledged: int = 0

    @classmethod
    def of(cls, path: Path) -> Written:
        written = cls()
        for line in read_log(path):
            if line["line"] == "intends":
                written.pending = line
                if line.get("id"):
                    written.touched.add(line["id"])
            elif line["line"] == "done":
                written._apply(line)
        return written

    def _apply(self, line: Line) -> None:
        id_, self.pending = line["id"], None
        self.acknowledged += 1
        if line["what"] in ("add", "update"):
            self.texts[id_] = line["text"]
        elif line["what"] == "forget":
            self.forgotten[id_] = self.texts.pop(id_)
        elif line["what"] == "restore":
            self.texts[id_] = self.forgotten.pop(id_)
        else:
            self.texts.pop(id_, None)
            self.forgotten.pop(id_, None)
            self.purged.add(id_)
