"""The least MCP client: lines of JSON over a child's pipes. No SDK, so that only the server is measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from measure import Took, child_environment

BARE_SERVER = (sys.executable, str(Path(__file__).with_name("bare_server.py")))
_INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


def mindex_command(*arguments: object) -> list[str]:
    """The installed `mindex` of this interpreter."""
    script = Path(sys.executable).with_name("mindex.exe" if os.name == "nt" else "mindex")
    program = [str(script)] if script.exists() else [sys.executable, "-c", "from mindex.cli.main import main; main()"]
    return [*program, *map(str, arguments)]


class Server:
    """A server as a child process, from its start to the end of the `with` block."""

    def __init__(self, command: Sequence[str], work: Path) -> None:
        self._errors = (work / "server.log").open("ab")
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            command,
            env=child_environment(work),
            cwd=work,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        self._last = 0

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.communicate()
        self._errors.close()

    def initialize(self) -> Took:
        """The handshake: what it took since the process was started."""
        self.ask("initialize", _INITIALIZE)
        took = Took(time.perf_counter() - self.started, self.cpu())
        self._send({"method": "notifications/initialized"})
        return took

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """A tool's structured answer."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise RuntimeError(f"{tool} failed: {result['content']}")
        structured: dict[str, Any] = result["structuredContent"]
        return structured

    def ask(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        self._last += 1
        self._send({"id": self._last, "method": method, "params": parameters})
        assert self.process.stdout is not None
        for line in self.process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method} failed: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
        raise RuntimeError(f"the server went away; see {self._errors.name}")

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def cpu(self) -> float:
        """User and system time so far, where /proc tells it."""
        stat = Path(f"/proc/{self.process.pid}/stat")
        if not stat.exists():
            return 0.0
        fields = stat.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self, field: str = "VmRSS") -> int:
        """Bytes of one line of /proc/PID/status."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024
        raise LookupError(field)
