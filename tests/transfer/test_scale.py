"""Fifty thousand memories: in and out at 2,000 a second and more, in memory that does not grow with them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.running import finish, start

_MEASURED = """
import json, resource, sys, time
from mindex.memory import Memory
db, file, verb = sys.argv[1:]
with Memory(db, options={"embedding.provider": "none"}) as memory:
    memory.search("warm up")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    report = memory.export(file) if verb == "export" else memory.import_(file)
    seconds = time.process_time() - started
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(json.dumps([report.records if verb == "export" else report.added, seconds, grown]))
"""
_COUNT = 50_000
_WORDS = (
    "the cache of PostgreSQL keeps what Anna said about user_id and v2.1.4 for an hour on Tuesday in Berlin".split()
)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="measures with `resource`")
def test_fifty_thousand_memories_come_in_and_leave(tmp_path: Path) -> None:
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
        assert count / seconds >= 2_000, f"{verb}: {count / seconds:.0f} a second of processor time"
        assert grown <= 200, f"{verb}: {grown:.0f} MB"
