"""The environment variables of the programs that dialects replace, as settings of mindex.

They are read when their dialect serves. `MINDEX_…` variables and flags win over them, and they win over files. Those of
Memorizer-MCP are the names of all its releases: some renamed the addresses of the model servers.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from mindex.config import ForeignVariable
from mindex_compat.places import mudpuppy_homes, program_config

# This module must not import the SDK: `mindex serve` reads it for `--help`, and `mindex config --tools` for its table.

SOURCE_PATH, INDEX_NAME = "MEMORYEXCHANGE_SOURCEPATH", "MEMORYEXCHANGE_INDEXNAME"  # options of `serve`, not settings
PROVIDER = "MEMORYEXCHANGE_PROVIDER"


def _reachable(port: int) -> Callable[[str], str]:
    """Return what makes an address of where a server listens: `0.0.0.0`, `gpu` or `gpu:11434` in `OLLAMA_HOST`."""

    def address(listens: str) -> str:
        url = listens.replace("0.0.0.0", "127.0.0.1")
        return url if ":" in url else f"{url}:{port}"

    return address


def _home(*parts: str) -> Callable[[str], str]:
    return lambda folder: str(Path(folder).expanduser().joinpath(*parts))


def model_folder(path: str) -> str:
    """Return the folder of a model: `--model-path` may name the ONNX file in it."""
    return str(Path(path).parent) if path.lower().endswith(".onnx") else path


_MEMORIZER = (
    ForeignVariable("MEMORY_DB_PATH", "db"),
    ForeignVariable("MEMORY_EXPORT_PATH", "export.path"),
    ForeignVariable("EMBEDDING_PROVIDER", "embedding.provider", value=str.lower),
    ForeignVariable("OLLAMA_HOST", "embedding.url", "ollama", _reachable(11434)),
    ForeignVariable("OLLAMA_EMBEDDING_BASE_URL", "embedding.url", "ollama"),
    ForeignVariable("OLLAMA_EMBEDDING_MODEL", "embedding.model", "ollama"),
    ForeignVariable("LMSTUDIO_HOST", "embedding.url", "lmstudio", _reachable(1234)),
    ForeignVariable("LMSTUDIO_EMBEDDING_BASE_URL", "embedding.url", "lmstudio"),
    ForeignVariable("LMSTUDIO_EMBEDDING_MODEL", "embedding.model", "lmstudio"),
    ForeignVariable("EMBEDDING_VECTOR_WEIGHT", "search.weights.minmax"),
    ForeignVariable("AI_PROVIDER", "generation.provider", value=str.lower),
    ForeignVariable("GROQ_MODEL", "generation.model", "groq"),
    ForeignVariable("LMSTUDIO_BASE_URL", "generation.url", "lmstudio"),
    ForeignVariable("LMSTUDIO_MODEL", "generation.model", "lmstudio"),
    ForeignVariable("FACT_EXTRACTION_ENABLED", "generation.extract_facts"),
)
_MUDPUPPY = tuple(
    variable
    for home in ("MUDPUPPY_HOME", "MATRIOSHKA_BRAIN_HOME")
    for variable in (
        ForeignVariable(home, "db", value=_home("data", "memory.db")),
        ForeignVariable(home, "workspace.path", value=_home("workspace")),
    )
)


def mudpuppy_files() -> tuple[ForeignVariable, ...]:
    """Return what the `config.json` of mudpuppy sets, and its workspace if no variable names a folder of it.

    A value that is not valid there is left out.
    """
    found: list[ForeignVariable] = []
    for home in mudpuppy_homes():
        path, memory = str(home / "config.json"), program_config(home).get("memory")
        if (home / "workspace").is_dir():
            found.append(ForeignVariable(str(home), "workspace.path", held=str(home / "workspace")))
        if isinstance(memory, dict):
            found += (ForeignVariable(path, key, held=held) for key, held in _mudpuppy_settings(memory) if held)
    return tuple({one.key: one for one in reversed(found)}.values())


def _mudpuppy_settings(memory: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    weights, provider = memory.get("hybridWeights"), memory.get("embeddingProvider")
    if isinstance(weights, dict):
        vector, keyword = (weights.get(name) for name in ("vector", "keyword"))
        # NaN is neither above nor below 0.
        if isinstance(vector, int | float) and isinstance(keyword, int | float) and min(vector, keyword) >= 0:
            yield "search.weights.weighted", f"{vector / (vector + keyword):.4g}" if vector + keyword else ""
    if isinstance(automatic := memory.get("autoIndex"), bool):
        yield "workspace.auto_index", str(automatic).lower()
    if provider in ("openai", "none"):  # the model of `local` is mindex's own
        yield "embedding.provider", str(provider)
    if provider == "openai" and isinstance(model := memory.get("embeddingModel"), str):
        yield "embedding.model", model


_MEMORY_EXCHANGE = (
    ForeignVariable("MEMORYEXCHANGE_DATABASEPATH", "db"),
    ForeignVariable(PROVIDER, "embedding.provider", value=str.lower),
    ForeignVariable("MEMORYEXCHANGE_MODELPATH", "embedding.model", "local", model_folder),
    ForeignVariable("MEMORYEXCHANGE_AZURE_OPENAI_ENDPOINT", "embedding.url", "azure"),
    ForeignVariable("MEMORYEXCHANGE_AZURE_OPENAI_APIKEY", "embedding.api_key", "azure"),
    ForeignVariable("MEMORYEXCHANGE_AZURE_OPENAI_DEPLOYMENT", "embedding.model", "azure"),
)
# Dialect → the variables that set something here, in order: later ones win.
VARIABLES: Mapping[str, tuple[ForeignVariable, ...]] = {
    "memorizer": _MEMORIZER,
    "memory-mcp": (ForeignVariable("MEMORY_DB_PATH", "db"),),
    "mudpuppy": _MUDPUPPY,
    "memory-exchange": _MEMORY_EXCHANGE,
}
