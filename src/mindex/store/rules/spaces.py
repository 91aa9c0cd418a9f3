"""Embedding spaces: which one is searched, which one is being filled to replace it, and how they change places.

At most two spaces may take vectors, the active one and the one being filled, so that a process whose model was replaced
cannot leave vectors that no search reads.
"""

import base64
import json
import re
from dataclasses import asdict, fields, replace
from typing import Protocol

from mindex.datatypes import Model, VectorArray
from mindex.datatypes.spaces import EmbedderSpec, space_name
from mindex.errors import EmbeddingError, SpaceChangedError
from mindex.values import dataclass

_FINGERPRINT = re.compile(
    r"([^/]*)/(.*)/(\d{1,9})/([^/]*)/(\d{1,9})/([^|]*)\|(.*?)(?:@([0-9a-f]{64}))?(?:#([1-9]\d{0,8}))?", re.DOTALL
)
_NUMBERS = tuple(one.name for one in fields(Model) if one.type in (int, float))


@dataclass(frozen=True, slots=True)
class SpaceRoles:
    """The fingerprints of the space that is searched and of the one being filled; '' if there is none."""

    active: str = ""
    filling: str = ""


@dataclass(frozen=True, slots=True)
class Former:
    """The records of the active space whose vectors may be of the model before: those after `done`, up to `until`.

    These are positions in the order in which records were stored. A record that changes in the meantime gets a new
    vector and is still in the range: it is embedded once more.
    """

    done: int = 0
    until: int = 0

    @property
    def is_empty(self) -> bool:
        return self.done >= self.until

    def encode(self) -> str:
        return f"{self.done} {self.until}"

    @staticmethod
    def decode(text: str | None) -> "Former":
        """What `encode` wrote; empty for None and for what cannot be read."""
        numbers = (text or "").split()
        readable = len(numbers) == 2 and all(number.isdecimal() for number in numbers)
        return Former(int(numbers[0]), int(numbers[1])) if readable else Former()


class SpaceStatements(Protocol):
    """What these rules need of an engine. All calls of one rule are made inside one transaction."""

    def roles(self) -> SpaceRoles: ...
    def set_roles(self, roles: SpaceRoles) -> None: ...

    def put_space(self, model: Model, embedder_spec: EmbedderSpec | None) -> None:
        """Store a space, or how its embedder is made; without a spec, what is stored of that stays."""

    def begin_filling(self, model: Model) -> None:
        """Called once before a space is filled, which may hold vectors from an earlier time already."""

    def lacks(self, new: Model, old: str) -> bool:
        """Whether a live record has vectors in the old space and none in the new one."""

    def rename_space(self, old: str, new: Model, embedder_spec: EmbedderSpec, canary: VectorArray | None) -> bool:
        """Give a space with all its vectors another fingerprint; False if there is none, or one of the new name.

        Its canary becomes the given one, or is kept.
        """

    def former(self) -> Former: ...
    def set_former(self, former: Former) -> None: ...

    def last_position(self, fingerprint: str) -> int:
        """The position of the last record with vectors in a space, in the order in which records were stored."""


def require_role(roles: SpaceRoles, model: Model, *, filling: bool = False) -> None:
    """Raise SpaceChangedError unless this is the active space or, with `filling`, the one being filled.

    A store without an active space takes any.
    """
    active = roles.active or model.fingerprint
    if model.fingerprint == active or (filling and model.fingerprint == roles.filling):
        return
    stored = model_from_fingerprint(active)
    current, given = space_name(stored), space_name(model)
    if replace(stored, edition=0) == replace(model_from_fingerprint(model.fingerprint), edition=0):
        raise SpaceChangedError(f"everything was embedded again with {current} during this request", "retry")
    if current == given:
        current, given = f"{stored.dimensions} dimensions of {current}", f"{model.dimensions}"
    raise SpaceChangedError(
        f"this memory is embedded with {current} now, not with {given}", "`mindex reembed` changes the model"
    )


def claim(statements: SpaceStatements, model: Model, embedder_spec: EmbedderSpec | None) -> None:
    """Make sure that vectors of a space may be stored; the first space of a store becomes the active one."""
    roles = statements.roles()
    require_role(roles, model, filling=True)
    if not roles.active and roles.filling != model.fingerprint:
        statements.set_roles(replace(roles, active=model.fingerprint))
    statements.put_space(model, embedder_spec)


def begin(statements: SpaceStatements, model: Model, embedder_spec: EmbedderSpec) -> None:
    """Let vectors of this space be stored beside the active ones; see `VectorStore.begin_space`."""
    roles = statements.roles()
    statements.put_space(model, embedder_spec)
    if roles.active == model.fingerprint:
        statements.set_roles(SpaceRoles(roles.active))
    elif roles.filling != model.fingerprint:
        statements.begin_filling(model)
        statements.set_roles(SpaceRoles(roles.active, model.fingerprint))


def switch(statements: SpaceStatements, model: Model) -> bool:
    """Make the space that was filled the active one; see `VectorStore.switch_space`."""
    roles = statements.roles()
    if roles.active == model.fingerprint:
        return True  # another process was faster
    if roles.filling != model.fingerprint:
        raise SpaceChangedError(
            f"another process ended the change to {space_name(model)}", "run `mindex reembed` again if it is wanted"
        )
    if roles.active and statements.lacks(model, roles.active):
        return False
    statements.set_roles(SpaceRoles(model.fingerprint))
    statements.set_former(Former())
    return True


