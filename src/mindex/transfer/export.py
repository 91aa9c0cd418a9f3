"""Export all entries, as they are at one moment, to a file, a folder or a stream: complete or not at all."""

import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from mindex.datatypes import Collection, Progress, Report
from mindex.datatypes.transfer import ExportReport, Format
from mindex.errors import ConflictError, MindexError, UsageError
from mindex.private_files import make_private_folder, open_private
from mindex.regular_files import open_regular
from mindex.store.base import Store
from mindex.store.damage_notes import damage_notes
from mindex.store.export_rows import ExportRow, ExportSnapshot
from mindex.temporary_files import replaced_file, temporary_folder
from mindex.transfer import jsonl_format, markdown_export
from mindex.transfer.imported_collections import ImportedCollection, imported_collections

FORMATS: tuple[Format, ...] = ("jsonl", "markdown")

_REPORT_EVERY = 500
# The log is pruned by age and length and holds queries of all agents; ranking needs only its sums, which are exported.
_ACCESS_LOG_NOTE = "the access log is not exported, only its sums; `mindex copy` and `mindex backup` take it along"
_MIXED = "vectors are left out: some are of the former model; run `mindex reembed` first"
_BUFFERED_CHARACTERS = 4_000_000  # of markdown: an export of any size needs little memory


def export(
    store: Store, target: Path | IO[bytes], format_: Format, *, agent: str, vectors: bool, report: Report | None
) -> ExportReport:
    """Write the entries of one agent or of all. An earlier export at the target stays until the new one is complete.

    Raises UsageError for a target that does not fit the format, ConflictError for a file that is not an export, and
    MindexError when the target cannot be written.
    """
    if format_ not in FORMATS:
        raise UsageError(f"unknown format '{format_}'", f"use one of {', '.join(FORMATS)}")
    if format_ == "markdown" and (vectors or not isinstance(target, Path)):
        raise UsageError(
            "markdown is written to a folder, without vectors",
            "pass a folder and remove --vectors, or use --format jsonl",
        )
    collections = tuple(one for one in store.files.collections() if not one.imported)
    imported = imported_collections(store)
    # Chunks belong to every agent: the export of one agent does not contain them.
    taken = imported if agent == "*" and format_ == "jsonl" else ()
    mixed = vectors and "vectors" in store.capabilities and store.vectors.count_former()
    with store.entries.export_snapshot(agent, vectors=vectors and not mixed) as snapshot:
        counted = _CountedRows(snapshot, report)
        reported = replace(snapshot, rows=iter(counted))
        try:
            if isinstance(target, Path) and format_ == "markdown":
                made = _export_markdown(reported, target, collections)
            else:
                made = _export_jsonl(reported, target, collections, taken)
            left_behind = _left_behind(imported if not taken else ())
            # Markdown has live records only, jsonl all that were read.
            records = counted.read if format_ == "jsonl" else made.records
            damaged = len(store.maintenance.damaged()) if "maintenance" in store.capabilities else 0
            log = (_ACCESS_LOG_NOTE,) if counted.accessed and format_ == "jsonl" else ()
            notes = (*made.notes, *log, *left_behind, *damage_notes(store), *((_MIXED,) if mixed else ()))
            return replace(made, records=records, left_out=counted.read - records, damaged=damaged, notes=notes)
        except BrokenPipeError:  # the reader of a pipe has closed it
            raise
        except OSError as error:
            raise MindexError(
                f"cannot write {_name(target)}: {error.strerror or error}",
                "check the folder, its permissions and the disk",
            ) from error


class _CountedRows:
    """The rows of a snapshot, and how many of them there were: damaged ones are left out."""

    def __init__(self, snapshot: ExportSnapshot, report: Report | None) -> None:
        self._snapshot = snapshot
        self._report = report
        self.read = 0
        self.accessed = False

    def __iter__(self) -> Iterator[ExportRow]:
        total = self._snapshot.total
        for row in self._snapshot.rows:
            self.read += 1
            self.accessed = self.accessed or row.accesses is not None
            yield row
            if self._report is not None and (self.read % _REPORT_EVERY == 0 or self.read == total):
                self._report(Progress("export", self.read, total))


