"""Embedding spaces: which one is searched, which one is being filled to replace it, and how they change places.

`meta` holds two fingerprints: `space`, the one that is searched, and `next_space`. Nothing may write vectors of a
third one, so that a process whose model was replaced under it cannot leave vectors nobody reads. Beside them stands
each space's canary: what its model made of one fixed sentence.
"""

from __future__ import annotations

import base64
import json
import re
import sqlite3
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING

from mindex.clock import now_ms
from mindex.errors import SpaceChangedError
from mindex.model import Model
from mindex.model.spaces import EmbedderSpec, Space, space_name

if TYPE_CHECKING:  # numpy costs more than a whole keyword search
    from mindex.model import VectorArray

_FACTS = "SELECT key, value FROM meta WHERE key IN ('space', 'next_space')"
_ADD = "INSERT OR IGNORE INTO models (fingerprint, dimensions, created_at, settings) VALUES (?, ?, ?, ?)"
_SET = "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
_LACKING = """
SELECT 1 FROM vectors old JOIN records r ON r.key = old.record AND r.retired_at IS NULL
WHERE old.model = ?1 AND NOT EXISTS (SELECT 1 FROM vectors new WHERE new.model = ?2 AND new.record = old.record) LIMIT 1
"""
# Neither searched nor being filled. Where nothing is searched yet, nothing is out of use either.
_UNUSED = """
SELECT key FROM models WHERE EXISTS (SELECT 1 FROM meta WHERE key = 'space')
AND fingerprint NOT IN (SELECT value FROM meta WHERE key IN ('space', 'next_space'))
"""
_HOLDS = "SELECT 1 FROM vectors WHERE model = (SELECT key FROM models WHERE fingerprint = ?) LIMIT 1"
_FINGERPRINT = re.compile(r"([^/]*)/(.*)/(\d{1,9})/([^/]*)/(\d{1,9})/([^|]*)\|(.*?)(?:#([1-9]\d{0,8}))?", re.DOTALL)
_NUMBERS = ("dimensions", "max_tokens", "edition", "background_mean", "background_std")
# Rows that one transaction removes: nobody waits long for it.
_ROWS_AT_ONCE = 500


def active(connection: sqlite3.Connection) -> str:
    """The fingerprint of the space that is searched; '' while nothing is embedded."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'space'").fetchone()
    return str(row[0]) if row else ""


def refuse_other(connection: sqlite3.Connection, model: Model, *, filling: bool = False) -> None:
    """Raise unless this is the space that is searched or, for those who write, the one being filled."""
    known = dict(connection.execute(_FACTS))
    now = known.get("space", model.fingerprint)
    if model.fingerprint == now or (filling and model.fingerprint == known.get("next_space")):
        return
    kept = _from_fingerprint(now)
    theirs, ours = space_name(kept), space_name(model)
    if replace(kept, edition=0) == replace(_from_fingerprint(model.fingerprint), edition=0):
        raise SpaceChangedError(f"everything was embedded anew with {theirs} meanwhile", "ask again")
    if theirs == ours:
        theirs, ours = f"{kept.dimensions} dimensions of {theirs}", f"{model.dimensions}"
    raise SpaceChangedError(
        f"this memory is embedded with {theirs} now, not with {ours}", "`mindex reembed` changes the model"
    )


def key_of(connection: sqlite3.Connection, fingerprint: str) -> int | None:
    row = connection.execute("SELECT key FROM models WHERE fingerprint = ?", (fingerprint,)).fetchone()
    return int(row[0]) if row else None


def known(connection: sqlite3.Connection, *, counted: bool = True) -> tuple[Space, ...]:
    """Every space there is, the one that is searched first."""
    facts = dict(connection.execute(_FACTS))
    counts = dict(connection.execute("SELECT model, count(*) FROM vectors GROUP BY model")) if counted else {}
    rows = connection.execute("SELECT key, fingerprint, settings FROM models ORDER BY key").fetchall()
    found = [
        Space(
            _model(fingerprint, settings),
            _made(fingerprint, settings),
            counts.get(key, 0),
            active=fingerprint == facts.get("space"),
            next=fingerprint == facts.get("next_space"),
        )
        for key, fingerprint, settings in rows
    ]
    return tuple(sorted(found, key=lambda space: (not space.active, not space.next)))


def canary(connection: sqlite3.Connection, model: Model) -> VectorArray | None:
    """What was kept for a space, if it can be read."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (_canary_key(model.fingerprint),)).fetchone()
    if row is None:
        return None
    import numpy as np

    try:
        vector = np.frombuffer(base64.b64decode(row[0], validate=True), "<f4")
    except (ValueError, TypeError):
        return None
    return vector if len(vector) == model.dimensions else None


def put_canary(connection: sqlite3.Connection, model: Model, vector: VectorArray) -> VectorArray:
    """Store a space's canary unless it has one; one without vectors was left by a process that came no further."""
    kept = canary(connection, model)
    if kept is not None and connection.execute(_HOLDS, (model.fingerprint,)).fetchone():
        return kept
    written = base64.b64encode(vector.astype("<f4").tobytes()).decode()
    connection.execute(_SET, (_canary_key(model.fingerprint), written))
    return vector


def has_canary(connection: sqlite3.Connection, fingerprint: str) -> bool:
    kept = connection.execute("SELECT 1 FROM meta WHERE key = ?", (_canary_key(fingerprint),)).fetchone()
    return kept is not None


def _canary_key(fingerprint: str) -> str:
    return f"canary {fingerprint}"


# ── changing ──────────────────────────────────────────────────────────────────────────────────────────────────


