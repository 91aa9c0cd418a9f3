"""The text of `mindex consolidate`: proposals to merge or summarise old memories, and those that were applied."""

import re

from mindex.model import Consolidation, Proposal
from mindex.present.record_view import summary_of
from mindex.present.text import amount, note_lines

_AGES = {"h": "hour", "d": "day", "w": "week", "m": "month", "y": "year"}


def consolidation_text(found: Consolidation) -> str:
    blocks = [_proposal_text(one) for one in found.proposals]
    among = amount(found.examined, "memory", "memories")
    if not found.proposals:
        line = "nothing to consolidate" + (f" among {among}" if found.examined or not found.younger else "")
        line += _too_young(found) if found.younger else ""
    elif found.applied:
        retired = f"{amount(found.retired, 'memory', 'memories')} retired"
        line = f"{found.applied} of {len(blocks)} applied, {retired}; `mindex undo ID` takes one back as a whole"
    else:
        line = f"{amount(len(blocks), 'proposal')} among {among}; nothing is changed without --apply"
    return "\n\n".join([*blocks, "\n".join([line, *note_lines(found.notes)])])


def _too_young(found: Consolidation) -> str:
    """`; 7 are younger than 30 days (--older-than)`."""
    one = found.younger == 1
    if age := re.fullmatch(r"(\d+)\s*([hdwmy])", found.older_than.strip().lower()):
        since = f"{'is' if one else 'are'} younger than {amount(int(age[1]), _AGES[age[2]])}"
    else:
        since = f"{'was' if one else 'were'} told since {found.older_than}"
    return f"; {found.younger:,} {since} (--older-than)"


def _proposal_text(one: Proposal) -> str:
    state = f" → {one.applied}" if one.applied else f" (keeps {one.kept})" if one.kept else ""
    agent = one.originals[0].agent
    lines = [f"{one.kind}{state}: {one.why}, by {one.by}"]
    lines += [f"  - {record.id} [{agent}] {summary_of(record)}" for record in one.originals]
    return "\n".join([*lines, f"  = {one.result}"])
