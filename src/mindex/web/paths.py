"""Addresses of pages."""

from urllib.parse import quote, urlencode


def record_path(id_: str) -> str:
    return f"/record/{quote(id_, safe='')}"


def file_path(collection: str, path: str, first: int | None = None, last: int | None = None, query: str = "") -> str:
    """The page of an indexed file; with lines, at the first of them."""
    address = f"/files/{quote(collection, safe='')}/{quote(path)}"
    values = {"lines": f"{first}-{last or first}"} if first else {}
    if query:
        values["q"] = query
    if values:
        address += f"?{urlencode(values)}"
    return f"{address}#hit" if first else address


def safe_next(path: str) -> str:
    """A path of this site to go to after a login; `/` for anything else."""
    is_own = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_own and not path.startswith(("/login", "/logout", "/open/")) else "/"
