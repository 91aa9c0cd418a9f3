"""What the providers that are released with mindex are made of: clients of servers, files of models, roles."""

from mindex.foreign_text import quotation
from mindex.providers.addresses import Address, parse_address
from mindex.providers.base import (
    ERRORS,
    MAX_CHARACTERS,
    ProviderSettings,
    clean,
    clean_for_server,
    raise_as,
    usable_cores,
)
from mindex.providers.embed.base import Embedder
from mindex.providers.embed.fluency import SAMPLE, fluency_of_pieces
from mindex.providers.embed.known_models import space
from mindex.providers.embed.onnx_folder import open_pulled
from mindex.providers.embed.openai import vectors_of
from mindex.providers.embed.remote import EmbeddingInterface, RemoteEmbedder, list_in, remote_embedder
from mindex.providers.generate.base import Generator, Prompt
from mindex.providers.generate.chat import Body, ChatGenerator, ChatInterface, chat_body
from mindex.providers.http import Client, Reply, Request, RequestFailed, TimedOut, parse_json
from mindex.providers.hub.presets import PRESETS, Preset, hub_name, is_repo, preset
from mindex.providers.hub.pulled import (
    PulledFile,
    PulledModel,
    lock_file,
    pulled_model,
    remove_unrecorded,
    write_record,
)
from mindex.providers.known_servers import server_spec
from mindex.providers.model_files import at_path, checksum, dataclass_of, read_facts, write_facts
from mindex.providers.onnx.folder import SETTINGS, preferred_weights
from mindex.providers.rerank.base import CHOSEN_WEIGHT, Reranker
from mindex.providers.rerank.http import endpoint
from mindex.providers.rerank.local import pulled_reranker
from mindex.providers.rerank.remote import RemoteReranker, pairs_of
from mindex.providers.server import DEFAULT_LIMITS, Limits, Rejected, Server, ServerSpec, error_text

__all__ = [
    "CHOSEN_WEIGHT", "DEFAULT_LIMITS", "ERRORS", "MAX_CHARACTERS", "PRESETS", "SAMPLE", "SETTINGS", "Address",
    "Body", "ChatGenerator", "ChatInterface", "Client", "Embedder", "EmbeddingInterface", "Generator", "Limits",
    "Preset", "Prompt", "ProviderSettings", "PulledFile", "PulledModel", "Rejected", "RemoteEmbedder",
    "RemoteReranker", "Reply", "Request", "RequestFailed", "Reranker", "Server", "ServerSpec", "TimedOut",
    "at_path", "chat_body", "checksum", "clean", "clean_for_server", "dataclass_of", "endpoint", "error_text",
    "fluency_of_pieces", "hub_name", "is_repo", "list_in", "lock_file", "open_pulled", "pairs_of", "parse_address",
    "parse_json", "preferred_weights", "preset", "pulled_model", "pulled_reranker", "quotation", "raise_as",
    "read_facts", "remote_embedder", "remove_unrecorded", "server_spec", "space", "usable_cores", "vectors_of",
    "write_facts", "write_record",
]  # fmt: skip
