"""What was told as a folder to read: one file per area, a section per record, and enough in it to be read back.

A section has the record's summary as its heading, one line of facts, and the text in a fence longer than any inside.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from mindex.ids import short_hash
from mindex.model import Collection, Record
from mindex.transfer.jsonl_rows import stamp

MARK = "exported by: mindex"
OVERVIEW = "README.md"
SEPARATOR = " · "
_AREAS = {"profile": "profile.md", "contact": "contacts.md", "project": "projects.md", "skill": "skills.md"}
_PLAIN = re.compile(r"[\w.:+@/-]+")
_TICKS = re.compile(r"`+")
_UNSAFE = re.compile(r"[^\w.-]+")


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of text for a file below the export's folder; the first one of a file brings its head."""

    path: str
    text: str


def parts(records: Iterator[Record], agents: Sequence[str]) -> Iterator[Part]:
    """The files' content in order; each agent has a folder of its own when there are several."""
    folders = _folders(agents)
    begun: set[str] = set()
    for record in records:
        path = str(PurePosixPath(folders[record.agent], area(record)))
        if path not in begun:
            begun.add(path)
            yield Part(path, head(record))
        yield Part(path, section(record))


def _folders(agents: Sequence[str]) -> dict[str, str]:
    if len(agents) == 1:
        return {agents[0]: ""}
    folders: dict[str, str] = {}
    for agent in agents:
        name = _UNSAFE.sub("-", agent).strip(".-")
        if name != agent or name.casefold() in {other.casefold() for other in folders.values()}:
            name = f"{name or 'agent'}-{short_hash(agent)[:4]}"
        folders[agent] = name
    return folders


def area(record: Record) -> str:
    if record.kind == "memory":
        return f"memories/{record.type or 'untyped'}.md"
    if record.kind == "turn":
        return f"conversations/{stamp(record.created_at)[:7]}.md"
    return _AREAS.get(record.kind, f"{record.kind}s.md")


def head(record: Record) -> str:
    facts = {"kind": record.kind, "agent": record.agent}
    if record.kind == "memory":
        facts["type"] = record.type
    title = PurePosixPath(area(record)).with_suffix("").as_posix().replace("/", ": ").capitalize()
    lines = ["---", MARK, *(f"{name}: {_value(value)}" for name, value in facts.items()), "---", "", f"# {title}"]
    return "\n".join(lines) + "\n"


def section(record: Record) -> str:
    heading = _heading(record)
    facts: dict[str, object] = {
        "id": record.id,
        "number": record.number,
        "created": stamp(record.created_at),
        "updated": stamp(record.updated_at),
        "expires": None if record.expires_at is None else stamp(record.expires_at),
        "type": record.type if record.kind != "memory" else None,
        "importance": record.importance,
        "confidence": None if record.confidence is None else float(record.confidence),
        "tags": list(record.tags),
        "entities": list(record.entities),
        "title": record.title,
        "context": record.context,
        "source": record.source,
    }
    facts = {name: value for name, value in facts.items() if value not in (None, "", [])}
    if record.summary != heading:
        facts["summary"] = record.summary
    line = SEPARATOR.join(f"{name}: {_value(value)}" for name, value in facts.items())
    blocks = [_fenced(record.text, "text")]
    if record.fields:
        blocks.append(_fenced(json.dumps(dict(record.fields), ensure_ascii=False, indent=2), "json"))
    return "\n".join([f"\n## {heading}\n", line, *(f"\n{block}" for block in blocks)]) + "\n"


def _heading(record: Record) -> str:
    summary = record.summary
    if summary and summary == summary.strip() and not set("\n\r") & set(summary):
        return summary
    return " ".join((summary or record.title or record.text).split())[:80] or record.kind


def _value(value: object) -> str:
    """Plain where it can be, else JSON: one line either way."""
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _fenced(text: str, language: str) -> str:
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def overview(counts: Mapping[str, int], left_out: int, collections: Sequence[Collection]) -> str:
    lines = [
        "---",
        MARK,
        "kind: overview",
        "---",
        "",
        "# What mindex was told",
        "",
        "`mindex import` reads this folder back: what is live, with its ids, texts and times.",
        "The history of changes is not here, nor what was forgotten or superseded"
        f" ({left_out} records): `mindex export --format jsonl` keeps all of it.",
        "",
        *(f"- {count} in [{path}]({path.replace(' ', '%20')})" for path, count in sorted(counts.items())),
    ]
    if collections:
        lines += ["", "Indexed folders are not part of an export; their files are. Index them again:", ""]
        lines += (f"- {collection.name}: `{collection.root}`" for collection in collections)
    return "\n".join(lines) + "\n"
