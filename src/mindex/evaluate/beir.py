"""Reads question sets in BEIR layout: `corpus.jsonl` or `files/`, `queries.jsonl`, `qrels/SPLIT.tsv`."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from mindex.errors import NotFoundError, UsageError
from mindex.evaluate.question_sets import Question, QuestionSet, Text, labels_of, numbered_lines

_QUERY_FIELDS = frozenset({"_id", "text", "group", "adversarial", "answer", "metadata"})


def read_beir(folder: Path, split: str) -> QuestionSet:
    corpus, files = folder / "corpus.jsonl", folder / "files"
    questions = _queries(folder / "queries.jsonl")
    if corpus.is_file():
        texts = _corpus(corpus)
        known = {text.id for text in texts}
        found = QuestionSet(folder.resolve().name, folder, (), texts, digest=_digest(corpus))
    elif files.is_dir():
        known = {path.relative_to(files).as_posix() for path in files.rglob("*") if path.is_file()}
        found = QuestionSet(folder.resolve().name, folder, (), root=files)
    else:
        raise NotFoundError(f"{folder} has neither corpus.jsonl nor files/", "put the documents there")
    if not known:
        raise UsageError(f"{corpus if corpus.is_file() else files} holds no document", "there is nothing to search")
    _check_groups(questions, found)
    gains, notes = _judgements(folder / "qrels" / f"{split}.tsv", known, set(questions))
    judged = tuple(replace(one, gains=gains[one.id]) for one in questions.values() if one.id in gains)
    left_out = {"not judged": len(questions) - len(judged)} if len(judged) < len(questions) else {}
    return replace(found, questions=judged, left_out=left_out, notes=notes)


def _check_groups(questions: Mapping[str, Question], found: QuestionSet) -> None:
    """Raise UsageError for a question whose group has no document; of real files, a group is a folder."""
    groups = {text.group for text in found.texts}
    for one in questions.values():
        if one.group and one.group not in groups and not (found.root and (found.root / one.group).is_dir()):
            raise UsageError(
                f"question '{one.id}' of {found.folder} belongs to '{one.group}', where there is no document",
                "mend its group",
            )


def _digest(path: Path) -> str:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


# ── lines of JSON ─────────────────────────────────────────────────────────────────────────────────────────────


def _objects(path: Path) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Each object with its place. Raises UsageError for a missing or repeated id."""
    seen: dict[str, int] = {}
    for number, line in numbered_lines(path):
        place = f"{path}:{number}"
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{place} is not JSON ({error})", "mend or remove the line") from None
        if not isinstance(value, dict):
            raise UsageError(f"{place} is not a JSON object", "each line is one object")
        id_ = _field(value, "_id", place)
        if not id_:
            raise UsageError(f"{place} has no _id", "give each line an _id of its own")
        if id_ in seen:
            raise UsageError(f"{place} has the _id '{id_}' of line {seen[id_]}", "give each line an _id of its own")
        seen[id_] = number
        yield place, value


def _field(value: Mapping[str, object], name: str, place: str) -> str:
    """A field as text; numbers are texts, too: `session: 1`."""
    found = value.get(name)
    if found is None:
        return ""
    if isinstance(found, bool) or not isinstance(found, str | int | float):
        raise UsageError(f"{name} in {place} is not a text", "write it in quotes")
    return str(found)


def _corpus(path: Path) -> tuple[Text, ...]:
    texts = []
    for place, value in _objects(path):
        text = Text(
            id=_field(value, "_id", place),
            text=_field(value, "text", place),
            title=_field(value, "title", place),
            group=_field(value, "group", place),
            speaker=_field(value, "speaker", place),
            date=_moment(_field(value, "date", place), place),
            session=_field(value, "session", place),
        )
        if not text.text.strip() and not text.title.strip():
            raise UsageError(f"{place} has neither text nor title", "mend or remove the line")
        texts.append(text)
    return tuple(texts)


def _moment(date: str, place: str) -> str:
    """A date as ISO 8601 with zone; without one it is UTC, so that it is the same on every machine."""
    if not date:
        return ""
    try:
        moment = datetime.fromisoformat(date)
    except ValueError:
        raise UsageError(f"date in {place} is not a time: '{date}'", "write it as ISO 8601") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()


def _queries(path: Path) -> dict[str, Question]:
    questions = {}
    for place, value in _objects(path):
        text = _field(value, "text", place)
        if not text.strip():
            raise UsageError(f"{place} has no text", "mend or remove the line")
        id_ = _field(value, "_id", place)
        questions[id_] = Question(
            id_,
            text,
            {},
            _field(value, "group", place),
            labels_of(value, _QUERY_FIELDS),
            value.get("adversarial") is True,
        )
    if not questions:
        raise UsageError(f"{path} holds no question", "there is nothing to ask")
    return questions


# ── judgements ────────────────────────────────────────────────────────────────────────────────────────────────


def _judgements(path: Path, known: set[str], asked: set[str]) -> tuple[dict[str, dict[str, int]], tuple[str, ...]]:
    """Gains by question and document, and notes about judgements of unknown questions or documents."""
    gains: dict[str, dict[str, int]] = {}
    strange: Counter[str] = Counter()
    first: dict[str, str] = {}
    for number, line in numbered_lines(path):
        parts = line.split("\t")
        if number == 1 and not _is_number(parts[-1]):
            continue
        place = f"{path}:{number}"
        if len(parts) == 4:  # as TREC writes it: question, iteration, document, gain
            parts = [parts[0], *parts[2:]]
        if len(parts) != 3 or not _is_number(parts[2]):
            raise UsageError(f"{place} is not 'query-id, corpus-id, score' with tabs", "mend or remove the line")
        question, document, gain = parts[0].strip(), parts[1].strip(), int(float(parts[2]))
        what = "unknown questions" if question not in asked else "unknown documents" if document not in known else ""
        if what:
            strange[what] += 1
            first.setdefault(what, f"{place}: '{question if question not in asked else document}'")
        elif gain > 0:
            gains.setdefault(question, {})[document] = gain
    if not gains:
        raise UsageError(f"{path} judges no document of this set", "check the ids and the split")
    notes = tuple(
        f"{count} {'judgement' if count == 1 else 'judgements'} of {what} left out, the first at {first[what]}"
        for what, count in strange.items()
    )
    return gains, notes


def _is_number(text: str) -> bool:
    try:
        return float(text) == int(float(text))
    except (ValueError, OverflowError):
        return False
