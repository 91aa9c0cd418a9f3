"""The checks of `mindex doctor` as JSON and as text."""

from collections.abc import Sequence

from mindex.model import Check
from mindex.present.text import aligned
from mindex.present.to_json import Json, to_json


def checks_json(checks: Sequence[Check]) -> dict[str, Json]:
    return to_json({"ok": all(check.ok for check in checks), "checks": checks})


def checks_text(checks: Sequence[Check]) -> str:
    rows = []
    for check in checks:
        fix = f"; {check.fix}" if check.fix and not check.ok else ""
        rows.append(["ok" if check.ok else "NOT OK", check.name, check.message + fix])
    return "\n".join(aligned(rows))
