"""The text and JSON of `mindex plugins`."""

from collections.abc import Sequence

from mindex.present.text import aligned, note_lines
from mindex.present.to_json import Json, to_json
from mindex.values import dataclass


@dataclass(frozen=True, slots=True)
class Plugin:
    """An extension: a top-level package, the distribution that it came with, and the names that it provides."""

    name: str
    distribution: str
    provides: tuple[str, ...]  # group and name: `importers notes-app`
    enabled: bool


def plugins_json(plugins: Sequence[Plugin], problems: Sequence[str]) -> dict[str, Json]:
    return {"plugins": [to_json(plugin) for plugin in plugins], "problems": list(problems)}


def plugins_text(plugins: Sequence[Plugin], problems: Sequence[str]) -> str:
    rows = [[one.name, one.distribution, "" if one.enabled else "disabled", ", ".join(one.provides)] for one in plugins]
    return "\n".join([*(aligned(rows) if rows else ["no extensions are installed"]), *note_lines(problems)])
