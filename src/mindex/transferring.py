"""The part of the front door through which a whole memory leaves and comes in."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING

from mindex.errors import MindexError, NotFoundError
from mindex.model import Progress
from mindex.telling import Telling

if TYPE_CHECKING:  # as in telling: nothing of this is paid for by a search
    from mindex.model.transfer import ExportReport, Format, ImportReport

Report = Callable[[Progress], None]


class Transferring(Telling):
    """Mixed into Memory. What was told leaves and comes in; indexed files are indexed where they are."""

    def export(
        self,
        target: str | Path | IO[bytes],
        *,
        format: Format = "jsonl",  # noqa: A002 - what everybody calls it
        agent: str = "*",
        vectors: bool = False,
        report: Report | None = None,
    ) -> ExportReport:
        """Write everything told, to one agent or to all, as JSONL (nothing is lost) or as a folder of markdown."""
        from mindex.transfer.export import export

        place = Path(target).expanduser() if isinstance(target, str) else target
        return export(self.store, place, format, agent=agent, vectors=vectors, report=report)

    def import_(
        self,
        path: str | Path,
        *,
        source: str = "",
        agent: str = "",
        agents: Mapping[str, str] | None = None,
        dry_run: bool = False,
        embed: bool = True,
        report: Report | None = None,
    ) -> ImportReport:
        """Bring in an export, or what another memory kept; a second time adds nothing.

        `source` names what it is where that cannot be seen. `agent` gets all of it; `agents` says whose becomes whose.
        """
        from mindex.transfer.import_rows import AgentMapping, import_
        from mindex.transfer.importer import detect, load_importer

        place = Path(path).expanduser()
        if not place.exists():
            raise NotFoundError(f"{place} is not there", "check the path")
        if not os.access(place, os.R_OK):
            raise MindexError(f"{place} may not be read", "check its rights")
        brought = import_(
            self.store,
            place,
            load_importer(source) if source else detect(place),
            mapped=AgentMapping(agent, agents or {}, self.settings.text("agent")),
            secrets=self._secrets_mode,
            by=self.settings.text("agent"),
            dry_run=dry_run,
            report=report,
        )
        if brought.added and embed and not dry_run:
            self._embed_all(report)
        return brought

    def _embed_all(self, report: Report | None) -> None:
        """Vectors follow in batches, or, in a server, behind its back. A model that fails is no error."""
        if self.embedder is None:
            return
        if self.embeds_in_background:
            self._embed_soon()
            return
        self._backfilled(report=report)
