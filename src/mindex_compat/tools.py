"""The tools of other programs, as entry points: what `mindex serve` must know before the SDK is imported."""

from collections.abc import Callable
from importlib import import_module

from mindex.mcp.dialect import Dialect, Tools
from mindex_compat.dialects.environment import VARIABLES, mudpuppy_files
from mindex_compat.dialects.memory_exchange_flags import FLAGS, read_flags
from mindex_compat.places import PLACES


def _dialect(module: str) -> Callable[[], Dialect]:
    """Return what imports the dialect of a module, and the SDK with it."""

    def load() -> Dialect:
        dialect: Dialect = import_module(f"mindex_compat.dialects.{module}").DIALECT
        return dialect

    return load


MEMORY_EXCHANGE = Tools(
    _dialect("memory_exchange"),
    program="MemoryExchange",
    handshakes=__package__,
    variables=VARIABLES["memory-exchange"],
    flags=FLAGS,
    read_flags=read_flags,
)
MEMORY_MCP = Tools(
    _dialect("memory_mcp"), handshakes=__package__, variables=VARIABLES["memory-mcp"], places=PLACES["memory-mcp"]
)
MUDPUPPY = Tools(
    _dialect("mudpuppy"),
    handshakes=__package__,
    variables=VARIABLES["mudpuppy"],
    found=mudpuppy_files,
    places=PLACES["mudpuppy"],
)
MEMORIZER = Tools(
    _dialect("memorizer"), handshakes=__package__, variables=VARIABLES["memorizer"], places=PLACES["memorizer"]
)
ANTHROPIC = Tools(_dialect("anthropic"), handshakes=__package__)
OPENAI = Tools(_dialect("openai"), handshakes=__package__)
# It has no tools over MCP: those of mindex, and its own addresses over HTTP.
MEMORY_SEARCH = Tools(
    _dialect("memory_search"), program="memory-search", handshakes=__package__, places=PLACES["memory-search"]
)
