"""A ready copy of a model is opened only as it was saved, by whom it was saved."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import pytest

from mindex.providers.onnx.seal import is_sealed, seal

unix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs owners and modes of POSIX")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    file = tmp_path / "model.ort"
    file.write_bytes(bytes(range(256)) * 400)
    file.chmod(0o600)
    seal(file)
    return file


def test_a_copy_is_sealed_until_it_changes(copy: Path) -> None:
    assert is_sealed(copy)
    assert not is_sealed(copy.with_name("missing.ort"))


@pytest.mark.parametrize("at", [0, 50_000, 102_399])
def test_a_flipped_bit_is_found_although_length_and_time_are_the_same(
    copy: Path, at: int, caplog: pytest.LogCaptureFixture
) -> None:
    before = copy.stat()
    with copy.open("r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 1]))
    os.utime(copy, ns=(before.st_atime_ns, before.st_mtime_ns))
    with caplog.at_level(logging.INFO):
        assert not is_sealed(copy)
    assert "was altered: it is made again" in caplog.text


@pytest.mark.parametrize("size", [0, 3, 36, 1_000])
def test_a_copy_that_was_cut_is_not_sealed(copy: Path, size: int) -> None:
    before = copy.stat()
    os.truncate(copy, size)
    os.utime(copy, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not is_sealed(copy)


@unix_only
def test_a_copy_that_others_may_write_is_not_sealed(copy: Path) -> None:
    copy.chmod(0o622)
    assert not is_sealed(copy)


@unix_only
@pytest.mark.skipif(sys.platform != "win32" and os.getuid() != 0, reason="only root gives files away")
def test_a_copy_of_another_user_is_not_sealed(copy: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = copy.stat()
    os.chown(copy, 65534, 65534)
    os.utime(copy, ns=(before.st_atime_ns, before.st_mtime_ns))
    with caplog.at_level(logging.INFO):
        assert not is_sealed(copy)
    assert "belongs to another user" in caplog.text
