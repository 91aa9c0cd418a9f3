"""MemoryExchange's own flags of `serve`, as settings of mindex, or as a sentence that names the setting instead."""

import os
from collections.abc import Mapping
from pathlib import Path

from mindex.errors import UsageError
from mindex.mcp.dialect import ServeFlags
from mindex_compat.dialects.environment import INDEX_NAME, PROVIDER, SOURCE_PATH, model_folder

# This module must not import the SDK: `mindex serve` reads it for `--help`.

FLAGS: Mapping[str, str] = {
    "--provider": "local or azure: whose embeddings",
    "--index-name": "name of the index; of an Azure index, with -mindex added",
    "--model-path": "the folder of an ONNX model",
    "--azure-openai-endpoint": "with --provider azure: its address",
    "--azure-openai-key": "with --provider azure: its key",
    "--azure-openai-deployment": "with --provider azure: the deployment",
    "--azure-search-endpoint": "address of the Azure AI Search service that has the index",
    "--azure-search-key": "its admin key",
}
_AZURE_SETTINGS = {
    "--azure-openai-endpoint": "embedding.url",
    "--azure-openai-key": "embedding.api_key",
    "--azure-openai-deployment": "embedding.model",
}
_SEARCH_ENDPOINT, _SEARCH_KEY = "--azure-search-endpoint", "--azure-search-key"
# Flag → the variable that the Azure store reads, and that of MemoryExchange.
_SEARCH_VARIABLES = {
    _SEARCH_ENDPOINT: ("AZURE_SEARCH_ENDPOINT", "MEMORYEXCHANGE_AZURE_SEARCH_ENDPOINT"),
    _SEARCH_KEY: ("AZURE_SEARCH_API_KEY", "MEMORYEXCHANGE_AZURE_SEARCH_APIKEY"),
}
DEFAULT_INDEX = "memory-exchange"


def settings_of_flags(flags: Mapping[str, str]) -> tuple[dict[str, object], tuple[str, ...]]:
    """Return the settings that these flags set, and notes on flags that set none.

    Raises UsageError for a provider that MemoryExchange does not have.
    """
    provider = flags.get("--provider", "").lower()
    if provider not in ("", "local", "azure"):
        raise UsageError(
            f"there is no provider '{provider}'", "use local or azure; mindex has more: embedding.provider"
        )
    settings: dict[str, object] = {"embedding.provider": provider} if provider else {}
    notes = [
        f"every user of this machine can see the key in {flag}; put it into {variable} instead"
        for flag, variable in (
            (_SEARCH_KEY, _SEARCH_VARIABLES[_SEARCH_KEY][0]),
            ("--azure-openai-key", "AZURE_OPENAI_API_KEY"),
        )
        if flag in flags
    ]
    for flag, key in _AZURE_SETTINGS.items():
        if flag in flags and provider == "azure":
            settings[key] = flags[flag]
        elif flag in flags:
            notes.append(f"{flag} is not used without --provider azure; it sets {key}")
    if (path := flags.get("--model-path")) and provider == "azure":
        notes.append("--model-path is not used with --provider azure; it sets embedding.model")
    elif path:
        settings |= {"embedding.provider": "local", "embedding.model": model_folder(path)}
    return settings, tuple(notes)


def read_flags(flags: Mapping[str, str]) -> ServeFlags:
    """Return the meaning of these flags, and of variables that are not settings. Raises UsageError.

    The address and the key of an Azure service are put where the store reads them, into the environment.
    """
    settings, notes = settings_of_flags(flags)
    source = os.environ.get(SOURCE_PATH)
    index_name = flags.get("--index-name") or os.environ.get(INDEX_NAME, "")
    provider = (flags.get("--provider") or os.environ.get(PROVIDER, "")).lower()
    # A variable alone selects no service: without a provider, MemoryExchange is local.
    variables = {flag: os.environ.get(theirs, "") for flag, (_, theirs) in _SEARCH_VARIABLES.items()}
    search = {"local": {}, "azure": {**variables, **flags}}.get(provider, flags)
    for flag, (variable, _) in _SEARCH_VARIABLES.items():
        if search.get(flag):
            os.environ[variable] = search[flag]
        elif flag in flags:
            notes = (*notes, f"{flag} is not used with --provider local")
    return ServeFlags(
        settings,
        # An index of this name may be one of MemoryExchange's own.
        db=f"azure:///{index_name or DEFAULT_INDEX}-mindex" if search.get(_SEARCH_ENDPOINT) else "",
        source=Path(source).expanduser() if source else None,
        index_name=index_name,
        notes=notes,
    )
