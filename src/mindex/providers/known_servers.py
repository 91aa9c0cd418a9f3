"""Which servers there are: where each lives by default, how its address is written, where its key is looked for."""

from __future__ import annotations

import os
import re
from dataclasses import replace

from mindex.providers.addresses import Address, parse_address
from mindex.providers.base import ProviderSettings
from mindex.providers.server import Role, ServerSpec

_OPENAI = "https://api.openai.com/v1"
_GROQ = "https://api.groq.com/openai/v1"
_LM_STUDIO = "http://127.0.0.1:1234/v1"
_OLLAMA = "http://127.0.0.1:11434"
_CLOUDFLARE = "https://api.cloudflare.com"
# Where each is asked when nobody names an address.
_CUSTOMARY = {"openai": _OPENAI, "groq": _GROQ, "lmstudio": _LM_STUDIO, "ollama": _OLLAMA, "cloudflare": _CLOUDFLARE}
# A model's name that becomes part of a path: it must not lead out of it, nor begin a query.
_IN_A_PATH = r"[\w@:-][\w@.:-]*(/[\w@:-][\w@.:-]*)*"


def customary_url(provider: str) -> str:
    """Where a provider is asked when nobody names an address; nothing for one that has none, or runs in here."""
    return _CUSTOMARY.get(provider, "")


def ollama(role: Role, settings: ProviderSettings, model: str) -> ServerSpec:
    """Its own interface, not the OpenAI-compatible one beside it: that one cuts long texts without a word."""
    service = _service(role, settings, model, _OLLAMA, ends=r"/(api|v1)(/(embed|embeddings|chat|generate))?")
    return replace(
        service,
        key_variables=("OLLAMA_API_KEY",),
        asks_keyring=not _is_loopback(service),
        start="is it running? start it with: ollama serve",
        missing=f"run: ollama pull {model}",
    )


def lm_studio(role: Role, settings: ProviderSettings, model: str) -> ServerSpec:
    service = _openai_shaped(role, settings, model, _LM_STUDIO)
    return replace(
        service,
        asks_keyring=not _is_loopback(service),
        start="is it running? start its server with: lms server start",
        missing=f"run: lms get {model} and then lms load {model}" if model else "load a model in LM Studio",
    )


def openai(role: Role, settings: ProviderSettings, model: str) -> ServerSpec:
    """OpenAI itself, or whoever speaks as it does at `url`."""
    service = _openai_shaped(role, settings, model, _OPENAI)
    return replace(
        service,
        key_variables=("OPENAI_API_KEY",),
        needs_key=str(service.address) == _OPENAI,
        start="is it running? check its address" if settings.url else "check your connection",
    )


def groq(role: Role, settings: ProviderSettings, model: str) -> ServerSpec:
    service = _openai_shaped(role, settings, model, _GROQ)
    return replace(service, key_variables=("GROQ_API_KEY",), needs_key=not _is_loopback(service))


def azure(role: Role, settings: ProviderSettings, deployment: str) -> ServerSpec:
    """`https://NAME.openai.azure.com/openai/v1`, or, where the URL names an `api-version`, the older way."""
    service = _service(role, settings, deployment, "", ends=r"/(embeddings|chat/completions)")
    if not settings.url:
        return _unusable(
            service, "azure has no address of its own", f"set {role}.url to https://NAME.openai.azure.com/openai/v1"
        )
    if service.address is None:
        return service
    path = service.address.path
    if not deployment:
        return _unusable(service, "azure needs the name of a deployment", f"set {role}.model to the deployment's name")
    if not re.fullmatch(_IN_A_PATH, deployment):
        return _unusable(service, f"{role}.model is no name of a deployment", "set it to the deployment's name")
    if re.search(r"(^|&)api-version=", service.address.query) and not path.endswith("/openai/v1"):
        root = path.partition("/openai")[0]
        path = f"{root}/openai/deployments/{deployment}"
    elif not path.endswith("/openai/v1"):
        path = f"{path.removesuffix('/openai')}/openai/v1"
    return replace(
        service,
        address=replace(service.address, path=path),
        key_variables=("AZURE_OPENAI_API_KEY",),
        key_header="api-key",
        needs_key=not service.address.is_loopback,
        start="check the name in the address",
        missing=f"deploy it in the Azure portal, or set {role}.model to a deployment that is there",
    )


def cloudflare(role: Role, settings: ProviderSettings, model: str) -> ServerSpec:
    """Workers AI. A URL with a path is a gateway's; the model's name follows it."""
    service = _service(role, settings, model, _CLOUDFLARE, ends=re.escape(f"/{model}"))
    if service.address is None:
        return service
    if not re.fullmatch(_IN_A_PATH, model):
        return _unusable(service, f"{role}.model is no name of a model", "set it to one that Workers AI lists")
    account = os.environ.get("CLOUDFLARE_ACCOUNT_ID", "").strip()
    if not service.address.path:
        if not re.fullmatch(r"[0-9A-Za-z_-]{1,64}", account):
            return _unusable(
                service,
                "cloudflare needs an account's id",
                "set CLOUDFLARE_ACCOUNT_ID in the environment (the dashboard shows it beside the account's name)",
            )
        service = replace(service, address=replace(service.address, path=f"/client/v4/accounts/{account}/ai/run"))
    return replace(
        service,
        key_variables=("CLOUDFLARE_API_TOKEN",),
        needs_key=not _is_loopback(service),
        missing=f"set {role}.model to one that Workers AI lists",
    )


def rerank_endpoint(settings: ProviderSettings) -> ServerSpec:
    """Any server with a `/v1/rerank`."""
    service = _service("rerank", settings, settings.model, "", ends="/rerank")
    if not settings.url:
        return _unusable(
            service, "the http reranker has no address", "set rerank.url, for example http://127.0.0.1:8080/v1/rerank"
        )
    if service.address is not None and not service.address.path:
        service = replace(service, address=replace(service.address, path="/v1"))
    return replace(service, asks_keyring=not _is_loopback(service), start="is it running? check rerank.url")


def _openai_shaped(role: Role, settings: ProviderSettings, model: str, default: str) -> ServerSpec:
    service = _service(role, settings, model, default, ends=r"/(embeddings|chat/completions)")
    if service.address is not None and not service.address.path:
        service = replace(service, address=replace(service.address, path="/v1"))
    return service


def _service(role: Role, settings: ProviderSettings, model: str, default: str, *, ends: str) -> ServerSpec:
    """The service at the settings' URL, or at its customary one; a path's end that the request adds is taken off."""
    service = ServerSpec(
        role, settings.provider, model, None, settings.timeout, given_key=settings.api_key, keyed=settings.keyed
    )
    url = settings.url or default
    if not url:
        return service
    try:
        address = parse_address(url)
    except ValueError as error:
        return _unusable(service, f"{role}.url is no address of a server: {error}", f"set it, for example to {default}")
    return replace(
        service, address=Address(address.origin, re.sub(f"{ends}$", "", address.path), address.query, address.login)
    )


def _unusable(service: ServerSpec, problem: str, remedy: str) -> ServerSpec:
    return replace(service, address=None, problem=problem, remedy=remedy)


def _is_loopback(service: ServerSpec) -> bool:
    return service.address is not None and service.address.is_loopback
