"""The seal at the end of a ready copy of a model: whether the copy is ours, and as it was saved.

A copy is mapped and computed with, so one that is cut, altered or another user's must not be opened. Its checksum is
read whenever it is opened: CRC-32 takes 23 ms for 90 MB on one core, SHA-256 54, BLAKE2b 109; a cold search half a
second. Length, time and owner are looked at first. That is against accidents and other users; a program that runs
as the owner can alter mindex itself.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from pathlib import Path

# Magic, length of the model before the seal, second of the last change, CRC-32 of the model.
_SEAL = struct.Struct("<8sQQL")
_MAGIC = b"mindex-2"
_WRITABLE_BY_OTHERS = 0o022


def seal(file: Path) -> None:
    """Append the seal to a copy, and set the time of its last change to the one in the seal. Raises OSError."""
    second = int(time.time()) // 2 * 2  # some file systems count in steps of two
    with file.open("r+b") as copy:
        length = copy.seek(0, os.SEEK_END)
        copy.write(_SEAL.pack(_MAGIC, length, second, _checksum(copy.fileno(), length)))
    os.utime(file, ns=(second * 10**9, second * 10**9))


def is_sealed(copy: Path) -> bool:
    """Whether there is a copy that is unchanged since this user saved it; one that is not is noted in the log."""
    try:
        with copy.open("rb") as file:
            fault = _fault(file.fileno())
    except FileNotFoundError:
        return False
    except (OSError, ValueError, struct.error) as error:
        fault = f"cannot be read ({error})"
    if fault:
        from logging import getLogger  # only a failure needs it

        getLogger(__name__).info("the ready copy %s %s: it is made again", copy, fault)
    return not fault


def _fault(copy: int) -> str:
    """What is wrong with an open copy; '' for nothing."""
    status = os.fstat(copy)
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & _WRITABLE_BY_OTHERS):
        return "belongs to another user, or others may write it"
    length = status.st_size - _SEAL.size
    if length <= 0:
        return "is cut"
    os.lseek(copy, length, os.SEEK_SET)
    magic, sealed_length, second, crc = _SEAL.unpack(os.read(copy, _SEAL.size))
    if (magic, sealed_length) != (_MAGIC, length):
        return "is cut, or of another version"
    if second * 10**9 != status.st_mtime_ns or crc != _checksum(copy, length):
        return "was altered"
    return ""


def _checksum(file: int, length: int) -> int:
    from zlib import crc32  # here, so that a keyword search does without

    with mmap.mmap(file, length, access=mmap.ACCESS_READ) as mapped:
        return crc32(mapped)
