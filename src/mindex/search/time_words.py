"""The words that decide whether a query is read for times at all. Most have none of them, and import no parser."""

import re

_PAST = frozenset(
    """
    previous previously before originally formerly former earlier initially past old used
    vorher früher ursprünglich damals ehemals ehemalige ehemaliger vorherige vorheriger alte alter alten zuvor
    avant auparavant ancien ancienne anciennement autrefois précédent précédente originellement initialement
    antes anterior anteriormente antiguo antigua originalmente inicialmente previo previa
    """.split()
)
_WORD = re.compile(r"[^\W\d_]+")
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|«[^»]*»|„[^“”]*[“”]")


def past_word(query: str) -> str:
    """The first word of a query that asks for the past, outside quotes; '' if none does."""
    return next((word for word in _WORD.findall(_QUOTED.sub(" ", query).casefold()) if word in _PAST), "")
