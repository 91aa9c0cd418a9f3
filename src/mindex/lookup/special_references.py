"""Special references of `get`: `profile.user.name`, `history:ID`, `timeline[:FROM..TO]`, `due`, `conflicts`, `tags`,
`types`, `sessions`, `ID±2`, `links:ID`, `backlinks:ID`.

`ID±2` is a turn with the two before and after it in its session, or a chunk with those around it in its file. The files
that a file links to are `links:ID`, those that link to it `backlinks:ID`; ID is the id of a chunk, which means its
file, or the path of a file. Each resolves to records, so that every output shows it like any other record.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from mindex.clock import now_ms, to_iso
from mindex.datatypes import Document, Filters, Record
from mindex.entries import json_paths
from mindex.entries.conversations import MAX_SESSIONS
from mindex.entries.entries import Entries
from mindex.entries.field_entries import FieldEntries
from mindex.entries.profile import Profile
from mindex.entries.references import resolve_id
from mindex.entries.timeline import MAX_EVENTS, Timeline
from mindex.errors import NotFoundError, UsageError
from mindex.files.links import LinkTargets, document_links, place_in
from mindex.lookup.indexed_files import IndexedFiles
from mindex.lookup.labels import Labels
from mindex.present.entries import conflicts_text, labels_text, sessions_text
from mindex.present.history import changed_lines, timeline_text
from mindex.present.text import amount
from mindex.store.base import Store
from mindex.times.in_text import find_window
from mindex.times.typed import parse_time
from mindex.values import dataclass

_REFERENCE = re.compile(r"(?P<direction>links|backlinks):(?P<file>.*)", re.DOTALL)
_ID = re.compile(r"[a-z0-9]{3,64}", re.IGNORECASE)
_MAX_FILES = 100
_MAX_MISSING = 10


@dataclass(frozen=True, slots=True)
class Found:
    """The records of a special reference, in order, and notes about what is not among them."""

    records: tuple[Record, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Links:
    """Resolves the links between the files of a collection."""

    _store: Store
    _files: IndexedFiles

    def resolve(self, reference: str) -> Found | None:
        """What a file links to, or what links to it; None for any other reference. Raises NotFoundError."""
        match = _REFERENCE.fullmatch(reference)
        if match is None:
            return None
        document = self._document(match["file"].strip())
        documents = self._store.files.documents(document.collection)
        targets = LinkTargets(documents.values())
        return self._links(document, targets) if match["direction"] == "links" else self._backlinks(document, targets)

    def _document(self, reference: str) -> Document:
        if _ID.fullmatch(reference) and (id_ := resolve_id(self._store, reference)):
            record = self._store.retrieval.record(id_)
            if record is None or record.kind != "chunk":
                raise NotFoundError(
                    f"'{reference}' is not a part of a file: only files have links", "name an indexed file"
                )
            reference = record.document
        return self._files.find_one(reference)

    def _links(self, document: Document, targets: LinkTargets) -> Found:
        """The first chunk of each linked file; where the link names a heading or a block, the chunk that holds it."""
        found: dict[str, Record] = {}
        missing = []
        for link in document.links:
            target = targets.find(link, document.path)
            if target is None:
                missing.append(link)
            elif target.document.id != document.id:
                chunk = place_in(self._store.files.chunks(target.document.id), target.place)
                found |= {chunk.id: chunk} if chunk else {}
        notes = [] if found else [f"{document.path} links to no indexed file"]
        if missing:
            names = ", ".join(missing[:_MAX_MISSING]) + (" …" if len(missing) > _MAX_MISSING else "")
            are = "is" if len(missing) == 1 else "are"
            notes.append(f"links to {amount(len(missing), 'file')} that {are} not indexed: {names}")
        return Found(tuple(found.values()), tuple(notes))

    def _backlinks(self, document: Document, targets: LinkTargets) -> Found:
        """The chunks that hold a link to the file, of at most 100 files in the order of their paths."""

        def leads_here(links: Sequence[str], source: str) -> bool:
            found = (targets.find(link, source) for link in links)
            return any(target is not None and target.document.id == document.id for target in found)

        sources = [one for one in targets.documents if one.id != document.id and leads_here(one.links, one.path)]
        sources.sort(key=lambda one: one.path)

        def linking(source: Document) -> Iterator[Record]:
            chunks = self._store.files.chunks(source.id)
            own = [chunk for chunk in chunks if leads_here(document_links(source.path, chunk.text), source.path)]
            yield from own or chunks[:1]  # a link in the front matter is in no chunk

        records = tuple(record for source in sources[:_MAX_FILES] for record in linking(source))
        if len(sources) > _MAX_FILES:
            return Found(records, (f"the first {_MAX_FILES} of {len(sources)} files that link to it",))
        return Found(records, () if records else (f"no indexed file links to {document.path}",))


_AROUND = re.compile(r"(?P<id>[a-z0-9]{3,64})(?:±|\+-|~)(?P<count>\d{1,2})", re.IGNORECASE)
_PROFILE = re.compile(r"profile(?:(?:\.(?=[^.])|(?=\[))(?P<path>.+))?")


@dataclass(frozen=True, slots=True)
class SpecialReferences:
    """Resolves special references with the groups of one memory."""

    _entries: Entries
    _profile: Profile
    _skills: FieldEntries
    _timeline: Timeline
    _labels: Labels
    _links: Links

    def resolve(self, reference: str, as_of: str | None = None) -> Found | None:
        """The records of a special reference, which may be none; None for an ordinary reference.

        Raises NotFoundError for what does not exist.
        """
        if linked := self._links.resolve(reference):
            return linked
        found = self._resolve(reference, as_of)
        return None if found is None else Found(tuple(found), () if found else (f"nothing is {reference}",))

    def _resolve(self, reference: str, as_of: str | None) -> Sequence[Record] | None:
        """A file called `profile` wins over the profile."""
        if reference == "due":
            due = self._skills.due()
            return [replace(one.skill, fields={**one.skill.fields, "since": to_iso(one.since)}) for one in due]
        if reference.startswith("history:"):
            return self._history(reference.removeprefix("history:"))
        if reference == "timeline" or reference.startswith("timeline:"):
            return [self._events(reference)]
        if (listed := self._listed(reference)) is not None:
            return [listed]
        if around := _AROUND.fullmatch(reference):
            return self._around(around["id"], int(around["count"]))
        if (match := _PROFILE.fullmatch(reference)) and not self._entries.store.files.find_documents(reference):
            return [self._profile_record(match["path"] or "", as_of)]
        return None

    def _listed(self, reference: str) -> Record | None:
        """What is shown as one list: conflicts, sessions, tags or types."""
        match reference:
            case "conflicts":
                found = self._entries.in_conflict(Filters(agent=self._entries.agent))
                count = amount(sum(len(one.conflicts) for one in found) // 2, "open conflict")
                return Record(reference, "conflicts", conflicts_text(found), count)
            case "sessions":
                page = self._entries.store.entries.sessions(self._entries.agent, limit=MAX_SESSIONS)
                return Record(reference, "sessions", sessions_text(page), amount(page.total, "conversation"))
            case "tags" | "types":
                labels = self._labels.tags() if reference == "tags" else self._labels.types()
                count = amount(len(labels), reference.removesuffix("s"))
                return Record(reference, reference, labels_text(labels), count)
        return None

    def _around(self, id_: str, count: int) -> tuple[Record, ...]:
        """A chunk or turn with its neighbours before and after it. Raises NotFoundError for any other record."""
        whole = resolve_id(self._entries.store, id_)
        record = self._entries.store.retrieval.record(whole) if whole else None
        if record is None:
            raise NotFoundError(f"there is no record '{id_}'", "search for it first")
        if record.kind == "chunk":
            chunks = self._entries.store.files.chunks(record.document)
            at = [chunk.id for chunk in chunks].index(record.id)
            return chunks[max(0, at - count) : at + count + 1]
        found = self._entries.store.entries.surrounding_turns(record.id, count, count)
        if not found:
            raise NotFoundError(
                f"'{id_}' is neither a chunk nor a turn of a conversation", "only these have neighbours"
            )
        return found

    def _history(self, id_: str) -> list[Record]:
        """A record per change, with the number that `undo` takes; newest first, so that a budget cuts the oldest."""
        return [
            Record(
                id=str(change.change),
                kind="history",
                title=f"change {change.change} of {change.record}",
                text="\n".join(changed_lines(change)),
                created_at=change.at,
                fields={"action": change.action, "by": change.by}
                | ({"reason": change.reason} if change.reason else {}),
            )
            for change in reversed(self._entries.history(id_))
        ]

    def _events(self, reference: str) -> Record:
        named = reference.removeprefix("timeline").removeprefix(":")
        after, dots, before = named.partition("..")
        if after and not dots:
            after, before = _period(named)
        events = self._timeline.events(after or None, before or None, limit=MAX_EVENTS)
        most = f"the {'first' if after else 'latest'} {MAX_EVENTS} events"
        count = most if len(events) == MAX_EVENTS else amount(len(events), "event")
        return Record(id=reference, kind="timeline", title=count, text=timeline_text(events))

    def _profile_record(self, path: str, as_of: str | None) -> Record:
        """The profile as JSON, or the value at a path of it."""
        record = self._profile.record()
        if as_of is not None:
            moment = parse_time(as_of)
            states = [change.after for change in self._profile.history() if change.at <= moment]
            record = states[-1] if states and states[-1].retired_at is None else None
        if record is None:
            raise NotFoundError("there is no profile yet", "`mindex profile set` creates one")
        value = record.fields.get("data", {})
        value = json_paths.value_at(value, path) if path else value
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
        shown = replace(record, summary="", text=text)
        return replace(shown, id=f"profile.{path}", title=path) if path else shown


def _period(text: str) -> tuple[str, str]:
    """The beginning and the end of a period such as `last week` or `2026-03`. Raises UsageError for another text."""
    window = find_window(text, now_ms())
    if window is None or window.words != (0, len(text)) or window.starts_at is None:
        hint = (
            "write it like timeline:last week, timeline:2026-03-01..2026-04, timeline:yesterday..today or timeline:7d.."
        )
        raise UsageError(f"'timeline:{text}' is not a period", hint)
    return to_iso(window.starts_at), to_iso(window.ends_at)
