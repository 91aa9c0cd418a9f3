"""Changes the model a memory is embedded with: new vectors are gathered beside the old ones, which serve until then.

A process that is killed leaves what it gathered, and the next run goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import monotonic, sleep

from mindex.errors import EmbeddingError, SpaceChangedError
from mindex.ingest.backfill import Backfilled, Stored, backfill
from mindex.model import Progress
from mindex.model.reported import Reembedded
from mindex.model.spaces import Made, space_name
from mindex.pieces import pieces_of
from mindex.providers.embed.base import Embedder
from mindex.store.base import Store

Report = Callable[[Progress], None]

_QUESTIONS = "query-embedding"
# So many records are lost work when the process is killed.
_BATCH = 64
# A rehearsal reads so many records, and has so many of their pieces embedded.
_LOOKED_AT = 500
_MEASURED = 16
# When another process embeds the same records, ours waits for it this long at a time, and so often.
_PAUSE_SECONDS = 0.2
_MOST_PAUSES = 50


def reembed(
    store: Store, embedder: Embedder, made: Made, *, report: Report | None = None, stored: Stored | None = None
) -> Reembedded:
    """Embed every record with this model and search its vectors from then on.

    `stored` is told of what is embedded in the space that is searched already; a change of model tells nobody.

    Raises EmbeddingError when the model cannot be had (nothing has changed) or fails on the way (what was gathered
    stays), and SpaceChangedError when somebody else began another change meanwhile.
    """
    started = monotonic()
    forget_card = getattr(embedder, "forget_card", None)
    if forget_card is not None:  # a server's model may have become another one: its old card must not decide
        forget_card()
    _prove(embedder)
    model = embedder.model
    source = _searched(store)
    store.begin_space(model, made)
    store.drop_spaces()  # what an earlier change to another model left
    done = _gather(store, embedder, made, report, stored if store.space() == model.fingerprint else None)
    store.drop_spaces()
    store.clear_caches((_QUESTIONS,))
    notes = (done.note,) if done.note else ()
    if source == space_name(model) and not done.embedded and not done.remaining:
        notes = (*notes, f"everything is embedded with {source} already")
    return Reembedded(
        source, space_name(model), done.embedded, done.remaining, round(monotonic() - started, 2), tuple(notes)
    )


def rehearse(store: Store, embedder: Embedder) -> Reembedded:
    """How much there would be to do, and roughly how long it would take: a few pieces are embedded to see."""
    _prove(embedder)
    model = embedder.model
    records = store.pending(model)
    looked_at = store.pending_records(model, _LOOKED_AT)
    pieces = [piece for record in looked_at for piece in pieces_of(record)]
    count = round(len(pieces) * records / len(looked_at)) if looked_at else 0
    measured = pieces[:: max(1, len(pieces) // _MEASURED)][:_MEASURED]
    started = monotonic()
    if measured:
        embedder.embed(measured)
    seconds = (monotonic() - started) * count / max(len(measured), 1)
    return Reembedded(_searched(store), space_name(model), 0, records, round(seconds, 1), rehearsed=True, pieces=count)


def _prove(embedder: Embedder) -> None:
    """Have the model say something before anything is changed for it."""
    embedder.load()
    vectors = embedder.embed(["A sentence to see whether the model answers."])
    if len(vectors) != 1 or len(vectors[0]) != embedder.model.dimensions:
        raise EmbeddingError(
            f"{embedder.model.name} answers with {len(vectors[0])} dimensions, not {embedder.model.dimensions}",
            "check embedding.model",
        )


def _searched(store: Store) -> str:
    return next((space.name for space in store.spaces(counted=False) if space.active), "")


def _gather(store: Store, embedder: Embedder, made: Made, report: Report | None, stored: Stored | None) -> Backfilled:
    """Embed until the new vectors are complete and searched: also what is told by others in the meantime."""
    model = embedder.model
    ahead = next((space.vectors for space in store.spaces() if space.fingerprint == model.fingerprint), 0)
    embedded = pauses = 0

    def further(progress: Progress) -> None:
        if report is not None:
            base = ahead + embedded
            report(replace(progress, done=base + progress.done, total=base + progress.total))

    while True:
        part = backfill(store, embedder, made=made, batch=_BATCH, report=further, stored=stored)
        embedded += part.embedded
        if part.replaced:
            raise SpaceChangedError(
                f"another process began another change of model; the one to {space_name(model)} is given up",
                "run `mindex reembed` again if it is wanted",
            )
        if part.remaining <= part.unread and store.switch_space(model):
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
