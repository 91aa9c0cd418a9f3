"""The commands status and doctor."""

from __future__ import annotations

from collections.abc import Sequence

import click

from mindex.cli.output import prints
from mindex.memory import Memory
from mindex.model import Check, Status
from mindex.present.doctor import checks_json, checks_text
from mindex.present.status import status_text


@click.command("status")
@prints(status_text)
def status_command(memory: Memory) -> Status:
    """What is in the memory, where it is, and what is still pending."""
    return memory.status()


@click.command("doctor")
@prints(checks_text, checks_json, fails=lambda checks: not all(check.ok for check in checks))
def doctor_command(memory: Memory) -> Sequence[Check]:
    """Check the database, the indexes, the folders and the model; say how to mend what is broken."""
    return memory.doctor()
