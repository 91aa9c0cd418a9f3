"""The list of models: packaged and pulled ones, configured ones, and those of a database's vectors; and their speed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from statistics import median
from time import perf_counter
from typing import Literal, TypeAlias

from mindex.datatypes import Role
from mindex.datatypes.reports import ListedModel
from mindex.datatypes.spaces import Space, model_title, visible
from mindex.errors import MindexError
from mindex.providers.base import ProviderSettings, create_model
from mindex.providers.cache_files import read_small, small_file, write_small
from mindex.providers.generate.base import Prompt
from mindex.providers.hub import PRESETS, pulled_models
from mindex.providers.model_files import model_tables
from mindex.providers.onnx.engine import REINSTALL_MINDEX
from mindex.providers.packaged_models import BUILT_IN, BUILT_IN_SIZE, BUILT_IN_USE, built_in_files, packaged_models

# What the settings name of the embedder: its model, only its provider, or nothing.
Choice: TypeAlias = Literal["model", "provider", ""]

_LOCAL = "local"
_SPEEDS = "speeds"
_ROLES: tuple[Role, ...] = ("embedding", "rerank", "generation")
_ROUNDS = 5
_QUERY = "how long may the status of a door be kept before it expires?"
_TEXT: str = model_tables()["texts"]["passage"]


def is_packaged_or_pulled(name: str) -> bool:
    """Whether a local embedder of this name needs nothing but a package, or was pulled from the hub."""
    listed = (model for model in _ready_made() if model.role == "embedding" and (model.installed or not model.hub))
    return any(model.name == name for model in listed)


def list_models(
    configured: Sequence[tuple[Role, ProviderSettings]], spaces: Sequence[Space], chosen: Choice = "model"
) -> list[ListedModel]:
    """Return every model by role: first the packaged ones, then the hub's, then what a database or a setting names.

    `configured` is what the settings say of each role. `chosen` says which of it was set for the embedder: a model that
    was not is a default, and changes nothing.
    """
    listed = list(_ready_made())
    for space in spaces:
        _add_space(listed, space)
    for role, settings in configured:
        if settings.provider != "none":
            _add_configured(listed, role, settings, spaces, chosen if role == "embedding" else "model")
    return sorted(listed, key=lambda model: _ROLES.index(model.role))


def _ready_made() -> Iterator[ListedModel]:
    """Yield the built-in model, all that are in packages, the presets of the hub, and all other pulled models."""
    size, installed = _megabytes(BUILT_IN_SIZE), built_in_files().weights.is_file()
    name, dimensions = BUILT_IN.name, BUILT_IN.dimensions
    yield ListedModel(
        name, "embedding", _LOCAL, dimensions, size, "Apache-2.0", installed, REINSTALL_MINDEX, use=BUILT_IN_USE
    )
    for role in _ROLES:
        for one in packaged_models(role):
            model, size = one.model, _megabytes(one.size)
            yield ListedModel(
                model.name, role, _LOCAL, model.dimensions, size, one.licence, one.installed, one.install, use=one.use
            )
    pulled = {model.name: model for model in pulled_models()}
    for row in PRESETS:
        found = pulled.pop(row.name, None)
        size = _megabytes(found.size) if found is not None else row.megabytes
        yield _hub_model(row.name, row.role, row.dimensions, size, row.licence, installed=found is not None)
    for other in pulled.values():
        size, licence = _megabytes(other.size), visible(other.licence)
        yield _hub_model(visible(other.name), other.role, 0, size, licence, installed=True)


def _megabytes(size: int) -> int:
    return round(size / 1_000_000)


def _hub_model(name: str, role: Role, dimensions: int, size: int, licence: str, *, installed: bool) -> ListedModel:
    install = f"mindex models pull {name}"
    return ListedModel(name, role, _LOCAL, dimensions, size, licence, installed, install, hub=True)


def _add_space(listed: list[ListedModel], space: Space) -> None:
    """Complete the row of the space's model, or add one."""
    model = space.model
    row = ListedModel(visible(model.name), "embedding", visible(model.provider), model.dimensions)
    position = len(listed)
    for number, known in enumerate(listed):
        same = (known.role, known.provider) == ("embedding", model.provider) and known.vectors is None
        # The space of a pulled model has its checksum in the name, the embedder spec has not.
        named = known.name == model.name or (known.installed and known.name == space.embedder_spec.model)
        if same and named and known.dimensions in (0, model.dimensions):
            position, row = number, replace(known, dimensions=model.dimensions)
            break
    listed[position : position + 1] = [replace(row, active=space.active, next=space.next, vectors=space.vectors)]


