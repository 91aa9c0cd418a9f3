"""Hooks in real agents, with a scripted model: what they say reaches it, what was said is stored.

Runs where the programs are; see tests/clients/test_real_agents.py.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from mindex.memory import Memory
from tests.clients.scripted_model import DONE, ScriptedModel
from tests.clients.test_real_agents import FACT, OFFLINE, PROGRAMS, QUESTION, Desk, needs

PLUGINS = Path(__file__).parent.parent.parent / "plugins"
PREFERENCE = "I prefer short answers."
DECISION = "We decided to paint the harbour office green."

pytestmark = [pytest.mark.slow, pytest.mark.server, pytest.mark.model]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    desk.environment["PATH"] = os.pathsep.join([str(desk.program.parent), PROGRAMS])
    with Memory(desk.home / ".local/share/mindex/memory.db", options={"embedding.provider": "none"}) as memory:
        memory.add(PREFERENCE, type="preference")
    return desk


def hooks(desk: Desk, client: str, events: dict[str, str], timeout: int) -> dict[str, object]:
    """The hooks of an agent's settings."""
    return {
        name: [{"hooks": [{"type": "command", "command": f"{desk.program} hook {event} --client {client}",
                           "timeout": timeout}]}]
        for name, event in events.items()
    }  # fmt: skip


def check(desk: Desk, model: ScriptedModel) -> None:
    """What the hooks said is in the model's prompt, and the turn is found by a search."""
    asked = next(text for text in map(json.dumps, model.requests) if "door code opens" in text)
    for part in ("mindex-recall", FACT, "mindex-start", PREFERENCE):
        assert part in asked, asked[-3000:]
    found = json.loads(desk.run(desk.program, "search", "--json", "--kind", "turn", "door code harbour office"))
    turns = [row["text"] for row in found["results"] if "door code opens" in row["text"]]
    assert len(turns) == 1
    assert DONE in turns[0]
    assert "mindex-" not in turns[0]
    assert not (desk.home / ".local/share/mindex/hooks.log").exists()


@needs("claude")
def test_the_plugin_for_claude_code_is_valid_recalls_and_stores(desk: Desk) -> None:
    plugin = PLUGINS / "claude-code"
    desk.run("claude", "plugin", "validate", plugin, "--strict")
    desk.run("claude", "plugin", "validate", plugin / ".claude-plugin" / "plugin.json", "--strict")
    desk.run("claude", "plugin", "marketplace", "add", plugin)
    desk.run("claude", "plugin", "install", "mindex@mindex")
    assert "SessionStart, UserPromptSubmit, Stop" in desk.run("claude", "plugin", "details", "mindex")
    assert "✔ Connected" in desk.run("claude", "mcp", "list")
    with ScriptedModel(QUESTION) as model:
        for prompt in (QUESTION, DECISION):
            desk.run(
                "claude", "-p", prompt, ANTHROPIC_BASE_URL=model.address, ANTHROPIC_API_KEY="dummy",
                CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
            )  # fmt: skip
        check(desk, model)
        second = next(text for text in map(json.dumps, model.requests) if DECISION in text)
    assert "last session" in second
    assert DECISION in desk.run(desk.program, "timeline", "--source", "hook", "--kind", "memory")


@needs("codex")
def test_hooks_of_codex_recall_and_store(desk: Desk) -> None:
    folder = desk.home / ".codex"
    folder.mkdir()
    events = {"SessionStart": "session-start", "UserPromptSubmit": "prompt", "Stop": "stop"}
    (folder / "hooks.json").write_text(json.dumps({"hooks": hooks(desk, "codex", events, 20)}))
    with ScriptedModel(QUESTION) as model:
        (folder / "config.toml").write_text(
            'model = "scripted"\nmodel_provider = "loopback"\n\n[features]\nhooks = true\n\n'
            '[model_providers.loopback]\nname = "loopback"\nwire_api = "responses"\n'
            f'base_url = "{model.address}/v1"\n'
        )
        # A user is asked once whether to trust new hooks; here there is no user to ask.
        desk.run("codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "--json", QUESTION)
        check(desk, model)


@needs("gemini")
def test_hooks_of_gemini_recall_and_store(desk: Desk) -> None:
    settings = desk.home / ".gemini" / "settings.json"
    settings.parent.mkdir()
    events = {"SessionStart": "session-start", "BeforeAgent": "prompt", "AfterAgent": "stop"}
    own = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "hooks": hooks(desk, "gemini", events, 20_000)}
    settings.write_text(json.dumps(own))
    (settings.parent / "trustedFolders.json").write_text(json.dumps({str(desk.project): "TRUST_FOLDER"}))
    with ScriptedModel(QUESTION) as model:
        desk.run(
            "gemini", "--yolo", "-m", "gemini-2.5-flash", "-p", QUESTION,
            GOOGLE_GEMINI_BASE_URL=model.address, GEMINI_API_KEY="dummy",
        )  # fmt: skip
        check(desk, model)


@needs("opencode")
def test_the_plugin_for_opencode_recalls_and_stores(desk: Desk) -> None:
    folder = desk.home / ".config" / "opencode"
    (folder / "plugins").mkdir(parents=True)
    shutil.copy(PLUGINS / "opencode" / "mindex.js", folder / "plugins")
    with ScriptedModel(QUESTION) as model:
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "loopback",
            "options": {"baseURL": f"{model.address}/v1", "apiKey": "dummy"},
            "models": {"scripted": {"name": "scripted"}},
        }
        own = {"provider": {"loopback": provider}, "model": "loopback/scripted"}
        (folder / "opencode.json").write_text(json.dumps(own))
        desk.run("opencode", "run", QUESTION, **OFFLINE)
        check(desk, model)
