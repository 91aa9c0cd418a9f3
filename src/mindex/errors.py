"""What can go wrong, in a handful of kinds. Every error says what happened and what to do next."""

from collections.abc import Sequence


class MindexError(Exception):
    """Base of everything mindex raises on purpose: `message` says what happened, `hint` the next step."""

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
    """A record, file, folder or collection that was asked for is not there."""

    kind = "not_found"


class AmbiguousIdError(MindexError):
    """A short id that more than one record starts with."""

    kind = "ambiguous"


class ConflictError(MindexError):
    """The request conflicts with existing data."""

    kind = "conflict"


class ForbiddenPathError(MindexError):
    """A path that leaves the folders mindex may read."""

    kind = "forbidden"


class AuthenticationError(MindexError):
    """A request without a token, or with one that does not count."""

    kind = "authentication"


class AccessDeniedError(MindexError):
    """The token of a request does not give the right to do this."""

    kind = "denied"


def read_only_token() -> AccessDeniedError:
    """The error of every write with a token that may only read."""
    return AccessDeniedError(
        "this token may only read, so nothing was changed", "ask the server's owner for one that may write"
    )


def only_collections(collections: Sequence[str]) -> AccessDeniedError:
    """The error for any other folder, whether it exists or not, with a token for these collections."""
    return AccessDeniedError(
        f"this token may index {', '.join(collections)} only", "ask the server's owner to index other folders"
    )


class CollectionError(MindexError):
    """A folder that cannot become a collection: it overlaps one, or its name is taken."""

    kind = "collection"


class ConfigError(MindexError):
    """A setting is unknown, malformed, or not allowed in this file."""

    kind = "config"


class StoreError(MindexError):
    """The database cannot be opened, read or written."""

    kind = "store"


class DamagedRowError(StoreError):
    """A row of the database is not as it was stored."""


class UnreachableError(StoreError):
    """The server of a database does not answer, or refuses the login."""


class LostConnectionError(StoreError):
    """The connection to the server of a database was lost; nothing of an unfinished change is stored."""


class LostTransactionError(LostConnectionError):
    """A transaction of several writes was lost as a whole: it can be run again."""


class UnsupportedError(StoreError):
    """The engine behind a store does not serve this part of the interface."""

    kind = "unsupported"


class StoreBusyError(StoreError):
    """Another process held the write lock for longer than we were willing to wait."""

    kind = "busy"


class NoSpaceError(StoreError):
    """The disk of the database has no space left for what is to be stored."""


class SchemaError(StoreError):
    """The database belongs to a newer mindex, or to another program."""

    kind = "schema"


class ForeignDatabaseError(SchemaError):
    """The file is another program's database."""


class ProviderError(MindexError):
    """A model cannot be used: its server is down, its key is refused, or its reply is invalid."""

    kind = "provider"


class EmbeddingError(ProviderError):
    """The embedding model is missing, broken, or speaks another vector space than the store."""

    kind = "embedding"


class SpaceChangedError(EmbeddingError):
    """Another process changed the embedding model during the request; retry it."""


class RerankError(ProviderError):
    """The reranker is missing, broken, too slow, or its reply is invalid."""

    kind = "rerank"


class GenerationError(ProviderError):
    """The generator is missing, broken, too slow, or did not answer in the form that was asked for."""

    kind = "generation"


class SecretError(MindexError):
    """A text that holds a secret, in strict mode. It names the kinds, never the secret."""

    kind = "secret"


def token_name_taken(name: str) -> ConflictError:
    return ConflictError(
        f"there is a token '{name}' already", f"choose another name, or take it back with `mindex token revoke {name}`"
    )
