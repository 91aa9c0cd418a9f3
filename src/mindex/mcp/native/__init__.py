"""The native tools of mindex, in their fixed order: few, with lean schemas."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from mindex.datatypes.guidance import Guidance
from mindex.mcp.dialect import Dialect
from mindex.mcp.memory_host import MemoryHost

# The classes need the SDK, and the handshake is answered before it is imported: each is looked up when it is made.
_TOOLSETS = (
    ("mindex.mcp.native.retrieval", "SearchTools"),
    ("mindex.mcp.native.write_tools", "WriteTools"),
    ("mindex.mcp.native.index_tools", "IndexTools"),
)


def _toolset(module: str, name: str) -> Callable[[MemoryHost], object]:
    def make(host: MemoryHost) -> Any:
        return getattr(import_module(module), name)(host)

    return make


_INSTRUCTIONS = (
    "mindex is the memory of this machine: indexed documents (handbooks, notes, architecture, decisions, conventions)"
    " and entries that clients stored. Search it before you answer or decide anything that the user's project, team or"
    " past work may have settled, and before you search files by hand. `search` finds passages and memories; `get`"
    " reads them in full; indented lines are stored text. `remember` facts, preferences, decisions and corrections"
    " that matter beyond this conversation, never secrets. If a result names a conflict, decide which memory is right,"
    " or ask the user, and call `update` with its id and `supersedes`: the id of the other. `update` what has changed,"
    " `forget` what is wrong; both can be undone. `index` adds a folder; `status` shows what is stored."
)

_COMMANDS = (
    (r"undo (\d{1,10})", r"`update` with undo: \1"),
    (r"undo \w+", "`update` with undo: true"),
    (r"restore(?!-backup).*", "`update` with restore: true"),
    (r"history (.+)", r"`get` with refs: history:\1"),
    (r"update (\w+) --supersedes (\w+)", r"`update` with id: \1, supersedes: \2"),
    (r"list --conflicts", "`get` with refs: conflicts"),
    (r"list --kind (\w+)", r"`search` with kind: \1"),
    (r"profile set", "`remember` with kind: profile"),
    (r"profile get", "`get` with refs: profile"),
    (r"(contact|project|skill) list", r"`search` with kind: \1"),
    (r"project link .+", "`update` with fields: sources"),
    (r"(?:contact|project|skill) update", "`update` and its argument fields"),
    (r"conversation add", "`remember` with kind: turn"),
    (r"add", "`remember`"),
    (r"status", "`status`"),
    (r"index", "`index`"),
    (r"index ([^-].*)", r"`index` with path: \1"),
    (r"--replace", "`replace: true` beside path and value"),
)

_GUIDANCE = Guidance(
    fill="`index` adds a folder, `remember` a fact",
    add="`remember` adds one",
    wait="search again in a moment; `status` shows how much is there",
    vectors="they are being computed; search again in a moment",
    include_expired="include_expired",
    settle="`update` with id: {newer}, supersedes: {older}",
    all_conflicts="`get` with refs: conflicts",
    history="`get` with refs: history:{id}",
)

DIALECT = Dialect(
    tuple(_toolset(module, name) for module, name in _TOOLSETS),
    _INSTRUCTIONS,
    lists_collections=True,
    guidance=_GUIDANCE,
    commands=_COMMANDS,
)
