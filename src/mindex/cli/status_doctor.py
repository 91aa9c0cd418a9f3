"""The commands status and doctor."""

from __future__ import annotations

import sys

import click

from mindex.cli.output import Context
from mindex.present.doctor import checks_json, checks_text
from mindex.present.status import status_text


@click.command("status")
@click.pass_obj
def status_command(context: Context) -> None:
    """What is in the memory, where it is, and what is still pending."""
    with context.memory() as memory:
        status = memory.status()
    context.emit(status, lambda: status_text(status))


@click.command("doctor")
@click.pass_obj
def doctor_command(context: Context) -> None:
    """Check the database, the indexes, the folders and the model; say how to mend what is broken."""
    with context.memory() as memory:
        checks = memory.doctor()
    context.emit(checks_json(checks), lambda: checks_text(checks))
    if not all(check.ok for check in checks):
        sys.exit(1)
