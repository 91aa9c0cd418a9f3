"""The text of reports: `mindex index`, `status`, `doctor`, `models`, `models pull` and `reembed`."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from mindex.clock import to_iso
from mindex.datatypes import Check, IndexReport, Status
from mindex.datatypes.records import IMPORTED
from mindex.datatypes.reports import ListedModel, PullReport, ReembedReport, RepairReport, SkippedFile, UpgradeOffer
from mindex.datatypes.spaces import model_title, visible
from mindex.present.fence import inline
from mindex.present.hooks import pause_text
from mindex.present.text import aligned, amount, counted, note_lines, report_text
from mindex.present.to_json import Json, to_json, worded

_FILE_COUNTS = ("new", "changed", "moved", "deleted", "unchanged", "skipped")
_MINUTE = 60
_COMMIT_DIGITS = 8
_MAX_LOST = 20  # rows of a table that are named; --json has all
_MAX_SKIPPED = 5  # files that are named for each reason; --json has all


# ── index, status, doctor ─────────────────────────────────────────────────────────────────────────────────────


def index_text(report: IndexReport) -> str:
    lines: list[str] = []
    for one in report.collections:
        files = ", ".join(f"{getattr(one, name)} {name}" for name in _FILE_COUNTS if getattr(one, name))
        chunks = f"+{one.chunks_added} −{one.chunks_removed}, {one.chunks_kept} kept"
        summary = f"{amount(one.seen, 'file')}, {files or 'nothing to index'}; chunks {chunks}"
        lines.append(f"{inline(f'{one.name} ({one.root})')}: {summary}")
    placed = "" if report.contextualized is None else f"{report.contextualized} contextualized, "
    outcome = f"{placed}{report.embedded} embedded, {report.pending} pending, {report.seconds:g} s"
    if report.dry_run:
        embed = f"; {amount(report.pending, 'record')} to embed" if report.pending else ""
        outcome = f"dry run, nothing was stored{embed}"
    contexts = ""
    if (plan := report.contexts) is not None:
        cost = f"{amount(plan.prompt_tokens, 'token')} in, at most {plan.answer_tokens:,} out"
        contexts = f"contexts: {amount(plan.calls, 'call')}, {cost}"
    return report_text(lines, _skipped_lines(report.skipped), outcome, contexts, notes=report.notes)


def _skipped_lines(skipped: Sequence[SkippedFile]) -> Iterator[str]:
    """A line for each of the first files of a reason, then one with the count of the others."""
    counts: Counter[str] = Counter()
    for skip in skipped:
        counts[skip.reason] += 1
        if counts[skip.reason] <= _MAX_SKIPPED:
            yield inline(f"skipped {skip.path}: {skip.reason}")
    for reason, count in counts.items():
        if count > _MAX_SKIPPED:
            yield f"skipped {count - _MAX_SKIPPED:,} more: {reason}"


def status_text(status: Status) -> str:
    records = counted(status.records) or "none yet"
    embedding = status.embedding
    model = f"{embedding.provider} {embedding.model}" if embedding.model else "none"
    model += f", {embedding.dimensions} dimensions" if embedding.dimensions else ""
    change = embedding.reembedding
    caches = counted(status.caches)
    size = "" if status.size_bytes is None else f", {status.size_bytes} bytes"
    lines = [
        f"db: {status.db} (schema {status.schema}{size})",
        f"records: {records}",
        f"embedding: {model}, {embedding.pending} pending",
        *([f"reembedding: to {change.to}, {change.done} of {change.total} ({change.percent} %)"] if change else []),
        *([upgrade_text(offer)] if (offer := embedding.upgrade) else []),
        *note_lines([embedding.note] if embedding.note else []),
        f"tier: {status.tier} ({worded(status.tier_reason)})" if status.tier_reason else f"tier: {status.tier}",
        *([f"caches: {caches}"] if caches else []),
        *([pause_text(status.hooks_resume_at)] if status.hooks_paused else []),
        *note_lines(status.extension_problems),
    ]
    for one in status.collections:
        when = f", indexed {to_iso(one.indexed_at)}" if one.indexed_at is not None else ""
        missing = ", FOLDER MISSING" if one.missing else ""
        context = f", context: {one.context}" if one.context else ""
        root = one.root.replace(IMPORTED, "imported from ", 1)
        lines.append(
            inline(f"collection {one.name}: {root}, ")
            + f"{amount(one.documents, 'document')}, {amount(one.chunks, 'chunk')}{when}{missing}{inline(context)}"
        )
    return "\n".join(lines)


def upgrade_text(offer: UpgradeOffer) -> str:
    return (
        f"upgrade: {amount(offer.records, 'record')} with vectors of the former model; run `mindex reembed`"
        f" (about {amount(offer.minutes, 'minute')}) for better answers"
    )


def checks_json(checks: Sequence[Check]) -> dict[str, Json]:
    return to_json({"ok": all(check.ok for check in checks), "checks": checks})


def checks_text(checks: Sequence[Check]) -> str:
    rows = []
    for check in checks:
        fix = f"; {check.fix}" if check.fix and not check.ok else ""
        rows.append(["ok" if check.ok else "NOT OK", inline(check.name), inline(check.message + fix)])
    return "\n".join(aligned(rows))


def repair_text(report: RepairReport) -> str:
    """What was saved of a damaged database, table by table, and the names of what was lost."""
    outcome = "everything was saved" if not report.lost else f"{amount(report.lost, 'row')} lost"
    lines = [f"{report.source} → {report.target}: {outcome}"]
    rows = [("table", "read", "saved", "lost")]
    rows += ((one.table, f"{one.read:,}", f"{one.saved:,}", f"{one.lost:,}") for one in report.tables)
    lines += aligned(rows, numbers=True)
    for one in report.tables:
        lines += (f"lost: {name}" for name in one.names[:_MAX_LOST])
        if one.lost > _MAX_LOST:
            lines.append(f"lost: {one.lost - _MAX_LOST:,} more of {one.table} (--json names them)")
    return report_text(
        lines,
        f"made again from their history: {', '.join(report.recovered)}" if report.recovered else "",
        "the new database is sound" if report.sound else "the new database is not sound: `mindex doctor --deep`",
        notes=report.notes,
    )


# ── models ────────────────────────────────────────────────────────────────────────────────────────────────────


def models_text(models: Sequence[ListedModel]) -> str:
    lines: list[str] = []
    for role, those in groupby(models, key=lambda model: model.role):
        listed = list(those)
        rows = [["", "model", "dimensions", "size", "licence", "vectors", "speed here", "state"]]
        rows += [_row(model) for model in listed]
        used = [column for column in range(len(rows[0])) if column < 2 or any(row[column] for row in rows[1:])]
        table = aligned([[row[column] for column in used] for row in rows])
        lines += [*([""] if lines else []), f"{role}:", *table]
        absent = [one for one in listed if one.install and not one.installed]
        lines += [f"  {one.name}: for {one.use}" for one in listed if one.use]
        lines += [f"  to get {one.name}: {one.install}" for one in absent if not one.hub]
        if any(one.hub for one in absent):
            lines.append("  to get one that is not pulled: mindex models pull NAME")
        lines += [f"  {one.name}: {one.trouble}" for one in listed if one.trouble]
    return "\n".join(lines)


def _row(model: ListedModel) -> list[str]:
    marks = {"→": model.next, "*": model.active or (model.configured and model.role != "embedding")}
    return [
        next((mark for mark, holds in marks.items() if holds), ""),
        model_title(model.provider, model.name),
        str(model.dimensions or ""),
        f"{model.megabytes:g} MB" if model.megabytes else "",
        model.licence,
        "" if model.vectors is None else f"{model.vectors:,}",
        ", ".join(f"{value:.3g} ms {_with_article(what)}" for what, value in model.speed.items()),
        ", ".join(_states(model)),
    ]


def _with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _states(model: ListedModel) -> list[str]:
    states = {
        "searched now": model.active,
        "being filled": model.next,
        "left over": model.vectors is not None and not model.active and not model.next,
        "configured": model.configured,
        "default": model.default,
        "not installed": not model.installed and not model.hub,
        "installed": model.installed and model.install and not model.hub,
        "not pulled": not model.installed and model.hub,
        "pulled": model.installed and model.hub,
    }
    return [state for state, holds in states.items() if holds]


def pull_text(pulled: PullReport) -> str:
    origin = f"{pulled.repo} at {pulled.revision[:_COMMIT_DIGITS]}"
    state = (
        f"pulled, {pulled.downloaded / 1e6:,.1f} MB" if pulled.downloaded else "is here already, every file as recorded"
    )
    licence = f", licence {visible(pulled.licence)}" if pulled.licence else ""
    lines = [f"{pulled.name}: {state} ({origin}{licence})", f"in {pulled.folder}"]
    if pulled.role == "embedding":
        prefixes = {"queries": pulled.query_prefix, "texts": pulled.text_prefix}
        put = [f"'{visible(prefix)}' before {what}" for what, prefix in prefixes.items() if prefix]
        facts = [f"{pulled.dimensions} dimensions", f"{pulled.pooling} pooling", f"{pulled.max_tokens} tokens"]
        lines.append(", ".join([*facts, *(put or ["no prefixes"])]))
    return "\n".join([*lines, f"to use it: {pulled.use}"])


def reembed_text(done: ReembedReport) -> str:
    change = f"{done.source} → {done.target}" if done.source and done.source != done.target else done.target
    if done.dry_run:
        work = f"{done.remaining} records, {done.pieces} pieces, about {_duration(done.seconds)}"
        return f"{change}: {work}; nothing was changed"
    line = f"{change}: {done.embedded} embedded, {done.remaining} remaining, {done.seconds:g} s"
    return "\n".join([line, *note_lines(done.notes)])


def _duration(seconds: float) -> str:
    if seconds < _MINUTE:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / _MINUTE)
    return f"{minutes} min" if minutes < _MINUTE else f"{minutes / _MINUTE:.1f} h"
