"""Populates a memory with a question set, through `Memory.index` and `Memory.conversations` as any user would."""

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import mindex
from mindex.errors import ProviderError, UsageError
from mindex.evaluate.cached_models import evaluation_folder
from mindex.evaluate.measured_memory import MeasuredMemory, settings_for
from mindex.evaluate.question_sets import QuestionSet, Text
from mindex.memory import Memory
from mindex.model import CollectionReport, Progress, Record, Report
from mindex.store.base import Store

_DATABASE, _DOCUMENTS, _MAP = "memory.db", "documents", "map.json"
# Populated memories that are kept for the next run; the least recently used are dropped first.
_MOST_KEPT = 24
# The code that decides the content of a populated memory, beside the set itself.
_SOURCES = (
    "analyzer.py", "embedding", "embedding_text.py", "evaluate/populate.py", "ids.py", "ingest", "memories", "model",
    "providers/embed", "redaction", "store",
)  # fmt: skip
_MEND_MODEL = "mend the model, or use --modes keyword"
_SETTINGS = ("embedding.", "generation.", "index.", "secrets.")


@dataclass(frozen=True, slots=True)
class PopulatedSet:
    """The database of a populated memory, and the map from its records to the ids of the set."""

    database: Path
    documents: int
    ids: Mapping[str, str] = field(default_factory=dict)  # record id or path → document id; empty: the path is the id
    groups: Mapping[str, str] = field(default_factory=dict)  # group → collection and agent
    notes: tuple[str, ...] = ()

    def id_of(self, record: Record) -> str:
        if not self.ids:
            return record.path
        return self.ids[f"{record.collection}/{record.path}" if record.path else record.id]


@contextlib.contextmanager
def populated_set(
    found: QuestionSet,
    settings: Mapping[str, str],
    cache: Store,
    *,
    keep: Path | None = None,
    report: Report | None = None,
) -> Iterator[PopulatedSet]:
    """A memory that holds the set, deleted when the block ends. An unchanged corpus is populated only once.

    With `keep` it is made in that folder and stays there.
    """
    if keep is not None:
        yield _fill(found, settings, cache, _empty_folder(keep / found.name), report)
        return
    kept = evaluation_folder() / "filled" / _key(found, settings) if found.digest else None
    with tempfile.TemporaryDirectory(prefix="mindex-eval-", ignore_cleanup_errors=True) as folder:
        populated = _load_kept(kept) if kept else None
        if populated is None:
            populated = _fill(found, settings, cache, Path(folder), report)
            if kept:
                _keep_copy(populated, kept)
        yield populated


def _empty_folder(work: Path) -> Path:
    try:
        work.mkdir(parents=True, exist_ok=True)
        taken = any(work.iterdir())
    except OSError as error:
        raise UsageError(f"nothing can be kept in {work}: {error.strerror}", "name a folder for --keep") from None
    if taken:
        raise UsageError(f"{work} is not empty", "keep it in another folder, or remove that one first")
    return work


# ── populating ──────────────────────────────────────────────────────────────────────────────────────────────────


def _fill(
    found: QuestionSet, settings: Mapping[str, str], cache: Store, work: Path, report: Report | None
) -> PopulatedSet:
    database = work / _DATABASE
    groups = {group: f"g{number:04}" for number, group in enumerate(dict.fromkeys(one.group for one in found.texts))}
    ids = _write_files(found, work / _DOCUMENTS, groups)
    turns = [one for one in found.texts if one.is_turn]
    if turns:
        # Without a model: the vectors follow in one go, as they do after an import.
        quiet = {**settings, "embedding.provider": "none", "generation.provider": "none"}
        with MeasuredMemory(database, quiet, cache) as measured:
            for done, one in enumerate(turns):
                if report is not None and done % 50 == 0:
                    report(Progress("tell", done, len(turns), found.name))
                ids[add_turn(measured.memory, one, groups[one.group])] = one.id
    with MeasuredMemory(database, settings, cache) as measured:
        memory = measured.memory
        notes = _index(memory, found, work / _DOCUMENTS, report)
        if memory.models.embedder is not None:
            _, remaining = memory.maintenance.backfill(batch=200, report=report)
            if remaining:
                lack = "record has" if remaining == 1 else "records have"
                raise ProviderError(f"{remaining} {lack} no vector", _MEND_MODEL)
        documents = len(turns) + sum(one.documents for one in memory.status().collections)
    if not documents:
        raise UsageError(f"nothing of {found.folder} could be indexed", "; ".join(notes[:3]) or "is it empty?")
    return PopulatedSet(database, documents, ids, groups, notes)


