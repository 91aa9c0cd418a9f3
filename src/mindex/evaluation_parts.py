"""What `mindex eval` is made of, beside Memory: models behind a cache, files of sets, answers as they are shown."""

from mindex.embedding.canary import SENTENCE, is_same
from mindex.entries.conflict_rules import find_difference
from mindex.entries.new_memory import NewMemory
from mindex.files.file_scan import SUFFIXES, scan
from mindex.files.ignore_rules import IGNORE_FILES
from mindex.files.text_decoding import BinaryFile, decode
from mindex.present.answer_view import AnswerView, View, view_answer
from mindex.present.budget import check_budget
from mindex.present.to_json import WHOLE, Json, Rule, add_rules, compact_json, to_json
from mindex.present.token_count import count_tokens
from mindex.private_files import make_private_file, make_private_folder
from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import Embedder, EmbedsWithCanary
from mindex.providers.factory import ConfiguredProviders
from mindex.providers.generate.base import Generator, Prompt
from mindex.providers.rerank.base import Reranker
from mindex.search.query import MAX_LIMIT
from mindex.search_view import limit_of, view_of
from mindex.store.open import open_store, scratch_database
from mindex.store.sqlite.plain_fts5 import PlainFts5
from mindex.times.in_text import find_window

__all__ = [
    "IGNORE_FILES", "MAX_LIMIT", "SENTENCE", "SUFFIXES", "WHOLE", "AnswerView", "BinaryFile", "ConfiguredProviders",
    "Embedder", "EmbedsWithCanary", "Generator", "Json", "NewMemory", "PlainFts5", "Prompt", "ProviderSettings",
    "Reranker", "Rule", "View", "add_rules", "check_budget", "compact_json", "count_tokens", "decode",
    "find_difference", "find_window", "is_same", "limit_of", "make_private_file", "make_private_folder", "open_store",
    "scan", "scratch_database", "to_json", "view_answer", "view_of",
]  # fmt: skip
