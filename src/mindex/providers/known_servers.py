"""How each provider's server is reached: its address, its key, and what to do when it or a model is missing."""

import os
import re
from dataclasses import replace

from mindex.datatypes import Role
from mindex.provider_table import PROVIDERS, default_url
from mindex.providers.addresses import Address, parse_address
from mindex.providers.base import ProviderSettings
from mindex.providers.model_files import model_tables
from mindex.providers.server import ServerSpec

# A model's name that becomes part of a path: it must not lead out of it, nor begin a query.
_IN_A_PATH = r"[\w@:-][\w@.:-]*(/[\w@:-][\w@.:-]*)*"


class _Unusable(Exception):
    """What is wrong with the settings, and what to do about it."""


def server_spec(role: Role, settings: ProviderSettings, model: str) -> ServerSpec:
    """Return how the configured provider is asked for this model. What is wrong with the settings is said in it."""
    servers = model_tables()["server"]
    row = servers.get(settings.provider, servers["openai"])
    address, problem, remedy = None, "", ""
    try:
        address = _address(role, settings, model, row["ends"], row.get("path", ""))
    except _Unusable as error:
        problem, remedy = error.args
    is_remote = address is not None and not address.is_loopback
    wants_key = row.get("needs_key", False)
    needs_key, start = wants_key and is_remote, row.get("start", "check your connection")
    if settings.provider == "openai":  # with a URL, another server that is compatible with it
        needs_key = str(address) == default_url("openai")
        start = "is it running? check its address" if settings.url else start
    missing = row.get("missing" if model else "missing_unnamed", "").format(model=model, role=role)
    return ServerSpec(
        role,
        settings.provider,
        model,
        address,
        settings.timeout,
        problem,
        remedy,
        start,
        missing,
        given_key=settings.api_key,
        key_variables=PROVIDERS[settings.provider].key_variables,
        key_header=row.get("key_header", ""),
        identity=row.get("identity", ""),
        needs_key=needs_key,
        asks_keyring=wants_key or is_remote,
        keyed=settings.keyed,
    )


def _address(role: Role, settings: ProviderSettings, model: str, ends: str, path: str) -> Address:
    """Return the server's base address: the settings' URL or the default one, without what the request adds to it."""
    if settings.provider == "azure" and not settings.url:
        remedy = f"set {role}.url to https://NAME.openai.azure.com/openai/v1"
        raise _Unusable("azure has no default URL", remedy)
    if settings.provider == "http" and not settings.url:
        remedy = "set rerank.url, for example http://127.0.0.1:8080/v1/rerank"
        raise _Unusable("the http reranker has no address", remedy)
    default = PROVIDERS[settings.provider].url
    try:
        address = parse_address(settings.url or default)
    except ValueError as error:
        remedy = f"set it, for example to {default}"
        raise _Unusable(f"{role}.url is not a server URL: {error}", remedy) from None
    ends = ends.replace("{model}", re.escape(model))
    path = re.sub(f"{ends}$", "", address.path) or path
    if settings.provider == "azure":
        path = _azure_path(role, replace(address, path=path), model)
    elif settings.provider == "cloudflare":
        path = _cloudflare_path(role, path, model)
    return replace(address, path=path)


def _azure_path(role: Role, address: Address, deployment: str) -> str:
    """`/openai/v1`, or, where the URL names an `api-version`, the path of the older interface."""
    if not deployment:
        raise _Unusable("azure needs the name of a deployment", f"set {role}.model to the deployment's name")
    if not re.fullmatch(_IN_A_PATH, deployment):
        raise _Unusable(f"{role}.model is not a deployment name", "set it to the deployment's name")
    if address.path.endswith("/openai/v1"):
        return address.path
    if re.search(r"(^|&)api-version=", address.query):
        return f"{address.path.partition('/openai')[0]}/openai/deployments/{deployment}"
    return f"{address.path.removesuffix('/openai')}/openai/v1"


def _cloudflare_path(role: Role, path: str, model: str) -> str:
    """The path of Workers AI. A URL with a path is a gateway's; the model's name follows it."""
    if not re.fullmatch(_IN_A_PATH, model):
        raise _Unusable(f"{role}.model is not a model name", "set it to one that Workers AI lists")
    account = os.environ.get("CLOUDFLARE_ACCOUNT_ID", "").strip()
    if not path and not re.fullmatch(r"[0-9A-Za-z_-]{1,64}", account):
        remedy = "set CLOUDFLARE_ACCOUNT_ID in the environment (the dashboard shows it beside the account's name)"
        raise _Unusable("cloudflare needs an account's id", remedy)
    return path or f"/client/v4/accounts/{account}/ai/run"
