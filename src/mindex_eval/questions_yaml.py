"""Reads question sets made of a user's own notes: any folder with a `questions.yaml`."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from pathlib import Path

import yaml

from mindex.datatypes import SkippedFile
from mindex.errors import UsageError
from mindex.evaluation_parts import IGNORE_FILES, SUFFIXES, BinaryFile, decode, scan
from mindex_eval.question_sets import CATEGORIES, QUESTIONS_FILE, Lines, Question, QuestionSet, labels_of, read_text

_FIELDS = ("id", "question", "answer", "none", "lines", "group", "adversarial")
_LINES = re.compile(r"(\d+)(?:-(\d+))?")
# An unknown field this similar to a known one is more likely a typo: `anwser`, `line`, `dificulty`.
_ALIKE = 0.8
_AS_WRITTEN = "begin each with `- question: …` and write `answer: path` below it, two spaces further in"


class _Loader(yaml.SafeLoader):
    """Keeps the line of each question, so that an error can name it."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[object, object]:
    loader.flatten_mapping(node)
    return {**loader.construct_mapping(node, deep=True), "__line__": node.start_mark.line + 1}


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def read_questions_yaml(folder: Path, split: str) -> QuestionSet:
    """`- question: …`, `answer: path` or a list of paths, `lines: 10-40`, `id`, `group`, or `none: true`.

    Further fields of a question are labels to split the table by.
    """
    path = folder / QUESTIONS_FILE
    if split != "test":
        raise UsageError(f"{path} has no splits", "leave --split out")
    text = "\n".join(line if line.strip() else "" for line in read_text(path).split("\n")).rstrip("\n")
    try:
        loaded = yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not YAML ({' '.join(str(error).split())})", "fix the file") from None
    if not isinstance(loaded, list) or not loaded:
        raise UsageError(f"{path} is not a list of questions", _AS_WRITTEN)
    notes = _Notes.below(folder)
    questions = tuple(_question(notes, path, one, number) for number, one in enumerate(loaded, start=1))
    for one, count in Counter(question.id for question in questions).items():
        if count > 1:
            raise UsageError(f"{path} asks '{one}' twice", "keep one of them, or give each an id")
    return QuestionSet(folder.resolve().name, folder, questions, root=folder)


# ── the files ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Notes:
    """The folder and its indexable files: only these can be an answer."""

    folder: Path
    files: frozenset[str]
    skipped: Mapping[str, str]  # path → why

    @classmethod
    def below(cls, folder: Path) -> _Notes:
        found = list(scan(folder, max_bytes=sys.maxsize))
        skipped = {one.path: one.reason for one in found if isinstance(one, SkippedFile)}
        return cls(folder, frozenset(one.path for one in found) - skipped.keys(), skipped)

    def path_of(self, named: str, place: str) -> str:
        """The path as the index has it: relative to the folder, with `/`."""
        path = Path(os.path.relpath(self.folder / named, self.folder)).as_posix()
        if path.startswith("../") or path == "..":
            raise UsageError(f"{place} names {named}, which is outside {self.folder}", "name a file or folder below it")
        return path

    def file_of(self, named: str, place: str) -> str:
        path = self.path_of(named, place)
        names = f"{place} names {named}, which"
        if not (self.folder / path).is_file():
            raise UsageError(f"{names} is not in {self.folder}", "write the path below the folder")
        if not path.lower().endswith(SUFFIXES):
            kinds = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
            raise UsageError(f"{names} has an unsupported file type", f"use {kinds}")
        if path in self.skipped:
            raise UsageError(f"{names} is not indexed: {self.skipped[path]}", "name a file that is")
        if path not in self.files:
            ignored = " and ".join(IGNORE_FILES)
            raise UsageError(f"{names} is not indexed", f"look for it in {ignored}, for a link, or for its spelling")
        return path

    def lines_of(self, path: str, place: str) -> list[str]:
        try:
            return decode((self.folder / path).read_bytes()).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        except BinaryFile as error:
            raise UsageError(f"{place} names {path}, which is not indexed: {error}", "name a text") from None
        except OSError as error:
            raise UsageError(f"{place} names {path}, which cannot be read: {error.strerror}", "check it") from None


