"""Why a login may not write something: what it was granted, and what it can do about it. PostgreSQL gives no reason."""

from collections.abc import Iterable, Sequence

from mindex.datatypes.administration import Grant, Scope
from mindex.errors import StoreError

# Row-level security shows a login its own rows, an owner all of them.
OWN_GRANTS = """
SELECT login, scope, name, NOT writes FROM {schema}.grants WHERE login = current_user::text ORDER BY scope, name
"""
_SEVERAL = 3  # agents that a hint names


def read_only_error(login: str, grants: Sequence[Grant], place: str) -> StoreError:
    """The error of every write of a login that may write nothing."""
    if not grants:
        return StoreError(f"{place} is read-only for the login {login}", "ask its owner for a role that may write")
    one = grants[0]
    return StoreError(
        f"{place} is read-only for the login {login}, which was granted {_listed(grants)}",
        f"ask an owner for `mindex admin grant {login} --{one.scope} {one.name}`, without --read-only",
    )


def refusal(login: str, grants: Sequence[Grant], wanted: Iterable[tuple[Scope, str]], place: str) -> StoreError | None:
    """The error for what row-level security has refused; None if the grants are not the reason.

    `wanted` are the agents and collections that the transaction has written, each as its scope and name.
    """
    known = {(one.scope, one.name): one for one in grants}
    refused = [one for one in sorted(wanted) if one not in known or known[one].read_only]
    if not refused:
        return None
    scope, name = refused[0]
    message = f"the login {login} may not write {scope} {name} in {place}"
    ask = f"ask an owner for `mindex admin grant {login} --{scope} {name}`"
    if (scope, name) in known:
        return StoreError(f"{message}: its grant is read-only", f"{ask}, without --read-only")
    agents = [one.name for one in grants if one.scope == "agent" and not one.read_only]
    hint = f"{_use(agents)}; or {ask}" if scope == "agent" and agents else ask
    return StoreError(f"{message}: it was granted {_listed(grants)}", hint)


def _use(agents: Sequence[str]) -> str:
    if len(agents) == 1:
        return f"use --agent {agents[0]} or MINDEX_AGENT={agents[0]}"
    return f"use --agent {' or '.join(agents[:_SEVERAL])}, or set MINDEX_AGENT to it"


def _listed(grants: Sequence[Grant]) -> str:
    return ", ".join(map(str, grants)) or "nothing"
