"""The URL of a database server: it may name a user, a host and a database, but no password."""

from mindex.errors import ConfigError

_HINT = "put it into a service file, ~/.pgpass or PGPASSWORD, and leave it out of the URL"


def refuse_password(url: str) -> None:
    """Raise ConfigError for a URL with a password. The error does not quote it: any part may be the password."""
    from urllib.parse import parse_qsl, urlsplit  # most databases are files

    try:
        parts = urlsplit(url)
        names = [name.casefold() for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
        password = parts.password
    except ValueError as error:
        raise ConfigError("the URL of the database is malformed", "write postgresql://USER@HOST/DATABASE") from error
    # An `@` behind the host is the end of a password with a `/`, `?` or `#` in it.
    if password or any(name.endswith("password") for name in names) or "@" in url.partition("@")[2]:
        raise ConfigError("the URL of the database has a password in it", _HINT)
    if ":" in parts.netloc and "@" not in parts.netloc and "@" in url:
        raise ConfigError("the URL of the database has a password in it", _HINT)
