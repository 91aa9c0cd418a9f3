"""The text of `mindex index` and `mindex watch`."""

from mindex.model import IndexReport
from mindex.present.text import amount, note_lines

_COUNTS = ("new", "changed", "moved", "deleted", "unchanged", "skipped")


def index_text(report: IndexReport) -> str:
    lines = []
    for one in report.collections:
        files = ", ".join(f"{getattr(one, name)} {name}" for name in _COUNTS if getattr(one, name))
        chunks = f"+{one.chunks_added} −{one.chunks_removed}, {one.chunks_kept} kept"
        summary = f"{amount(one.seen, 'file')}, {files or 'nothing to index'}; chunks {chunks}"
        lines.append(f"{one.name} ({one.root}): {summary}")
    lines.extend(f"skipped {skip.path}: {skip.reason}" for skip in report.skipped)
    placed = "" if report.contextualized is None else f"{report.contextualized} contextualized, "
    lines.append(f"{placed}{report.embedded} embedded, {report.pending} pending, {report.seconds:g} s")
    if (plan := report.contexts) is not None:
        cost = f"{amount(plan.prompt_tokens, 'token')} in, at most {plan.answer_tokens:,} out"
        lines.append(f"contexts: {amount(plan.calls, 'call')}, {cost}")
    return "\n".join([*lines, *note_lines(report.notes)])
