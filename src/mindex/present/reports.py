"""Everything but answers, as JSON objects and as text: reports, status, checks, found records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mindex.clock import to_iso
from mindex.model import GetResult, Record
from mindex.present.record_fields import Json, record_row
from mindex.present.records import view_records
from mindex.present.text import aligned, amount, record_text

if TYPE_CHECKING:
    from mindex.model import Check, EmbeddingStatus, IndexReport, Status


def index_json(report: IndexReport) -> dict[str, Json]:
    shown: dict[str, Json] = {
        "collections": [
            {
                "name": one.name,
                "root": one.root,
                "files": {
                    "seen": one.seen,
                    "new": one.new,
                    "changed": one.changed,
                    "moved": one.moved,
                    "deleted": one.deleted,
                    "unchanged": one.unchanged,
                    "skipped": one.skipped,
                },
                "chunks": {"added": one.chunks_added, "kept": one.chunks_kept, "removed": one.chunks_removed},
            }
            for one in report.collections
        ],
        "skipped": [{"path": skip.path, "reason": skip.reason} for skip in report.skipped],
        "embedded": report.embedded,
        "pending": report.pending,
        "seconds": report.seconds,
    }
    if report.contextualized is not None:
        shown["contextualized"] = report.contextualized
    if (plan := report.contexts) is not None:
        shown["contexts"] = {
            "calls": plan.calls,
            "prompt_tokens": plan.prompt_tokens,
            "answer_tokens": plan.answer_tokens,
        }
    if report.notes:
        shown["notes"] = list(report.notes)
    return shown


def index_text(report: IndexReport) -> str:
    lines = []
    for one in report.collections:
        files = {
            "new": one.new,
            "changed": one.changed,
            "moved": one.moved,
            "deleted": one.deleted,
            "unchanged": one.unchanged,
            "skipped": one.skipped,
        }
        told = ", ".join(f"{count} {name}" for name, count in files.items() if count) or "nothing to index"
        chunks = f"+{one.chunks_added} −{one.chunks_removed}, {one.chunks_kept} kept"
        lines.append(f"{one.name} ({one.root}): {amount(one.seen, 'file')}, {told}; chunks {chunks}")
    lines.extend(f"skipped {skip.path}: {skip.reason}" for skip in report.skipped)
    placed = "" if report.contextualized is None else f"{report.contextualized} contextualized, "
    lines.append(f"{placed}{report.embedded} embedded, {report.pending} pending, {report.seconds:g} s")
    if (plan := report.contexts) is not None:
        cost = f"{amount(plan.prompt_tokens, 'token')} in, at most {plan.answer_tokens:,} out"
        lines.append(f"contexts: {amount(plan.calls, 'call')}, {cost}")
    lines.extend(f"note: {note}" for note in report.notes)
    return "\n".join(lines)


def found_json(found: GetResult) -> dict[str, Json]:
    return view_records(found).json()


def found_text(found: GetResult, *, colour: bool = False) -> str:
    return view_records(found).text(colour=colour)


def list_json(records: Sequence[Record], total: int, offset: int) -> dict[str, Json]:
    return {
        "records": [record_row(record).json() for record in records],
        "total": total,
        "has_more": offset + len(records) < total,
    }


def list_text(records: Sequence[Record], total: int, *, colour: bool = False) -> str:
    blocks = [record_text(record_row(record), colour=colour) for record in records]
    return "\n\n".join([f"{len(records)} of {total}", *blocks])


def status_json(status: Status) -> dict[str, Json]:
    embedding: dict[str, Json] = {"provider": status.embedding.provider}
    if status.embedding.model:
        embedding |= {"model": status.embedding.model, "dimensions": status.embedding.dimensions}
    embedding["pending"] = status.embedding.pending
    if (change := status.embedding.reembedding) is not None:
        embedding["reembedding"] = {"to": change.to, "done": change.done, "total": change.total}
    if status.embedding.note:
        embedding["note"] = status.embedding.note
    collections: list[Json] = []
    for one in status.collections:
        row: dict[str, Json] = {"name": one.name, "root": one.root, "documents": one.documents, "chunks": one.chunks}
        if one.indexed_at is not None:
            row["indexed_at"] = to_iso(one.indexed_at)
        if one.missing:
            row["missing"] = True
        if one.context:
            row["context"] = one.context
        collections.append(row)
    shown: dict[str, Json] = {
        "db": status.db,
        "schema": status.schema,
        "records": dict(status.records),
        "collections": collections,
        "embedding": embedding,
        "tier": status.tier,
        "size_bytes": status.size_bytes,
    }
    if status.tier_reason:
        shown["tier_reason"] = status.tier_reason
    if status.caches:
        shown["caches"] = dict(status.caches)
    return shown


def status_text(status: Status) -> str:
    records = ", ".join(f"{count} {kind}" for kind, count in status.records.items()) or "none yet"
    embedding = status.embedding
    model = f"{embedding.provider} {embedding.model}" if embedding.model else "none"
    model += f", {embedding.dimensions} dimensions" if embedding.dimensions else ""
    caches = ", ".join(f"{count} {kind}" for kind, count in status.caches.items())
    lines = [
        f"db: {status.db} (schema {status.schema}, {status.size_bytes} bytes)",
        f"records: {records}",
        f"embedding: {model}, {embedding.pending} pending",
        *_changing(embedding),
        f"tier: {status.tier} ({status.tier_reason})" if status.tier_reason else f"tier: {status.tier}",
        *([f"caches: {caches}"] if caches else []),
    ]
    for one in status.collections:
        when = f", indexed {to_iso(one.indexed_at)}" if one.indexed_at is not None else ""
        missing = ", FOLDER MISSING" if one.missing else ""
        context = f", context: {one.context}" if one.context else ""
        lines.append(
            f"collection {one.name}: {one.root}, {amount(one.documents, 'document')}, {amount(one.chunks, 'chunk')}"
            f"{when}{missing}{context}"
        )
    return "\n".join(lines)


def _changing(embedding: EmbeddingStatus) -> list[str]:
    change = embedding.reembedding
    under_way = f"reembedding: to {change.to}, {change.done} of {change.total} ({change.percent} %)" if change else ""
    return [line for line in (under_way, f"note: {embedding.note}" if embedding.note else "") if line]


def doctor_json(checks: Sequence[Check]) -> dict[str, Json]:
    return {"ok": all(check.ok for check in checks), "checks": [_check_json(check) for check in checks]}


def _check_json(check: Check) -> dict[str, Json]:
    shown: dict[str, Json] = {"name": check.name, "ok": check.ok, "message": check.message}
    if check.fix and not check.ok:
        shown["fix"] = check.fix
    return shown


def doctor_text(checks: Sequence[Check]) -> str:
    rows = [
        [
            "ok" if check.ok else "NOT OK",
            check.name,
            check.message + (f"; {check.fix}" if check.fix and not check.ok else ""),
        ]
        for check in checks
    ]
    return "\n".join(aligned(rows))


def table_text(values: Mapping[str, str]) -> str:
    return "\n".join(aligned([[name, value] for name, value in values.items()]))
