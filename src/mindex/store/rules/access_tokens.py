"""The rule of tokens that every engine follows: a name is given once."""

from mindex.errors import ConflictError


def name_taken(name: str) -> ConflictError:
    return ConflictError(
        f"there is a token '{name}' already", f"choose another name, or take it back with `mindex token revoke {name}`"
    )
