"""The profile as JSON and as text: its content, and its versions with the differences between them."""

import json
from collections.abc import Sequence

from mindex.model import Change
from mindex.present.history import change_line, content
from mindex.present.json_diff import Difference, differences
from mindex.present.to_json import Json, to_json


def profile_json(value: Json, path: str) -> dict[str, Json]:
    return {"value": value} if path else {"profile": value}


def profile_text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def versions_json(changes: Sequence[Change]) -> dict[str, Json]:
    return {"versions": [_version_json(change) for change in changes]}


def _version_json(change: Change) -> dict[str, Json]:
    diff: list[Json] = [_difference_json(one) for one in _differences(change)]
    return {"version": change.change, **to_json(change), "diff": diff}


def _difference_json(one: Difference) -> dict[str, Json]:
    sides = (("before", one.before), ("after", one.after))
    return {"path": one.path, **{side: json.loads(value) for side, value in sides if value is not None}}


def _differences(change: Change) -> list[Difference]:
    return differences(content(change.before), content(change.after))


def versions_text(changes: Sequence[Change]) -> str:
    blocks = ["\n  ".join([change_line(change), *map(str, _differences(change))]) for change in changes]
    return "\n".join(blocks) or "no profile yet"
