"""The text of `mindex admin`: statements, grants and distribution."""

from mindex.datatypes.administration import Distribution, Grants, Setup
from mindex.present.text import aligned, amount, note_lines


def setup_text(setup: Setup) -> str:
    """A script for psql; after it was run, one line for each step."""
    if not setup.ran:
        return "\n".join(f"-- {step.purpose}\n{step.statement};" for step in setup.steps)
    return "\n".join(aligned([(step.purpose, step.outcome) for step in setup.steps]))


def grants_text(grants: Grants) -> str:
    rows = [(one.login, one.scope, one.name, "reads" if one.read_only else "reads and writes") for one in grants.grants]
    state = (
        "row-level security is on" if grants.row_security else "row-level security is off: every login sees everything"
    )
    none = f"{grants.login} has no grants" if grants.login else "no grants"
    return "\n".join([*(aligned(rows) if rows else [none]), state, *note_lines(grants.notes)])


def distribution_text(result: Distribution) -> str:
    return "\n".join(
        [
            f"distributed by agent and collection: {', '.join(result.distributed)}",
            f"on every machine: {', '.join(result.reference)}",
            amount(result.machines, "machine"),
        ]
    )