def add_turn(memory: Memory, turn: Text, agent: str) -> str:
    """Add one turn of a conversation as a client would. Returns the id of its record."""
    session = f"{turn.group} {turn.session}".strip()
    message = f"{turn.title}\n{turn.text}" if turn.title else turn.text
    record, _ = memory.conversations.add(
        message, "", session_id=session, speaker=turn.speaker, at=turn.date, agent=agent
    )
    return record.id


def _write_files(found: QuestionSet, folder: Path, groups: Mapping[str, str]) -> dict[str, str]:
    ids: dict[str, str] = {}
    for number, one in enumerate(found.texts):
        if one.is_turn:
            continue
        root = folder / groups[one.group]
        root.mkdir(parents=True, exist_ok=True)
        name = f"{number:06}.md"
        (root / name).write_bytes(as_markdown(one).encode("utf-8", "replace"))
        ids[f"{groups[one.group]}/{name}"] = one.id
    return ids


def as_markdown(document: Text) -> str:
    """The title as a heading, the text as it is."""
    if title := " ".join(document.title.split()):
        return f"# {title}\n\n{document.text}\n"
    # What begins like front matter is text here, and on the second line nothing is front matter.
    return f"\n{document.text}\n" if document.text.startswith("---") else f"{document.text}\n"


def _index(memory: Memory, found: QuestionSet, folder: Path, report: Report | None) -> tuple[str, ...]:
    roots = [found.root] if found.root is not None else sorted(folder.iterdir()) if folder.is_dir() else []
    if not roots:
        return ()
    outcome = memory.index(*roots, report=report)
    if memory.models.embedder is not None and outcome.notes:
        raise ProviderError(f"not everything has a vector: {outcome.notes[0]}", _MEND_MODEL)
    skipped = (f"{skip.path} was left out: {skip.reason}" for skip in outcome.skipped)
    return (*skipped, *_unindexed_answers(memory, found, outcome.collections))


def _unindexed_answers(memory: Memory, found: QuestionSet, indexed: Sequence[CollectionReport]) -> Iterator[str]:
    """Notes about answer files without a chunk: they explain why such questions score nothing."""
    if found.root is None:
        return
    documents = {one.path: one.id for report in indexed for one in memory.collections.documents_of(report.name)}
    right = {path: None for one in found.questions for path in [line.path for line in one.lines] or one.gains}
    lost = [path for path in right if path not in documents or not memory.collections.chunks(documents[path])]
    if lost:
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        yield f"nothing is indexed of {lost[0]}{more}, which is to answer questions: it cannot be found"


# ── kept for the next run ─────────────────────────────────────────────────────────────────────────────────────


def _key(found: QuestionSet, settings: Mapping[str, str]) -> str:
    """A name made of everything that decides what a populated memory holds."""
    used = (one for one in settings_for(settings) if one.setting.key.startswith(_SETTINGS) and not one.setting.secret)
    values = (f"{one.setting.key}={one.value}" for one in used)
    content = "\0".join([mindex.__version__, found.digest, _source_hash(), *values])
    return f"{found.name}-{hashlib.sha256(content.encode()).hexdigest()[:16]}"


def _source_hash() -> str:
    """A hash of the code that chunks and stores: after a change, old chunks must not be measured."""
    root = Path(mindex.__file__).parent
    digest = hashlib.sha256()
    for name in _SOURCES:
        path = root / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    return digest.hexdigest()


def _load_kept(kept: Path) -> PopulatedSet | None:
    try:
        read = json.loads((kept / _MAP).read_text(encoding="utf-8"))
        (kept / _MAP).touch()
        return PopulatedSet(kept / _DATABASE, read["documents"], read["ids"], read["groups"], tuple(read["notes"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _keep_copy(populated: PopulatedSet, kept: Path) -> None:
    """Copy a memory to where the next run finds it, whole or not at all: another process may do the same."""
    staged = kept.with_name(f"{kept.name}.{os.getpid()}")
    try:
        staged.mkdir(parents=True)
        shutil.copyfile(populated.database, staged / _DATABASE)
        content = {name: getattr(populated, name) for name in ("documents", "ids", "groups", "notes")}
        (staged / _MAP).write_text(json.dumps(content), encoding="utf-8")
        staged.rename(kept)
        _drop_oldest(kept.parent)
    except OSError:  # another process was faster, or the disk is full: no reason not to measure
        pass
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _drop_oldest(folder: Path) -> None:
    def used(path: Path) -> float:
        return (path / _MAP).stat().st_mtime if (path / _MAP).exists() else 0.0

    for old in sorted(folder.iterdir(), key=used, reverse=True)[_MOST_KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
