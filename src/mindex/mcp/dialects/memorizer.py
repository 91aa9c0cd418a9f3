"""The tools of Memorizer-MCP: its names, arguments and envelope, over our memories with its 0.6/0.4 fusion.

Its ids of facts, contacts, projects and skills are integers: the record's number. A mistake is an ordinary answer,
`{success: false, error}`; only a failure of ours is a tool error.
"""

from __future__ import annotations

from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp_types import CallToolResult

from mindex.mcp.dialects import Dialect
from mindex.mcp.dialects.memorizer_contacts_projects import People
from mindex.mcp.dialects.memorizer_export_import import Files
from mindex.mcp.dialects.memorizer_facts import Facts
from mindex.mcp.dialects.memorizer_format import failed
from mindex.mcp.dialects.memorizer_maintenance import Upkeep
from mindex.mcp.dialects.memorizer_profile_skills import Skills
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.strict_tool import READS, REFRESHES, REVISES, StrictTool
from mindex.memory import Memory


def _as_answer(error: ToolError) -> CallToolResult:
    if isinstance(error, UnexpectedToolError):
        raise error
    return failed(str(error))


def _unknown_tool(name: str) -> CallToolResult:
    return failed(f"Unknown tool: {name}")


def _settings(source: object) -> dict[str, object]:  # noqa: ARG001 - as every dialect's
    """Its score is 0.6 and 0.4 of the two halves; a memory's standing is not part of it."""
    return {"boost.memory": 0.0}


def _instructions(memory: Memory | None) -> str:  # noqa: ARG001 - the same whatever is in it
    return (
        "An assistant's memory: facts, conversations, a profile, contacts, projects, skills. `retrieve_memories` before"
        " you answer what earlier conversations may have settled; `store_fact` what is worth keeping, never secrets;"
        " `update_fact` and `delete_fact` what is wrong; `store_conversation` after an exchange."
    )


def _tools(service: MemoryHost) -> list[StrictTool]:
    facts, people, skills = Facts(service), People(service), Skills(service)
    upkeep, files = Upkeep(service), Files(service)
    return [
        StrictTool.of(fn, description, annotations, mistakes=_as_answer)
        for fn, description, annotations in (
            (facts.store_fact, "Keep a fact about the user. The answer names similar facts: update those.", REFRESHES),
            (facts.list_facts, "Facts, newest first.", READS),
            (facts.update_fact, "Correct a fact.", REVISES),
            (facts.delete_fact, "Delete a fact that is wrong: it leaves every search.", REFRESHES),
            (facts.retrieve_memories, "Search facts and conversations by meaning and by keyword.", READS),
            (facts.store_conversation, "Keep one exchange.", REVISES),
            (facts.search_conversations, "Search past exchanges, all or between two dates.", READS),
            (skills.get_profile, "What is known of the user.", READS),
            (skills.update_profile, "Change places of the profile; its history keeps what was there.", REFRESHES),
            (skills.store_skill, "Define something to be done by itself: when, and how.", REVISES),
            (skills.list_skills, "Skills, of one agent or of all.", READS),
            (skills.get_skill, "One skill by its id.", READS),
            (skills.update_skill, "Change a skill, or note its last run.", REVISES),
            (skills.delete_skill, "Delete a skill.", REFRESHES),
            (people.create_contact, "Keep a person the user works with.", REVISES),
            (people.list_contacts, "People the user works with.", READS),
            (people.update_contact, "Change a contact.", REVISES),
            (people.create_project, "Keep something the user works on.", REVISES),
            (people.list_projects, "What the user works on.", READS),
            (people.update_project, "Change a project.", REVISES),
            (upkeep.query_timeline, "What was learnt, said or changed between two dates, oldest first.", READS),
            (upkeep.get_memory_stats, "The memory in numbers, and how it is searched.", READS),
            (upkeep.backfill_embeddings, "Give vectors to what has none; call it until remaining is 0.", REFRESHES),
            (upkeep.backfill_extract_facts, "Extract facts from conversations; needs a generator.", REFRESHES),
            (upkeep.synthesize_facts, "Merge facts that say the same; needs a generator.", REVISES),
            (files.export_memory, "Write profile, facts and conversations into the export folder.", REFRESHES),
            (files.import_memory, "Take a mended profile.json or file of facts back in.", REFRESHES),
        )
    ]


DIALECT = Dialect(tools=_tools, instructions=_instructions, settings=_settings, unknown_tool=_unknown_tool)
