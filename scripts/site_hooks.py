"""Hooks of mkdocs: pages outside `docs`, pages that do not exist yet, and nothing from other hosts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
BESIDE_DOCS = ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md")
OPTIONAL_PAGES = ("hooks.md", "web.md")

_TABLE_ROW, _CODE = re.compile(r"^\|.*$", re.MULTILINE), re.compile(r"`[^`]*`")
_LOADED_FROM_ELSEWHERE = re.compile(
    r"""<(?:script|img|iframe)\b[^>]*\bsrc=["']?(?:https?:)?//"""
    r"""|<link\b(?=[^>]*\brel=["']?(?:stylesheet|preconnect|preload|icon))[^>]*\bhref=["']?(?:https?:)?//"""
)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Leave optional pages that do not exist out of the navigation."""
    absent = {name for name in OPTIONAL_PAGES if not (Path(config.docs_dir) / name).exists()}
    config.nav = _without(config.nav, absent)
    return config


def _without(nav: Any, absent: set[str]) -> Any:
    if not isinstance(nav, list):
        return nav
    return [
        {title: _without(target, absent) for title, target in entry.items()}
        for entry in nav
        if not absent.intersection(value for value in entry.values() if isinstance(value, str))
    ]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages outside `docs`, where a reader of the repository looks for them."""
    for name in BESIDE_DOCS:
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=text.replace("](docs/", "](")))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Point links that leave `docs` at the pages that `on_files` added, and write tables as Python-Markdown reads them.

    GitHub needs `\\|` for a bar in the code of a table's cell; Python-Markdown shows the backslash.
    """
    for name in BESIDE_DOCS:
        markdown = markdown.replace(f"](../{name}", f"]({name}")
    return _TABLE_ROW.sub(lambda row: _CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0]), markdown)


def on_post_page(output: str, *, page: Page, **_: object) -> str:
    """Refuse a page that loads a script, a style, a font or a picture from another host."""
    if found := _LOADED_FROM_ELSEWHERE.search(output):
        raise PluginError(f"{page.file.src_uri} loads something from another host: {found[0]}")
    return output
