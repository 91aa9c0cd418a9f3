"""Populates a memory with question sets, through `Memory.index`, `add` and `conversations` as any user would."""

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import mindex
from mindex import Memory
from mindex.clock import now_ms, to_iso
from mindex.datatypes import CollectionReport, Progress, Record, Report
from mindex.errors import ProviderError, UsageError
from mindex.evaluation_parts import make_private_file, make_private_folder, scratch_database
from mindex.store.base import Store
from mindex.temporary_files import temporary_folder
from mindex_eval.cached_models import evaluation_folder
from mindex_eval.measured_memory import CachedProviders, MeasuredMemory, settings_for
from mindex_eval.question_sets import QuestionSet, Text

_DATABASE, _DOCUMENTS, _MAP = "memory.db", "documents", "map.json"
# Populated memories that are kept for the next run; the least recently used are dropped first.
_MAX_KEPT = 24
# The code that decides the content of a populated memory, beside the set itself.
_SOURCES = (
    "analyzer.py", "clock.py", "embedding", "embedding_text.py", "ids.py", "files", "entries", "datatypes",
    "providers/embed", "redaction", "store",
)  # fmt: skip
_OWN_SOURCES = ("beir.py", "named_sets.py", "populate.py", "question_sets.py")
_MEND_MODEL = "fix the model, or use --modes keyword"
_SETTINGS = ("embedding.", "generation.", "index.", "secrets.")


@dataclass(frozen=True, slots=True)
class PopulatedSet:
    """The database of a populated memory, and the map from its records to the ids of one of its sets."""

    database: str | Path
    documents: int
    ids: Mapping[str, str] = field(default_factory=dict)  # record id, or collection and path → document id
    groups: Mapping[str, str] = field(default_factory=dict)  # group → collection, and agent if there are several
    notes: tuple[str, ...] = ()

    def id_of(self, record: Record) -> str:
        """The id of the document in this set. A record of another set has an id that this one does not know."""
        key = f"{record.collection}/{record.path}" if record.path else record.id
        return self.ids.get(key, key)


@contextlib.contextmanager
def populated_set(
    found: QuestionSet,
    settings: Mapping[str, str],
    cache: Store,
    *,
    keep: Path | None = None,
    report: Report | None = None,
) -> Iterator[PopulatedSet]:
    """A memory that holds one set; see `populated_sets`."""
    with populated_sets((found,), settings, cache, keep=keep, report=report) as (populated,):
        yield populated


@contextlib.contextmanager
def populated_sets(
    sets: Sequence[QuestionSet],
    settings: Mapping[str, str],
    cache: Store,
    *,
    keep: Path | None = None,
    on: str = "",
    report: Report | None = None,
) -> Iterator[tuple[PopulatedSet, ...]]:
    """One memory that holds these sets, deleted when the block ends. The same texts are populated only once.

    With `keep` it is made in that folder and stays there. `on` is the URL of the PostgreSQL database to make it in.
    """
    if on:
        with scratch_database(on) as database, temporary_folder("mindex-eval") as folder:
            yield _fill(sets, settings, cache, Path(folder), report, database)
        return
    if keep is not None:
        yield _fill(sets, settings, cache, _empty_folder(keep / _folder_name(sets)), report)
        return
    kept = evaluation_folder() / "filled" / _key(sets, settings, cache) if all(one.digest for one in sets) else None
    with temporary_folder("mindex-eval") as folder:
        populated = _load_kept(kept, len(sets)) if kept else None
        if populated is None:
            populated = _fill(sets, settings, cache, Path(folder), report)
            if kept:
                _keep_copy(populated, kept)
        yield populated


def _folder_name(sets: Sequence[QuestionSet]) -> str:
    """The name of the set, or `together`. The name of a group may hold what a file name must not."""
    return re.sub(r"[^\w.-]+", "_", sets[0].name) if len(sets) == 1 else "together"


