"""Vectors in the file, and the compact index of them that each process keeps up to date."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindex.clock import now_ms
from mindex.datatypes import Filters, Model, Record, RecordVectors
from mindex.datatypes.spaces import EmbedderSpec
from mindex.errors import SpaceChangedError
from mindex.ids import short_hash
from mindex.store.base import NearestRecords
from mindex.store.rules import spaces as rules
from mindex.store.rules.neighbours import FEW, one_by_one
from mindex.store.sql import space_rows
from mindex.store.sqlite.connection import Database
from mindex.store.sqlite.file_guard import EPOCH
from mindex.store.sqlite.filter_sql import condition, sees_everything
from mindex.store.sqlite.postings import NEEDED_CHANGES
from mindex.store.sqlite.record_rows import note_changes, read_records
from mindex.store.sqlite.row_checksums import CHECKED
from mindex.store.sqlite.sql_connection import SqlConnection, batches, scored_records
from mindex.store.sqlite.vector_index import NOTHING_RANKED, Block, Floats, Groups, Keys, Ranked, VectorIndex, encode

_BLOCK = 1024
# Packing rewrites every block, so it waits until enough is unpacked to be worth it.
_PACK_SHARE = 0.1
_PUT = """
INSERT INTO vectors (model, record, fluency, data, checksum)
SELECT ?1, key, ?2, ?3, row_checksum(?1, key, ?2, ?3) FROM records WHERE id = ?4 AND retired_at IS NULL
ON CONFLICT (model, record) DO UPDATE
SET fluency = excluded.fluency, data = excluded.data, checksum = excluded.checksum RETURNING record
"""
# Entries are few among the chunks, which have no agent: one range of an index holds most of them, two the others.
_ENTRIES = """
SELECT key, kind FROM records WHERE agent > ''
UNION ALL SELECT key, kind FROM records WHERE agent = '' AND kind < 'chunk'
UNION ALL SELECT key, kind FROM records WHERE agent = '' AND kind > 'chunk'
"""
_KINDS = "SELECT key, kind FROM records WHERE kind != 'chunk' AND key IN {marks}"
# What is embedded of an entry; of a chunk it is more.
_TEXTS = "SELECT id, kind, text, title FROM records WHERE retired_at IS NULL AND id IN {marks}"
_IDS = "SELECT key, id FROM records WHERE key IN {marks}"
_COLLECTION_SIZES = "SELECT collection, count(*) FROM documents GROUP BY collection"
_SELECT = f"SELECT {', '.join(CHECKED['vectors'])}, checksum FROM vectors"
_CHANGED = "SELECT DISTINCT record FROM changes WHERE seq > ?2 AND (model IS NULL OR model = ?1)"


# The number of cached scopes of agents and kinds.
_MAX_SCOPES = 8


@dataclass(frozen=True, slots=True)
class _AdmittedRows:
    """The rows of an index that filters admit, until a record changes or expires."""

    rows: NDArray[np.bool_]
    seq: int
    until: float


@dataclass(slots=True)
class _Loaded:
    model: int
    index: VectorIndex
    seq: int
    # Of the file, and which file it was: in another one, or after a backup was restored, numbers mean other changes.
    epoch: str | None
    generation: int
    packed: int  # the packing its first rows come from: codes of another one are in another order
    searches: int = 0
    damaged: bool = False  # what is packed could not be read
    groups: Groups | None = None  # of its rows, as they were at the change `grouped`
    grouped: int = -1
    collection_sizes: dict[int, int] = field(default_factory=dict)  # documents, by the collection's key
    scopes: dict[Filters, _AdmittedRows] = field(default_factory=dict)


class SqliteVectors:
    """Nearest-neighbour search over one database, for any of its models."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._loaded: dict[str, _Loaded] = {}  # by fingerprint: the keys of spaces that have gone are given again
        self._lock = threading.Lock()

    # ── searching ─────────────────────────────────────────────────────────────────────────────────────────────

    def nearest(self, model: Model, vector: Floats, filters: Filters, limit: int) -> NearestRecords:
        query = rules.query_vector(model, vector)
        # One snapshot for all of it: a commit between two statements could be missed for good, and a space that was
        # replaced in the middle would return half of its vectors.
        generation = self._database.generation  # before the connection: never that of a later file
        with self._lock, self._database.read() as connection:
            ranked = self._ranked(connection, model, query, filters, limit, generation)
            loaded = self._loaded.get(model.fingerprint)
            hits = scored_records(connection, ranked.hits, loaded.collection_sizes if loaded else None)
        return NearestRecords(hits, ranked.size)

    def neighbours(
        self, model: Model, vectors: Floats, filters: Filters, limit: int, least: float
    ) -> tuple[dict[str, float], ...]:
        if len(vectors) < FEW:
            return one_by_one(lambda vector: self.nearest(model, vector, filters, limit), vectors, least)
        queries = np.stack([rules.query_vector(model, vector) for vector in vectors])
        generation = self._database.generation  # as above
        with self._lock, self._database.read() as connection:
            rules.require_role(space_rows.read_roles(connection), model)
            key = space_rows.key_of(connection, model.fingerprint)
            if key is None:
                return ({},) * len(queries)
            loaded = self._refresh(connection, model.fingerprint, key, model.dimensions, generation, codes=True)
            allowed = _allowed(connection, loaded, filters)
            found = loaded.index.neighbours(
                queries, limit, least, lambda keys: _fetch(connection, key, keys, model.dimensions), allowed
            )
            ids = dict(connection.among(_IDS, sorted({one for keys in found for one in keys})))
        return tuple({ids[one]: cosine for one, cosine in keys.items() if one in ids} for keys in found)

    def _ranked(
        self, connection: SqlConnection, model: Model, query: Floats, filters: Filters, limit: int, generation: int
    ) -> Ranked:
        try:
            rules.require_role(space_rows.read_roles(connection), model)
        except SpaceChangedError:
            self._loaded.pop(model.fingerprint, None)
            raise
        key = space_rows.key_of(connection, model.fingerprint)
        if key is None:
            return NOTHING_RANKED
        known = self._loaded.get(model.fingerprint)
        # One search does without the codes, a process that goes on searching does not.
        codes = known is not None and known.searches > 0
        loaded = self._refresh(connection, model.fingerprint, key, model.dimensions, generation, codes=codes)
        loaded.searches += 1
        allowed = _allowed(connection, loaded, filters)
        if loaded.groups is None or loaded.grouped != loaded.seq:
            loaded.groups, loaded.grouped = _groups_of_rows(connection, loaded), loaded.seq
            loaded.collection_sizes = dict(connection.execute(_COLLECTION_SIZES).fetchall())
        return loaded.index.search(
            query, limit, lambda keys: _fetch(connection, key, keys, model.dimensions), allowed, loaded.groups
        )

    def _refresh(
        self,
        connection: SqlConnection,
        fingerprint: str,
        model: int,
        dimensions: int,
        generation: int,
        *,
        codes: bool,
    ) -> _Loaded:
        """Load the index, or only what changed since this process last looked. Called inside a snapshot."""
        last = _last_change(connection)
        (packed,) = connection.execute("SELECT packed_seq FROM models WHERE key = ?", (model,)).fetchone()
        loaded = self._loaded.get(fingerprint)
        file = connection.value(EPOCH), generation
        if loaded is not None and (loaded.model, (loaded.epoch, loaded.generation)) != (model, file):
            loaded = None
        if loaded is None or self._is_behind(connection, loaded, last, packed):
            searches = loaded.searches if loaded else 0
            loaded = self._loaded[fingerprint] = _load(connection, model, dimensions, file)
            loaded.searches = searches
        if codes and not _supply_codes(connection, model, loaded.index):
            loaded.index, loaded.seq = VectorIndex(dimensions), 0
        if loaded.seq != last:
            _catch_up(connection, model, loaded.index, loaded.seq)
            loaded.seq = last
        return loaded

    def _is_behind(self, connection: SqlConnection, loaded: _Loaded, last: int, packed: int) -> bool:
        """Whether catching up is impossible, or what is in memory no longer fits what is packed."""
        if not loaded.index.coded and loaded.packed != packed:
            return True
        (tail,) = connection.execute("SELECT coalesce(min(seq), 1) FROM changes").fetchone()
        return bool(loaded.seq != last and loaded.seq < tail - 1)

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────

    def put(self, model: Model, embedded: Sequence[RecordVectors], embedder_spec: EmbedderSpec | None = None) -> int:
        rows = []
        for item in embedded:
            data = rules.record_vectors(model, item.vectors).tobytes()
            rows.append((item.record, float(item.fluency), data, item.of))
        with self._database.write() as connection:
            rules.claim(space_rows.SqlSpaceStatements(connection), model, embedder_spec)
            key = space_rows.key_of(connection, model.fingerprint)
            assert key is not None
            stored: list[int] = []
            changed = _changed(connection, {record: of for record, _, _, of in rows if of})
            for record, fluency, data, _ in rows:
                if record in changed:
                    continue  # while it was being embedded: it stays pending
                stored += connection.column(_PUT, key, fluency, data, record)
            note_changes(connection, stored, key)
        return len(stored)

    def pack(self, *, force: bool = False) -> None:
        """Write the compact form of every model's vectors beside them, once enough is unpacked.

        `force` rebuilds all of it from the vectors themselves.
        """
        with self._database.read() as connection:
            models = connection.execute("SELECT key, packed_seq, fingerprint, dimensions FROM models").fetchall()
            due = [(model, *rest) for model, packed, *rest in models if force or _is_due(connection, model, packed)]
            last = _last_change(connection)
        for model, fingerprint, dimensions in due:
            self._pack(model, fingerprint, dimensions, anew=force)
        if not models and last > _BLOCK:  # without vectors the log of changes has no reader
            with self._database.write() as connection:
                connection.execute(
                    "DELETE FROM changes WHERE seq < (SELECT max(seq) FROM changes)"
                    f" AND seq < ifnull({NEEDED_CHANGES}, seq + 1)"
                )

    def _pack(self, model: int, fingerprint: str, dimensions: int, *, anew: bool) -> None:
        generation = self._database.generation
        with self._lock, self._database.read() as connection:
            if space_rows.key_of(connection, fingerprint) != model:  # dropped since it was found to be due
                return
            if anew:
                index = VectorIndex(dimensions)
                seq = _last_change(connection)
                _catch_up(connection, model, index, 0)
                rows = index.rows()
            else:
                loaded = self._refresh(connection, fingerprint, model, dimensions, generation, codes=True)
                rows, seq = loaded.index.rows(), loaded.seq
        assert rows.codes is not None
        with self._database.write() as connection:
            query = "SELECT packed_seq FROM models WHERE key = ? AND fingerprint = ?"
            packed = connection.value(query, model, fingerprint)
            # The space was dropped, or another process has packed it.
            if packed is None or packed > seq or (packed == seq and not anew):
                return
            connection.execute("DELETE FROM vector_blocks WHERE model = ?", (model,))
            for block, start in enumerate(range(0, len(rows.keys), _BLOCK)):
                part = slice(start, start + _BLOCK)
                connection.execute(
                    "INSERT INTO vector_blocks (model, block, records, fluency, scales, bits, codes)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (model, block, rows.keys[part].tobytes(), rows.fluency[part].tobytes(),
                     rows.scales[part].tobytes(), rows.bits[:, part].tobytes(), rows.codes[part].tobytes()),
                )  # fmt: skip
            connection.execute("UPDATE models SET packed_seq = ? WHERE key = ?", (seq, model))
            # Readers further behind than this reload from the blocks.
            connection.execute(
                "DELETE FROM changes WHERE seq < (SELECT min(packed_seq) FROM models WHERE fingerprint IN"
                " (SELECT value FROM meta WHERE key IN ('space', 'next_space')))"
                f" AND seq < ifnull({NEEDED_CHANGES}, seq + 1)"
            )

    def differing_spaces(self, connection: SqlConnection) -> list[str]:
        """The fingerprints of spaces in use of which a process would load other rows than their vectors give."""
        roles = space_rows.read_roles(connection)
        differing = []
        for fingerprint in filter(None, (roles.active, roles.filling)):
            model = space_rows.key_of(connection, fingerprint)
            dimensions = connection.value("SELECT dimensions FROM models WHERE key = ?", model)
            if model is None:
                continue
            loaded = _load(connection, model, dimensions, (None, 0))
            whole = not loaded.damaged and _supply_codes(connection, model, loaded.index)
            if whole:
                _catch_up(connection, model, loaded.index, loaded.seq)
            packed = loaded.index.digests() if whole else []
            del loaded  # two at once would need twice the memory
            index = VectorIndex(dimensions)
            _catch_up(connection, model, index, 0)
            if not whole or packed != index.digests():
                differing.append(fingerprint)
        return differing

    def forget(self) -> None:
        """Give back the memory of every space that is no longer searched."""
        with self._database.read() as connection, self._lock:
            active = space_rows.read_roles(connection).active
            for fingerprint in [one for one in self._loaded if one != active]:
                del self._loaded[fingerprint]


