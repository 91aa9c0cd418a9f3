"""One's own notes: any folder with a `questions.yaml` in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import yaml

from mindex.errors import UsageError
from mindex.evaluate.sets import QUESTIONS_FILE, Lines, Question, QuestionSet, numbered_lines

_FIELDS = frozenset({"id", "question", "answer", "none", "category", "lines", "group"})
_LINES = re.compile(r"(\d+)(?:-(\d+))?")


class _Loader(yaml.SafeLoader):
    """Remembers where a question stands, so that an error can say it."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[object, object]:
    loader.flatten_mapping(node)
    return {**loader.construct_mapping(node, deep=True), "__line__": node.start_mark.line + 1}


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def read_notes(folder: Path, split: str) -> QuestionSet:
    """`- question: …`, `answer: path` or a list of paths, `lines: 10-40`, `category`, `group`, or `none: true`."""
    path = folder / QUESTIONS_FILE
    if split != "test":
        raise UsageError(f"{path} has no splits", "leave --split out")
    text = "\n".join(_whole(path))
    try:
        loaded = yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not YAML ({' '.join(str(error).split())})", "mend the file") from None
    if not isinstance(loaded, list) or not loaded:
        raise UsageError(f"{path} is not a list of questions", "write `- question: …` and `  answer: path`")
    questions = tuple(_question(folder, path, one, number) for number, one in enumerate(loaded, start=1))
    ids = [question.id for question in questions]
    for one in ids:
        if ids.count(one) > 1:
            raise UsageError(f"{path} asks '{one}' twice", "keep one of them, or give each an id")
    return QuestionSet(folder.resolve().name, folder, questions, root=folder)


def _whole(path: Path) -> list[str]:
    """Every line, the empty ones in their places."""
    lines: list[str] = []
    for number, line in numbered_lines(path):
        lines += [""] * (number - 1 - len(lines))
        lines.append(line)
    return lines


def _question(folder: Path, path: Path, given: object, number: int) -> Question:
    place = f"question {number} of {path}"
    if not isinstance(given, dict):
        raise UsageError(f"{place} is not a mapping", "write `- question: …` and `  answer: path`")
    place = f"{path}:{given.pop('__line__')}"
    unknown = [str(name) for name in given if name not in _FIELDS]
    if unknown:
        raise UsageError(f"{place} says '{unknown[0]}', which means nothing", f"use {', '.join(sorted(_FIELDS))}")
    text = given.get("question")
    if not isinstance(text, str) or not text.strip():
        raise UsageError(f"{place} has no question", "write `- question: …`")
    labels = {"category": str(given["category"])} if given.get("category") else {}
    id_ = str(given.get("id") or text)
    group = str(given.get("group") or "").strip("/")
    if group and not (folder / group).is_dir():
        raise UsageError(f"{place} names the group {group}, which is no folder of {folder}", "name a folder below it")
    if given.get("none") is True:
        if given.get("answer"):
            raise UsageError(f"{place} has an answer and says there is none", "keep one of the two")
        return Question(id_, text, group=group, labels=labels, silent=True)
    paths = _paths(folder, given, place)
    lines = _lines(given, paths, place)
    gains = {one.id: 1 for one in lines} or dict.fromkeys(paths, 1)
    return Question(id_, text, gains, group, labels, lines=lines)


def _paths(folder: Path, given: Mapping[object, object], place: str) -> list[str]:
    answer = given.get("answer")
    paths = answer if isinstance(answer, list) else [answer]
    if not paths or not all(isinstance(one, str) and one.strip() for one in paths):
        raise UsageError(f"{place} has no answer", "name the file that answers it, or write `none: true`")
    found = [Path(str(one)).as_posix().removeprefix("./") for one in paths]
    for one in found:
        if not (folder / one).is_file():
            raise UsageError(f"{place} names {one}, which is not in {folder}", "write the path below the folder")
    return found


def _lines(given: Mapping[object, object], paths: list[str], place: str) -> tuple[Lines, ...]:
    said = given.get("lines")
    if said is None:
        return ()
    read = _LINES.fullmatch(str(said).strip())
    if read is None or len(paths) != 1 or int(read[1]) < 1 or int(read[2] or read[1]) < int(read[1]):
        raise UsageError(f"lines of {place} make no sense", "write `lines: 10-40` with one file as the answer")
    return (Lines(paths[0], int(read[1]), int(read[2] or read[1])),)
