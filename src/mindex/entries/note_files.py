"""Notes: files that an agent keeps under `/memories`, stored as entries with history and found by every search.

There is no folder on disk: a path is a name, and a directory is a common prefix of paths. So there is nothing to escape
from; a path that looks like an attempt is refused all the same.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from urllib.parse import unquote

from mindex.clock import now_ms
from mindex.datatypes import Filters, Record
from mindex.entries.entries import Entries
from mindex.entries.field_specs import UNIQUE
from mindex.entries.references import list_all
from mindex.entries.summary import summarize
from mindex.errors import ConflictError, ForbiddenPathError, NotFoundError, UsageError
from mindex.ids import new_id
from mindex.limits import MAX_TEXT_BYTES
from mindex.redaction.redactor import Redactor
from mindex.store.transactions import in_transaction
from mindex.values import dataclass

ROOT = "/memories"
MAX_FILES = 1_000
MAX_PATH = 500
_PATH = UNIQUE["note"]


@dataclass(frozen=True, slots=True)
class NoteWrite:
    """A note as it is now, and the kinds of secrets that were redacted."""

    record: Record
    redacted: tuple[str, ...] = ()


def checked_path(path: str) -> str:
    """A path below the root, normalised: no doubled or trailing slashes. Raises ForbiddenPathError for any other."""
    if any(ord(sign) < 32 or ord(sign) == 127 or 0xD800 <= ord(sign) <= 0xDFFF for sign in path):
        raise ForbiddenPathError("The path holds control characters")
    decoded = unquote(unquote(path))  # twice: %252e is a dot to a program that decodes twice
    if "\\" in decoded or ".." in decoded.split("/"):
        raise ForbiddenPathError(f"The path {path} would escape {ROOT}")
    if not (path == ROOT or path.startswith(f"{ROOT}/")):
        raise ForbiddenPathError(f"Path must start with {ROOT}, got: {path[:MAX_PATH]}")
    if len(path) > MAX_PATH:
        raise UsageError(f"The path has {len(path)} characters, {MAX_PATH} are allowed")
    spelt = "/" + "/".join(part for part in path.split("/") if part not in ("", "."))
    if Redactor().redact_text(spelt) != spelt:
        raise ForbiddenPathError("The path contains a secret or invisible characters")
    return spelt


@dataclass(frozen=True, slots=True)
class Notes:
    """`memory.notes`: texts with a path.

    No two live notes of an agent share a path; writes are durable when they return.
    """

    _entries: Entries

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────

    def files(self, agent: str, below: str = ROOT) -> dict[str, Record]:
        """Return the notes of an agent at or below a path, by path, in order."""
        notes = list_all(self._entries.store, Filters(kinds=("note",), agent=agent))
        by_path = {str(note.fields.get(_PATH)): note for note in notes}
        return {path: by_path[path] for path in sorted(by_path) if _is_within(path, below)}

    def file(self, agent: str, path: str) -> Record:
        """Return the note at a path. Raises NotFoundError."""
        found = self.files(agent, path).get(path)
        if found is None:
            raise _no_path(path)
        return found

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────

    def create(self, agent: str, path: str, text: str) -> NoteWrite:
        """Store a new note. Raises ConflictError if the path exists already."""
        redacted = self._entries.redactor.redact(_checked_text(text), keep_lines=True)
        now = now_ms()
        record = Record(
            id=new_id(),
            kind="note",
            text=redacted.text,
            title=path,
            agent=agent,
            created_at=now,
            updated_at=now,
            summary=_summary(path, redacted.text),
            fields={_PATH: path},
        )
        entries = self._entries.store.entries

        def store(_: int) -> NoteWrite:  # no other process makes it a directory between the check and the write
            files = self.files(agent)
            self._refuse_taken(files, path, f"File {path} already exists")
            if len(files) >= MAX_FILES:
                raise UsageError(f"There are {MAX_FILES:,} files already; delete some first")
            if not entries.add([record], by=self._entries.agent, unique=_PATH)[0].created:
                raise ConflictError(f"File {path} already exists")
            return NoteWrite(record, redacted.redacted)

        return in_transaction(entries, store)

    def edit(self, agent: str, path: str, change: Callable[[str], str], reason: str) -> NoteWrite:
        """Replace the text of a note by the result of `change`. Concurrent edits are applied one after the other."""
        redacted: tuple[str, ...] = ()

        def revised(record: Record) -> Record:
            nonlocal redacted
            result = self._entries.redactor.redact(_checked_text(change(record.text)), keep_lines=True)
            redacted = result.redacted
            return replace(record, text=result.text, summary=_summary(path, result.text))

        note = self._entries.revise(self.file(agent, path).id, revised, "update", reason).after
        return NoteWrite(note, redacted)

    def delete(self, agent: str, path: str) -> int:
        """Forget a note, or every note below a directory, in one transaction. Returns their number."""
        if path == ROOT:
            raise ForbiddenPathError(f"Cannot delete the {ROOT} directory itself")

        def store(_: int) -> int:
            files = self.files(agent, path)
            if not files:
                raise _no_path(path)
            for record in files.values():
                self._entries.forget(record.id, f"delete {path}")
            return len(files)

        return in_transaction(self._entries.store.entries, store)

    def rename(self, agent: str, old: str, new: str) -> int:
        """Move a note, or every note below a directory, in one transaction. Returns their number."""
        if ROOT in (old, new):
            raise ForbiddenPathError(f"Cannot rename the {ROOT} directory itself")

        def store(_: int) -> int:
            files = self.files(agent)
            moving = {path: record for path, record in files.items() if _is_within(path, old)}
            if not moving:
                raise _no_path(old)
            if new == old or new.startswith(f"{old}/"):
                raise ConflictError(f"The destination {new} already exists, or lies in {old}")
            self._refuse_taken(files, new, f"The destination {new} already exists")
            moved = {path: checked_path(new + path.removeprefix(old)) for path in moving}
            for path, record in moving.items():
                fields = {**record.fields, _PATH: moved[path]}
                change = partial(replace, title=moved[path], fields=fields)
                self._entries.revise(record.id, change, "update", f"rename {path} to {moved[path]}", unique=_PATH)
            return len(moving)

        return in_transaction(self._entries.store.entries, store)

    def _refuse_taken(self, files: dict[str, Record], path: str, message: str) -> None:
        """Raise ConflictError when the path is taken: a directory cannot become a file, nor a file a directory."""
        if path == ROOT or any(_is_within(other, path) for other in files):
            raise ConflictError(message)
        for other in files:
            if path.startswith(f"{other}/"):
                raise ConflictError(f"{other} is a file, not a directory")


def _is_within(path: str, below: str) -> bool:
    return path == below or path.startswith(f"{below}/")


def _no_path(path: str) -> NotFoundError:
    return NotFoundError(f"The path {path} does not exist. Please provide a valid path.")


def _checked_text(text: str) -> str:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise UsageError("The text holds characters that cannot be stored") from None
    if size > MAX_TEXT_BYTES:
        raise UsageError(f"The file would have {size:,} bytes, {MAX_TEXT_BYTES:,} are allowed; split it")
    return text


def _summary(path: str, text: str) -> str:
    return summarize(text) or path.rsplit("/", 1)[-1]
