"""The URL of a database server: it may name a user, a host and a database, but no password."""

from mindex.errors import ConfigError

_HINT = "put it into a service file, ~/.pgpass or PGPASSWORD, and leave it out of the URL"
_AZURE_HINT = "put the key into AZURE_SEARCH_API_KEY, and leave it out of the URL"


# Those of libpq whose value is a secret.
_SECRET_PARAMETERS = ("password", "secret", "client_key", "server_key")


def refuse_password(url: str) -> None:
    """Raise ConfigError for a URL with a password. The error does not quote it: any part may be the password."""
    from urllib.parse import parse_qsl, urlsplit  # most databases are files

    hint = _AZURE_HINT if url.startswith("azure://") else _HINT
    try:
        parts = urlsplit(url)
        names = [name.casefold() for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
        password = parts.password
    except ValueError as error:
        raise ConfigError("the URL of the database is malformed", "write postgresql://USER@HOST/DATABASE") from error
    if url.startswith("azure://") and (parts.query or parts.fragment):
        raise ConfigError("the URL of an index has no parameters, and this one may be the key", hint)
    # An `@` behind the host is the end of a password with a `/`, `?` or `#` in it.
    if password or any(name.endswith(_SECRET_PARAMETERS) for name in names) or "@" in url.partition("@")[2]:
        raise ConfigError("the URL of the database has a password in it", hint)
    if ":" in parts.netloc and "@" not in parts.netloc and "@" in url:
        raise ConfigError("the URL of the database has a password in it", hint)
