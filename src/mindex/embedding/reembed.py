"""Changes the embedding model: a new space is filled beside the active one, which serves until the switch.

A process that is killed leaves what it embedded, and the next run goes on from there. The same model can also be used
again, as another edition of its space. Vectors of the model that was built in before are replaced in place.
"""

from dataclasses import replace
from time import monotonic, sleep

from mindex.datatypes import Progress, Record, Report, VectorArray
from mindex.datatypes.reports import ReembedReport
from mindex.datatypes.spaces import EmbedderSpec, Space, space_name
from mindex.embedding.backfill import BATCH, Backfill, BackfillResult, OnStored, embed
from mindex.embedding.canary import SENTENCE, CanaryEmbedder, is_same
from mindex.embedding.upgrade import name_weights, rename_former
from mindex.embedding_text import embedding_pieces
from mindex.errors import EmbeddingError, SpaceChangedError
from mindex.providers.embed.base import Embedder
from mindex.providers.packaged_models import BUILT_IN, is_former
from mindex.store.base import Store
from mindex.store.cache_kinds import QUERY_CACHE

# The number of records that a dry run reads, and of their pieces that it embeds.
_SAMPLED_RECORDS = 500
_SAMPLED_PIECES = 16
# When another process embeds the same records, ours waits for it this long at a time, and so often.
_PAUSE_SECONDS = 0.2
_MAX_PAUSES = 50


def reembed(
    store: Store,
    embedder: Embedder,
    embedder_spec: EmbedderSpec,
    *,
    force: bool = False,
    report: Report | None = None,
    on_stored: OnStored | None = None,
) -> ReembedReport:
    """Embed every record with this model, then make its space the active one.

    With `force`, records that have vectors of this model are embedded again. `on_stored` is called only while the
    active space itself is filled.

    Raises EmbeddingError when the model cannot be had (nothing has changed) or fails on the way (what was embedded
    stays), and SpaceChangedError if another process has begun another change.
    """
    started = monotonic()
    forget_card = getattr(embedder, "forget_card", None)
    if forget_card is not None:  # a server's model may have been replaced: its old card must not decide
        forget_card()
    source = _active_name(store)
    _rename_active(store, embedder, force=force)
    guarded = _guarded(store, embedder, force=force)
    model = guarded.model
    store.vectors.begin_space(model, embedder_spec)
    store.vectors.drop_unused_spaces()  # what an earlier change to another model left
    fills_active = store.vectors.active_space() == model.fingerprint
    replaced = _replace_former(store, guarded, report) if fills_active else 0
    done = _fill(store, guarded, embedder_spec, report, on_stored if fills_active else None)
    done = replace(done, embedded=done.embedded + replaced)
    store.vectors.drop_unused_spaces()
    store.caches.clear((QUERY_CACHE,))
    notes = (done.note,) if done.note else ()
    if source == space_name(model) and not done.embedded and not done.remaining:
        notes = (*notes, f"everything is embedded with {source} already")
    return ReembedReport(
        source, space_name(model), done.embedded, done.remaining, round(monotonic() - started, 2), notes=tuple(notes)
    )


