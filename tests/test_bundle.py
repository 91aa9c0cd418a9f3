"""`scripts/bundle`: a bundle for hosts of MCP servers, and an entry for the MCP registry."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

from mindex import __version__

ROOT = Path(__file__).parent.parent


def test_the_bundle_names_the_version_and_the_owner(tmp_path: Path) -> None:
    script = [sys.executable, str(ROOT / "scripts" / "bundle"), "--owner", "harbour", "--to", str(tmp_path)]
    subprocess.run(script, check=True, capture_output=True)
    with ZipFile(tmp_path / f"mindex-{__version__}.mcpb") as bundle:
        manifest = json.loads(bundle.read("manifest.json"))
        project = tomllib.loads(bundle.read("pyproject.toml").decode())
        compile(bundle.read("server.py"), "server.py", "exec")
    assert manifest["version"] == __version__
    assert "${__dirname}" in manifest["server"]["mcp_config"]["args"]
    assert project["project"]["dependencies"] == [f"mindex=={__version__}"]
    registry = json.loads((tmp_path / "server.json").read_text())
    assert registry["name"] == "io.github.harbour/mindex"
    assert {registry["version"], registry["packages"][0]["version"]} == {__version__}
    assert len(registry["description"]) <= 100  # the registry's limit


def test_the_plugin_has_the_version_of_the_program() -> None:
    plugin = ROOT / "plugins" / "claude-code"
    assert json.loads((plugin / ".claude-plugin" / "plugin.json").read_text())["version"] == __version__
    hooks = json.loads((plugin / "hooks" / "hooks.json").read_text())["hooks"]
    commands = [one["command"] for groups in hooks.values() for group in groups for one in group["hooks"]]
    assert commands == ["mindex"] * 5


def test_the_readme_has_the_name_that_the_registry_looks_for_in_the_package() -> None:
    owner = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mindex"]["owner"]
    readme = (ROOT / "README.md").read_text("utf-8")
    assert f"<!-- mcp-name: io.github.{owner}/mindex -->" in readme
    assert f"git+https://github.com/{owner}/mindex" in readme
