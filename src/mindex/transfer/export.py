"""The way out: everything told, as it is at one moment, into a file, a folder or a stream. Never half of it."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from mindex.errors import ConflictError, MindexError, UsageError
from mindex.model import Collection, Progress, Record
from mindex.model.transfer import ExportReport, Format
from mindex.store.base import Store
from mindex.store.export_rows import EXPORT_SCHEMA, ExportRow, ExportSnapshot
from mindex.transfer import jsonl_export, markdown_export

FORMATS: tuple[Format, ...] = ("jsonl", "markdown")
Report = Callable[[Progress], None]

_MOST_OPEN = 32
_REPORT_EVERY = 500


def export(
    store: Store,
    target: Path | IO[bytes],
    form: Format = "jsonl",
    *,
    agent: str = "*",
    vectors: bool = False,
    report: Report | None = None,
) -> ExportReport:
    """Write everything told to an agent, or to all; what stood there before stays until the new is complete."""
    if form not in FORMATS:
        raise UsageError(f"unknown format '{form}'", f"use one of {', '.join(FORMATS)}")
    if form == "markdown" and (vectors or not isinstance(target, Path)):
        raise UsageError("markdown is a folder of texts", "leave --vectors out and name a folder, or use jsonl")
    collections = store.files.collections()
    with store.entries.export_snapshot(agent, vectors=vectors) as dump:
        watched = _watched(dump, report)
        try:
            if isinstance(target, Path) and form == "markdown":
                return _to_folder(watched, target, collections)
            return _to_file(watched, target, EXPORT_SCHEMA, collections)
        except BrokenPipeError:  # the reader of a pipe has seen enough
            raise
        except OSError as error:
            raise MindexError(
                f"cannot write {_name(target)}: {error.strerror or error}", "check the folder, its rights and the disk"
            ) from error


def _watched(dump: ExportSnapshot, report: Report | None) -> ExportSnapshot:
    def rows() -> Iterator[ExportRow]:
        for done, row in enumerate(dump.rows, start=1):
            yield row
            if report is not None and (done % _REPORT_EVERY == 0 or done == dump.total):
                report(Progress("export", done, dump.total))

    return ExportSnapshot(dump.last_numbers, dump.total, rows())


def _name(target: Path | IO[bytes]) -> str:
    return str(target) if isinstance(target, Path) else "-"


# ── one file ──────────────────────────────────────────────────────────────────────────────────────────────────


def _to_file(
    dump: ExportSnapshot, target: Path | IO[bytes], schema: int, collections: tuple[Collection, ...]
) -> ExportReport:
    opened = _replacing(target) if isinstance(target, Path) else contextlib.nullcontext(target)
    with opened as file:
        for lines in jsonl_export.written(dump, schema):
            file.write(lines)
        file.flush()
    return ExportReport(_name(target), "jsonl", dump.total, collections=collections)


@contextlib.contextmanager
def _replacing(target: Path) -> Iterator[IO[bytes]]:
    """A file beside the target that takes its place once all is written; only its owner may read it."""
    target = target.resolve()  # a link stays one
    if target.is_dir():
        raise UsageError(f"{target} is a folder", "name a file, or use --format markdown")
    if target.exists() and not target.is_file():  # a pipe or a device has no place to take
        with target.open("wb") as stream:
            yield stream
        return
    if target.exists() and target.stat().st_size and not _is_export(target):
        raise ConflictError(f"{target} is there, and it is no export of mindex", "choose another name, or remove it")
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(target)
    finally:
        Path(name).unlink(missing_ok=True)


def _is_export(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(200).startswith((b'{"mindex":', f"---\n{markdown_export.MARK}\n".encode()))


# ── a folder ──────────────────────────────────────────────────────────────────────────────────────────────────


def _to_folder(dump: ExportSnapshot, target: Path, collections: tuple[Collection, ...]) -> ExportReport:
    target = target.resolve()
    if target.exists() and not target.is_dir():
        raise UsageError(f"{target} is a file", "name a folder for --format markdown")
    target.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name[:100]}.", suffix=".part"))
    try:
        counts: Counter[str] = Counter()
        retired = 0

        def live() -> Iterator[Record]:
            nonlocal retired
            for row in dump.rows:
                if row.record.retired_at is None:
                    yield row.record
                else:
                    retired += 1

        with _Files(made) as files:
            for part in markdown_export.parts(live(), tuple(dump.last_numbers)):
                counts[part.path] += files.append(part.path, part.text)
            files.append(markdown_export.OVERVIEW, markdown_export.overview(counts, retired, collections))
        _move_into(made, target)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return ExportReport(
        str(target),
        "markdown",
        dump.total - retired,
        files=len(counts) + 1,
        left_out=retired,
        collections=collections,
        notes=("markdown has no history of changes: --format jsonl keeps everything",),
    )


class _Files:
    """Files below a folder that are written to in turns, some of them open."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: OrderedDict[str, IO[bytes]] = OrderedDict()
        self._begun: set[str] = set()

    def __enter__(self) -> _Files:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._open.values():
            file.close()

    def append(self, path: str, text: str) -> bool:
        """Whether the file was there before."""
        begun = path in self._begun
        self._begun.add(path)
        if path not in self._open:
            if len(self._open) == _MOST_OPEN:
                self._open.popitem(last=False)[1].close()
            file = self._folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            self._open[path] = file.open("ab")
        self._open.move_to_end(path)
        self._open[path].write(text.encode())
        return begun


def _move_into(made: Path, target: Path) -> None:
    """The new files in place of the old ones: at once where there is nothing yet, else one by one."""
    if not target.exists():
        made.chmod(0o700)
        made.replace(target)
        return
    new = {file.relative_to(made) for file in made.rglob("*") if file.is_file()}
    for path in sorted(new):
        if (target / path).exists() and not _is_export(target / path):
            raise ConflictError(
                f"{target / path} is there, and it is no export of mindex", "choose another folder, or move it away"
            )
    for path in sorted(new):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (made / path).replace(target / path)
    for old in target.rglob("*.md"):
        if old.relative_to(target) not in new and _is_export(old):
            old.unlink()