def claim(connection: sqlite3.Connection, model: Model, embedder_spec: EmbedderSpec | None) -> int:
    """The key under which vectors of a space are written; the first space of a file is the one that is searched."""
    refuse_other(connection, model, filling=True)
    if dict(connection.execute(_FACTS)).get("next_space") != model.fingerprint:
        connection.execute("INSERT OR IGNORE INTO meta (key, value) VALUES ('space', ?)", (model.fingerprint,))
    return _add(connection, model, embedder_spec)


def begin(connection: sqlite3.Connection, model: Model, embedder_spec: EmbedderSpec) -> None:
    """From now on vectors of this space are gathered beside those that are searched."""
    before = dict(connection.execute(_FACTS)).get("next_space")
    key = _add(connection, model, embedder_spec)
    if active(connection) == model.fingerprint:
        connection.execute("DELETE FROM meta WHERE key = 'next_space'")
    elif before != model.fingerprint:
        # What lies there from an earlier time is counted, but a packing may lag behind the log of changes.
        _unpack(connection, key)
        connection.execute(_SET, ("next_space", model.fingerprint))


def switch(connection: sqlite3.Connection, model: Model) -> bool:
    """Search the space that was filled, if it lacks nothing that the old one has. Called under the write lock."""
    facts = dict(connection.execute(_FACTS))
    if facts.get("space") == model.fingerprint:
        return True  # another process was faster
    if facts.get("next_space") != model.fingerprint:
        raise SpaceChangedError(
            f"another process ended the change to {space_name(model)}", "run `mindex reembed` again if it is wanted"
        )
    old, new = key_of(connection, facts.get("space", "")), key_of(connection, model.fingerprint)
    if old is not None and connection.execute(_LACKING, (old, new)).fetchone():
        return False
    connection.execute(_SET, ("space", model.fingerprint))
    connection.execute("DELETE FROM meta WHERE key = 'next_space'")
    return True


def count_unused(connection: sqlite3.Connection) -> int:
    return len(connection.execute(_UNUSED).fetchall())


def drop_some(connection: sqlite3.Connection) -> bool:
    """Remove a part of what is neither searched nor being filled; whether there may be more."""
    row = connection.execute(_UNUSED).fetchone()
    if row is None:
        return False
    (key,) = row
    gone = connection.execute(
        "DELETE FROM vectors WHERE key IN (SELECT key FROM vectors WHERE model = ? LIMIT ?)", (key, _ROWS_AT_ONCE)
    ).rowcount
    if gone == _ROWS_AT_ONCE:
        return True
    _unpack(connection, key)
    (fingerprint,) = connection.execute("DELETE FROM models WHERE key = ? RETURNING fingerprint", (key,)).fetchone()
    connection.execute("DELETE FROM meta WHERE key = ?", (_canary_key(fingerprint),))
    return True


def _unpack(connection: sqlite3.Connection, key: int) -> None:
    connection.execute("DELETE FROM vector_blocks WHERE model = ?", (key,))
    connection.execute("UPDATE models SET packed_seq = 0 WHERE key = ?", (key,))


def _add(connection: sqlite3.Connection, model: Model, embedder_spec: EmbedderSpec | None) -> int:
    """Write a space down. Who does not say how its embedder was made leaves what is known of that."""
    settings = json.dumps({**asdict(embedder_spec or EmbedderSpec(model.provider, model.name)), "space": asdict(model)})
    connection.execute(_ADD, (model.fingerprint, model.dimensions, now_ms(), settings))
    if embedder_spec is not None:
        connection.execute(
            "UPDATE models SET settings = ?2 WHERE fingerprint = ?1 AND settings != ?2", (model.fingerprint, settings)
        )
    key = key_of(connection, model.fingerprint)
    assert key is not None
    return key


# ── how a space is written down ───────────────────────────────────────────────────────────────────────────────


def _made(fingerprint: str, settings: str) -> EmbedderSpec:
    said = _said(settings)
    if "provider" in said:
        dimensions = said.get("dimensions")
        provider, model_name, url = (str(said.get(name, "")) for name in ("provider", "model", "url"))
        return EmbedderSpec(provider, model_name, url, dimensions if type(dimensions) is int and dimensions > 0 else 0)
    model = _model(fingerprint, settings)  # from the time when there was nothing but the built-in one
    return EmbedderSpec(model.provider, model.name)


def _model(fingerprint: str, settings: str) -> Model:
    said = _said(settings).get("space")
    if isinstance(said, dict):
        allowed = {field.name for field in fields(Model)}
        known = {name: value for name, value in said.items() if name in allowed}
        try:
            model = Model(**known) if all(_fits(name, value) for name, value in known.items()) else None
        except TypeError:
            model = None
        if model is not None and model.fingerprint == fingerprint:
            return model
    return _from_fingerprint(fingerprint)


def _fits(name: str, value: object) -> bool:
    """Whether a model's field can hold what a file says of it."""
    return type(value) in (int, float) if name in _NUMBERS else isinstance(value, str)


def _said(settings: str) -> dict[str, object]:
    try:
        said = json.loads(settings)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _from_fingerprint(fingerprint: str) -> Model:
    parts = _FINGERPRINT.fullmatch(fingerprint)
    if parts is None:  # not one of ours: an import may bring anything
        return Model("", fingerprint, 0)
    provider, name, dimensions, pooling, max_tokens, query_prefix, text_prefix, edition = parts.groups()
    model = Model(provider, name, int(dimensions), pooling, query_prefix, text_prefix, int(max_tokens))
    return replace(model, edition=int(edition)) if edition else model