def plan_reembed(store: Store, embedder: Embedder, *, force: bool = False) -> ReembedReport:
    """How much there is to embed, and roughly how long it takes: a few pieces are embedded to measure."""
    model = _guarded(store, embedder, force=force).model
    records = store.vectors.pending(model)
    sample = store.vectors.pending_records(model, _SAMPLED_RECORDS)
    if model.fingerprint == store.vectors.active_space():
        records += store.vectors.count_former()
        sample = (*sample, *store.vectors.former_records(_SAMPLED_RECORDS)[0])
    pieces = [piece for record in sample for piece in embedding_pieces(record)]
    count = round(len(pieces) * records / len(sample)) if sample else 0
    measured = pieces[:: max(1, len(pieces) // _SAMPLED_PIECES)][:_SAMPLED_PIECES]
    started = monotonic()
    if measured:
        embedder.embed(measured)
    seconds = (monotonic() - started) * count / max(len(measured), 1)
    return ReembedReport(
        _active_name(store), space_name(model), 0, records, round(seconds, 1), dry_run=True, pieces=count
    )


def _embed_canary(embedder: Embedder) -> VectorArray:
    """Embed the canary sentence before anything is changed. Raises EmbeddingError when the model cannot."""
    embedder.load()
    vectors = embedder.embed([SENTENCE])
    if len(vectors) != 1 or len(vectors[0]) != embedder.model.dimensions:
        message = f"{embedder.model.name} answers with {len(vectors[0])} dimensions, not {embedder.model.dimensions}"
        raise EmbeddingError(message, "check embedding.model")
    found: VectorArray = vectors[0]
    return found


def _rename_active(store: Store, embedder: Embedder, *, force: bool) -> None:
    """Rename the active space if its vectors serve with this model: they need not be embedded beside it."""
    space = next((one for one in store.vectors.spaces(counted=False) if one.active), None)
    if space is None or force:
        return
    embedder.load()
    if embedder.model == BUILT_IN and is_former(space.model):
        rename_former(store, space.model, embedder)
    else:
        name_weights(store, space, embedder)


def _replace_former(store: Store, embedder: Embedder, report: Report | None) -> int:
    """Replace vectors of the former model one batch after the other. Returns how many were replaced.

    A run that was stopped goes on behind the last batch that it finished. A record that the model rejects keeps its
    former vector.
    """
    total, replaced = store.vectors.count_former(), 0
    while True:
        records, position = store.vectors.former_records(BATCH)
        if records:
            replaced += _replace_batch(store, embedder, records)
            if report is not None:
                report(Progress("embed", replaced, max(total, replaced)))
        store.vectors.pass_former(position)
        if len(records) < BATCH:
            store.vectors.pack()
            return replaced


def _replace_batch(store: Store, embedder: Embedder, records: tuple[Record, ...]) -> int:
    try:
        return store.vectors.put(embedder.model, embed(embedder, records))
    except SpaceChangedError:
        raise
    except EmbeddingError:
        if len(records) == 1:
            embedder.embed([SENTENCE])  # raises if it is the model that failed, and not the record
            return 0
        return sum(_replace_batch(store, embedder, (record,)) for record in records)


def _guarded(store: Store, embedder: Embedder, *, force: bool) -> CanaryEmbedder:
    """The embedder of the edition to fill: the vectors of the active one may be of another model, or unwanted."""
    found = _embed_canary(embedder)
    model = embedder.model  # known by now

    def agrees(space: Space) -> bool:
        kept = store.vectors.canary(space.model)
        return kept is None or is_same(kept, found)

    spaces = [
        space
        for space in store.vectors.spaces(counted=False)
        if replace(space.model, edition=0).may_be(replace(model, edition=0))
    ]
    begun = next((space for space in spaces if space.next), None)
    active = next((space for space in spaces if space.active), None)
    if begun is None and active is None and not force:
        return CanaryEmbedder(embedder, store)
    kept = begun or (None if force else active)
    if kept is not None and agrees(kept):
        return CanaryEmbedder(embedder, store, kept.model.edition, named=bool(kept.model.sha256))
    if begun is None and not force:
        message = f"{space_name(model)} has become another model than the one that this memory was embedded with"
        raise EmbeddingError(message, "run `mindex reembed --force` to embed everything again")
    return CanaryEmbedder(embedder, store, max((space.model.edition for space in spaces), default=-1) + 1)


def _active_name(store: Store) -> str:
    return next((space.name for space in store.vectors.spaces(counted=False) if space.active), "")


def _fill(
    store: Store, embedder: Embedder, embedder_spec: EmbedderSpec, report: Report | None, on_stored: OnStored | None
) -> BackfillResult:
    """Embed until the new space is complete and active, including what other processes add in the meantime."""
    model = embedder.model
    existing = next((space.vectors for space in store.vectors.spaces() if space.fingerprint == model.fingerprint), 0)
    embedded = pauses = 0

    def report_total(progress: Progress) -> None:
        if report is not None:
            base = existing + embedded
            report(replace(progress, done=base + progress.done, total=base + progress.total))

    while True:
        part = Backfill(store, embedder, embedder_spec, report=report_total, on_stored=on_stored).run()
        embedded += part.embedded
        if part.replaced:
            message = f"another process began another change of model; the one to {space_name(model)} is given up"
            raise SpaceChangedError(message, "run `mindex reembed` again if it is wanted")
        if part.remaining <= part.rejected and store.vectors.switch_space(model):
            return replace(part, embedded=embedded)
        if part.note:
            message = f"{part.remaining} records have no vector of {space_name(model)} yet ({part.note})"
            raise EmbeddingError(message, "the old model is used until then; run `mindex reembed` again to continue")
        if not part.embedded:
            pauses += 1
            if pauses == _MAX_PAUSES:
                raise EmbeddingError(
                    f"{part.remaining} records change faster than they are embedded", "run `mindex reembed` again"
                )
            sleep(_PAUSE_SECONDS)
