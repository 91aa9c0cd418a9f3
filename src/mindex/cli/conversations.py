"""The command conversation: adds, extracts, searches and shows turns."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import click

from mindex.cli.open_memory import Context, prints
from mindex.cli.options import after_option, completed_by, limit_option, offset_option, tag_option, text_or_stdin
from mindex.cli.output import ProgressBar, colour, note
from mindex.datatypes import ExtractionReport, Record, SessionPage
from mindex.entries.conversations import MAX_SESSIONS
from mindex.errors import NotFoundError, UsageError
from mindex.memory import Memory
from mindex.present import entries as present
from mindex.present.answer_view import AnswerView, view_answer
from mindex.search.query import MAX_LIMIT

_MAX_BATCH = 200


@click.group("conversation")
def conversation_command() -> None:
    """Keep, find and show what was said."""


@conversation_command.command("add")
@click.argument("user", metavar="USER")
@click.argument("agent_response", metavar="AGENT|-")
@click.option(
    "--session",
    "session_id",
    default="",
    metavar="S",
    help="Which conversation it belongs to (default: a new one).",
    shell_complete=completed_by("sessions"),
)
@tag_option
@click.option("--speaker", default="", metavar="NAME", help="Who said the first part (default: user).")
@click.option("--at", metavar="T", help="When it was said (default: now).")
@click.pass_obj
def add(context: Context, /, user: str, agent_response: str, **options: Any) -> None:
    """Keep one exchange: what the user said, and what the agent answered; `-` reads one of them from standard input."""
    if user == agent_response == "-":
        raise UsageError("only one of the two can come from standard input", "give the other as an argument")
    with context.memory(creates=True) as memory:
        turn, redacted = memory.conversations.add(
            text_or_stdin(user), text_or_stdin(agent_response), extract=False, **options
        )
        notes = memory.embedding_queue.notes(turn.id)
        found = memory.conversations.extract_facts_of(turn)
        found = replace(found, notes=(*notes, *found.notes))
    context.emit(present.turn_added_json(turn, redacted, found), lambda: present.turn_added_text(turn, redacted, found))


@conversation_command.command("extract")
@click.option("--batch", default=10, show_default=True, help=f"How many exchanges to ask, at most {_MAX_BATCH}.")
@click.option("--all", "everything", is_flag=True, help="Ask all that are left.")
@click.option("--again", is_flag=True, help="Ask also those that went unanswered three times and rest for a day.")
@prints(present.extraction_text, fails=lambda found: found.in_vain)
def extract(memory: Memory, batch: int, everything: bool, again: bool) -> ExtractionReport:
    """Have a language model take facts out of exchanges that it was not asked about yet.

    A fact is a memory like any other, linked to its exchange. An exchange is asked once, also when it holds none; one
    that the model fails on is asked again after all others. Where not one is answered, the exit code is 1.
    """
    if batch > _MAX_BATCH:
        note(f"batch cut to {_MAX_BATCH}")
    most = sys.maxsize if everything else min(batch, _MAX_BATCH)
    with ProgressBar() as bar:
        return memory.conversations.extract_facts(limit=most, again=again, report=bar)


@conversation_command.command("search")
@click.argument("query")
@click.option(
    "--session", default="", metavar="S", help="Only in this conversation.", shell_complete=completed_by("sessions")
)
@after_option
@click.option("--before", metavar="T", help="Before this time.")
@limit_option(10, f"How many results, at most {MAX_LIMIT}.")
@click.option("--around", default=0, show_default=True, help="How many exchanges before and after each to show.")
@prints(lambda shown: shown.text(colour=colour()))
def search(memory: Memory, query: str, **options: Any) -> AnswerView:
    """Search what was said."""
    return view_answer(memory.search(query, kinds=["turn"], **options))


@conversation_command.command("list")
@limit_option(20, f"How many conversations, at most {MAX_SESSIONS}.")
@offset_option
@prints(present.sessions_text)
def list_(memory: Memory, limit: int, offset: int) -> SessionPage:
    """List conversations, the latest first; `conversation show SESSION` shows one."""
    if limit > MAX_SESSIONS:
        note(f"limit cut to {MAX_SESSIONS}, the maximum")
    return memory.conversations.list(limit=limit, offset=offset)


@conversation_command.command("show")
@click.argument("reference", metavar="ID|SESSION", shell_complete=completed_by("sessions"))
@click.option("--around", default=2, show_default=True, help="Of an exchange: how many before and after it.")
@click.pass_obj
def show_one(context: Context, reference: str, around: int) -> None:
    """Show a whole conversation, or an exchange with its neighbours."""
    if around < 0:
        raise UsageError(f"around {around} is too small", "use 0 or more")
    with context.memory() as memory:
        turns = memory.conversations.session(reference) or _around(memory, reference, around)
    context.emit(present.turns_json(turns), lambda: present.turns_text(turns, colour=colour()))


def _around(memory: Memory, reference: str, count: int) -> Sequence[Record]:
    """An exchange with its neighbours. Raises NotFoundError for everything else."""
    with suppress(NotFoundError):
        if turns := memory.conversations.around(reference, count, count):
            return turns
    hint = "`mindex conversation list` names the conversations"
    raise NotFoundError(f"'{reference}' is neither a conversation nor an exchange", hint)
