"""MemoryExchange's own flags of `serve`, as settings of mindex, or as a sentence that names the setting instead."""

import os
from collections.abc import Mapping
from pathlib import Path

from mindex.errors import UsageError
from mindex.mcp.dialect import ServeFlags
from mindex_compat.dialects.environment import INDEX_NAME, SOURCE_PATH, model_folder

# This module must not import the SDK: `mindex serve` reads it for `--help`.

FLAGS: Mapping[str, str] = {
    "--provider": "local or azure: whose embeddings",
    "--index-name": "what get_index_status calls the index",
    "--model-path": "the folder of an ONNX model",
    "--azure-openai-endpoint": "with --provider azure: its address",
    "--azure-openai-key": "with --provider azure: its key",
    "--azure-openai-deployment": "with --provider azure: the deployment",
    "--azure-search-endpoint": "not used: see --db azure://SERVICE/INDEX",
    "--azure-search-key": "not used: see AZURE_SEARCH_API_KEY",
}
_AZURE_SETTINGS = {
    "--azure-openai-endpoint": "embedding.url",
    "--azure-openai-key": "embedding.api_key",
    "--azure-openai-deployment": "embedding.model",
}
_SEARCH_FLAGS = {
    "--azure-search-endpoint": "name the index with --db azure://SERVICE/INDEX",
    "--azure-search-key": "put the key into AZURE_SEARCH_API_KEY",
}


def settings_of_flags(flags: Mapping[str, str]) -> tuple[dict[str, object], tuple[str, ...]]:
    """Return the settings that these flags stand for, and notes on those that stand for none.

    Raises UsageError for a provider that MemoryExchange does not have.
    """
    provider = flags.get("--provider", "").lower()
    if provider not in ("", "local", "azure"):
        raise UsageError(
            f"there is no provider '{provider}'", "use local or azure; mindex has more: embedding.provider"
        )
    settings: dict[str, object] = {"embedding.provider": provider} if provider else {}
    notes = [f"{flag} is not used: {instead}" for flag, instead in _SEARCH_FLAGS.items() if flag in flags]
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
    """Return what these flags, and the variables that are no settings, stand for. Raises UsageError."""
    settings, notes = settings_of_flags(flags)
    source = os.environ.get(SOURCE_PATH)
    return ServeFlags(
        settings,
        source=Path(source).expanduser() if source else None,
        index_name=flags.get("--index-name") or os.environ.get(INDEX_NAME, ""),
        notes=notes,
    )
