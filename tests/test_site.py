"""The hooks of the site. `mkdocs build --strict`, which checks links and pages, is one of the static checks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

ROOT = Path(__file__).parent.parent
Build = Callable[..., Path]

pytestmark = pytest.mark.slow


@pytest.fixture
def site(tmp_path: Path) -> Build:
    """Build a site of these pages, with the settings of the real one. Returns its folder."""

    def made(**pages: str) -> Path:
        for name, text in pages.items():
            (tmp_path / "docs").mkdir(exist_ok=True)
            (tmp_path / "docs" / f"{name}.md").write_text(text, encoding="utf-8")
        folder = tmp_path / "site"
        settings = {"docs_dir": str(tmp_path / "docs"), "site_dir": str(folder), "nav": [{"Home": "index.md"}]}
        build(load_config(str(ROOT / "scripts" / "mkdocs.yml"), **settings))
        return folder

    return made


@pytest.mark.parametrize(
    "loads",
    [
        '<script src="https://cdn.example/a.js"></script>',
        '<link href="//fonts.example/css" rel="stylesheet">',
        '<link rel="preconnect" href="https://fonts.example">',
        "![a picture](http://pictures.example/a.png)",
    ],
)
def test_a_page_that_loads_something_from_another_host_is_refused(
    site: Build, loads: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(Abort):
        site(index=f"# Home\n\n{loads}\n")
    assert "index.md loads something from another host" in caplog.text


def test_a_page_links_to_other_hosts_and_loads_only_from_its_own(site: Build) -> None:
    text = (site(index="# Home\n\n[elsewhere](https://example.org)\n") / "index.html").read_text(encoding="utf-8")
    assert 'href="https://example.org"' in text


def test_the_home_page_is_the_readme(site: Build) -> None:
    text = (site(quality="# Quality") / "index.html").read_text(encoding="utf-8")
    assert "one memory for all the AI clients" in text
    assert 'href="quality.html' in text
    assert "examples/handbook</a>" not in text


def test_pages_beside_docs_are_part_of_the_site_and_links_lead_to_them(site: Build) -> None:
    folder = site(index="# Home\n\n[words](../ARCHITECTURE.md#glossary)", secrets="# Secrets")
    assert 'href="ARCHITECTURE.html#glossary"' in (folder / "index.html").read_text(encoding="utf-8")
    assert 'href="secrets.html"' in (folder / "SECURITY.html").read_text(encoding="utf-8")


def test_a_bar_in_the_code_of_a_table_has_no_backslash(site: Build) -> None:
    folder = site(index="# Home\n\n| a | b |\n|---|---|\n| `x\\|y` | z |\n")
    assert "<td><code>x|y</code></td>\n<td>z</td>" in (folder / "index.html").read_text(encoding="utf-8")