# ── SQL ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _last_change(connection: SqlConnection) -> int:
    return int(connection.value("SELECT coalesce(max(seq), 0) FROM changes"))


def _is_due(connection: SqlConnection, model: int, packed: int) -> bool:
    """Whether enough of a space is unpacked to make packing worthwhile."""
    count = "SELECT count(*) FROM changes WHERE seq > ?2 AND (model IS NULL OR model = ?1)"
    changed = connection.value(count, model, packed)
    held = connection.value("SELECT count(*) FROM vectors WHERE model = ?", model)
    return bool(changed > _BLOCK and changed > _PACK_SHARE * held)


def _changed(connection: SqlConnection, embedded: Mapping[str, str]) -> frozenset[str]:
    """The records whose text is not the one that was embedded, whose hash is given, or that are not live any more."""
    from mindex.embedding_text import embedded_text  # its patterns are compiled; a search does without

    texts = connection.among(_TEXTS, list(embedded))
    stored = {id_: Record(id_, kind, text, title=title) for id_, kind, text, title in texts}
    chunks = [id_ for id_, record in stored.items() if record.kind == "chunk"]
    stored |= {record.id: record for record in read_records(connection, chunks)}
    hashes = {id_: short_hash(embedded_text(record)) for id_, record in stored.items()}
    return frozenset(id_ for id_, of in embedded.items() if hashes.get(id_) != of)


