"""Changes the model a memory is embedded with: new vectors are gathered beside the old ones, which serve until then.

A process that is killed leaves what it gathered, and the next run goes on from there. Everything can be embedded anew
under the same name, too: as another edition of the space.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import monotonic, sleep
from typing import TYPE_CHECKING

from mindex.embedding.backfill import BATCH, BackfillResult, Stored, backfill
from mindex.embedding.canary import SENTENCE, CanaryEmbedder, is_same
from mindex.embedding_text import embedding_pieces
from mindex.errors import EmbeddingError, SpaceChangedError
from mindex.model import Progress
from mindex.model.reports import ReembedReport
from mindex.model.spaces import EmbedderSpec, Space, space_name
from mindex.providers.embed.base import Embedder
from mindex.store.base import Store

if TYPE_CHECKING:
    from mindex.model import VectorArray

Report = Callable[[Progress], None]

_QUESTIONS = "query-embedding"
# A rehearsal reads so many records, and has so many of their pieces embedded.
_LOOKED_AT = 500
_MEASURED = 16
# When another process embeds the same records, ours waits for it this long at a time, and so often.
_PAUSE_SECONDS = 0.2
_MOST_PAUSES = 50


def reembed(
    store: Store,
    embedder: Embedder,
    embedder_spec: EmbedderSpec,
    *,
    force: bool = False,
    report: Report | None = None,
    stored: Stored | None = None,
) -> ReembedReport:
    """Embed every record with this model and search its vectors from then on.

    With `force`, what is embedded with it already is embedded again.
    `stored` is told of what is embedded in the space that is searched already; a change of model tells nobody.

    Raises EmbeddingError when the model cannot be had (nothing has changed) or fails on the way (what was gathered
    stays), and SpaceChangedError when somebody else began another change meanwhile.
    """
    started = monotonic()
    forget_card = getattr(embedder, "forget_card", None)
    if forget_card is not None:  # a server's model may have become another one: its old card must not decide
        forget_card()
    watched = CanaryEmbedder(embedder, store, _edition(store, embedder, force=force))
    model = watched.model
    source = _searched(store)
    store.vectors.begin_space(model, embedder_spec)
    store.vectors.drop_unused_spaces()  # what an earlier change to another model left
    done = _gather(
        store, watched, embedder_spec, report, stored if store.vectors.active_space() == model.fingerprint else None
    )
    store.vectors.drop_unused_spaces()
    store.caches.clear((_QUESTIONS,))
    notes = (done.note,) if done.note else ()
    if source == space_name(model) and not done.embedded and not done.remaining:
        notes = (*notes, f"everything is embedded with {source} already")
    return ReembedReport(
        source, space_name(model), done.embedded, done.remaining, round(monotonic() - started, 2), tuple(notes)
    )


def rehearse(store: Store, embedder: Embedder, *, force: bool = False) -> ReembedReport:
    """How much there would be to do, and roughly how long it would take: a few pieces are embedded to see."""
    edition = _edition(store, embedder, force=force)
    model = replace(embedder.model, edition=edition)
    records = store.vectors.pending(model)
    looked_at = store.vectors.pending_records(model, _LOOKED_AT)
    pieces = [piece for record in looked_at for piece in embedding_pieces(record)]
    count = round(len(pieces) * records / len(looked_at)) if looked_at else 0
    measured = pieces[:: max(1, len(pieces) // _MEASURED)][:_MEASURED]
    started = monotonic()
    if measured:
        embedder.embed(measured)
    seconds = (monotonic() - started) * count / max(len(measured), 1)
    return ReembedReport(
        _searched(store), space_name(model), 0, records, round(seconds, 1), rehearsed=True, pieces=count
    )


def _prove(embedder: Embedder) -> VectorArray:
    """Have the model say something before anything is changed for it."""
    embedder.load()
    vectors = embedder.embed([SENTENCE])
    if len(vectors) != 1 or len(vectors[0]) != embedder.model.dimensions:
        raise EmbeddingError(
            f"{embedder.model.name} answers with {len(vectors[0])} dimensions, not {embedder.model.dimensions}",
            "check embedding.model",
        )
    found: VectorArray = vectors[0]
    return found


def _edition(store: Store, embedder: Embedder, *, force: bool) -> int:
    """Which edition of the space is to be filled: what is there may be of another model, or not be believed."""
    found = _prove(embedder)
    model = embedder.model  # known by now

    def agrees(space: Space) -> bool:
        kept = store.vectors.canary(space.model)
        return kept is None or is_same(kept, found)

    spaces = [
        space
        for space in store.vectors.spaces(counted=False)
        if replace(space.model, edition=0).fingerprint == replace(model, edition=0).fingerprint
    ]
    begun = next((space for space in spaces if space.next), None)
    if begun is not None and agrees(begun):
        return begun.model.edition
    searched = next((space for space in spaces if space.active), None)
    if begun is None and not force and (searched is None or agrees(searched)):
        return searched.model.edition if searched is not None else 0
    if begun is None and not force:
        raise EmbeddingError(
            f"{space_name(model)} has become another model than the one that this memory was embedded with",
            "run `mindex reembed --force` to embed everything again",
        )
    return max((space.model.edition for space in spaces), default=-1) + 1


def _searched(store: Store) -> str:
    return next((space.name for space in store.vectors.spaces(counted=False) if space.active), "")


def _gather(
    store: Store, embedder: Embedder, embedder_spec: EmbedderSpec, report: Report | None, stored: Stored | None
) -> BackfillResult:
    """Embed until the new vectors are complete and searched: also what is told by others in the meantime."""
    model = embedder.model
    ahead = next((space.vectors for space in store.vectors.spaces() if space.fingerprint == model.fingerprint), 0)
    embedded = pauses = 0

    def further(progress: Progress) -> None:
        if report is not None:
            base = ahead + embedded
            report(replace(progress, done=base + progress.done, total=base + progress.total))

    while True:
        part = backfill(store, embedder, embedder_spec=embedder_spec, batch=BATCH, report=further, stored=stored)
        embedded += part.embedded
        if part.replaced:
            raise SpaceChangedError(
                f"another process began another change of model; the one to {space_name(model)} is given up",
                "run `mindex reembed` again if it is wanted",
            )
        if part.remaining <= part.unread and store.vectors.switch_space(model):
            return replace(part, embedded=embedded)
        if part.note:
            raise EmbeddingError(
                f"{part.remaining} records have no vector of {space_name(model)} yet ({part.note})",
                "the old model serves meanwhile; run `mindex reembed` again to go on",
            )
        if not part.embedded:
            pauses += 1
            if pauses == _MOST_PAUSES:
                raise EmbeddingError(
                    f"{part.remaining} records change faster than they are embedded", "run `mindex reembed` again"
                )
            sleep(_PAUSE_SECONDS)
