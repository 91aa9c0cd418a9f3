"""What an engine spells differently in the SQL that the engines share.

A shared query has `?` for each parameter, and a `$word` for each part that an engine spells in its own way: `r.$key`
is the column by which other tables name a record, `$session(r)` an expression over the row `r`. Every engine has the
same words. A shared query contains neither `%` nor a literal `?`.

- `key`: the column of `records` and `documents` that other tables name
- `record`: the key of the record whose id is a parameter
- `place`: the columns of `records`, whose alias is the argument, by which `$chunk` finds a row again
- `order`: the column of `records` and `documents` whose order is that in which rows were added
- `document`: the condition that joins a record `r` with its document `d`
- `collection`: the condition that joins a document `d` with its collection `c`
- `chunk`: the condition that names a row of a chunk; takes the values of `$place`
- `document_key`: the columns by which a document is unique
- `collection_key`: the value of `documents.collection` for the collection whose name is a parameter
- `differs`: the operator that says that two rows of values are not the same
- `beside`: the condition that an entry, the alias, has the agent of the entry `a`
- `unchanged`: the condition that a record has not changed since the time that a parameter says
- `glob`: the condition that a text matches a pattern with wildcards; takes `Dialect.glob` of it
- `ending`: the condition that the text in the argument ends so; takes the ending twice
- `vector`: the condition that joins a record `r` with its vectors, whose alias is the argument
- `first`: the condition that leaves one row of the vectors of each record, whose alias is the argument
- `session`: the session of a turn, whose alias is the argument
- `property`: the value of the field of `records.fields` that is named by a parameter
- `among`: the condition that an expression is one of many values; see `Statements.among`
- `checksum`: the checksum behind the columns of a row, if the engine has one; see `Statements.sound`
- `seal`: the mark for that checksum, behind those of the other values of a new row; see `Statements.sealed`
- `each`: the texts of a list, as a table `t` with the column `value`
- `links`: the links `l` of records, whose `$source` is the id of the record that a link begins at
- `first_summary`: the summary of the first turn of the session of a turn `r`, in a query that is grouped by session
- `known_as`: the condition that a record has the foreign id of `wanted`; see `SqlRetrieval.find_by_foreign_id`
- `contains`: the condition that a text contains a pattern, the case of ASCII letters aside; takes a parameter
- `by_code_point`: the collation by which texts are ordered by code point
- `unindexed`: the column in the argument, so that no index is used for it
- `greatest`: the function that returns the greater of two values
- `place_of`: the function that returns the place of its second text in the first, 0 if it is not there
- `day`: the number of the day since 1970 of the time in the argument
- `cache_key`: the columns of the primary key of `cache`
- `spaces`: the table of embedding spaces
- `space`: the column of `vectors` that names a space
- `description`: the column of the table of spaces that says how the embedder is made again
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from mindex.values import dataclass

if TYPE_CHECKING:
    from mindex.store.sql.engine import Statements

S = TypeVar("S", bound="Statements")

_WORD = re.compile(r"\$([a-z_]+)(?:\(([\w.]*)\))?")
_SPELLED_QUERIES = 512


@dataclass(frozen=True, slots=True)
class Condition:
    """A WHERE clause with its parameters."""

    sql: str
    parameters: tuple[object, ...] = ()


def join(operator: str, conditions: Iterable[Condition]) -> Condition:
    conditions = list(conditions)
    return Condition(
        operator.join(one.sql for one in conditions), tuple(value for one in conditions for value in one.parameters)
    )


class Dialect:
    """The words of one engine, and how it stores lists of texts."""

    def __init__(
        self,
        words: Mapping[str, str],
        *,
        mark: str = "?",
        array: Callable[[Sequence[str]], object],
        texts: Callable[[Any], tuple[str, ...]],
        glob: Callable[[str], str],
    ) -> None:
        """`{}` in a word is its argument, `mark` a parameter.

        `array` makes the value of a list's column, `texts` reads it. `glob` makes a pattern what `$glob` takes.
        """
        self._words = words
        self._mark = mark
        self.array = array
        self.texts = texts
        self.glob = glob
        self.spell = lru_cache(_SPELLED_QUERIES)(self._spell)

    def among(self, expression: str, values: Sequence[object]) -> Condition:
        """The condition that an expression is one of these values, which are not too many for one statement."""
        among = self._words["among"]
        if "{marks}" in among:
            marks = f"({','.join('?' * len(values))})"
            return Condition(f"{expression} {among.replace('{marks}', marks)}", tuple(values))
        return Condition(f"{expression} {among}", (list(values),))

    def _spell(self, query: str) -> str:
        """Return a shared query as the engine understands it."""
        marked = query if self._mark == "?" else query.replace("?", self._mark)
        return _WORD.sub(lambda word: self._words[word[1]].replace("{}", word[2] or ""), marked)


def prefix_range(start: str) -> tuple[str, str]:
    """Bounds between which a text begins so, compared by code point: from the first, below the second."""
    return start, f"{start}\U0010ffff"
