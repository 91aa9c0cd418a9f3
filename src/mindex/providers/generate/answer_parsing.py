"""What a language model answered, read as data: strictly, bounded, and never followed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from mindex.errors import GenerationError
from mindex.providers.generate.base import MAX_ANSWER_CHARACTERS, Generator, Prompt

# So many times what was asked for is another answer, not a long one.
_TOO_MUCH = 10

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff\ud800-\udfff]")
_FENCED = re.compile(r"\A(```|~~~)[ \t]*[\w+-]*[ \t]*\n(?P<inside>.*?)\n?[ \t]*\1\Z", re.DOTALL)
_LEAD = re.compile(r"^\s*(?:>\s*)*(?:#{1,6}\s+|(?:[-*+•]|\d{1,2}[.)])\s+)?")
_RULE = re.compile(r"[\s|:=*_+`~-]*")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
# Tags stay: what stands between two of them may be marked as private.
_MARKUP = re.compile(r"`+|~~|(?<![\w*])\*{1,3}(?=\S)|(?<=[^\s*])\*{1,3}(?!\w)")
_QUOTES = (('"', '"'), ("“", "”"), ("„", "“"), ("«", "»"))
_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)\]]*(?=\s|$)|[。！？][」』”’）]*")
_SAYS = re.compile(r"[^\W_]")


class UnusableAnswer(GenerationError):
    """The model answered, and not in the form that it was asked for."""


def asked(generator: Generator, prompt: Prompt) -> str:
    """What a model answers. Whatever it fails with is a GenerationError: a model's library may raise anything."""
    with _in_our_words():
        return generator.generate(prompt)


def wake(generator: Generator) -> None:
    """Before many questions: a model that is loaded first has all the time it needs, one that is down is found so."""
    with _in_our_words():
        generator.load()


@contextmanager
def _in_our_words() -> Iterator[None]:
    try:
        yield
    except GenerationError:
        raise
    except Exception as error:
        message = f"the language model failed ({type(error).__name__}: {error})"
        raise GenerationError(message, "run `mindex doctor`") from error


def json_answer(answer: str) -> object:
    """The one JSON value that an answer is, bare or in one fenced block; anything beside it makes it unusable."""
    text = _bounded(answer)
    if fenced := _FENCED.match(text):
        text = fenced["inside"]
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise UnusableAnswer(
            "the language model did not answer with JSON", "use a model that follows instructions"
        ) from None


def plain_answer(answer: str, most: int) -> str:
    """The sentences that an answer is: on one line, without markup, of at most so many characters."""
    text = _bounded(answer)
    if len(text) > most * _TOO_MUCH:
        raise UnusableAnswer(f"the language model answered with {len(text):,} characters", "try another model")
    if fenced := _FENCED.match(text):
        text = fenced["inside"]
    lines = [_LEAD.sub("", line) for line in text.splitlines() if not _RULE.fullmatch(line)]
    said = one_line(_MARKUP.sub("", _LINK.sub(r"\1", "\n".join(lines))))
    for opening, closing in _QUOTES:
        inside = said[1:-1]
        if said.startswith(opening) and said.endswith(closing) and not {opening, closing} & set(inside):
            said = inside.strip()
    if not _SAYS.search(said):
        raise UnusableAnswer("the language model said nothing", "try another model")
    return _cut(said, most)


def one_line(text: str) -> str:
    """Without control characters, and with one space wherever there was any."""
    return " ".join(_CONTROL.sub(" ", text).split())


def _bounded(answer: str) -> str:
    if len(answer) > MAX_ANSWER_CHARACTERS:
        raise UnusableAnswer(f"the language model answered with {len(answer):,} characters", "try another model")
    return answer.strip()


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _cut(said: str, most: int) -> str:
    """Whole sentences where one ends in time, else whole words."""
    if len(said) <= most:
        return said
    ends = [end.end() for end in _SENTENCE_END.finditer(said, 0, most + 1) if end.end() <= most]
    if ends and ends[-1] >= most // 4:
        return said[: ends[-1]]
    short = said[: most - 1]
    return (short.rpartition(" ")[0] or short).rstrip(" ,;:–—-([{/") + "…"
