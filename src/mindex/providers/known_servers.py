"""How each provider's server is reached: its address, its key, and what to do when it or a model is missing."""

import os
import re
from dataclasses import replace

from mindex.datatypes import Role
from mindex.provider_table import PROVIDERS, default_url
from mindex.providers.addresses import Address, parse_address
from mindex.providers.base import ProviderSettings
from mindex.providers.server import ServerSpec
from mindex.values import dataclass

_OPENAI_ENDS = r"/(embeddings|chat/completions)"
# A model's name that becomes part of a path: it must not lead out of it, nor begin a query.
_IN_A_PATH = r"[\w@:-][\w@.:-]*(/[\w@:-][\w@.:-]*)*"


@dataclass(frozen=True, slots=True)
class _Interface:
    """What the servers of one provider have in common. Hints may name {model} and {role}."""

    ends: str  # of a path: requests add them themselves, and people copy them along with it
    path: str = ""  # completes an address that has none
    needs_key: bool = False  # away from this machine
    key_header: str = ""
    identity: str = ""  # see `ServerSpec`
    start: str = "check your connection"
    missing: str = ""
    missing_unnamed: str = ""  # instead of `missing`, where the settings name no model


_INTERFACES = {
    # Its own interface, not the OpenAI-compatible one beside it: that one cuts long texts silently.
    "ollama": _Interface(
        r"/(api|v1)(/(embed|embeddings|chat|generate))?",
        start="is it running? start it with: ollama serve",
        missing="run: ollama pull {model}",
    ),
    "lmstudio": _Interface(
        _OPENAI_ENDS,
        "/v1",
        start="is it running? start its server with: lms server start",
        missing="run: lms get {model} and then lms load {model}",
        missing_unnamed="load a model in LM Studio",
    ),
    "azure": _Interface(
        _OPENAI_ENDS,
        needs_key=True,
        key_header="api-key",
        identity="https://cognitiveservices.azure.com/.default",
        start="check the name in the address",
        missing="deploy it in the Azure portal, or set {role}.model to a deployment that is there",
    ),
    "cloudflare": _Interface("/{model}", needs_key=True, missing="set {role}.model to one that Workers AI lists"),
    # Any server with a `/v1/rerank`.
    "http": _Interface("/rerank", "/v1", start="is it running? check rerank.url"),
}
# OpenAI itself, any compatible server at `url`, and every provider whose row in the table is all that is known of it.
_COMPATIBLE_WITH_OPENAI = _Interface(_OPENAI_ENDS, "/v1", needs_key=True)


class _Unusable(Exception):
    """What is wrong with the settings, and what to do about it."""


def server_spec(role: Role, settings: ProviderSettings, model: str) -> ServerSpec:
    """Return how the configured provider is asked for this model. What is wrong with the settings is said in it."""
    interface = _INTERFACES.get(settings.provider, _COMPATIBLE_WITH_OPENAI)
    spec = ServerSpec(
        role,
        settings.provider,
        model,
        None,
        settings.timeout,
        start=interface.start,
        missing=(interface.missing if model else interface.missing_unnamed).format(model=model, role=role),
        given_key=settings.api_key,
        key_variables=PROVIDERS[settings.provider].key_variables,
        key_header=interface.key_header,
        identity=interface.identity,
        keyed=settings.keyed,
    )
    try:
        address = _address(role, settings, model)
    except _Unusable as error:
        problem, remedy = error.args
        return replace(spec, problem=problem, remedy=remedy)
    is_remote = not address.is_loopback
    asks_keyring, needs_key = interface.needs_key or is_remote, interface.needs_key and is_remote
    if settings.provider == "openai":
        needs_key = str(address) == default_url("openai")
        spec = replace(spec, start="is it running? check its address" if settings.url else spec.start)
    return replace(spec, address=address, asks_keyring=asks_keyring, needs_key=needs_key)


def _address(role: Role, settings: ProviderSettings, model: str) -> Address:
    """Return the server's base address: the settings' URL or the default one, without what the request adds to it."""
    if settings.provider == "azure" and not settings.url:
        remedy = f"set {role}.url to https://NAME.openai.azure.com/openai/v1"
        raise _Unusable("azure has no default URL", remedy)
    if settings.provider == "http" and not settings.url:
        remedy = "set rerank.url, for example http://127.0.0.1:8080/v1/rerank"
        raise _Unusable("the http reranker has no address", remedy)
    default = PROVIDERS[settings.provider].url
    interface = _INTERFACES.get(settings.provider, _COMPATIBLE_WITH_OPENAI)
    try:
        address = parse_address(settings.url or default)
    except ValueError as error:
        remedy = f"set it, for example to {default}"
        raise _Unusable(f"{role}.url is not a server URL: {error}", remedy) from None
    ends = interface.ends.replace("{model}", re.escape(model))
    path = re.sub(f"{ends}$", "", address.path) or interface.path
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
