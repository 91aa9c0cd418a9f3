"""Real text to measure with: the documentation and docstrings of the packages that are installed here.

Nothing is fetched and nothing is random: files are taken in the order of a hash of their paths, so that any number of
them is a fair mixture and the same on every run.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import sysconfig
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from mindex.files.chunker import chunk_markdown

_PROSE = (".md", ".rst", ".txt")
# Packages below the standard library are another environment's, or ours by another way.
_PASSED_BY = ("site-packages", "dist-packages", "__pycache__", "test", "tests")
_SHORTEST, _LONGEST = 400, 200_000
_HEADING = re.compile(r"^(?:#+ +\S.*|\*\*\w+\*\*)$", re.MULTILINE)
_SENTENCE = re.compile(r"^(.+?[.!?])(?:\s|$)", re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+|\n\s*\n|\n\s*[-*|#]\s*")
_SHORTEST_SENTENCE, _LONGEST_SENTENCE = 30, 400
_WORD = re.compile(r"[A-Za-z]{2,}")


@dataclass(frozen=True, slots=True)
class Text:
    """One file of the corpus."""

    name: str
    body: str


@dataclass(frozen=True, slots=True)
class Passage:
    """One chunk of it, as mindex cuts it."""

    title: str
    text: str


def texts(most: int | None = None) -> list[Text]:
    """Documentation files, and one markdown file per module that has docstrings."""
    return list(islice(_texts(), most))


def _texts() -> Iterator[Text]:
    files: dict[str, Path] = {}
    for root in sorted({Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")}):
        for folder, below, names in os.walk(root):
            below[:] = [name for name in below if name not in _PASSED_BY]
            files |= {(Path(folder) / name).relative_to(root).as_posix(): Path(folder) / name for name in names}
    seen: set[str] = set()
    for name in sorted(files, key=_order):
        body = _body(files[name])
        digest = _order(body)
        if len(body) >= _SHORTEST and digest not in seen:  # licences and vendored copies come many times
            seen.add(digest)
            # No folder keeps its name: an index leaves out what is called `venv` or `build`.
            yield Text(re.sub(r"[^\w/-]", "_", name).replace("/", "_/") + ".md", body)


def _order(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _body(path: Path) -> str:
    is_prose = path.suffix.lower() in _PROSE or path.name == "METADATA"
    if not (is_prose or path.suffix == ".py"):
        return ""
    try:
        if path.stat().st_size > _LONGEST:
            return ""
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
    body = text if is_prose else _documented(text, path.stem)
    return "" if "\0" in body else body  # mindex would take it for a binary file


def _documented(source: str, module: str) -> str:
    """A module's docstrings as a markdown page, a section per class."""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return ""
    parts = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            told = ast.get_docstring(node)
            if told:
                parts.append(f"{_title(node, module)}\n\n{told}")
    return "\n\n".join(parts)


def _title(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, module: str) -> str:
    if isinstance(node, ast.Module):
        return f"# {module}"
    return f"## {node.name}" if isinstance(node, ast.ClassDef) else f"**{node.name}**"


def passages(corpus: Sequence[Text], most: int | None = None) -> list[Passage]:
    """The chunks of all texts, each once."""
    found: dict[str, Passage] = {}
    for text in corpus:
        for chunk in chunk_markdown(text.body).chunks:
            found.setdefault(chunk.text, Passage(" > ".join(chunk.breadcrumb), chunk.text))
            if len(found) == most:
                return list(found.values())
    return list(found.values())


def sentences(corpus: Sequence[Text], most: int) -> list[str]:
    """Sentences and lines of at least thirty characters, with letters for the most part, each once."""
    found: dict[str, None] = {}
    for text in corpus:
        for line in _SENTENCE_END.split(text.body):
            words = " ".join(line.split())[:_LONGEST_SENTENCE]
            if len(words) >= _SHORTEST_SENTENCE and 2 * len(_WORD.findall(words)) > len(words.split()):
                found[words] = None
                if len(found) == most:
                    return list(found)
    return list(found)


def varied(known: Sequence[Passage], count: int) -> Iterator[Passage]:
    """As many passages as asked for: the real ones, then the first half of one with the second half of another."""
    for index in range(count):
        round_, place = divmod(index, len(known))
        passage = known[place]
        if round_:
            other = known[(place + round_ * 7919) % len(known)].text
            mixed = f"{passage.text[: len(passage.text) // 2]} {other[len(other) // 2 :]}"
            passage = Passage(passage.title, mixed)
        yield passage


def questions(corpus: Sequence[Text], count: int) -> list[str]:
    """First sentences of docstrings and of the text below headings; each only once."""
    asked: dict[str, None] = {}
    for text in corpus:
        for heading in list(_HEADING.finditer(text.body))[:8]:
            below = text.body[heading.end() : heading.end() + 400].strip()
            sentence = _SENTENCE.match(below)
            words = " ".join((sentence[1] if sentence else "").split())
            if 4 <= len(_WORD.findall(words)) <= 20 and not re.search(r'["*{}():|<>`]', words):
                asked[words] = None
            if len(asked) == count:
                return list(asked)
    # A small corpus: ask about its words, three sentences apart.
    known = list(asked)
    for index in range(count - len(known)):
        parts = [known[(index * step) % len(known)].split() for step in (1, 3, 7)] if known else [[str(index)]]
        asked[" ".join([*(part[index % len(part)] for part in parts), "number", str(index)])] = None
    return list(asked)


def write_folder(corpus: Sequence[Text], folder: Path, seconds: int) -> None:
    """The texts as files that were last changed at a given time, long before they are indexed."""
    for text in corpus:
        path = folder / text.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.body, encoding="utf-8")
        os.utime(path, (seconds, seconds))
