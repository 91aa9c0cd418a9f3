"""How each provider's server is reached: its address, its key, and what to do when it or a model is missing."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from mindex.provider_table import PROVIDERS, default_url
from mindex.providers.addresses import parse_address
from mindex.providers.base import ProviderSettings
from mindex.providers.server import ServerSpec

if TYPE_CHECKING:
    from mindex.model.reports import Role

# Ends of a path that requests add themselves, and that people copy along with it.
_OPENAI_ENDS = r"/(embeddings|chat/completions)"
_OLLAMA_ENDS = r"/(api|v1)(/(embed|embeddings|chat|generate))?"
# A model's name that becomes part of a path: it must not lead out of it, nor begin a query.
_IN_A_PATH = r"[\w@:-][\w@.:-]*(/[\w@:-][\w@.:-]*)*"


def server_spec(role: Role, settings: ProviderSettings, model: str) -> ServerSpec:
    """Return how the configured provider is asked for this model. What is wrong with the settings is said in it."""
    return _SPECS[settings.provider](role, settings, model)


def _ollama(role: Role, settings: ProviderSettings, model: str) -> ServerSpec:
    """Its own interface, not the OpenAI-compatible one beside it: that one cuts long texts silently."""
    spec = _spec(role, settings, model, _OLLAMA_ENDS)
    return replace(
        spec,
        asks_keyring=not _is_loopback(spec),
        start="is it running? start it with: ollama serve",
        missing=f"run: ollama pull {model}",
    )


def _lm_studio(role: Role, settings: ProviderSettings, model: str) -> ServerSpec:
    spec = _spec(role, settings, model, _OPENAI_ENDS, path="/v1")
    return replace(
        spec,
        asks_keyring=not _is_loopback(spec),
        start="is it running? start its server with: lms server start",
        missing=f"run: lms get {model} and then lms load {model}" if model else "load a model in LM Studio",
    )


def _openai(role: Role, settings: ProviderSettings, model: str) -> ServerSpec:
    """OpenAI itself, or any compatible server at `url`."""
    spec = _spec(role, settings, model, _OPENAI_ENDS, path="/v1")
    return replace(
        spec,
        needs_key=str(spec.address) == default_url("openai"),
        start="is it running? check its address" if settings.url else "check your connection",
    )


def _groq(role: Role, settings: ProviderSettings, model: str) -> ServerSpec:
    spec = _spec(role, settings, model, _OPENAI_ENDS, path="/v1")
    return replace(spec, needs_key=not _is_loopback(spec))


def _azure(role: Role, settings: ProviderSettings, deployment: str) -> ServerSpec:
    """`https://NAME.openai.azure.com/openai/v1`, or, where the URL names an `api-version`, the older interface."""
    spec = _spec(role, settings, deployment, _OPENAI_ENDS)
    if not settings.url:
        return _unusable(
            spec, "azure has no address of its own", f"set {role}.url to https://NAME.openai.azure.com/openai/v1"
        )
    if spec.address is None:
        return spec
    path = spec.address.path
    if not deployment:
        return _unusable(spec, "azure needs the name of a deployment", f"set {role}.model to the deployment's name")
    if not re.fullmatch(_IN_A_PATH, deployment):
        return _unusable(spec, f"{role}.model is no name of a deployment", "set it to the deployment's name")
    if re.search(r"(^|&)api-version=", spec.address.query) and not path.endswith("/openai/v1"):
        root = path.partition("/openai")[0]
        path = f"{root}/openai/deployments/{deployment}"
    elif not path.endswith("/openai/v1"):
        path = f"{path.removesuffix('/openai')}/openai/v1"
    return replace(
        spec,
        address=replace(spec.address, path=path),
        key_header="api-key",
        needs_key=not spec.address.is_loopback,
        start="check the name in the address",
        missing=f"deploy it in the Azure portal, or set {role}.model to a deployment that is there",
    )


def _cloudflare(role: Role, settings: ProviderSettings, model: str) -> ServerSpec:
    """Workers AI. A URL with a path is a gateway's; the model's name follows it."""
    account = os.environ.get("CLOUDFLARE_ACCOUNT_ID", "").strip()
    spec = _spec(role, settings, model, re.escape(f"/{model}"))
    if spec.address is None:
        return spec
    if not re.fullmatch(_IN_A_PATH, model):
        return _unusable(spec, f"{role}.model is no name of a model", "set it to one that Workers AI lists")
    if not spec.address.path:
        if not re.fullmatch(r"[0-9A-Za-z_-]{1,64}", account):
            return _unusable(
                spec,
                "cloudflare needs an account's id",
                "set CLOUDFLARE_ACCOUNT_ID in the environment (the dashboard shows it beside the account's name)",
            )
        spec = replace(spec, address=replace(spec.address, path=f"/client/v4/accounts/{account}/ai/run"))
    return replace(spec, needs_key=not _is_loopback(spec), missing=f"set {role}.model to one that Workers AI lists")


def _rerank_endpoint(role: Role, settings: ProviderSettings, model: str) -> ServerSpec:
    """Any server with a `/v1/rerank`."""
    spec = _spec(role, settings, model, "/rerank", path="/v1")
    if not settings.url:
        return _unusable(
            spec, "the http reranker has no address", "set rerank.url, for example http://127.0.0.1:8080/v1/rerank"
        )
    return replace(spec, asks_keyring=not _is_loopback(spec), start="is it running? check rerank.url")


_SPECS = {
    "ollama": _ollama,
    "lmstudio": _lm_studio,
    "openai": _openai,
    "groq": _groq,
    "azure": _azure,
    "cloudflare": _cloudflare,
    "http": _rerank_endpoint,
}


def _spec(role: Role, settings: ProviderSettings, model: str, ends: str, *, path: str = "") -> ServerSpec:
    """The server at the settings' URL or the default one, without the end of its path that the request adds.

    `path` completes an address that has none.
    """
    row = PROVIDERS[settings.provider]
    spec = ServerSpec(
        role,
        settings.provider,
        model,
        None,
        settings.timeout,
        given_key=settings.api_key,
        key_variables=row.key_variables,
        keyed=settings.keyed,
    )
    url = settings.url or row.url
    if not url:
        return spec
    try:
        address = parse_address(url)
    except ValueError as error:
        return _unusable(spec, f"{role}.url is no address of a server: {error}", f"set it, for example to {row.url}")
    return replace(spec, address=replace(address, path=re.sub(f"{ends}$", "", address.path) or path))


def _unusable(spec: ServerSpec, problem: str, remedy: str) -> ServerSpec:
    return replace(spec, address=None, problem=problem, remedy=remedy)


def _is_loopback(spec: ServerSpec) -> bool:
    return spec.address is not None and spec.address.is_loopback