def _empty_folder(work: Path) -> Path:
    try:
        work.mkdir(parents=True, exist_ok=True)
        taken = any(work.iterdir())
    except OSError as error:
        raise UsageError(f"cannot keep databases in {work}: {error.strerror}", "name a folder for --keep") from None
    if taken:
        raise UsageError(f"{work} is not empty", "keep it in another folder, or remove that one first")
    return work


# ── populating ──────────────────────────────────────────────────────────────────────────────────────────────────


def _fill(
    sets: Sequence[QuestionSet],
    settings: Mapping[str, str],
    cache: Store,
    work: Path,
    report: Report | None,
    database: str | Path = "",
) -> tuple[PopulatedSet, ...]:
    """Populate the database, or one in the folder `work`, where files are also written."""
    database, numbers = database or work / _DATABASE, count()
    groups = [
        {group: f"g{next(numbers):04}" for group in dict.fromkeys(one.group for one in found.texts)} for found in sets
    ]
    added: list[dict[str, str]] = [{} for _ in sets]
    if any(text.is_entry for found in sets for text in found.texts):
        # Without a model: the vectors follow in one go, as they do after an import.
        quiet = {**settings, "embedding.provider": "none", "generation.provider": "none"}
        with MeasuredMemory(database, quiet, cache) as measured:
            added = [_add_entries(measured.memory, *one, report) for one in zip(sets, groups, strict=True)]
    populated = []
    with MeasuredMemory(database, settings, cache) as measured:
        memory = measured.memory
        for found, names, entries in zip(sets, groups, added, strict=True):
            files, notes = _index(memory, found, work / _DOCUMENTS, names, report)
            documents = len(entries) + len(files)
            if not documents:
                raise UsageError(f"nothing of {found.folder} could be indexed", "; ".join(notes[:3]) or "is it empty?")
            populated.append(PopulatedSet(database, documents, {**entries, **files}, names, notes))
        if memory.models.embedder is not None:
            _, remaining = memory.maintenance.backfill(batch=200, report=report)
            if remaining:
                lack = "record has" if remaining == 1 else "records have"
                raise ProviderError(f"{remaining} {lack} no vector", _MEND_MODEL)
    return tuple(populated)


def _add_entries(
    memory: Memory, found: QuestionSet, groups: Mapping[str, str], report: Report | None
) -> dict[str, str]:
    """Add memories and turns as a client would. Returns the ids of the texts by those of their records.

    Each group has its own agent; a single one has the default agent.
    """
    ids = {}
    entries = [text for text in found.texts if text.is_entry]
    for done, text in enumerate(entries):
        if report is not None and done % 50 == 0:
            report(Progress("tell", done, len(entries), found.name))
        agent = groups[text.group] if len(groups) > 1 else None
        if text.is_memory:
            ids[memory.add(text.message, agent=agent).id] = text.id
        else:
            session = " ".join(filter(None, (found.name, text.group, text.session)))
            turn, _ = memory.conversations.add(
                text.message, text.response, session_id=session, speaker=text.speaker, at=text.date, agent=agent
            )
            ids[turn.id] = text.id
    return ids


def _write_files(found: QuestionSet, folder: Path, groups: Mapping[str, str]) -> dict[Path, dict[str, str]]:
    """Write the texts that become files. Returns, by folder, the ids of the texts by the names of their files."""
    ids: dict[Path, dict[str, str]] = {}
    for number, one in enumerate(found.texts):
        if one.is_entry:
            continue
        root = folder / groups[one.group]
        root.mkdir(parents=True, exist_ok=True)
        name = f"{number:06}.md"
        (root / name).write_bytes(as_markdown(one).encode("utf-8", "replace"))
        ids.setdefault(root.resolve(), {})[name] = one.id
    return ids


def as_markdown(document: Text) -> str:
    """The title as a heading, the text as it is."""
    if title := " ".join(document.title.split()):
        return f"# {title}\n\n{document.text}\n"
    # What begins like front matter is text here, and on the second line nothing is front matter.
    return f"\n{document.text}\n" if document.text.startswith("---") else f"{document.text}\n"


