"""Fifty thousand memories are imported and exported in linear time and constant memory.

How many a second is measured on an idle machine (`bench/speed.py`).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.running import finish, start

_MEASURED = """
import json, sys, time
from mindex.memory import Memory
db, file, verb = sys.argv[1:]

def most():  # not getrusage: it begins with what the parent had
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM"))

with Memory(db, options={"embedding.provider": "none"}) as memory:
    memory.search("warm up")
    before = most()
    started = time.process_time()
    report = memory.transfer.export(file) if verb == "export" else memory.transfer.import_(file)
    seconds = time.process_time() - started
    print(json.dumps([report.records if verb == "export" else report.added, seconds, most() - before]))
"""
_COUNT = 50_000
_WORDS = (
    "the cache of PostgreSQL keeps what Anna said about user_id and v2.1.4 for an hour on Tuesday in Berlin".split()
)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_fifty_thousand_memories_are_imported_and_exported(tmp_path: Path) -> None:
    source, again = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    with source.open("w") as file:
        header = {"mindex": 1, "schema": 1, "records": _COUNT, "last_numbers": {"main": _COUNT}}
        file.write(json.dumps(header) + "\n")
        for number in range(1, _COUNT + 1):
            words = " ".join(_WORDS[(number * step) % len(_WORDS)] for step in range(1, 31))
            at = "2026-01-01T00:00:00.000Z"
            line = {"id": f"id{number:06}", "kind": "memory", "agent": "main", "number": number, "type": "fact"}
            line |= {"created_at": at, "updated_at": at, "tags": ["cache"], "summary": words[:80]}
            change = {"change": number, "at": at, "by": "main", "action": "add"}
            file.write(json.dumps({**line, "text": f"{number} {words}", "history": [change]}) + "\n")
    for verb, target in (("import", source), ("export", again)):
        ran = finish(start(tmp_path / "memory.db", target, verb, program=_MEASURED), timeout=300)
        assert ran.code == 0, ran
        count, seconds, grown = json.loads(ran.out)
        assert count == _COUNT
        assert count / seconds >= 500, f"{verb}: {count / seconds:.0f} a second of processor time"
        assert grown <= 200, f"{verb}: {grown:.0f} MB"
