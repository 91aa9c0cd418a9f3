"""The memory tool of Anthropic: six commands on files under `/memories`, with the texts that Claude expects."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Literal

from mcp_types import CallToolResult
from pydantic import Field

from mindex.datatypes import Record
from mindex.errors import MindexError, UsageError
from mindex.mcp.dialect import Dialect
from mindex.mcp.dialect_parts import ROOT, NoteWrite, checked_path
from mindex.mcp.tools import REVISES, Omitted, Toolset, tool, tool_result

Command = Literal["view", "create", "str_replace", "insert", "delete", "rename"]

_DEPTH = 2
_AROUND = 2  # lines shown before and after an edit
_MEMORY = (
    f"Files that stay between conversations, under {ROOT}. view: a directory, or a file with line numbers; create: a"
    " new file; str_replace: a text that occurs in it once; insert: after a line, 0 is the start; delete, rename: a"
    f" file or directory. View {ROOT} before you start, and keep in it what you would need to go on. Never secrets."
)
# The arguments that a command needs.
_NEEDS: Mapping[Command, tuple[str, ...]] = {
    "view": ("path",),
    "create": ("path", "file_text"),
    "str_replace": ("path", "old_str"),
    "insert": ("path", "insert_line", "insert_text"),
    "delete": ("path",),
    "rename": ("old_path", "new_path"),
}


class AnthropicTools(Toolset):
    @tool(_MEMORY, REVISES, reads_too=True)
    def memory(
        self,
        command: Command,
        path: Annotated[str | Omitted, Field(description="Of all commands but rename")] = None,
        view_range: Annotated[list[int] | Omitted, Field(description="First and last line, -1: to the end")] = None,
        file_text: Annotated[str | Omitted, Field(description="create")] = None,
        old_str: Annotated[str | Omitted, Field(description="str_replace")] = None,
        new_str: Annotated[str | Omitted, Field(description="str_replace; default: nothing")] = None,
        insert_line: Annotated[int | Omitted, Field(description="insert")] = None,
        insert_text: Annotated[str | Omitted, Field(description="insert")] = None,
        old_path: Annotated[str | Omitted, Field(description="rename")] = None,
        new_path: Annotated[str | Omitted, Field(description="rename")] = None,
    ) -> CallToolResult:
        arguments = locals()
        _ = self._memory  # one that cannot be opened is not an error of the command
        try:
            for name in _NEEDS[command]:
                if arguments[name] is None:
                    raise UsageError(f"{command} needs {name}")
            file = checked_path((old_path if command == "rename" else path) or "")
            run: Mapping[Command, Callable[[], CallToolResult]] = {
                "view": lambda: self._view(file, view_range),
                "create": lambda: self._create(file, file_text or ""),
                "str_replace": lambda: self._str_replace(file, old_str or "", new_str or ""),
                "insert": lambda: self._insert(file, insert_line or 0, insert_text or ""),
                "delete": lambda: self._delete(file),
                "rename": lambda: self._rename(file, checked_path(new_path or "")),
            }
            return run[command]()
        except MindexError as error:
            message = self.host.error_text(error)
            bare = command == "view" or message.startswith("No replacement")
            return tool_result(message if bare else f"Error: {message}", is_error=True)

    @property
    def _agent(self) -> str:
        return self._memory.settings.text("agent")

    def _view(self, path: str, view_range: list[int] | None) -> CallToolResult:
        files = self._memory.notes.files(self._agent, path)
        if path not in files:
            if not files and path != ROOT:
                self._memory.notes.file(self._agent, path)  # raises NotFoundError
            return _result(_listing(path, files), path)
        lines = _lines(files[path].text)
        first, last = _first_and_last(view_range, len(lines))
        shown = _numbered(lines[first - 1 : last], first)
        self._memory.get(files[path].id)  # counts the access
        return _result(f"Here's the content of {path} with line numbers:\n{shown}", path)

    def _create(self, path: str, text: str) -> CallToolResult:
        written = self._memory.notes.create(self._agent, path, text)
        return self._write_result(written, path, f"File created successfully at: {path}")

    def _str_replace(self, path: str, old: str, new: str) -> CallToolResult:
        if not old:
            raise UsageError("No replacement was performed, old_str is empty.")
        line = 1

        def replaced(text: str) -> str:
            nonlocal line
            starts = [at for at in range(len(text)) if text.startswith(old, at)]  # also overlapping ones
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

        written = self._memory.notes.edit(self._agent, path, replaced, "str_replace")
        first = max(1, line - _AROUND)
        last = line + new.count("\n") + _AROUND
        shown = _numbered(_lines(written.record.text)[first - 1 : last], first)
        return self._write_result(written, path, f"The memory file has been edited.\n{shown}")

    def _insert(self, path: str, at: int, text: str) -> CallToolResult:
        def inserted(before: str) -> str:
            lines = _lines(before)
            if not 0 <= at <= len(lines):
                raise UsageError(
                    f"Invalid `insert_line` parameter: {at}. It should be within the range of lines of the file:"
                    f" [0, {len(lines)}]"
                )
            ends = before.endswith("\n") or (at == len(lines) and text.endswith("\n"))
            return "\n".join([*lines[:at], text.removesuffix("\n"), *lines[at:]]) + ("\n" if ends else "")

        written = self._memory.notes.edit(self._agent, path, inserted, "insert")
        return self._write_result(written, path, f"The file {path} has been edited.")

    def _delete(self, path: str) -> CallToolResult:
        self._memory.notes.delete(self._agent, path)
        return _result(f"Successfully deleted {path}", path)

    def _rename(self, old: str, new: str) -> CallToolResult:
        self._memory.notes.rename(self._agent, old, new)
        self._memory.embedding_queue.embed_all()
        return _result(f"Successfully renamed {old} to {new}", new)

    def _write_result(self, written: NoteWrite, path: str, text: str) -> CallToolResult:
        self._memory.embedding_queue.embed_all()
        notes = [f"secrets were left out: {', '.join(written.redacted)}"] if written.redacted else []
        return _result(text, path, notes)


def _result(text: str, path: str, notes: Sequence[str] = ()) -> CallToolResult:
    return tool_result(text, {"path": path, "text": text}, notes)


def _listing(path: str, files: Mapping[str, Record]) -> str:
    """Return sizes and paths, two levels deep; a directory is as large as the files in it."""
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
    rows = [f"{_human_size(sizes[place])}\t{place}" for place in sorted(sizes)]
    head = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items and node_modules:"
    return "\n".join([head, *rows])


def _human_size(size: int) -> str:
    if size < 1024:
        return f"{size}B"
    return f"{size / 1024:.1f}K" if size < 1024 * 1024 else f"{size / 1024 / 1024:.1f}M"


def _lines(text: str) -> list[str]:
    """Return the lines; a line break at the end starts no line."""
    return text.removesuffix("\n").split("\n") if text else []


def _numbered(lines: Iterable[str], first: int) -> str:
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, start=first))


def _first_and_last(view_range: list[int] | None, count: int) -> tuple[int, int]:
    """Return the range of lines to show, of this number of lines. Raises UsageError for a range outside of the file."""
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


_INSTRUCTIONS = (
    f"View {ROOT} with the `memory` tool before anything else: earlier progress is there. Write down status,"
    " decisions and what you learn as you go; your context may end at any time."
)

DIALECT = Dialect((AnthropicTools,), _INSTRUCTIONS)
