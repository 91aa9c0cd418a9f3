"""Invented sentences with and without secrets, as people write them: their two files and how they are read.

A line is the language and the style, a tab, and the text. `\\n` is a new line; `⟦…⟧` are around each secret, which also
keeps the scanners of code hosts away. Odd lines may be used to tune the rules; even ones are only measured.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parent
_SECRET = re.compile("⟦([^⟧]*)⟧")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One text; `secrets` are the parts that must go, `held_aside` says that no rule was tuned on it."""

    style: str
    text: str
    secrets: tuple[str, ...]
    held_aside: bool

    def is_clean(self, redacted: str) -> bool:
        """Whether no secret is left, nor more than half of the rest gone."""
        kept = re.sub(r"\[redacted:[^\]]*\]", "", redacted)
        rest = len(self.text) - sum(map(len, self.secrets))
        return not any(secret in redacted for secret in self.secrets) and len(kept) >= rest // 2


def with_secrets() -> tuple[Sentence, ...]:
    return tuple(_read("everyday_secrets.txt"))


def without_secrets() -> tuple[Sentence, ...]:
    return tuple(_read("everyday_texts.txt"))


def count_found(sentences: tuple[Sentence, ...], redact: Callable[[str], str]) -> tuple[int, list[str]]:
    """How many sentences are clean, and those that are not as they are left."""
    left = {sentence: redact(sentence.text) for sentence in sentences}
    missed = [f"{sentence.style}: {text}" for sentence, text in left.items() if not sentence.is_clean(text)]
    return len(sentences) - len(missed), missed


def _read(name: str) -> Iterator[Sentence]:
    for number, line in enumerate((_FOLDER / name).read_text(encoding="utf-8").splitlines()):
        style, _, marked = line.partition("\t")
        marked = marked.replace("\\n", "\n")
        yield Sentence(style, _SECRET.sub(r"\1", marked), tuple(_SECRET.findall(marked)), number % 2 == 1)
