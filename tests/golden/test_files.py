"""No golden file outlives its case."""

from __future__ import annotations

from tests.golden.compare import EXPECTED, Golden
from tests.golden.scripts import cases, sessions


def test_every_golden_file_has_a_case(golden: Golden) -> None:
    known = {f"{kind}/{case}.txt" for kind in ("cli", "model", "chat") for case in cases(kind)}
    known |= {f"mcp/{name}.txt" for name in sessions()}
    stale = [path for path in EXPECTED.rglob("*.txt") if path.relative_to(EXPECTED).as_posix() not in known]
    if golden.update:
        for path in stale:
            path.unlink()
    else:
        assert not stale
