"""Files that are replaced as a whole: a reader sees all of the new content or all of the old."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO


@contextmanager
def replaced_file(target: Path) -> Iterator[IO[bytes]]:
    """Yield a file beside the target that replaces it at the end; after an error, it is removed.

    Only its owner may read it. A link at the target is replaced, not followed. Raises OSError.
    """
    name = f".{target.name[:100]}."
    file = NamedTemporaryFile(dir=target.parent, prefix=name, suffix=".part", delete=False)  # noqa: SIM115 - closed below
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(file.name).replace(target)
    finally:
        Path(file.name).unlink(missing_ok=True)
