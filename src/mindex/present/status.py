"""The text of `mindex status`."""

from mindex.clock import to_iso
from mindex.model import Status
from mindex.present.text import amount


def status_text(status: Status) -> str:
    records = ", ".join(f"{count} {kind}" for kind, count in status.records.items()) or "none yet"
    embedding = status.embedding
    model = f"{embedding.provider} {embedding.model}" if embedding.model else "none"
    model += f", {embedding.dimensions} dimensions" if embedding.dimensions else ""
    change = embedding.reembedding
    caches = ", ".join(f"{count} {kind}" for kind, count in status.caches.items())
    lines = [
        f"db: {status.db} (schema {status.schema}{_size(status)})",
        f"records: {records}",
        f"embedding: {model}, {embedding.pending} pending",
        *([f"reembedding: to {change.to}, {change.done} of {change.total} ({change.percent} %)"] if change else []),
        *([f"note: {embedding.note}"] if embedding.note else []),
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


def _size(status: Status) -> str:
    return "" if status.size_bytes is None else f", {status.size_bytes} bytes"