def _load(connection: SqlConnection, model: int, dimensions: int, file: tuple[str | None, int]) -> _Loaded:
    index = VectorIndex(dimensions)
    (packed,) = connection.execute("SELECT packed_seq FROM models WHERE key = ?", (model,)).fetchone()
    rows = connection.execute(
        "SELECT records, fluency, scales, bits FROM vector_blocks WHERE model = ? ORDER BY block", (model,)
    )
    try:
        index.extend([to_block(dimensions, *row) for row in rows])
    except (ValueError, TypeError):
        connection.note_damage("packed vectors")
        return _Loaded(model, VectorIndex(dimensions), 0, *file, packed, damaged=True)  # the vectors themselves serve
    return _Loaded(model, index, packed, *file, packed)


def to_block(dimensions: int, keys: bytes, fluency: bytes, scales: bytes, bits: bytes) -> Block:
    """Packed rows as they are stored, without codes. Raises ValueError when their lengths do not agree."""
    block = Block(
        np.frombuffer(keys, np.int64), np.frombuffer(fluency, np.float16), np.frombuffer(scales, np.float32),
        np.frombuffer(bits, np.uint64).reshape(-(-dimensions // 64), -1), None,
    )  # fmt: skip
    if not len(block.keys) == len(block.fluency) == len(block.scales) == block.bits.shape[1]:
        raise ValueError("the columns of a block have different lengths")
    return block


def _supply_codes(connection: SqlConnection, model: int, index: VectorIndex) -> bool:
    """Read the codes of packed rows, unless they are there. Returns whether they fit."""
    if index.coded:
        return True
    rows = connection.execute("SELECT codes FROM vector_blocks WHERE model = ? ORDER BY block", (model,))
    try:
        index.supply_codes(np.frombuffer(codes, np.int8).reshape(-1, index.dimensions) for (codes,) in rows)
    except (ValueError, TypeError):
        connection.note_damage("packed vectors")
        return False
    return True


def _catch_up(connection: SqlConnection, model: int, index: VectorIndex, seq: int) -> None:
    """Replace the rows of every record that changed after `seq` by what is stored for it now."""
    if seq == 0 and not len(index):
        rows = connection.execute(f"{_SELECT} WHERE model = ?", (model,))
    else:
        index.remove(np.fromiter((key for (key,) in connection.execute(_CHANGED, (model, seq))), np.int64))
        rows = connection.execute(f"{_SELECT} WHERE model = ?1 AND record IN ({_CHANGED})", (model, seq))
    index.extend([_encode(batch, index.dimensions) for batch in batches(_sound(connection, rows), _BLOCK)])


def _sound(connection: SqlConnection, rows: Iterable[Sequence[Any]]) -> Iterator[tuple[int, float, bytes]]:
    for _, record, fluency, data in connection.sound_rows(rows, "vectors of model {}"):
        yield record, fluency, data


def _encode(rows: Sequence[tuple[int, float, bytes]], dimensions: int) -> Block:
    vectors = [np.frombuffer(data, np.float32).reshape(-1, dimensions) for _, _, data in rows]
    counts = [len(pieces) for pieces in vectors]
    keys = np.repeat(np.array([record for record, _, _ in rows], np.int64), counts)
    fluency = np.repeat(np.array([value for _, value, _ in rows], np.float32), counts)
    return encode(keys, np.concatenate(vectors), fluency)


def _fetch(connection: SqlConnection, model: int, records: Sequence[int], dimensions: int) -> dict[int, Floats]:
    rows = _sound(connection, connection.among(_SELECT + " WHERE model = ? AND record IN {marks}", records, model))
    return {record: np.frombuffer(data, np.float32).reshape(-1, dimensions) for record, _, data in rows}


def _groups_of_rows(connection: SqlConnection, loaded: _Loaded) -> Groups:
    """The group of each row. A record's kind never changes, so only new rows are looked up: a million take a second."""
    if loaded.groups is None:
        return loaded.index.groups_of(_groups(connection.execute(_ENTRIES).fetchall()))
    known = len(loaded.groups)
    rows = list(connection.among(_KINDS, np.unique(loaded.index.keys_from(known)).tolist()))
    return np.concatenate([loaded.groups, loaded.index.groups_of(_groups(rows), known)])


def _groups(rows: Sequence[tuple[int, str]]) -> tuple[Keys, Keys]:
    """The keys of turns, and of all other entries; chunks are the rest."""
    turns, others = ([key for key, kind in rows if (kind == "turn") is turn] for turn in (True, False))
    return np.array(turns, np.int64), np.array(others, np.int64)


def _allowed(connection: SqlConnection, loaded: _Loaded, filters: Filters) -> NDArray[np.bool_] | None:
    """The rows that filters admit; None: all.

    To read the keys of 10,000 memories takes as long as a whole keyword search, so a scope of agent and kinds is
    remembered: every change of a record raises the number of the last change.
    """
    now = now_ms()
    if sees_everything(connection, filters, now):
        return None
    known = loaded.scopes.get(filters)
    if known is not None and known.seq == loaded.seq and now < known.until and len(known.rows) == loaded.index.length:
        return known.rows
    scope = condition(filters, now)
    keys = connection.execute(f"SELECT r.key FROM records r WHERE {scope.sql}", scope.parameters)
    rows = loaded.index.rows_of(np.fromiter((key for (key,) in keys), np.int64))
    whose = Filters(agent=filters.agent, kinds=filters.kinds, files_of=filters.files_of)
    if replace(filters, include_expired=whose.include_expired) == whose:
        if len(loaded.scopes) >= _MAX_SCOPES:
            loaded.scopes.clear()
        soonest = connection.value("SELECT min(expires_at) FROM records WHERE expires_at > ?", now)
        loaded.scopes[filters] = _AdmittedRows(rows, loaded.seq, inf if soonest is None else soonest)
    return rows
