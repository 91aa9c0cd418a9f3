"""`Projects`: the projects of a memory, with the folders, repositories and addresses that are linked to them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mindex.clock import now_ms
from mindex.datatypes import ProjectSource, Record
from mindex.entries.field_entries import FieldEntries
from mindex.entries.project_sources import is_local, parse_sources, status_of, stored_sources, to_field
from mindex.errors import NotFoundError, UsageError
from mindex.values import dataclass

_Sources = dict[str, ProjectSource]  # by location


@dataclass(frozen=True, slots=True)
class Projects(FieldEntries):
    """`memory.projects`: projects and their sources. Pass a project by its id, a unique prefix of it, or its name.

    A client of a server learns nothing of the server's folders, and its own folders are on another machine: for it
    `_reads_folders` is False.
    """

    _reads_folders: bool = True

    def link(self, project: str, location: str, *, source_type: str = "", reason: str = "") -> ProjectSource:
        """Link a folder, repository or URL; without a type, its form decides.

        One that is linked already keeps its time and its report, and gets the type that is given.
        """
        new = self._source({"location": location, **({"type": source_type} if source_type else {})})
        record = self.get(project)
        known = stored_sources(record.fields).get(new.location)
        if known and (not source_type or known.type == new.type):
            return self._shown(record, known)

        def linked(sources: _Sources) -> _Sources:
            old = sources.get(new.location)
            return {**sources, new.location: replace(old, type=new.type) if old else replace(new, linked_at=now_ms())}

        return self._change(record, new.location, linked, reason)

    def unlink(self, project: str, location: str, *, reason: str = "") -> ProjectSource:
        """Unlink a source from a project and return it. Raises NotFoundError if it is not linked."""
        record = self.get(project)
        source = self._linked(record, location)
        shown = self._shown(record, source)
        self._revise_sources(
            record, lambda sources: {at: one for at, one in sources.items() if at != source.location}, reason
        )
        return shown

    def report(
        self, project: str, location: str, status: str, message: str = "", *, checked_at: int | None = None
    ) -> ProjectSource:
        """Store the result of a check of a source: ok, warning, error or unknown, and a message."""
        record = self.get(project)
        source = self._linked(record, location)
        at = now_ms() if checked_at is None else checked_at
        found = self._source({"location": source.location, "type": source.type, "status": status, "message": message})

        def reported(sources: _Sources) -> _Sources:
            now = {
                location: replace(one, status=found.status, message=found.message, checked_at=at)
                for location, one in sources.items()
                if location == source.location
            }
            return {**sources, **now}

        return self._change(record, source.location, reported, "")

    def sources(
        self, project: str | None = None, *, source_type: str = "", agent: str | None = None
    ) -> Sequence[ProjectSource]:
        """Return the sources of a project, or of all projects of an agent, by project name and time of linking."""
        records = [self.get(project)] if project is not None else sorted(self.all(agent), key=lambda one: one.title)
        return tuple(
            self._shown(record, one)
            for record in records
            for one in stored_sources(record.fields).values()
            if source_type in ("", one.type)
        )

    # ── changing ──────────────────────────────────────────────────────────────────────────────────────────────

    def _source(self, given: Mapping[str, object]) -> ProjectSource:
        """A source as it is stored: without secrets, and a folder of this machine with its absolute path."""
        redacted = self._redacted({"sources": [given]})["sources"]
        try:
            (source,) = stored_sources({"sources": parse_sources(redacted)}).values()
        except ValueError as error:
            raise UsageError("this is not a project source", str(error)) from None
        if not is_local(source) or not self._reads_folders:
            return source
        path = Path(source.location).expanduser().resolve()
        found_type = "repository" if "type" not in given and (path / ".git").exists() else source.type
        return replace(source, location=str(path), type=found_type)

    def _linked(self, record: Record, location: str) -> ProjectSource:
        sources = stored_sources(record.fields)
        for one in (self._source({"location": location}).location, location):
            if one in sources:
                return sources[one]
        known = ", ".join(sources) or "nothing"
        raise NotFoundError(f"{location} is not linked to {record.title}", f"linked is {known}")

    def _change(
        self, project: Record, location: str, change: Callable[[_Sources], _Sources], reason: str
    ) -> ProjectSource:
        record = self._revise_sources(project, change, reason)
        return self._shown(record, stored_sources(record.fields)[location])

    def _revise_sources(self, record: Record, change: Callable[[_Sources], _Sources], reason: str) -> Record:
        """Store the sources that `change` makes of those in force then. Returns the new state of the project."""

        def revised(current: Record) -> Record:
            sources = [to_field(one) for one in change(stored_sources(current.fields)).values()]
            return self._with_fields(current, {**current.fields, "sources": sources or None})

        return self._entries.queue.embed_after(self._entries.revise(record.id, revised, "update", reason)).after

    def _shown(self, record: Record, source: ProjectSource) -> ProjectSource:
        status, message = source.status, source.message
        if self._reads_folders:
            roots = [collection.root for collection in self._entries.store.files.collections()]
            status, message = status_of(source, roots)
        return replace(
            source,
            project=record.id,
            project_name=record.title,
            status=status,
            message=message,
            linked_at=source.linked_at or record.created_at,
        )
