"""Real agents, with a scripted model: installed by `mindex install`, connected, and the answer reaches the model.

Runs where the programs are: on the PATH, or in the folders of MINDEX_TEST_AGENTS (as PATH has them; with Node ≥ 22):

    npm install @anthropic-ai/claude-code @openai/codex opencode-ai @google/gemini-cli
    MINDEX_TEST_AGENTS=$PWD/node_modules/.bin pytest tests/clients/test_real_agents.py -m ""
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mindex.memory import Memory
from tests.clients.scripted_model import DONE, ScriptedModel

SOURCE = Path(__file__).parent.parent.parent / "src"
# Read when the module is: a test's own environment has no variables of mindex.
PROGRAMS = os.pathsep.join(filter(None, [os.environ.get("MINDEX_TEST_AGENTS"), os.environ.get("PATH")]))
QUESTION = "which door code opens the harbour office"
OFFLINE = {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"}
FACT = "The door code of the harbour office is written on the blue card"

pytestmark = [pytest.mark.slow, pytest.mark.server, pytest.mark.model]


class Desk:
    """A separate home with the program `mindex`, one memory in the default database, and a project folder."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "desk"
        self.project = self.home / "harbour"
        self.project.mkdir(parents=True)
        self.program = self.home / "bin" / "mindex"
        self.program.parent.mkdir()
        code = f"import sys; sys.path.insert(0, {str(SOURCE)!r}); from mindex.cli.main import main; main()"
        self.program.write_text(f"#!{sys.executable}\n{code}\n")
        self.program.chmod(0o755)
        (self.home / ".config" / "mindex").mkdir(parents=True)
        (self.home / ".config" / "mindex" / "config.toml").write_text('[embedding]\nprovider = "none"\n')
        self.environment = {"HOME": str(self.home), "PATH": PROGRAMS, "TERM": "dumb", "CI": "1", "NO_COLOR": "1"}
        with Memory(self.home / ".local/share/mindex/memory.db", options={"embedding.provider": "none"}) as memory:
            memory.add(FACT)

    def run(self, *command: object, **variables: str) -> str:
        done = subprocess.run(
            list(map(str, command)), cwd=self.project, env={**self.environment, **variables}, capture_output=True,
            encoding="utf-8", stdin=subprocess.DEVNULL, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout + done.stderr


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def needs(program: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    there = shutil.which(program, path=PROGRAMS)
    return pytest.mark.skipif(there is None, reason=f"the program {program} is not here")


def answered(model: ScriptedModel) -> str:
    """The request of the model that holds our answer to the tool call."""
    requests = [json.dumps(body) for body in model.requests]
    assert FACT not in requests[0]
    holding = [text for text in requests if FACT in text]
    assert holding, [text[-1500:] for text in requests]
    return holding[0]


@needs("claude")
def test_claude_code_gets_an_answer(desk: Desk) -> None:
    desk.run(desk.program, "install", "claude-code")
    assert "✔ Connected" in desk.run("claude", "mcp", "list")
    with ScriptedModel(QUESTION) as model:
        said = desk.run(
            "claude", "-p", QUESTION, "--allowedTools", "mcp__mindex__search",
            ANTHROPIC_BASE_URL=model.address, ANTHROPIC_API_KEY="dummy", ENABLE_TOOL_SEARCH="false",
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
            MCP_CONNECTION_NONBLOCKING="0",  # else the first turn goes out before any server has answered
        )  # fmt: skip
        assert "tool_result" in answered(model)
    assert DONE in said


@needs("codex")
def test_codex_gets_an_answer(desk: Desk) -> None:
    settings = desk.home / ".codex" / "config.toml"
    settings.parent.mkdir()
    with ScriptedModel(QUESTION) as model:
        settings.write_text(
            'model = "scripted"\nmodel_provider = "loopback" # for the test\n\n'
            '[model_providers.loopback]\nname = "loopback"\nwire_api = "responses"\n'
            f'base_url = "{model.address}/v1"\n\n'
            "[mcp_servers.mindex]\nrequired = true # else the first turn may go out before the server has answered\n"
        )
        desk.run(desk.program, "install", "codex")
        assert "# for the test" in settings.read_text()
        assert "enabled" in desk.run("codex", "mcp", "list")
        said = desk.run("codex", "exec", "--skip-git-repo-check", "--json", QUESTION)
        assert "function_call_output" in answered(model)
    assert DONE in said


@needs("opencode")
def test_opencode_gets_an_answer(desk: Desk) -> None:
    settings = desk.home / ".config" / "opencode" / "opencode.jsonc"
    settings.parent.mkdir()
    with ScriptedModel(QUESTION) as model:
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "loopback",
            "options": {"baseURL": f"{model.address}/v1", "apiKey": "dummy"},
            "models": {"scripted": {"name": "scripted"}},
        }
        text = json.dumps({"provider": {"loopback": provider}, "model": "loopback/scripted"}, indent=2)
        settings.write_text(text.replace("{", "{ // for the test", 1))
        desk.run(desk.program, "install", "opencode")
        assert "// for the test" in settings.read_text()
        assert "mindex" in (listed := desk.run("opencode", "mcp", "list", **OFFLINE))
        assert "connected" in listed
        said = desk.run("opencode", "run", QUESTION, **OFFLINE)
        assert '"tool"' in answered(model)
    assert DONE in said


@needs("gemini")
def test_gemini_gets_an_answer(desk: Desk) -> None:
    settings = desk.home / ".gemini" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{\n  "security": {"auth": {"selectedType": "gemini-api-key"}} // for the test\n}\n')
    (settings.parent / "trustedFolders.json").write_text(json.dumps({str(desk.project): "TRUST_FOLDER"}))
    desk.run(desk.program, "install", "gemini")
    assert "// for the test" in settings.read_text()
    assert "Connected" in desk.run("gemini", "mcp", "list", GEMINI_API_KEY="dummy")
    with ScriptedModel(QUESTION) as model:
        said = desk.run(
            "gemini", "--allowed-mcp-server-names", "mindex", "--yolo", "-m", "gemini-2.5-flash", "-p", QUESTION,
            GOOGLE_GEMINI_BASE_URL=model.address, GEMINI_API_KEY="dummy",
        )  # fmt: skip
        assert "functionResponse" in answered(model)
    assert DONE in said
