"""`Option`: a row of the tables of search options and of record properties, with what each interface makes of it.

The command line and the HTTP API read the rows. `scripts/reference` writes the typed dictionaries, the docstring of
`Memory.search` and the arguments of the MCP tools from them.
"""

from typing import Literal, TypeAlias

from mindex.values import dataclass

# "texts": several texts. "object": a JSON object.
OptionValue: TypeAlias = Literal["text", "texts", "integer", "number", "flag", "object"]


@dataclass(frozen=True, slots=True)
class Option:
    """One option. `name` and `default` are those of the library; the empty name of an interface leaves it out there."""

    name: str
    value: OptionValue
    default: object
    help: str  # a noun phrase or an imperative, without a period
    annotation: str = ""  # its type in Python, if `value` and `default` do not tell; "-": not an option of the library
    scope: bool = False  # a filter, which `list` and `Memory.filters` also take
    flags: str = ""  # of the command line: "-k --kind"
    metavar: str = ""  # there; with one, only the library checks the value
    completed_by: str = ""  # the names that a shell offers: one of `mindex.cli.completion.NAMES`
    parameter: str = ""  # of the HTTP API
    argument: str = ""  # of the MCP tools
    argument_help: str = ""  # its description there: short, since every session of a client reads it
    argument_type: str = ""  # there, if `value` and `default` do not tell; a default may follow: "View = 'full'"
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    longest: int | None = None  # characters

    @property
    def in_library(self) -> bool:
        return self.annotation != "-"
