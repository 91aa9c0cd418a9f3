"""What can go wrong at the service, as errors with their fix. No message holds the key."""

from __future__ import annotations

import os
from collections.abc import Mapping

from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError, ServiceRequestError

from mindex.errors import StoreBusyError, StoreError
from mindex_azure.address import KEY, Address

_LONGEST_REASON = 300
# The service is throttling, overloaded or restarting: the same request may succeed a moment later.
PASSING = frozenset({408, 429, 500, 502, 503, 504})
# The same for one document of a batch: another writer was faster (409), or the index is being changed (422).
PASSING_FOR_DOCUMENT = frozenset({409, 422, 429, 503})
_ROLES = "'Search Index Data Contributor' and 'Search Service Contributor'"


def to_store_error(error: AzureError, address: Address) -> StoreError:
    """The error that a caller of the store gets. `error` is the last one, after all attempts."""
    place = address.place
    if isinstance(error, ClientAuthenticationError) and error.status_code is None:  # no token could be had
        return StoreError(
            f"no identity is available for {place}", f"set {KEY}, or sign in with `az login` or a managed identity"
        )
    if isinstance(error, HttpResponseError) and error.status_code is not None:
        return _of_status(error.status_code, reason(error.message), place)
    if isinstance(error, ServiceRequestError):
        return StoreError(f"{place} does not answer", "check the name of the service and the network")
    return StoreBusyError(f"{place} broke the connection: {reason(error.message)}", "run the command again")


def _of_status(status: int, why: str, place: str) -> StoreError:
    match status:
        case 401:
            fix = f"set {KEY} to an admin key of this service, or unset it to use your Entra identity"
            return StoreError(f"{place} refuses the key or identity (401)", fix)
        case 403:
            fix = f"use an admin key, or an identity with the roles {_ROLES}; check the service's firewall"
            return StoreError(f"{place} does not allow this (403)", fix)
        case 404:
            return StoreError(f"{place} is not there (404)", "check the names of service and index")
        case 429 | 503:
            fix = "wait a moment, or add replicas to the service; what was written is kept, so run the command again"
            return StoreBusyError(f"{place} is too busy ({status}) and was asked several times", fix)
        case 413 | 507:
            return StoreError(f"{place} has no room for this ({status}): {why}", "remove a collection, or scale up")
        case _:
            return StoreError(f"{place} refuses a request ({status}): {why}", "`mindex doctor` checks the index")


def reason(message: str) -> str:
    """The first line of what the service says, without the key."""
    key = os.environ.get(KEY, "").strip()
    first = next(iter(message.removeprefix("()").strip().splitlines()), "")[:_LONGEST_REASON]  # () is an empty code
    return first.replace(key, "…") if key else first


def refused(address: Address, failures: Mapping[str, tuple[int, str]]) -> StoreError:
    """The error for a batch of which some documents were refused, with the first reason."""
    (status, why) = next(iter(failures.values()))
    if status in PASSING_FOR_DOCUMENT:
        return _of_status(503, "", address.place)
    count = len(failures)
    what = "1 document" if count == 1 else f"{count} documents"
    return StoreError(f"{address.place} refused {what} of a batch ({status}): {reason(why)}", "run the command again")


def lagging(address: Address, seconds: float) -> StoreBusyError:
    """The error for an index that does not show what was written."""
    return StoreBusyError(
        f"{address.place} does not show yet what was written {seconds:.0f} s ago",
        "it is stored: wait a moment, then run the command again",
    )
