"""The files of a sync folder: `FOLDER/MACHINE/0001.jsonl`. Each machine writes only below its own id.

Files are append-only. Where a line must go (a purge) or was cut off (a process was killed), the machine writes the
other lines into a file with a new number and removes the old one, so that readers start over.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import IO

from mindex.datatypes.transfer import IgnoredLine, SkippedRow
from mindex.errors import MindexError, NotFoundError
from mindex.private_files import open_private, shared_permissions
from mindex.regular_files import NOT_THROUGH_LINKS, open_regular
from mindex.sync.edits import checked_line, head_of
from mindex.temporary_files import replaced_file
from mindex.transfer.importers.source_files import read_lines as lines_of
from mindex.transfer.jsonl_format import InvalidRow
from mindex.values import dataclass

_MACHINE = re.compile(r"[a-z0-9]{12}")
_NUMBERED = re.compile(r"(\d{4,9})\.jsonl")
_SEGMENT_BYTES = 1024 * 1024  # a file that is larger gets no more lines: git and cloud drives upload whole files


@dataclass(frozen=True, slots=True)
class Segment:
    """One file of a machine."""

    machine: str
    path: Path
    size: int

    @property
    def name(self) -> str:
        return f"{self.machine}/{self.path.name}"

    @property
    def number(self) -> int:
        """Its place among the files of its machine; 0 for a copy that another program made."""
        match = _NUMBERED.fullmatch(self.path.name)
        return int(match[1]) if match else 0


@dataclass(frozen=True, slots=True)
class ReadLine:
    """A line of a file. `end` is the offset behind it; `reason` says why it cannot be used."""

    number: int
    end: int
    data: bytes = b""
    json: str = ""
    checksum: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Position:
    """How far a file was read: the offset, the lines before it, and the checksum of the last of them."""

    offset: int = 0
    lines: int = 0
    checksum: str = ""


def check_folder(folder: Path) -> None:
    """Raise a MindexError for a folder that is not there: one made by mistake is read by no other machine."""
    if not folder.exists():
        raise NotFoundError(f"there is no folder {folder}", "create it, or connect the drive")
    if not folder.is_dir():
        raise MindexError(f"{folder} is not a folder", "name the folder that your machines share")


def list_segments(folder: Path) -> tuple[list[Segment], list[IgnoredLine]]:
    """The files of all machines, in order, and what is there beside them. Links are not followed."""
    segments: list[Segment] = []
    ignored: list[IgnoredLine] = []
    for machine in sorted(_entries(folder)):
        if not _MACHINE.fullmatch(machine.name):
            continue  # a README, the folder of git
        if not S_ISDIR(machine.lstat().st_mode):
            ignored.append(IgnoredLine(machine.name, 0, "it is not a folder"))
            continue
        for path in sorted(_entries(machine)):
            if path.suffix != ".jsonl" or path.name.startswith("."):
                continue
            stat = path.lstat()
            if S_ISREG(stat.st_mode):
                segments.append(Segment(machine.name, path, stat.st_size))
            else:
                ignored.append(IgnoredLine(f"{machine.name}/{path.name}", 0, "it is not a regular file"))
    return segments, ignored


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError as error:
        raise MindexError(f"{folder} cannot be read ({error.strerror})", "check its permissions") from None


def read_lines(segment: Segment, position: Position = Position()) -> Iterator[ReadLine]:  # noqa: B008 - frozen
    """Yield the lines after a position. A last line without an end is not complete yet, and left for later.

    Begins at the start of the file where the line before the position is another one than it was. Raises OSError.
    """
    with open_regular(segment.path) as file:
        offset, lines = position.offset, position.lines
        if offset and not _continues(file, position):
            offset = lines = 0
        file.seek(offset)
        for number, line in lines_of(file, lines):
            offset = file.tell()
            if isinstance(line, SkippedRow):
                yield ReadLine(number, offset, reason=line.reason)
                continue
            if not line.endswith(b"\n"):
                return
            try:
                json, checksum = checked_line(line)
            except InvalidRow as error:
                yield ReadLine(number, offset, line, reason=str(error))
            else:
                yield ReadLine(number, offset, line, json, checksum)


def _continues(file: IO[bytes], position: Position) -> bool:
    end = f'{position.checksum}"}}\n'.encode()
    file.seek(max(0, position.offset - len(end)))
    return file.read(len(end)) == end


@dataclass(frozen=True, slots=True)
class OwnLines:
    """What a machine finds in its own files: record by stamp, and the files that hold lines that are not whole."""

    written: Mapping[str, str]
    broken: frozenset[Path]


def read_own(segments: Iterable[Segment]) -> OwnLines:
    """Read the heads of all lines of some files."""
    written: dict[str, str] = {}
    broken: set[Path] = set()
    for segment in segments:
        end = 0
        for line in read_lines(segment):
            end = line.end
            head = head_of(line.data) if not line.reason else None
            if head is None:
                broken.add(segment.path)
            else:
                written[head[0]] = head[1]
        if end != segment.size:
            broken.add(segment.path)
    return OwnLines(written, frozenset(broken))


def write_lines(folder: Path, lines: Iterable[bytes]) -> None:
    """Append lines to the last file of a machine, and begin another one where it is full. Raises OSError.

    Others write in the same folder: nothing is written through a link, nor into a pipe.
    """
    if folder.is_symlink():
        raise MindexError(f"{folder} is a link", "remove it, then sync again")
    folder.mkdir(mode=shared_permissions(folder.parent), exist_ok=True)
    last = _last_number(folder)
    path = _path(folder, max(last, 1))
    status = path.lstat() if last else None
    if status is not None and not S_ISREG(status.st_mode):
        path, status = _path(folder, last + 1), None
    size = status.st_size if status is not None else 0
    block: list[bytes] = []
    for line in lines:
        if size > _SEGMENT_BYTES:
            _append(path, block)
            block, size = [], 0
            path = _path(folder, _last_number(folder) + 1)
        block.append(line)
        size += len(line)
    _append(path, block)


def _append(path: Path, lines: Sequence[bytes]) -> None:
    if not lines:
        return
    permissions = shared_permissions(path.parent.parent) & 0o660
    with open_private(path, permissions=permissions, flags=NOT_THROUGH_LINKS) as file:
        file.write(b"".join(lines))
        file.flush()
        os.fsync(file.fileno())


def rewrite(segment: Segment, dropped: frozenset[str]) -> None:
    """Write the whole lines of a file, but for those with these stamps, into a new one, and remove it.

    The new one is there also when it is empty, so that no number is used twice. Killed in between, both are there, and
    the next call of this function removes the old one. Raises OSError.
    """
    whole = [line.data for line in read_lines(segment) if not line.reason]
    kept = [line for line in whole if (head := head_of(line)) and head[0] not in dropped]
    with replaced_file(_path(segment.path.parent, _last_number(segment.path.parent) + 1)) as file:
        file.writelines(kept)
        Path(file.name).chmod(shared_permissions(segment.path.parent.parent) & 0o660)
    segment.path.unlink()


def _last_number(folder: Path) -> int:
    return max((int(match[1]) for one in folder.iterdir() if (match := _NUMBERED.fullmatch(one.name))), default=0)


def _path(folder: Path, number: int) -> Path:
    return folder / f"{number:04d}.jsonl"
