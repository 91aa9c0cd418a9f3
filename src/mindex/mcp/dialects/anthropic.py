"""The memory tool that Claude knows: six commands on files under `/memories`, answered in the words it expects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Literal

from mcp_types import CallToolResult, TextContent
from pydantic import Field

from mindex.errors import MindexError, UsageError
from mindex.mcp.dialects import Dialect
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.strict_tool import REVISES, StrictTool, Unsaid, answer
from mindex.memories.notes import ROOT, NoteWrite, checked_path
from mindex.memory import Memory
from mindex.model import Record
from mindex.present.to_json import Json

Command = Literal["view", "create", "str_replace", "insert", "delete", "rename"]

_DEPTH = 2
_AROUND = 2  # lines shown before and after an edit
_MEMORY = (
    f"Files that stay between conversations, under {ROOT}. view: a directory, or a file with line numbers; create: a"
    " new file; str_replace: a text that stands in it once; insert: after a line, 0 is the start; delete, rename: a"
    f" file or directory. View {ROOT} before you start, and keep in it what you would need to go on. Never secrets."
)
# What a file command needs beside its path.
_NEEDS: Mapping[Command, tuple[str, ...]] = {
    "view": ("path",),
    "create": ("path", "file_text"),
    "str_replace": ("path", "old_str"),
    "insert": ("path", "insert_line", "insert_text"),
    "delete": ("path",),
    "rename": ("old_path", "new_path"),
}


class AnthropicTools:
    def __init__(self, service: MemoryHost) -> None:
        self._service = service

    def memory(
        self,
        command: Command,
        path: Annotated[str | Unsaid, Field(description="Of all commands but rename")] = None,
        view_range: Annotated[list[int] | Unsaid, Field(description="First and last line, -1: to the end")] = None,
        file_text: Annotated[str | Unsaid, Field(description="create")] = None,
        old_str: Annotated[str | Unsaid, Field(description="str_replace")] = None,
        new_str: Annotated[str | Unsaid, Field(description="str_replace; default: nothing")] = None,
        insert_line: Annotated[int | Unsaid, Field(description="insert")] = None,
        insert_text: Annotated[str | Unsaid, Field(description="insert")] = None,
        old_path: Annotated[str | Unsaid, Field(description="rename")] = None,
        new_path: Annotated[str | Unsaid, Field(description="rename")] = None,
    ) -> CallToolResult:
        given: dict[str, str | int | None] = {
            "path": path,
            "file_text": file_text,
            "old_str": old_str,
            "insert_line": insert_line,
            "insert_text": insert_text,
            "old_path": old_path,
            "new_path": new_path,
        }
        files = _Files(self._service.memory)
        try:
            for name in _NEEDS[command]:
                if given[name] is None:
                    raise UsageError(f"{command} needs {name}")
            at = checked_path((old_path if command == "rename" else path) or "")
            done: Mapping[Command, Callable[[], CallToolResult]] = {
                "view": lambda: files.view(at, view_range),
                "create": lambda: files.create(at, file_text or ""),
                "str_replace": lambda: files.str_replace(at, old_str or "", new_str or ""),
                "insert": lambda: files.insert(at, insert_line or 0, insert_text or ""),
                "delete": lambda: files.delete(at),
                "rename": lambda: files.rename(at, checked_path(new_path or "")),
            }
            return done[command]()
        except MindexError as error:
            return _failed(command, str(error))


class _Files:
    """The six commands over one agent's notes."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._agent = memory.settings.text("agent")
        self._notes = memory.notes

    def view(self, path: str, view_range: list[int] | None) -> CallToolResult:
        files = self._notes.files(self._agent, path)
        if path not in files:
            if not files and path != ROOT:
                self._notes.file(self._agent, path)  # says that it is not there
            return _told(_listing(path, files), path)
        lines = _lines(files[path].text)
        first, last = _span(view_range, len(lines))
        shown = _numbered(lines[first - 1 : last], first)
        self._memory.get(files[path].id)  # who was wanted is remembered
        return _told(f"Here's the content of {path} with line numbers:\n{shown}", path)

    def create(self, path: str, text: str) -> CallToolResult:
        written = self._notes.create(self._agent, path, text)
        return self._written(written, path, f"File created successfully at: {path}")

    def str_replace(self, path: str, old: str, new: str) -> CallToolResult:
        if not old:
            raise UsageError("No replacement was performed, old_str is empty.")
        line = 1

        def replaced(text: str) -> str:
            nonlocal line
            starts = list(_occurrences(text, old))
            numbers = [text.count("\n", 0, start) + 1 for start in starts]
            if not starts:
                raise UsageError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
            if len(starts) > 1:
                raise UsageError(
                    f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines:"
                    f" {', '.join(map(str, numbers))}. Please ensure it is unique"
                )
            line = numbers[0]
            return text[: starts[0]] + new + text[starts[0] + len(old) :]

        written = self._notes.edit(self._agent, path, replaced, "str_replace")
        first = max(1, line - _AROUND)
        last = line + new.count("\n") + _AROUND
        shown = _numbered(_lines(written.record.text)[first - 1 : last], first)
        return self._written(written, path, f"The memory file has been edited.\n{shown}")

    def insert(self, path: str, at: int, text: str) -> CallToolResult:
        def inserted(before: str) -> str:
            lines = _lines(before)
            if not 0 <= at <= len(lines):
                raise UsageError(
                    f"Invalid `insert_line` parameter: {at}. It should be within the range of lines of the file:"
                    f" [0, {len(lines)}]"
                )
            ends = before.endswith("\n") or (at == len(lines) and text.endswith("\n"))
            return "\n".join([*lines[:at], text.removesuffix("\n"), *lines[at:]]) + ("\n" if ends else "")

        written = self._notes.edit(self._agent, path, inserted, "insert")
        return self._written(written, path, f"The file {path} has been edited.")

    def delete(self, path: str) -> CallToolResult:
        self._notes.delete(self._agent, path)
        return _told(f"Successfully deleted {path}", path)

    def rename(self, old: str, new: str) -> CallToolResult:
        self._notes.rename(self._agent, old, new)
        self._memory.embedding_queue.embed_all()
        return _told(f"Successfully renamed {old} to {new}", new)

    def _written(self, written: NoteWrite, path: str, text: str) -> CallToolResult:
        self._memory.embedding_queue.embed_all()
        notes = [f"secrets were left out: {', '.join(written.redacted)}"] if written.redacted else []
        return _told(text, path, notes)


