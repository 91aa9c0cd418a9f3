"""Asks the hub for a model's files and downloads them, by `huggingface_hub`. The only place that imports it.

Its own download keeps nothing of a file that was not completed (2.4 removes it). So the bytes are fetched here, with
its session, addresses, tokens and errors, and a large file goes on where it stopped, also in the next run.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path, PurePosixPath
from time import sleep
from types import ModuleType
from typing import TYPE_CHECKING

from mindex.errors import ProviderError
from mindex.providers.hub import PulledFile
from mindex.values import dataclass

if TYPE_CHECKING:
    from huggingface_hub.errors import HfHubHTTPError

_DEFAULT_ENDPOINT = "https://huggingface.co"
_SECONDS = 20.0  # without any byte, before a connection counts as broken
_PAUSES = (1.0, 2.0, 4.0, 8.0)  # before the next attempt, while none of them brings anything
_COMMIT = re.compile("[0-9a-f]{40}")
_CHECKSUM = re.compile("[0-9a-f]{64}|[0-9a-f]{40}")
_MEGABYTE = 1_000_000
_UNAUTHORISED, _FORBIDDEN, _TOO_MANY = 401, 403, 429


@dataclass(frozen=True, slots=True)
class Listing:
    """What the hub says of a repository: the commit, the paths of its files, the licence."""

    revision: str
    paths: tuple[str, ...]
    licence: str


class Hub:
    """The hub, or a mirror of it that HF_ENDPOINT names."""

    def __init__(self) -> None:
        self.endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or _DEFAULT_ENDPOINT
        self._library = _import_library()

    def lock(self, path: Path) -> AbstractContextManager[object]:
        """Wait for another process that holds this lock, and hold it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        lock: AbstractContextManager[object] = self._library.utils.WeakFileLock(path)
        return lock

    def listing(self, repo: str, revision: str) -> Listing:
        """Return the files of a repository at a branch, tag or commit; '' is its main branch. Raises ProviderError."""
        api = self._library.HfApi(endpoint=self.endpoint, library_name="mindex")
        with self._errors(repo, revision):
            found = api.model_info(repo, revision=revision or None, timeout=_SECONDS)
        if not _COMMIT.fullmatch(str(found.sha)):
            raise self._foreign_answer("names no commit")
        card = found.card_data.to_dict() if found.card_data else {}
        licence = card.get("license_name") if card.get("license") == "other" else card.get("license")
        paths = tuple(file.rfilename for file in found.siblings or () if _is_inside(file.rfilename))
        return Listing(str(found.sha), paths, str(licence or ""))

    def describe(self, repo: str, revision: str, path: str) -> PulledFile:
        """Return the size and the checksum of a file. Raises ProviderError, also when the hub names none."""
        with self._errors(repo, revision, path):
            found = self._library.get_hf_file_metadata(self._url(repo, revision, path), timeout=_SECONDS)
        if found.size is None or not _CHECKSUM.fullmatch(found.etag or ""):
            raise self._foreign_answer(f"names no size and checksum of {path}")
        return PulledFile(path, found.size, str(found.etag))

    def download(self, repo: str, revision: str, file: PulledFile, target: Path, report: Callable[[int], None]) -> None:
        """Bring a file to its place. A part of it that an earlier run left is completed.

        `report` is called with the number of bytes that are there. Raises ProviderError when the connection fails
        again and again, and when what arrived is not what the hub described.
        """
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{file.checksum[:16]}.part")
        if _size(part) > file.size:
            part.unlink()
        free = shutil.disk_usage(target.parent).free
        if free < (missing := file.size - _size(part)):
            message = f"{file.path} needs {missing // _MEGABYTE:,} MB, and {target.parent} has {free // _MEGABYTE:,}"
            raise ProviderError(message, "free some space, or let MINDEX_CACHE_DIR name another folder")
        with self._errors(repo, revision, file.path):
            self._fetch(self._url(repo, revision, file.path), part, file.size, report)
        if not file.is_at(part):
            part.unlink()
            message = f"{file.path} of {repo} arrived damaged: its checksum is wrong"
            raise ProviderError(message, f"run it again; if that does not help, {self.endpoint} serves a wrong file")
        part.replace(target)

    def _fetch(self, url: str, part: Path, size: int, report: Callable[[int], None]) -> None:
        """Append to the part until it has its size. A broken connection is opened again, where it broke."""
        from httpx2 import TransportError  # 100 ms to import, only for a download

        part.touch()
        pauses = iter(_PAUSES)
        while (before := _size(part)) < size:
            report(before)
            error: Exception = EOFError("the connection ended too early")
            try:
                self._append(url, part, before, size, report)
            except TransportError as broken:
                error = broken
            if _size(part) > before:
                pauses = iter(_PAUSES)
                continue
            pause = next(pauses, None)
            if pause is None:
                raise error
            sleep(pause)
        report(size)

    def _append(self, url: str, part: Path, start: int, size: int, report: Callable[[int], None]) -> None:
        headers = self._library.utils.build_hf_headers(library_name="mindex") | {"accept-encoding": "identity"}
        if start:
            headers["range"] = f"bytes={start}-"
        # A redirect to another host, the hub's store of large files, is followed without the token.
        with self._library.get_session().stream("GET", url, headers=headers, timeout=_SECONDS) as response:
            self._library.hf_raise_for_status(response)
            with part.open("r+b") as file:
                # 206: from `start` on. A server that does not know ranges sends everything.
                file.seek(start if response.status_code == 206 else 0)
                file.truncate()
                for block in response.iter_bytes():
                    file.write(block[: size - file.tell()])
                    report(file.tell())
                    if file.tell() == size:
                        break

    def _url(self, repo: str, revision: str, path: str) -> str:
        return str(self._library.hf_hub_url(repo, path, revision=revision, endpoint=self.endpoint))

    @contextmanager
    def _errors(self, repo: str, revision: str, path: str = "") -> Iterator[None]:
        """Turn the library's errors into a ProviderError that says what to do."""
        from httpx2 import InvalidURL, RequestError  # as in `_fetch`
        from huggingface_hub import errors  # imported by `_import_library`

        try:
            yield
        except errors.GatedRepoError as error:
            hint = f"accept its terms at {self.endpoint}/{repo}, set HF_TOKEN to a token of yours, and pull again"
            raise ProviderError(f"{repo} is given only to those who accepted its terms", hint) from error
        except errors.RepositoryNotFoundError as error:
            hint = "check the name; for a private model set HF_TOKEN to a token that may read it"
            raise ProviderError(f"{self.endpoint} has no model {repo}", hint) from error
        except errors.RevisionNotFoundError as error:
            message = f"{repo} has no revision {revision}"
            raise ProviderError(message, "name a branch, a tag or a commit of it, or none") from error
        except errors.EntryNotFoundError as error:
            raise ProviderError(f"{repo} has no file {path}", "pull it again with another --file") from error
        except errors.HfHubHTTPError as error:
            raise self._refusal(error) from error
        except errors.OfflineModeIsEnabled as error:
            raise ProviderError("HF_HUB_OFFLINE forbids to ask the hub", "unset it to pull a model") from error
        except (RequestError, InvalidURL, EOFError) as error:
            message = f"{self.endpoint} cannot be reached, or the connection broke ({error})"
            hint = "check the network, or let HF_ENDPOINT name a mirror; what arrived is kept, run it again to go on"
            raise ProviderError(message, hint) from error
        except errors.HFValidationError as error:
            raise ProviderError(f"'{repo}' is not a model name of the hub", "use org/name") from error
        except (ValueError, KeyError, TypeError) as error:
            raise self._foreign_answer("does not answer as the hub does") from error

    def _foreign_answer(self, what: str) -> ProviderError:
        return ProviderError(f"{self.endpoint} {what}", "let HF_ENDPOINT name another mirror of the hub, or unset it")

    def _refusal(self, error: HfHubHTTPError) -> ProviderError:
        status = error.response.status_code
        hint = "try again later, or let HF_ENDPOINT name a mirror"
        if status in (_UNAUTHORISED, _FORBIDDEN):
            hint = "check HF_TOKEN: it may be wrong, or may not read this model"
        elif status == _TOO_MANY:
            hint = "wait some minutes; with HF_TOKEN set, the hub allows more"
        return ProviderError(f"{self.endpoint} refused ({status} {error.response.reason_phrase})", hint)


def _is_inside(path: str) -> bool:
    """Whether a path that the hub names stays in the model's folder."""
    parts = PurePosixPath(path)
    return not parts.is_absolute() and ".." not in parts.parts and "\\" not in path and ":" not in path


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _import_library() -> ModuleType:
    """Import `huggingface_hub` without its telemetry: it would report the program that calls mindex, and ask for more.

    Only the environment can forbid that, and only beforehand.
    """
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    import huggingface_hub.utils  # 300 ms, and not before the variable is set

    library: ModuleType = huggingface_hub
    library.utils.logging.set_verbosity_error()  # else it advises about tokens, in the middle of the bar
    return library