# ── the questions ─────────────────────────────────────────────────────────────────────────────────────────────


def _question(notes: _Notes, path: Path, given: object, number: int) -> Question:
    place = f"question {number} of {path}"
    if not isinstance(given, dict):
        raise UsageError(f"{place} is not a mapping", _AS_WRITTEN)
    place = f"{path}:{given.pop('__line__')}"
    fields = {str(name): value for name, value in given.items()}
    _check_fields(fields, place)
    text = fields.get("question")
    if not isinstance(text, str) or not text.strip():
        raise UsageError(f"{place} has no question", "write `- question: …`")
    id_ = text if fields.get("id") in (None, "") else str(fields["id"])
    labels, misleads = labels_of(fields, _FIELDS), fields.get("adversarial") is True
    group = _group(notes, fields, place)
    if fields.get("none") is True:
        if fields.get("answer"):
            raise UsageError(f"{place} has an answer and says there is none", "keep one of the two")
        return Question(id_, text, group=group, labels=labels, adversarial=misleads, silent=True)
    paths = _paths(notes, fields, group, place)
    lines = _lines(notes, fields, paths, place)
    gains = {one.id: 1 for one in lines} or dict.fromkeys(paths, 1)
    return Question(id_, text, gains, group, labels, misleads, lines=lines)


def _check_fields(fields: Mapping[str, object], place: str) -> None:
    """Further fields are allowed, unless they look like a misspelt known one."""
    known = (*_FIELDS, *CATEGORIES)
    for name in fields:
        meant = [] if name in known else get_close_matches(name.lower(), known, n=1, cutoff=_ALIKE)
        if meant:
            hint = f"write '{meant[0]}', or choose a name less like it"
            raise UsageError(f"unknown field '{name}' in {place}", hint)
        if name not in _FIELDS and not isinstance(fields[name], str | int | float | date | None):
            raise UsageError(f"{name} of {place} is not one word or number", "write one, or leave the field out")


def _group(notes: _Notes, fields: Mapping[str, object], place: str) -> str:
    named = str(fields.get("group") or "").strip("/")
    if not named:
        return ""
    group = notes.path_of(named, place)
    if not (notes.folder / group).is_dir():
        problem = f"{place} names the group {named}, which is not a folder of {notes.folder}"
        raise UsageError(problem, "name a folder below it")
    return "" if group == "." else group


def _paths(notes: _Notes, fields: Mapping[str, object], group: str, place: str) -> list[str]:
    answer = fields.get("answer")
    named = answer if isinstance(answer, list) else [answer]
    if not named or not all(isinstance(one, str) and one.strip() for one in named):
        raise UsageError(f"{place} has no answer", "name the file that answers it, or write `none: true`")
    paths = [notes.file_of(str(one), place) for one in named]
    for path in paths:
        if group and not path.startswith(f"{group}/"):
            problem = f"{place} is put to the group {group}, and its answer {path} is not there"
            raise UsageError(problem, "fix one of the two")
        notes.lines_of(path, place)
    return paths


def _lines(notes: _Notes, fields: Mapping[str, object], paths: list[str], place: str) -> tuple[Lines, ...]:
    if fields.get("lines") is None:
        return ()
    read = _LINES.fullmatch(str(fields["lines"]).strip())
    if read is None or len(paths) != 1 or int(read[1]) < 1 or int(read[2] or read[1]) < int(read[1]):
        raise UsageError(f"invalid `lines` in {place}", "write `lines: 10-40` with one file as the answer")
    named = Lines(paths[0], int(read[1]), int(read[2] or read[1]))
    written = notes.lines_of(named.path, place)
    if not any(line.strip() for line in written[named.first - 1 : named.last]):
        last = max((number for number, line in enumerate(written, start=1) if line.strip()), default=0)
        raise UsageError(
            f"{place} names {'lines' if read[2] else 'line'} {read[0]} of {named.path}, which are empty",
            f"its last line is {last}; fix `lines`, or remove it if the whole file is the answer",
        )
    return (named,)
