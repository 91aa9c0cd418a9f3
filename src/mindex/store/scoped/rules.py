"""What a principal sees and may change: the rules that all groups of a scoped store ask."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast

from mindex.datatypes import Change, Filters, Record
from mindex.datatypes.access_tokens import ALL_AGENTS, Principal
from mindex.errors import AccessDeniedError, only_collections, read_only_token
from mindex.store.base import Store

P = ParamSpec("P")
T = TypeVar("T")


class ScopedGroup(Generic[T]):
    """A group of a store for one principal: the rules, and the group itself."""

    def __init__(self, rules: "AccessRules", group: T) -> None:
        self._rules = rules
        self._group = group


def narrowed(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """This method of the group, for what the principal sees: filters, the argument `agent`, and those among `ids`."""
    names = method.__code__.co_varnames[1:]

    @wraps(method)
    def call(self: Any, /, *arguments: P.args, **options: P.kwargs) -> T:
        narrow = self._rules.narrowed
        named = {name: narrow(name, value) for name, value in options.items()}
        return cast("T", getattr(self._group, method.__name__)(*map(narrow, names, arguments), **named))

    return call


def filtered(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """This method of the group, without the records, changes and ids that the principal does not see."""

    @wraps(method)
    def call(self: Any, /, *arguments: P.args, **options: P.kwargs) -> T:
        return cast("T", self._rules.filtered(getattr(self._group, method.__name__)(*arguments, **options)))

    return call


def for_all(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """This method of the group, for principals that may see and change the whole store."""

    @wraps(method)
    def call(self: Any, /, *arguments: P.args, **options: P.kwargs) -> T:
        self._rules.require_everything()
        return cast("T", getattr(self._group, method.__name__)(*arguments, **options))

    return call


class AccessRules:
    """The rules of one principal over one store.

    What is not seen is as if it did not exist: no answer differs for a record of another agent and for none at all.
    """

    def __init__(self, store: Store, principal: Principal) -> None:
        self.store = store
        self.principal = principal
        self.sees_all_agents = principal.agent == ALL_AGENTS
        self.sees_all_files = not principal.collections

    # ── seeing ────────────────────────────────────────────────────────────────────────────────────────────────

    def agent(self, named: str) -> str:
        """The agent whose entries are read where `named` is asked for. Raises AccessDeniedError for another agent."""
        if self.sees_all_agents:
            return named
        if named not in (ALL_AGENTS, self.principal.agent):
            raise AccessDeniedError(
                f"this token acts as the agent '{self.principal.agent}' and for no other", "leave the agent out"
            )
        return self.principal.agent

    def filters(self, filters: Filters) -> Filters:
        return replace(filters, agent=self.agent(filters.agent), files_of=self.principal.collections)

    def narrowed(self, name: str, value: Any) -> Any:
        """The argument of a method as the principal may give it."""
        if isinstance(value, Filters):
            return self.filters(value)
        return self.agent(value) if name == "agent" else self.visible(value) if name == "ids" else value

    def filtered(self, found: Any) -> Any:
        """A record or change, or None in its place; or those of several, or of ids, that the principal sees."""
        if found is None or isinstance(found, Record | Change):
            return found if found is not None and self.sees(found) else None
        if isinstance(found, tuple) and found and isinstance(found[0], str):
            return tuple(self.visible(found))
        return tuple(filter(self.sees, found)) if isinstance(found, tuple) else filter(self.sees, found)

    def sees(self, one: Record | Change) -> bool:
        if isinstance(one, Change):
            return self.sees(one.after) and (one.before is None or self.sees(one.before))
        if one.kind == "chunk":
            return self.sees_collection(one.collection)
        return self.sees_all_agents or one.agent in ("", self.principal.agent)

    def sees_collection(self, name: str) -> bool:
        return self.sees_all_files or name in self.principal.collections

    def visible(self, ids: Iterable[str]) -> list[str]:
        """Those of the ids whose records are seen, in their order. Unknown ids are left out."""
        wanted = list(ids)
        if not wanted:
            return []
        owners = (
            self.store.entries.owners(wanted) if "entries" in self.store.capabilities else dict.fromkeys(wanted, "")
        )
        chunks = [id_ for id_ in wanted if owners.get(id_) == ""]
        if not self.sees_all_files:
            chunks = [record.id for record in self.store.retrieval.records(chunks) if self.sees(record)]
        mine = {
            id_ for id_, agent in owners.items() if agent and (self.sees_all_agents or agent == self.principal.agent)
        }
        seen = mine.union(chunks)
        return [id_ for id_ in wanted if id_ in seen]

    def is_visible(self, id_: str) -> bool:
        return bool(self.visible([id_]))

    # ── changing ──────────────────────────────────────────────────────────────────────────────────────────────

    def require_write(self) -> None:
        """Raise AccessDeniedError unless the principal may write."""
        if not self.principal.may_write:
            raise read_only_token()

    def require_own(self, records: Sequence[Record]) -> None:
        """Raise AccessDeniedError unless the principal may write these records."""
        self.require_write()
        for record in records:
            self.agent(record.agent)

    def require_collection(self, name: str) -> None:
        """Raise AccessDeniedError unless the principal may change this collection."""
        self.require_write()
        if not self.sees_collection(name):
            raise only_collections(self.principal.collections)

    def require_everything(self) -> None:
        """Raise AccessDeniedError unless the principal may see and change the whole store."""
        self.require_write()
        if not self.principal.is_unlimited:
            raise AccessDeniedError("this concerns the records of all agents", "ask the server's owner to do it")
