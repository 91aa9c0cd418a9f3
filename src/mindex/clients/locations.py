"""Where an agent's configuration is on this machine, and whether the agent is here at all."""

import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from mindex.clients.clients import Client, System
from mindex.values import dataclass

_APPDATA = {
    "linux": "{XDG_CONFIG_HOME:~/.config}",
    "macos": "~/Library/Application Support",
    "windows": "{APPDATA:~/AppData/Roaming}",
}
_VARIABLE = re.compile(r"\{(\w+):([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Machine:
    """What paths depend on."""

    system: System
    home: Path
    environment: Mapping[str, str]

    def resolve(self, template: str) -> Path:
        """Expand a path template of the table."""
        text = template.replace("{appdata}", _APPDATA[self.system])
        text = _VARIABLE.sub(lambda match: self.environment.get(match[1]) or match[2], text)
        return self.home / text[2:] if text.startswith("~/") else self.home if text == "~" else Path(text)


def this_machine() -> Machine:
    system = {"darwin": "macos", "win32": "windows"}.get(sys.platform, "linux")
    return Machine(system, Path.home(), os.environ)


def config_file(agent: Client, machine: Machine, project: Path | None = None) -> Path:
    """Return the file that holds the servers of the user, or of a project. It need not exist."""
    if project is not None:
        return _chosen([project / name for name in agent.project_files])
    return _chosen([machine.resolve(template) for template in agent.user_files(machine.system)])


def trace_of(agent: Client, machine: Machine) -> str:
    """Return what shows that the agent is on this machine: a program or a path. Empty: nothing does."""
    for program in agent.programs:
        if found := shutil.which(program, path=machine.environment.get("PATH")):
            return found
    return next((str(path) for path in map(machine.resolve, agent.traces) if path.exists()), "")


def _chosen(candidates: Iterable[Path]) -> Path:
    """Return the first file that exists, else the first whose folder does, or the folder above it, else the first."""
    paths = list(candidates)
    ranked = (*paths, *(path.parent for path in paths), *(path.parent.parent for path in paths))
    return next((paths[place % len(paths)] for place, path in enumerate(ranked) if path.exists()), paths[0])