def _add_configured(
    listed: list[ListedModel], role: Role, settings: ProviderSettings, spaces: Sequence[Space], chosen: Choice
) -> None:
    """Mark the model that the settings name, or add a row for it."""
    provider = settings.provider
    same_provider = [model for model in listed if (model.role, model.provider) == (role, provider)]
    packaged = next((model.name for model in same_provider if model.install), "")
    name = settings.model or packaged or _default_name(role, settings)
    if role == "embedding":  # a folder or a file is listed by its name and checksum already
        specs = [(one.model.name, one.embedder_spec) for one in spaces]
        names = (visible(known) for known, spec in specs if (spec.provider, spec.model) == (provider, name))
        name = next(names, name)
    # Settings that name only the provider of what is searched mean whichever of its models that is.
    searched = any(model.active and model.name != name for model in same_provider)
    is_default = not chosen or (chosen == "provider" and searched)
    for position, known in enumerate(listed):
        other_length = settings.dimensions and known.dimensions not in (0, settings.dimensions)
        if known in same_provider and known.name == name and not other_length:
            listed[position] = replace(known, configured=not is_default, default=is_default)
            return
    listed.append(ListedModel(name, role, provider, settings.dimensions, configured=not is_default, default=is_default))


def _default_name(role: Role, settings: ProviderSettings) -> str:
    """Return the name of the model that a provider uses by default; loads and sends nothing."""
    try:
        model = create_model(role, settings)
    except MindexError:
        return ""
    return str(model.model.name if role == "embedding" else model.name.removeprefix(f"{settings.provider}/"))


# ── speed ─────────────────────────────────────────────────────────────────────────────────────────────────────


def with_speed(
    model: ListedModel, settings: ProviderSettings | None, report: Callable[[str], None] | None = None
) -> ListedModel:
    """Return the model with its speed on this machine: measured now with `settings`; without, as measured before."""
    file = small_file(_SPEEDS, model.role, model.provider, model.name)
    if settings is None:
        values = read_small(file) or {}
        return replace(model, speed={name: value for name, value in values.items() if isinstance(value, int | float)})
    if report is not None:
        report(model_title(model.provider, model.name))
    try:
        speed = _measure(model.role, settings)
    except MindexError as error:
        return replace(model, trouble=str(error))
    write_small(file, speed)
    return replace(model, speed=speed)


def _measure(role: Role, settings: ProviderSettings) -> dict[str, float]:
    """Return milliseconds by what was done."""
    model = create_model(role, settings)
    model.load()
    if role == "embedding":
        return {
            "text": _milliseconds(lambda: model.embed([_TEXT] * 4)) / 4,
            "query": _milliseconds(lambda: model.embed_query(_QUERY)),
        }
    if role == "rerank":
        return {"pair": _milliseconds(lambda: model.score(_QUERY, [_TEXT] * 4)) / 4}
    prompt = Prompt("You answer with one sentence.", _QUERY, max_tokens=40)
    return {"answer": _milliseconds(lambda: model.generate(prompt), rounds=1)}


def _milliseconds(work: Callable[[], object], rounds: int | None = None) -> float:
    """Return the median after a first time that does not count."""
    work()
    taken = []
    for _ in range(rounds or _ROUNDS):
        started = perf_counter()
        work()
        taken.append(perf_counter() - started)
    return round(1000 * median(taken), 2)
