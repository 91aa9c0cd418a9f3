"""The command that an agent starts as its MCP server, and whether it would start."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_WAIT_SECONDS = 30.0
_UV_CACHE = {"archive-v0", "environments-v2"}  # folders of uv's cache, in which `uvx` makes environments that go again
_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "mindex-install", "version": "1"},
    },
}


def program(script: str = "", executable: str = "", prefix: str = "") -> tuple[str, ...]:
    """Return the command that starts mindex as it runs now; the arguments replace the values of `sys`.

    That is the program `mindex` by its full path, since agents that are started from a desktop have another PATH; a
    link to it is kept, since an update replaces what it points to. Without a program it is `python -m mindex`.
    """
    executable = executable or sys.executable
    if _UV_CACHE.intersection(Path(prefix or sys.prefix).parts):
        return (shutil.which("uvx") or "uvx", "mindex")
    called = Path(script or sys.argv[0])
    beside = Path(executable).parent / "mindex"
    for path in (called, called.with_suffix(".exe"), beside, beside.with_suffix(".exe")):
        if path.stem == "mindex" and path.is_file() and os.access(path, os.X_OK):
            return (str(path.absolute()),)
    return (executable, "-m", "mindex")


def server_command(start: Sequence[str], options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the whole command: `mindex serve` with these options, of which empty ones are left out."""
    given = [part for name, value in options.items() if value for part in (f"--{name}", value)]
    return (*start, "serve", *given)


def project_agent_name(folder: Path) -> str:
    """Return the name of the scope for a project's memories: its folder's, in lower case and without blanks."""
    return re.sub(r"[^\w.-]+", "-", folder.name.lower()).strip("-.") or "project"


def start_problem(command: Sequence[str]) -> str:
    """Start the server and ask it for `initialize`. Returns why that failed, or '' when it answered."""
    try:
        done = subprocess.run(
            command, input=json.dumps(_INITIALIZE) + "\n", capture_output=True, timeout=_WAIT_SECONDS, encoding="utf-8",
            errors="replace", check=False,
        )  # fmt: skip
    except FileNotFoundError:
        return f"there is no program {command[0]}"
    except subprocess.TimeoutExpired:
        return f"no answer within {_WAIT_SECONDS:g} s"
    except (OSError, ValueError) as error:
        return f"{command[0]} cannot be started ({error})"
    if '"serverInfo"' in done.stdout:
        return ""
    said = done.stderr.strip().splitlines()
    return said[-1] if said else f"it ended with code {done.returncode} and no answer"


def program_exists(command: Sequence[str]) -> bool:
    """Return whether the first word is a program, without starting it."""
    return shutil.which(command[0]) is not None
