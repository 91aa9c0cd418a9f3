"""Tools: `mindex serve --tools librarian` offers one tool."""

from mcp_types import CallToolResult

from mindex.extension import READS, Dialect, Tools, Toolset, tool, tool_result

MINDEX_INTERFACE = 1


class Librarian(Toolset):
    @tool("Find the best page for a question.", READS)
    def find_page(self, question: str) -> CallToolResult:
        answer = self.host.memory.search(question, limit=1)
        if not answer.hits:
            return tool_result("nothing found", {"id": None}, answer.notes)
        record = answer.hits[0].record
        return tool_result(record.text, {"id": record.id, "text": record.text}, answer.notes)


tools = Tools(lambda: Dialect((Librarian,), "Call `find_page` before you answer a question about this project."))