def _left_behind(imported: Sequence[ImportedCollection]) -> tuple[str, ...]:
    if not imported:
        return ()
    names = ", ".join(f"{one.collection.name} ({one.chunks:,} chunks)" for one in imported)
    return (f"imported collections are left out: {names}; a jsonl export of all agents has them",)


def _name(target: Path | IO[bytes]) -> str:
    return str(target) if isinstance(target, Path) else "-"


# ── JSONL: one file ───────────────────────────────────────────────────────────────────────────────────────────


def _export_jsonl(
    snapshot: ExportSnapshot,
    target: Path | IO[bytes],
    collections: tuple[Collection, ...],
    imported: Sequence[ImportedCollection],
) -> ExportReport:
    opened = _opened(target) if isinstance(target, Path) else contextlib.nullcontext(target)
    with opened as file:
        for lines in jsonl_format.export_lines(snapshot, imported):
            file.write(lines)
        file.flush()
    chunks = sum(one.chunks for one in imported)
    return ExportReport(_name(target), "jsonl", snapshot.total, collections=collections, chunks=chunks)


@contextlib.contextmanager
def _opened(target: Path) -> Iterator[IO[bytes]]:
    """Open the target, or a file that replaces it once all is written. Only its owner may read that."""
    target = target.resolve()  # a link stays one
    if target.exists() and not target.is_file():  # a pipe or a device cannot be replaced
        with target.open("wb") as stream:
            yield stream
        return
    if target.exists() and target.stat().st_size:
        _refuse_foreign_file(target, "choose another name, or remove it")
    with replaced_file(target) as file:
        yield file


def _refuse_foreign_file(file: Path, hint: str) -> None:
    if not _is_export(file):
        raise ConflictError(f"{file} exists and is not a mindex export", hint)


def _is_export(file: Path) -> bool:
    with open_regular(file) as opened:
        return opened.read(200).startswith((b'{"mindex":', f"---\n{markdown_export.MARK}\n".encode()))


# ── markdown: a folder ────────────────────────────────────────────────────────────────────────────────────────


def _export_markdown(snapshot: ExportSnapshot, target: Path, collections: tuple[Collection, ...]) -> ExportReport:
    target = target.resolve()
    if target.exists() and not target.is_dir():
        raise UsageError(f"{target} is a file", "name a folder for --format markdown")
    make_private_folder(target.parent)
    with temporary_folder(target.name, target.parent) as folder:
        counts = _write_sections(snapshot, folder)
        left_out = snapshot.total - counts.total()
        overview = markdown_export.overview(counts, left_out, collections)
        with open_private(folder / markdown_export.OVERVIEW) as file:
            file.write(overview.encode())
        _move_files(folder, target)
    notes = ("markdown has no history of changes: --format jsonl keeps everything",)
    return ExportReport(str(target), "markdown", counts.total(), len(counts) + 1, left_out, collections, notes)


def _write_sections(snapshot: ExportSnapshot, folder: Path) -> Counter[str]:
    """Write the live records into files below a folder. Returns how many each file has."""
    counts: Counter[str] = Counter()
    buffers: defaultdict[str, list[str]] = defaultdict(list)
    size = 0

    def flush() -> None:
        for path, texts in buffers.items():
            make_private_folder((folder / path).parent)
            with open_private(folder / path) as file:
                file.write("".join(texts).encode())
        buffers.clear()

    live = (row.record for row in snapshot.rows if row.record.retired_at is None)
    for path, section in markdown_export.sections(live, tuple(snapshot.last_numbers)):
        counts[path] += 1
        buffers[path].append(section)
        size += len(section)
        if size > _BUFFERED_CHARACTERS:
            flush()
            size = 0
    flush()
    return counts


def _move_files(folder: Path, target: Path) -> None:
    """Replace an earlier export file by file and remove its other files; write a new one at once."""
    if not target.exists():
        folder.chmod(0o700)
        folder.replace(target)
        return
    new = sorted(file.relative_to(folder) for file in folder.rglob("*") if file.is_file())
    for path in new:
        if (target / path).exists():
            _refuse_foreign_file(target / path, "choose another folder, or move it away")
    for path in new:
        make_private_folder((target / path).parent)
        (folder / path).replace(target / path)
    for old in target.rglob("*.md"):
        if old.relative_to(target) not in new and _is_export(old):
            old.unlink()