# ── as Claude expects it ──────────────────────────────────────────────────────────────────────────────────────


def _told(text: str, path: str, notes: Iterable[str] = ()) -> CallToolResult:
    shown: dict[str, Json] = {"path": path, "text": text}
    return answer(text, shown, tuple(notes))


def _failed(command: Command, message: str) -> CallToolResult:
    bare = command == "view" or message.startswith("No replacement")
    text = message if bare else f"Error: {message}"
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


def _listing(path: str, files: Mapping[str, Record]) -> str:
    """Sizes and paths, two levels deep; a directory is as large as what is in it."""
    sizes: dict[str, int] = {path: 0}
    for name, record in files.items():
        size = len(record.text.encode("utf-8", "surrogatepass"))
        parts = name.removeprefix(path).strip("/").split("/")
        if any(part.startswith(".") or part == "node_modules" for part in parts):
            continue
        sizes[path] += size
        for depth in range(1, min(len(parts), _DEPTH) + 1):
            place = f"{path}/{'/'.join(parts[:depth])}"
            sizes[place] = sizes.get(place, 0) + size
    rows = [f"{_human(sizes[place])}\t{place}" for place in sorted(sizes)]
    head = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items and node_modules:"
    return "\n".join([head, *rows])


def _human(size: int) -> str:
    if size < 1024:
        return f"{size}B"
    return f"{size / 1024:.1f}K" if size < 1024 * 1024 else f"{size / 1024 / 1024:.1f}M"


def _lines(text: str) -> list[str]:
    """A line's end ends it: what follows the last one is a line only if there is something."""
    return text.removesuffix("\n").split("\n") if text else []


def _numbered(lines: Iterable[str], first: int) -> str:
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, start=first))


def _span(view_range: list[int] | None, count: int) -> tuple[int, int]:
    if view_range is None:
        return 1, count
    first, last = view_range if len(view_range) == 2 else (0, 0)
    last = count if last == -1 else last
    if not 1 <= first <= max(1, count) or last < first - (not count):
        raise UsageError(
            f"Invalid `view_range` parameter: {view_range}. It should be within the range of lines of the file:"
            f" [1, {count}]"
        )
    return first, last


def _occurrences(text: str, part: str) -> Iterable[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _instructions(memory: Memory | None) -> str:  # noqa: ARG001 - the same whatever is in it
    return (
        f"View {ROOT} with the `memory` tool before anything else: earlier progress stands there. Write down status,"
        " decisions and what you learn as you go; your context may end at any time."
    )


def _tools(service: MemoryHost) -> list[StrictTool]:
    return [StrictTool.of(AnthropicTools(service).memory, _MEMORY, REVISES)]


DIALECT = Dialect(tools=_tools, instructions=_instructions)
