"""`dataclass` for the values that travel: the standard library's, made in a tenth of the time.

The standard one compiles six methods for every class, and a third of a cold search went into that. Here the methods are
shared, and `__init__` is compiled when the first value is made. Type checkers see the standard decorator.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, FrozenInstanceError
from functools import cache
from operator import attrgetter
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen: bool = False, slots: bool = False) -> Callable[[type], type]:
        """What is made cheaper here is `frozen=True, slots=True`; anything else is the standard library's."""
        return _frozen_with_slots if frozen and slots else dataclasses.dataclass(frozen=frozen, slots=slots)


_T = TypeVar("_T")


class _Value:
    """What every value does alike. Copied into each class, since a decorator cannot give it a base."""

    __match_args__: tuple[str, ...]

    def __repr__(self) -> str:
        fields = dataclasses.fields(self)  # type: ignore[arg-type]  # only dataclasses have this method
        shown = (f"{field.name}={getattr(self, field.name)!r}" for field in fields if field.repr)
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        return _fields_of(self) == _fields_of(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self) -> int:
        return hash(_fields_of(self))

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """For `copy` and `pickle`, which would set the fields one by one."""
        return type(self), _fields_of(self)


_SHARED = {name: method for name, method in vars(_Value).items() if isinstance(method, FunctionType)}


def _fields_of(value: Any) -> tuple[object, ...]:
    return tuple([getattr(value, name) for name in value.__match_args__])


def replace(value: _T, **changes: object) -> _T:
    """`dataclasses.replace` for a value of several fields that was made by `dataclass`, in a third of the time."""
    made: Any = type(value)
    get, places = _shape(made)
    fields = list(get(value))
    for name, new in changes.items():
        fields[places[name]] = new
    replaced: _T = made(*fields)
    return replaced


@cache
def _shape(made: Any) -> tuple[attrgetter[tuple[Any, ...]], dict[str, int]]:
    """What gets all fields of a value at once, and the place of each."""
    names = made.__match_args__
    return attrgetter(*names), {name: place for place, name in enumerate(names)}


def _frozen_with_slots(plain: type) -> type:
    """Fields, slots and what `replace`, `fields` and `match` go by are the standard library's."""
    written = set(vars(plain))
    inherits = any(map(dataclasses.is_dataclass, plain.__mro__[1:]))  # if its base is frozen, it must also be
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True, frozen=inherits)(plain)
    made.__dataclass_params__.frozen = True
    for field in dataclasses.fields(made):
        if field.kw_only or not (field.init and field.compare):
            raise TypeError(f"{plain.__qualname__}.{field.name} needs the standard library's dataclass")

    def first(self: Any, *arguments: object, **named: object) -> None:
        made.__init__ = _initializer(made)
        made.__init__(self, *arguments, **named)

    for name, method in {"__init__": first, **_SHARED}.items():
        if name not in written:
            setattr(made, name, method)
    completed: type = made
    return completed


def _initializer(made: type) -> Callable[..., None]:
    parameters, lines = [], []
    names: dict[str, Any] = {"_missing": MISSING}
    for field in dataclasses.fields(made):
        name = value = field.name
        if field.default is not MISSING:
            names[f"_default_{name}"] = field.default
            parameters.append(f"{name}=_default_{name}")
        elif field.default_factory is not MISSING:
            names[f"_make_{name}"] = field.default_factory
            parameters.append(f"{name}=_missing")
            value = f"_make_{name}() if {name} is _missing else {name}"
        else:
            parameters.append(name)
        names[f"_set_{name}"] = getattr(made, name).__set__  # the slot's own, past the refusal of `__setattr__`
        lines.append(f"    _set_{name}(self, {value})")
    if hasattr(made, "__post_init__"):
        lines.append("    self.__post_init__()")
    exec(f"def __init__(self, {', '.join(parameters)}):\n" + "\n".join(lines), names)
    initializer: Callable[..., None] = names["__init__"]
    initializer.__qualname__ = f"{made.__qualname__}.__init__"  # named by Python where an argument is missing
    return initializer
