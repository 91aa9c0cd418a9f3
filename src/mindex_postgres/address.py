"""The URL of a PostgreSQL database: which server, which schema, and no password."""

from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from mindex.errors import ConfigError
from mindex.store.engine_parts import refuse_password
from mindex.values import dataclass

DEFAULT_SCHEMA = "mindex"


@dataclass(frozen=True, slots=True)
class Address:
    """What libpq connects to, the schema that holds the memory, and how both are shown."""

    url: str  # without the schema, which libpq does not know
    schema: str

    @property
    def database(self) -> str:
        """The name of the database; '' where the URL leaves it to libpq, or to a service file."""
        parts = urlsplit(self.url)
        return dict(parse_qsl(parts.query)).get("dbname") or unquote(parts.path.lstrip("/"))

    @property
    def shown(self) -> str:
        if self.schema == DEFAULT_SCHEMA:
            return self.url
        return f"{self.url}{'&' if '?' in self.url else '?'}schema={quote(self.schema)}"


def parse_address(url: str) -> Address:
    """Split a URL such as `postgresql://ada@db.example/team?schema=memory`.

    Raises ConfigError for one with a password.
    """
    refuse_password(url)
    parts = urlsplit(url)
    values = parse_qsl(parts.query, keep_blank_values=True)
    schema = dict(values).get("schema") or DEFAULT_SCHEMA
    if "\0" in schema or len(schema.encode()) > 63:
        raise ConfigError("the schema in the database URL is not a valid name", "use at most 63 letters")
    query = urlencode([(name, value) for name, value in values if name != "schema"], safe="/", quote_via=quote)
    user = quote(parts.username or "", safe="%")
    place = parts.netloc.rpartition("@")[2]
    login = f"{user}@{place}" if user else place
    return Address(f"postgresql://{login}{parts.path}" + (f"?{query}" if query else ""), schema)
