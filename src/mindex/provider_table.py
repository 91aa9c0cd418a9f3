"""Every provider of models in one table: its modules, and what must be known of it before one of them is imported.

A provider is added here and in its own module, or as an extension, which needs no row.
Nothing heavy is imported: the settings read this table at start-up.
"""

from collections.abc import Mapping

from mindex.datatypes import Role
from mindex.values import dataclass


@dataclass(frozen=True, slots=True)
class Provider:
    """What is the same for every role and model of one provider."""

    url: str = ""  # the default address of its server
    key_variables: tuple[str, ...] = ()  # environment variables that usually hold its key
    in_process: bool = False  # runs on this machine: it takes time to load, but has no address and does not hang
    has_packages: bool = False  # offers models that are installed as packages, beside those that are files
    package: str = ""  # the extension package that has its modules; '' for the core
    embeds: bool = True  # False: it can be named as an embedder, and says that it is none
    shortens_vectors: bool = False  # can return shorter vectors than its model has
    # Whether the vectors of an export are taken over without asking the model for its canary.
    trusts_imported_vectors: bool = False
    short_names: tuple[tuple[str, str], ...] = ()  # of embedding models: what people call them, and their full names


PROVIDERS: Mapping[str, Provider] = {
    "local": Provider(
        in_process=True,
        has_packages=True,
        trusts_imported_vectors=True,  # a model is opened only if its checksum is right
        short_names=(
            ("minilm", "all-MiniLM-L6-v2"),
            ("bge-small", "bge-small-en-v1.5"),
            ("arctic-s", "snowflake-arctic-embed-s"),
        ),
    ),
    "llama-cpp": Provider(in_process=True, package="mindex_providers"),
    "openai": Provider("https://api.openai.com/v1", ("OPENAI_API_KEY",), shortens_vectors=True),
    "azure": Provider(key_variables=("AZURE_OPENAI_API_KEY",), shortens_vectors=True),
    "ollama": Provider("http://127.0.0.1:11434", ("OLLAMA_API_KEY",), shortens_vectors=True),
    "lmstudio": Provider("http://127.0.0.1:1234/v1"),
    "groq": Provider("https://api.groq.com/openai/v1", ("GROQ_API_KEY",), embeds=False),
    "cloudflare": Provider("https://api.cloudflare.com", ("CLOUDFLARE_API_TOKEN",), package="mindex_providers"),
    "http": Provider(),
}

# The providers of each role, in the order in which messages name them.
BY_ROLE: Mapping[Role, tuple[str, ...]] = {
    "embedding": ("local", "ollama", "lmstudio", "openai", "azure", "groq", "cloudflare", "llama-cpp"),
    "rerank": ("local", "http", "cloudflare", "llama-cpp"),
    "generation": ("openai", "lmstudio", "groq", "azure", "ollama", "llama-cpp"),
}
_PACKAGES: Mapping[Role, str] = {"embedding": "embed", "rerank": "rerank", "generation": "generate"}

# Every name that `embedding.provider` may have; one that has no embedders comes last.
EMBEDDING_PROVIDERS = tuple(sorted(BY_ROLE["embedding"], key=lambda name: not PROVIDERS[name].embeds))
SHORTEN_VECTORS = tuple(name for name, provider in PROVIDERS.items() if provider.shortens_vectors)


def provider_names(role: Role) -> str:
    """Return the providers that can serve a role, as the help of a setting lists them."""
    names = [name for name in BY_ROLE[role] if role != "embedding" or PROVIDERS[name].embeds]
    return f"{', '.join(names)} or none"


def module_of(role: Role, provider: str) -> str:
    """Return the module of the core whose `create(settings)` makes the models of a provider in a role."""
    return f"mindex.providers.{_PACKAGES[role]}.{'local' if PROVIDERS[provider].in_process else 'remote'}"


def default_url(provider: str) -> str:
    """Return the default address of a provider's server; empty for one that has none, or runs on this machine."""
    return PROVIDERS.get(provider, Provider()).url


def trusts_imported_vectors(fingerprint: str) -> bool:
    """Whether vectors of this space may be imported without comparing canaries."""
    return PROVIDERS.get(fingerprint.partition("/")[0], Provider()).trusts_imported_vectors