def _index(
    memory: Memory, found: QuestionSet, folder: Path, groups: Mapping[str, str], report: Report | None
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Index the files of a set. Returns the ids of its documents by collection and path, and notes."""
    written = _write_files(found, folder, groups) if found.root is None else {found.root: {}}
    if not written:
        return {}, ()
    outcome = memory.index(*written, report=report)
    if memory.models.embedder is not None and outcome.notes:
        raise ProviderError(f"not everything has a vector: {outcome.notes[0]}", _MEND_MODEL)
    ids: dict[str, str] = {}
    for one in outcome.collections:
        names = written.get(Path(one.root), {})  # of real files, the path is the id
        paths = (document.path for document in memory.collections.documents_of(one.name))
        ids.update((f"{one.name}/{path}", names.get(path, path)) for path in paths)
    skipped = (f"{skip.path} was left out: {skip.reason}" for skip in outcome.skipped)
    return ids, (*skipped, *_unindexed_answers(memory, found, outcome.collections))


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


def _key(sets: Sequence[QuestionSet], settings: Mapping[str, str], cache: Store) -> str:
    """A name made of everything that decides what a populated memory holds."""
    used = (one for one in settings_for(settings) if one.setting.key.startswith(_SETTINGS) and not one.setting.secret)
    values = [f"{one.setting.key}={one.value}" for one in used]
    # An entry without a date is as old as the memory, and its age counts.
    dated = all(text.is_turn and text.date for found in sets for text in found.texts if text.is_entry)
    today = "" if dated else to_iso(now_ms())[:10]
    made_by = [_source_hash(), today, _embedder_name(settings, cache)]
    content = "\0".join([mindex.__version__, *(found.digest for found in sets), *made_by, *values])
    return f"{_folder_name(sets)}-{hashlib.sha256(content.encode()).hexdigest()[:16]}"


def _embedder_name(settings: Mapping[str, str], cache: Store) -> str:
    """What the vectors are made with: other weights under the same name make another memory."""
    providers = CachedProviders(settings_for(settings), cache)
    embedder = providers.embedder(providers.settings("embedding"))
    return embedder.name if embedder is not None else ""


def _source_hash() -> str:
    """A hash of the code that chunks and stores: after a change, old chunks must not be measured."""
    core, own = Path(mindex.__file__).parent, Path(__file__).parent
    digest = hashlib.sha256()
    for path in (*(core / name for name in _SOURCES), *(own / name for name in _OWN_SOURCES)):
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    return digest.hexdigest()


def _load_kept(kept: Path, count: int) -> tuple[PopulatedSet, ...] | None:
    try:
        read = json.loads((kept / _MAP).read_text(encoding="utf-8"))
        (kept / _MAP).touch()
        found = tuple(
            PopulatedSet(kept / _DATABASE, one["documents"], one["ids"], one["groups"], tuple(one["notes"]))
            for one in read["sets"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if len(found) == count else None


def _keep_copy(populated: Sequence[PopulatedSet], kept: Path) -> None:
    """Copy a memory to where the next run finds it, whole or not at all: another process may do the same."""
    staged = kept.with_name(f"{kept.name}.{os.getpid()}")
    try:
        make_private_folder(staged.parent)
        staged.mkdir(mode=0o700)
        make_private_file(staged / _DATABASE)  # as a store makes its own: a copy would be open to every user
        shutil.copyfile(populated[0].database, staged / _DATABASE)
        maps = [
            {"documents": one.documents, "ids": one.ids, "groups": one.groups, "notes": one.notes} for one in populated
        ]
        (staged / _MAP).write_text(json.dumps({"sets": maps}), encoding="utf-8")
        staged.rename(kept)
        _drop_oldest(kept.parent)
    except OSError:  # another process was faster, or the disk is full: no reason not to measure
        pass
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _drop_oldest(folder: Path) -> None:
    def used(path: Path) -> float:
        return (path / _MAP).stat().st_mtime if (path / _MAP).exists() else 0.0

    for old in sorted(folder.iterdir(), key=used, reverse=True)[_MAX_KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
