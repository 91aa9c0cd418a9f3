"""The markdown export: a folder to read, one file per area, a section per record. `importers/markdown.py` reads it.

A section has the record's summary as its heading, one line of facts (`id: … · created: …`), and the text in a fence
longer than any inside it.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from mindex.clock import to_iso
from mindex.datatypes import Collection, Record
from mindex.datatypes.record_properties import in_order
from mindex.ids import short_hash
from mindex.transfer.jsonl_format import encode_value

MARK = "exported by: mindex"
OVERVIEW = "README.md"
SEPARATOR = " · "
FACTS = {one.markdown_name or one.name: one for one in in_order("markdown")}
_AREAS = {"profile": "profile.md", "contact": "contacts.md", "project": "projects.md", "skill": "skills.md"}
_PLAIN = re.compile(r"[\w.:+@/-]+")
_BACKTICKS = re.compile(r"`+")
_UNSAFE = re.compile(r"[^\w.-]+")


def sections(records: Iterator[Record], agents: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the file and the section of each record, in order; the first section of a file begins with its head.

    If there are several agents, each has its own folder.
    """
    folders = _folders(agents)
    begun: set[str] = set()
    for record in records:
        path = str(PurePosixPath(folders[record.agent], area(record)))
        yield path, section(record) if path in begun else head(record) + section(record)
        begun.add(path)


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
    """Return the file of a record below its agent's folder."""
    if record.kind == "memory":
        return f"memories/{record.type or 'untyped'}.md"
    if record.kind == "turn":
        return f"conversations/{to_iso(record.created_at)[:7]}.md"
    return _AREAS.get(record.kind, f"{record.kind}s.md")


def head(record: Record) -> str:
    """Return the front matter and the title of the file that a record belongs to."""
    facts = {"kind": record.kind, "agent": record.agent, **({"type": record.type} if record.kind == "memory" else {})}
    title = PurePosixPath(area(record)).with_suffix("").as_posix().replace("/", ": ").capitalize()
    return "\n".join(["---", MARK, *_lines(facts), "---", "", f"# {title}"]) + "\n"


def section(record: Record) -> str:
    """Return the heading, the line of facts, the text and the fields of a record."""
    heading = _heading(record)
    facts = {name: encode_value(one.value, getattr(record, one.name)) for name, one in FACTS.items()}
    facts = {name: value for name, value in facts.items() if value not in (None, "", [])}
    if record.kind == "memory":  # its file says it
        facts.pop("type", None)
    if record.summary == heading:
        facts.pop("summary", None)
    else:
        facts["summary"] = record.summary
    blocks = [_fenced(record.text, "text")]
    if record.fields:
        blocks.append(_fenced(json.dumps(dict(record.fields), ensure_ascii=False, indent=2), "json"))
    return "\n".join([f"\n## {heading}\n", SEPARATOR.join(_lines(facts)), *(f"\n{block}" for block in blocks)]) + "\n"


def _heading(record: Record) -> str:
    summary = record.summary
    if summary and summary == summary.strip() and not set("\n\r") & set(summary):
        return summary
    return " ".join((summary or record.title or record.text).split())[:80] or record.kind


def _lines(facts: Mapping[str, object]) -> Iterator[str]:
    """Yield `name: value`, the value plain where it can be, else as JSON: one line either way."""
    for name, value in facts.items():
        plain = isinstance(value, str) and _PLAIN.fullmatch(value)
        yield f"{name}: {value if plain else json.dumps(value, ensure_ascii=False)}"


def _fenced(text: str, language: str) -> str:
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def overview(counts: Mapping[str, int], left_out: int, collections: Sequence[Collection]) -> str:
    """Return the text of `OVERVIEW`: the files, and what the export has not."""
    lines = [
        f"---\n{MARK}\nkind: overview\n---\n\n# Exported entries\n",
        "`mindex import` reads this folder back: what is live, with its ids, texts and times.",
        "The history of changes is not here, nor what was forgotten or superseded"
        f" ({left_out} records): `mindex export --format jsonl` keeps all of it.\n",
        *(f"- {count} in [{path}]({path.replace(' ', '%20')})" for path, count in sorted(counts.items())),
    ]
    if collections:
        lines.append("\nIndexed folders are not part of an export; their files are. Index them again:\n")
        lines += (f"- {collection.name}: `{collection.root}`" for collection in collections)
    return "\n".join(lines) + "\n"
