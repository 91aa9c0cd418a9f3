"""Reads question sets in BEIR layout: `corpus.jsonl` or `files/`, `queries.jsonl`, `qrels/SPLIT.tsv`."""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from mindex.errors import NotFoundError, UsageError
from mindex_eval.question_sets import Question, QuestionSet, Text, labels_of, numbered_lines

_QUERY_FIELDS = frozenset({"_id", "text", "group", "adversarial", "answer", "metadata", "none", "excerpts", "file"})
_TEXT_FIELDS = ("text", "title", "group", "speaker", "response", "date", "session")


def read_beir(folder: Path, split: str) -> QuestionSet:
    corpus, files = folder / "corpus.jsonl", folder / "files"
    questions = _queries(folder / "queries.jsonl")
    found = QuestionSet(folder.resolve().name, folder, ())
    if corpus.is_file():
        texts, notes = _corpus(corpus)
        found = replace(found, texts=texts, notes=notes, digest=hashlib.sha256(corpus.read_bytes()).hexdigest())
        known = {text.id for text in texts}
    elif files.is_dir():
        found = replace(found, root=files, digest=_files_digest(folder, split))
        known = {path.relative_to(files).as_posix() for path in files.rglob("*") if path.is_file()}
    else:
        raise NotFoundError(f"{folder} has neither corpus.jsonl nor files/", "put the documents there")
    if not known:
        raise UsageError(f"{found.root or corpus} holds no document", "there is nothing to search")
    _check_groups(questions, found)
    _check_files(questions, known)
    qrels = folder / "qrels" / f"{split}.tsv"
    by_themselves = split == "test" and not qrels.exists() and any(one.excerpts for one in questions.values())
    gains, notes = ({}, ()) if by_themselves else _judgements(qrels, known, questions)
    asked = [replace(one, gains=gains.get(one.id, one.gains)) for one in questions.values()]
    judged = tuple(one for one in asked if one.gains or one.silent)
    left_out = {"not judged": len(asked) - len(judged)} if len(judged) < len(asked) else {}
    return replace(found, questions=judged, left_out=left_out, notes=(*found.notes, *notes))


def _files_digest(folder: Path, split: str) -> str:
    """A digest of every file of the set, as notes about a memory depend on its questions; empty with links in it."""
    digest = hashlib.sha256(f"{folder.resolve()}\0{split}".encode("utf-8", "surrogateescape"))
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            return ""
        if path.is_file():
            stat = path.stat()
            name = path.relative_to(folder).as_posix()
            digest.update(f"\0{name}\0{stat.st_mtime_ns}\0{stat.st_size}\0".encode("utf-8", "surrogateescape"))
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _check_files(questions: Mapping[str, Question], known: Collection[str]) -> None:
    """Raise UsageError for a question whose `file` is not a document."""
    for one in questions.values():
        if unknown := one.gains.keys() - known:
            problem = f"question '{one.id}' names the file '{min(unknown)}', which is not in the set"
            raise UsageError(problem, "write its path below files/")


def _check_groups(questions: Mapping[str, Question], found: QuestionSet) -> None:
    """Raise UsageError for a question whose group has no document; of real files, a group is a folder."""
    groups = {text.group for text in found.texts}
    for one in questions.values():
        if one.group and one.group not in groups and not (found.root and (found.root / one.group).is_dir()):
            problem = f"question '{one.id}' of {found.folder} belongs to '{one.group}', which has no documents"
            raise UsageError(problem, "fix its group")


# ── lines of JSON ─────────────────────────────────────────────────────────────────────────────────────────────


def _objects(path: Path) -> Iterator[tuple[str, str, Mapping[str, object]]]:
    """The id of each object, its place, and the object. Raises UsageError for a missing or repeated id.

    An object that differs from an earlier one in its date alone is that one again, and is returned again.
    """
    seen: dict[str, tuple[int, Mapping[str, object]]] = {}
    for number, line in numbered_lines(path):
        place = f"{path}:{number}"
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{place} is not JSON ({error})", "fix or remove the line") from None
        if not isinstance(value, dict):
            raise UsageError(f"{place} is not a JSON object", "each line is one object")
        id_ = _field(value, "_id", place)
        if not id_:
            raise UsageError(f"{place} has no _id", "give each line a unique _id")
        earlier, same = seen.setdefault(id_, (number, value))
        if value | {"date": ""} != {**same, "date": ""}:
            raise UsageError(f"{place} has the _id '{id_}' of line {earlier}", "give each line a unique _id")
        yield id_, place, value


