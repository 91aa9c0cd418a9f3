"""Hooks of mkdocs: add the pages at the root of the repository, and refuse content from other hosts."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
BESIDE_DOCS = ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
HOME = "index.md"  # made of the README

_TABLE_ROW, _CODE = re.compile(r"^\|.*$", re.MULTILINE), re.compile(r"`[^`]*`")
_OUTSIDE_THE_SITE = re.compile(r"\[([^]]+)]\(examples/[^)]*\)")
_LOADED_FROM_ELSEWHERE = re.compile(
    r"""<(?:script|img|iframe)\b[^>]*\bsrc=["']?(?:https?:)?//"""
    r"""|<link\b(?=[^>]*\brel=["']?(?:stylesheet|preconnect|preload|icon))[^>]*\bhref=["']?(?:https?:)?//"""
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are at the root of the repository. The README is the home page."""
    for name in BESIDE_DOCS:
        files.append(File.generated(config, name, content=_root_page(name)))
    if files.get_file_from_path(HOME) is None:
        files.append(File.generated(config, HOME, content=_OUTSIDE_THE_SITE.sub(r"\1", _root_page("README.md"))))
    return files


def _root_page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")


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
