"""The built-in model over vectors of the model that was built in before it: the one pair whose vectors are compared.

A space of the former model is searched as it is. Before the first new vector is stored, the space is renamed after the
new model, so that a process of the former model stores and searches none of them. `reembed` then replaces the former
vectors in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mindex.datatypes import Model, VectorArray
from mindex.datatypes.spaces import EmbedderSpec, Space, space_name
from mindex.embedding.canary import SENTENCE, CanaryEmbedder, likeness
from mindex.errors import EmbeddingError
from mindex.providers.embed.base import Embedder
from mindex.providers.packaged_models import BUILT_IN
from mindex.store.base import Store

# The canary sentence of the two models has a cosine of .93; that of others with either is below .3.
_MIN_COSINE = 0.8
# For an estimate: 100 passages of 1,000 characters took 4.3 s on one core.
_SECONDS_PER_RECORD = 0.043
BUILT_IN_SPEC = EmbedderSpec(BUILT_IN.provider, BUILT_IN.name)


class FormerVectors:
    """The built-in embedder for a space of the model before it. What it embeds is compared, and never stored.

    `writes`: whether the space may be renamed, so that new vectors are stored beside the former ones.
    """

    def __init__(self, inner: Embedder, former: Model, store: Store, *, writes: bool = True) -> None:
        self.inner = inner
        self.model = former
        self.queried_with = inner.model
        self.writes = writes
        self._store = store
        self.load = inner.load
        self.embed: Callable[[Sequence[str]], VectorArray] = inner.embed
        self.embed_query: Callable[[str], VectorArray] = inner.embed_query
        self.fluency = inner.fluency
        self.trouble: Callable[[], str] = getattr(inner, "trouble", lambda: "")

    @property
    def loaded(self) -> bool:
        return self.inner.loaded

    def prove(self) -> None:
        """Raise EmbeddingError if the stored vectors are not of the former model. Writes nothing."""
        require_readable(self._store, self.model, self.inner.embed([SENTENCE])[0])


def require_readable(store: Store, former: Model, canary: VectorArray) -> None:
    """Raise EmbeddingError unless the canary of a space is near the built-in model's; one without canary is trusted."""
    kept = store.vectors.canary(former)
    if kept is not None and likeness(kept, canary) < _MIN_COSINE:
        raise EmbeddingError(
            f"the vectors of this database are not those of {space_name(former)}",
            "run `mindex reembed --force` to embed everything again",
        )


def rename_former(store: Store, former: Model, embedder: Embedder) -> bool:
    """Rename a space of the former model after the built-in one, which stores its vectors in it from now on.

    Returns False if the store cannot do it. Raises EmbeddingError if the vectors are of another model.
    """
    canary = embedder.embed([SENTENCE])[0]
    require_readable(store, former, canary)
    store.vectors.drop_unused_spaces()  # one of the built-in model may be left of an earlier change
    return store.vectors.rename_space(former, embedder.model, BUILT_IN_SPEC, canary, mixed=True)


def name_weights(store: Store, space: Space, embedder: Embedder) -> bool:
    """Add the hash of its model's weights to the fingerprint of a space from the time before there were hashes.

    `embedder` is the model itself. Returns False if it reports no hash, or the store cannot rename a space. Raises
    EmbeddingError if the canary shows that it is another model.
    """
    model = replace(embedder.model, edition=space.model.edition)
    if space.model.sha256 or not model.sha256 or not model.may_be(space.model):
        return False
    CanaryEmbedder(embedder, store, space.model.edition, named=False).prove()
    return store.vectors.rename_space(space.model, model, space.embedder_spec)


def minutes(records: int) -> int:
    """About how many minutes the built-in model takes for this number of records, at least one."""
    return max(1, round(records * _SECONDS_PER_RECORD / 60))
