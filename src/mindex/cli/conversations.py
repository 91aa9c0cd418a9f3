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
from mindex.present.record_view import view_record
from mindex.search.query import MAX_LIMIT

_MAX_BATCH = 200


@click.group("conversation")
def conversation_command() -> None:
    """Store, search and show conversations."""


@conversation_command.command("add")
@click.argument("user", metavar="USER")
@click.argument("agent_response", metavar="REPLY|-")
@click.option(
    "--session",
    "session_id",
    default="",
    metavar="S",
    help="Conversation of the turn (default: a new one).",
    shell_complete=completed_by("sessions"),
)
@tag_option
@click.option("--speaker", default="", metavar="NAME", help="Speaker of the first message (default: user).")
@click.option("--at", metavar="T", help="Time of the turn (default: now).")
@click.pass_obj
def add(context: Context, /, user: str, agent_response: str, **options: Any) -> None:
    """Store one turn: the user's message and the reply; `-` reads one of them from standard input."""
    if user == agent_response == "-":
        raise UsageError("only one message can come from standard input", "pass the other as an argument")
    with context.memory(creates=True) as memory:
        turn, redacted = memory.conversations.add(
            text_or_stdin(user), text_or_stdin(agent_response), extract=False, **options
        )
        notes = memory.embedding_queue.notes(turn.id)
        found = memory.conversations.extract_facts_of(turn)
        found = replace(found, notes=(*notes, *found.notes))
    context.emit(present.turn_added_json(turn, redacted, found), lambda: present.turn_added_text(turn, redacted, found))


@conversation_command.command("extract")
@click.option("--batch", default=10, show_default=True, help=f"Number of turns, at most {_MAX_BATCH}.")
@click.option("--all", "everything", is_flag=True, help="Read all remaining turns.")
@click.option("--again", is_flag=True, help="Also retry turns that failed three times.")
@prints(present.extraction_text, fails=lambda found: found.in_vain)
def extract(memory: Memory, batch: int, everything: bool, again: bool) -> ExtractionReport:
    """Have a language model extract facts from turns that it has not read yet.

    A fact is a memory that is linked to its turn. Each turn is read once, even if it contains no fact. A turn that the
    model fails on is retried after all others. The exit code is 1 if every turn failed.
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
@limit_option(10, f"Number of results, at most {MAX_LIMIT}.")
@click.option("--around", default=0, show_default=True, help="Number of turns before and after each.")
@prints(lambda shown: shown.text(colour=colour()))
def search(memory: Memory, query: str, **options: Any) -> AnswerView:
    """Search conversations."""
    return view_answer(memory.search(query, kinds=["turn"], **options))


@conversation_command.command("list")
@limit_option(20, f"Number of conversations, at most {MAX_SESSIONS}.")
@offset_option
@prints(present.sessions_text)
def list_(memory: Memory, limit: int, offset: int) -> SessionPage:
    """List conversations, the latest first; `conversation show SESSION` shows one."""
    if limit > MAX_SESSIONS:
        note(f"limit cut to {MAX_SESSIONS}, the maximum")
    return memory.conversations.list(limit=limit, offset=offset)


@conversation_command.command("show")
@click.argument("reference", metavar="ID|SESSION", shell_complete=completed_by("sessions"))
@click.option("--around", default=2, show_default=True, help="Number of turns before and after.")
@click.pass_obj
def show_one(context: Context, reference: str, around: int) -> None:
    """Show a whole conversation, or a turn with its neighbours."""
    if around < 0:
        raise UsageError(f"around {around} is too small", "use 0 or more")
    with context.memory() as memory:
        turns = memory.conversations.session(reference) or _around(memory, reference, around)
    shown = {"records": [view_record(turn) for turn in turns], "total": len(turns)}
    context.emit(shown, lambda: present.turns_text(turns, colour=colour()))


def _around(memory: Memory, reference: str, count: int) -> Sequence[Record]:
    """An exchange with its neighbours. Raises NotFoundError for everything else."""
    with suppress(NotFoundError):
        if turns := memory.conversations.around(reference, count, count):
            return turns
    hint = "`mindex conversation list` lists the conversations"
    raise NotFoundError(f"'{reference}' is neither a conversation nor a turn", hint)