def rename(
    statements: SpaceStatements,
    old: Model,
    new: Model,
    embedder_spec: EmbedderSpec,
    canary: VectorArray | None,
    *,
    mixed: bool,
) -> bool:
    """Give a space another fingerprint; see `VectorStore.rename_space`."""
    roles = statements.roles()
    if mixed and (roles.active != old.fingerprint or roles.filling):
        return False
    if not statements.rename_space(old.fingerprint, new, embedder_spec, canary):
        return False
    renamed = {old.fingerprint: new.fingerprint}
    statements.set_roles(SpaceRoles(*(renamed.get(role, role) for role in (roles.active, roles.filling))))
    if mixed:
        statements.set_former(Former(0, statements.last_position(new.fingerprint)))
    return True


def pass_former(statements: SpaceStatements, position: int) -> None:
    """Note that the records up to a position have new vectors; see `VectorStore.pass_former`."""
    former = statements.former()
    done = Former(max(former.done, min(position, former.until)), former.until)
    if done != former:
        statements.set_former(Former() if done.is_empty else done)


# ── vectors of a space ────────────────────────────────────────────────────────────────────────────────────────


def query_vector(model: Model, vector: object) -> VectorArray:
    """The vector of a query as one row. Raises EmbeddingError when it has other dimensions than the model."""
    import numpy as np  # a keyword search does without

    row = np.asarray(vector, np.float32).reshape(-1)
    if len(row) != model.dimensions:
        raise EmbeddingError(
            f"the query has {len(row)} dimensions, {model.name} has {model.dimensions}",
            "check embedding.model, then run `mindex doctor`",
        )
    return row


def record_vectors(model: Model, vectors: object) -> VectorArray:
    """The vectors of one record, a row for each piece. Raises EmbeddingError when they do not fit the model."""
    import numpy as np  # as above

    rows = np.asarray(vectors, np.float32)
    if rows.ndim != 2 or rows.shape[1] != model.dimensions:
        raise EmbeddingError(
            f"a vector of {rows.shape[-1]} dimensions does not fit {model.name} ({model.dimensions})",
            "check embedding.model, then run `mindex backfill`",
        )
    return rows


def encode_canary(vector: VectorArray) -> str:
    """The vector of the canary sentence as a text that a store can hold."""
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()


def decode_canary(model: Model, text: str | None) -> VectorArray | None:
    """The vector of the canary sentence; None if none is stored, or none that can be read."""
    if text is None:
        return None
    import numpy as np  # as above

    try:
        vector = np.frombuffer(base64.b64decode(text, validate=True), "<f4")
    except (ValueError, TypeError):
        return None
    return vector if len(vector) == model.dimensions else None


# ── how a space is described in a store ───────────────────────────────────────────────────────────────────────


def describe_space(model: Model, embedder_spec: EmbedderSpec | None) -> str:
    """A space as JSON: how its embedder is made again, and the model's own properties."""
    spec = embedder_spec or EmbedderSpec(model.provider, model.name)
    return json.dumps({**asdict(spec), "space": asdict(model)})


def described_space(fingerprint: str, description: str) -> tuple[Model, EmbedderSpec]:
    """The model and the embedder spec of a space. What is unreadable is taken from its fingerprint instead."""
    values = _json_object(description)
    model = _described_model(fingerprint, values.get("space"))
    if "provider" not in values:  # from the time when there was nothing but the built-in model
        return model, EmbedderSpec(model.provider, model.name)
    dimensions = values.get("dimensions")
    provider, name, url = (str(values.get(key, "")) for key in ("provider", "model", "url"))
    return model, EmbedderSpec(provider, name, url, dimensions if type(dimensions) is int and dimensions > 0 else 0)


def model_from_fingerprint(fingerprint: str) -> Model:
    """The model that a fingerprint names; one that is not of our making becomes the model's name."""
    parts = _FINGERPRINT.fullmatch(fingerprint)
    if parts is None:  # an import may bring anything
        return Model("", fingerprint, 0)
    provider, name, dimensions, pooling, max_tokens, query_prefix, text_prefix, sha256, edition = parts.groups()
    model = Model(provider, name, int(dimensions), pooling, query_prefix, text_prefix, int(max_tokens))
    return replace(model, sha256=sha256 or "", edition=int(edition or 0))


def _described_model(fingerprint: str, values: object) -> Model:
    if isinstance(values, dict):
        allowed = {one.name for one in fields(Model)}
        known = {name: value for name, value in values.items() if name in allowed}
        try:
            model = Model(**known) if all(_fits(name, value) for name, value in known.items()) else None
        except TypeError:
            model = None
        if model is not None and model.fingerprint == fingerprint:
            return model
    return model_from_fingerprint(fingerprint)


def _fits(name: str, value: object) -> bool:
    """Whether a model's field can hold what a file says of it."""
    return type(value) in (int, float) if name in _NUMBERS else isinstance(value, str)


def _json_object(text: str) -> dict[str, object]:
    try:
        values = json.loads(text)
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}
