"""The tools of Memorizer-MCP: its names, arguments and envelope, over our memories with its 0.6/0.4 fusion method.

Its ids of facts, contacts, projects and skills are integers: the record's number. An error is an ordinary result,
`{success: false, error}`, unless mindex itself failed.
"""

from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp_types import CallToolResult

from mindex.datatypes import Guidance
from mindex.mcp.dialect import NO_IMPORTANCE_BOOST, Dialect
from mindex_compat.dialects.memorizer_entries import FactConversationProfileTools
from mindex_compat.dialects.memorizer_field_entries import ThingTools
from mindex_compat.dialects.memorizer_format import failed
from mindex_compat.dialects.memorizer_project_sources import ProjectSourceTools
from mindex_compat.dialects.memorizer_transfer import ExportImportTools
from mindex_compat.dialects.memorizer_upkeep import MaintenanceTools

# Its clients embed what is missing themselves, with `backfill_embeddings`: a server that is faster than its first call
# would leave them nothing to see. What they leave is embedded a minute later.
_BACKFILL_DELAY = 60.0


def _error_result(error: ToolError) -> CallToolResult:
    if isinstance(error, UnexpectedToolError):
        raise error
    return failed(str(error))


_INSTRUCTIONS = (
    "An assistant's memory: facts, conversations, a profile, contacts, projects, skills. `retrieve_memories` before"
    " you answer what earlier conversations may have settled; `store_fact` what is worth keeping, never secrets;"
    " `update_fact` and `delete_fact` what is wrong; `store_conversation` after an exchange."
)

_COMMANDS = (
    (r"list --kind memory", "`list_facts`"),
    (r"add", "`store_fact`"),
    (r"conversation add", "`store_conversation`"),
    (r"profile set", "`update_profile`"),
    (r"profile get", "`get_profile`"),
    (r"(contact|project|skill) list", r"`list_\1s`"),
    (r"(contact|project|skill) update", r"`update_\1`"),
    (r"backfill", "`backfill_embeddings`"),
    (r"--agent", "agent_id"),
)
_GUIDANCE = Guidance(
    fill="`store_fact` fills it",
    add="`store_fact` adds one",
    wait="search again in a moment",
    vectors="`backfill_embeddings` makes the vectors",
)

DIALECT = Dialect(
    (FactConversationProfileTools, ThingTools, ProjectSourceTools, MaintenanceTools, ExportImportTools),
    _INSTRUCTIONS,
    backfill_delay=_BACKFILL_DELAY,
    settings=NO_IMPORTANCE_BOOST,
    guidance=_GUIDANCE,
    on_error=_error_result,
    commands=_COMMANDS,
    unknown_tool=lambda name: failed(f"Unknown tool: {name}"),
)
