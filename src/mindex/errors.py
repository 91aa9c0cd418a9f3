"""What can go wrong, in a handful of kinds. Every error says what happened and what to do next."""

from collections.abc import Sequence


class MindexError(Exception):
    """Base of all errors of mindex: `message` says what happened, `hint` what to do next."""

    kind = "error"
    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class UsageError(MindexError):
    """The call itself is wrong: an empty query, a limit of 0, an option that does not exist."""

    kind = "usage"
    exit_code = 2


class NotFoundError(MindexError):
    """The requested record, file, folder or collection does not exist."""

    kind = "not_found"


class AmbiguousIdError(MindexError):
    """More than one record starts with this short id."""

    kind = "ambiguous"


class ConflictError(MindexError):
    """The request conflicts with existing data."""

    kind = "conflict"


class ForbiddenPathError(MindexError):
    """The path is outside the folders that mindex may read."""

    kind = "forbidden"


class AuthenticationError(MindexError):
    """The access token is missing or invalid."""

    kind = "authentication"


class AccessDeniedError(MindexError):
    """The access token does not permit this."""

    kind = "denied"


def read_only_token() -> AccessDeniedError:
    """The error of every write with a token that may only read."""
    return AccessDeniedError(
        "this access token is read-only; nothing was changed", "ask the server's owner for a token that may write"
    )


def only_collections(collections: Sequence[str]) -> AccessDeniedError:
    """The error for any other folder, whether it exists or not, with a token for these collections."""
    return AccessDeniedError(
        f"this token may index {', '.join(collections)} only", "ask the server's owner to index other folders"
    )


class CollectionError(MindexError):
    """The folder cannot become a collection: it overlaps one, or its name is in use."""

    kind = "collection"


class ConfigError(MindexError):
    """A setting is unknown, malformed, or not allowed in this file."""

    kind = "config"


class StoreError(MindexError):
    """The database cannot be opened, read or written."""

    kind = "store"


class DamagedRowError(StoreError):
    """A row of the database differs from its checksum."""


class UnreachableError(StoreError):
    """The server of a database does not answer, or refuses the login."""


class LostConnectionError(StoreError):
    """The connection to the server of a database was lost; nothing of an unfinished change is stored."""


class LostTransactionError(LostConnectionError):
    """A transaction of several writes was lost as a whole: it can be run again."""


class UnsupportedError(StoreError):
    """The database engine does not support this operation."""

    kind = "unsupported"


class StoreBusyError(StoreError):
    """Another process held the write lock until the deadline."""

    kind = "busy"


class NoSpaceError(StoreError):
    """The disk of the database has no space left for this write."""


class SchemaError(StoreError):
    """The database belongs to a newer mindex, or to another program."""

    kind = "schema"


class ForeignDatabaseError(SchemaError):
    """The file is another program's database."""


class ProviderError(MindexError):
    """A model cannot be used: its server is down, its key is refused, or its reply is invalid."""

    kind = "provider"


class EmbeddingError(ProviderError):
    """The embedding model is missing, broken, or has another embedding space than the store."""

    kind = "embedding"


class SpaceChangedError(EmbeddingError):
    """Another process changed the embedding model during the request; retry it."""


class RerankError(ProviderError):
    """The reranker is missing, broken, too slow, or its reply is invalid."""

    kind = "rerank"


class GenerationError(ProviderError):
    """The language model is missing, broken, too slow, or its reply does not have the requested form."""

    kind = "generation"


class SecretError(MindexError):
    """The text contains a secret, in strict mode. The message names the kinds, never the secret."""

    kind = "secret"


def token_name_taken(name: str) -> ConflictError:
    return ConflictError(
        f"there is a token '{name}' already", f"choose another name, or revoke it with `mindex token revoke {name}`"
    )
