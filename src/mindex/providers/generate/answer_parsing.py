"""Parses a language model's answer as data: strictly, bounded, and never as an instruction."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from mindex.errors import GenerationError
from mindex.providers.generate.base import MAX_ANSWER_CHARACTERS, Generator, Prompt

# A reply longer than this multiple of the limit is rejected instead of cut.
_MAX_LENGTH_FACTOR = 10

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff\ud800-\udfff]")
_FENCED = re.compile(r"\A(```|~~~)[ \t]*[\w+-]*[ \t]*\n(?P<inside>.*?)\n?[ \t]*\1\Z", re.DOTALL)
_LEAD = re.compile(r"^\s*(?:>\s*)*(?:#{1,6}\s+|(?:[-*+•]|\d{1,2}[.)])\s+)?")
_RULE = re.compile(r"[\s|:=*_+`~-]*")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
# Tags stay: they may mark what is between them as private.
_MARKUP = re.compile(r"`+|~~|(?<![\w*])\*{1,3}(?=\S)|(?<=[^\s*])\*{1,3}(?!\w)")
_QUOTES = (('"', '"'), ("“", "”"), ("„", "“"), ("«", "»"))
_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)\]]*(?=\s|$)|[。！？][」』”’）]*")
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")


class UnusableAnswer(GenerationError):
    """The model answered in another form than the prompt demands."""


def answer_of(generator: Generator, prompt: Prompt) -> str:
    """Return a model's answer. Every failure is a GenerationError: a model's library may raise anything."""
    with _as_generation_error():
        return generator.generate(prompt)


def load_model(generator: Generator) -> None:
    """Load the model before many prompts: then it may take as long as it needs, and one that is down fails once."""
    with _as_generation_error():
        generator.load()


@contextmanager
def _as_generation_error() -> Iterator[None]:
    try:
        yield
    except GenerationError:
        raise
    except Exception as error:
        message = f"the language model failed ({type(error).__name__}: {error})"
        raise GenerationError(message, "run `mindex doctor`") from error


def json_answer(answer: str) -> object:
    """Return the JSON value that an answer is, bare or in one fenced block. Raises UnusableAnswer for anything else."""
    text = _bounded(answer)
    if fenced := _FENCED.match(text):
        text = fenced["inside"]
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        message = "the language model did not answer with JSON"
        raise UnusableAnswer(message, "use a model that follows instructions") from None


def plain_answer(answer: str, most: int) -> str:
    """Return an answer as sentences on one line, without markup, of at most `most` characters."""
    text = _bounded(answer)
    if len(text) > most * _MAX_LENGTH_FACTOR:
        raise UnusableAnswer(f"the language model answered with {len(text):,} characters", "try another model")
    if fenced := _FENCED.match(text):
        text = fenced["inside"]
    lines = [_LEAD.sub("", line) for line in text.splitlines() if not _RULE.fullmatch(line)]
    text = one_line(_MARKUP.sub("", _LINK.sub(r"\1", "\n".join(lines))))
    for opening, closing in _QUOTES:
        inside = text[1:-1]
        if text.startswith(opening) and text.endswith(closing) and not {opening, closing} & set(inside):
            text = inside.strip()
    if not _LETTER_OR_DIGIT.search(text):
        raise UnusableAnswer("the language model said nothing", "try another model")
    return _cut(text, most)


def one_line(text: str) -> str:
    """Return the text without control characters, and with one space wherever there was white space."""
    return " ".join(_CONTROL.sub(" ", text).split())


def _bounded(answer: str) -> str:
    if len(answer) > MAX_ANSWER_CHARACTERS:
        raise UnusableAnswer(f"the language model answered with {len(answer):,} characters", "try another model")
    return answer.strip()


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _cut(text: str, most: int) -> str:
    """Truncate to `most` characters: whole sentences if one ends in the last three quarters, else whole words."""
    if len(text) <= most:
        return text
    ends = [end.end() for end in _SENTENCE_END.finditer(text, 0, most + 1) if end.end() <= most]
    if ends and ends[-1] >= most // 4:
        return text[: ends[-1]]
    short = text[: most - 1]
    return (short.rpartition(" ")[0] or short).rstrip(" ,;:–—-([{/") + "…"