def _field(value: Mapping[str, object], name: str, place: str) -> str:
    """A field as text; numbers are also accepted: `session: 1`."""
    found = value.get(name)
    if found is None:
        return ""
    if isinstance(found, bool) or not isinstance(found, str | int | float):
        raise UsageError(f"{name} in {place} is not a text", "write it in quotes")
    return str(found)


def _corpus(path: Path) -> tuple[tuple[Text, ...], tuple[str, ...]]:
    """The documents, each once, and a note about those that are repeated."""
    texts: dict[str, Text] = {}
    repeated = 0
    for id_, place, value in _objects(path):
        fields = {name: _field(value, name, place) for name in _TEXT_FIELDS}
        if not fields["text"].strip() and not fields["title"].strip():
            raise UsageError(f"{place} has neither text nor title", "fix or remove the line")
        is_memory = value.get("kind") == "memory"
        text = Text(id_, **fields | {"date": _moment(fields["date"], place)}, is_memory=is_memory)
        repeated += texts.setdefault(id_, text) is not text
    lines = "1 line repeats" if repeated == 1 else f"{repeated} lines repeat"
    return tuple(texts.values()), (f"{lines} a document: the first one counts",) if repeated else ()


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
    for id_, place, value in _objects(path):
        text, group = _field(value, "text", place), _field(value, "group", place)
        if not text.strip():
            raise UsageError(f"{place} has no text", "fix or remove the line")
        labels, adversarial = labels_of(value, _QUERY_FIELDS), value.get("adversarial") is True
        file, excerpts = _field(value, "file", place), _excerpts(value, place)
        silent = value.get("none") is True
        if silent and (file or excerpts):
            raise UsageError(f"{place} has an answer and says there is none", "keep one of the two")
        gains = {file: 1} if file else {}
        now = _moment(_field(value, "question_date", place), place)
        questions[id_] = Question(id_, text, gains, group, labels, adversarial, silent, excerpts=excerpts, now=now)
    if not questions:
        raise UsageError(f"{path} holds no question", "there is nothing to ask")
    return questions


def _excerpts(value: Mapping[str, object], place: str) -> tuple[str, ...]:
    """The words of its file that answer a question."""
    found = value.get("excerpts", [])
    if not isinstance(found, list) or not all(isinstance(one, str) and one.strip() for one in found):
        raise UsageError(f"excerpts in {place} is not a list of texts", 'write ["…", "…"]')
    return tuple(found)


# ── judgements ────────────────────────────────────────────────────────────────────────────────────────────────


def _judgements(
    path: Path, known: set[str], questions: Mapping[str, Question]
) -> tuple[dict[str, dict[str, int]], tuple[str, ...]]:
    """Gains by question and document, and notes about judgements of unknown questions or documents."""
    gains: dict[str, dict[str, int]] = {}
    unknown: dict[str, list[str]] = {}  # the ids with their places, by what is unknown
    for number, line in numbered_lines(path):
        parts = line.split("\t")
        if number == 1 and not _is_number(parts[-1]):
            continue
        place = f"{path}:{number}"
        if len(parts) == 4:  # as TREC writes it: question, iteration, document, gain
            parts = [parts[0], *parts[2:]]
        if len(parts) != 3 or not _is_number(parts[2]):
            raise UsageError(f"{place} is not 'query-id, corpus-id, score' with tabs", "fix or remove the line")
        question, document, gain = parts[0].strip(), parts[1].strip(), int(float(parts[2]))
        if question not in questions:
            unknown.setdefault("unknown questions", []).append(f"{place}: '{question}'")
        elif document not in known:
            unknown.setdefault("unknown documents", []).append(f"{place}: '{document}'")
        elif gain > 0 and questions[question].silent:
            raise UsageError(f"{place} judges '{question}', which has no answer", "remove its `none`, or the line")
        elif gain > 0:
            gains.setdefault(question, {})[document] = gain
    if not gains:
        raise UsageError(f"{path} judges no document of this set", "check the ids and the split")
    notes = tuple(
        f"{len(found)} {'judgement' if len(found) == 1 else 'judgements'} of {what} left out, the first at {found[0]}"
        for what, found in unknown.items()
    )
    return gains, notes


def _is_number(text: str) -> bool:
    try:
        return float(text) == int(float(text))
    except (ValueError, OverflowError):
        return False
