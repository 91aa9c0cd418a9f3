"""The boundary that every text crosses before it is stored: invisible characters, private sections, secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mindex.errors import SecretError
from mindex.redaction.patterns import LIMIT, RULES, Rule

# Part of every indexed file's fingerprint: raise it when the same text would come out differently.
REDACTION_VERSION = 1

Mode = Literal["redact", "strict", "off"]


@dataclass(frozen=True, slots=True)
class RedactionResult:
    """`redacted` names each kind of secret once, in the order of the text; `private` counts the sections cut."""

    text: str
    redacted: tuple[str, ...] = ()
    private: int = 0


@dataclass(frozen=True, slots=True)
class SecretMatch:
    """A secret, or a private section, that stands in a text; `preview` is at most its first four characters."""

    kind: str
    line: int
    preview: str


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int
    kind: str


def redact(text: str, mode: Mode = "redact", *, keep_lines: bool = False) -> RedactionResult:
    """Return `text` as it may be stored; in strict mode a secret in it raises SecretError instead.

    With `keep_lines` the newlines of what is taken out stay, so that line numbers hold.
    """
    if not text:  # most of what crosses is a property nobody gave
        return RedactionResult("")
    text = _visible(text)
    sections = _private_sections(text)
    text = _without(text, sections, keep_lines)
    kinds: dict[str, None] = {}
    if mode != "off":
        # Blanking changes the neighbourhood (a card no longer touches a letter): look until nothing is left. One
        # more look is the rule; the bound keeps a text made of nothing but such chains from costing its square.
        for _ in range(_LOOKS):
            spans = _secrets(text)
            kinds.update(dict.fromkeys(span.kind for span in spans))
            if not spans or mode == "strict":
                break
            text = _blanked(text, spans, keep_lines)
    if mode == "strict" and kinds:
        raise SecretError(
            f"the text holds a secret ({', '.join(kinds)}), so nothing was stored",
            "take it out, or put it between <private> and </private>; secrets.mode = redact stores the rest",
        )
    return RedactionResult(text, tuple(kinds), len(sections))


def redact_json(value: object, mode: Mode = "redact") -> tuple[object, tuple[str, ...]]:
    """The same for a value of JSON, however deep its texts lie, names included; with the kinds that were taken out."""
    kinds: list[str] = []

    def crossed(part: object, name: str = "") -> object:
        if isinstance(part, Mapping):
            return {text(str(key)): crossed(inner, text(str(key))) for key, inner in part.items()}
        if isinstance(part, Sequence) and not isinstance(part, str):
            return [crossed(inner, name) for inner in part]
        if isinstance(part, str) or (isinstance(part, int | float) and not isinstance(part, bool)):
            # The name in front may be what betrays a value; a number stays one unless it is a secret.
            label = f"{name}: " if name else ""
            told = text(f"{label}{part}")
            if told == f"{label}{part}":
                return part
            return told.removeprefix(label) if told.startswith(label) else text(str(part))
        return part

    def text(part: str) -> str:
        cleaned = redact(part, mode)
        kinds.extend(cleaned.redacted)
        return cleaned.text

    return crossed(value), tuple(dict.fromkeys(kinds))


def find_secrets(text: str) -> tuple[SecretMatch, ...]:
    """What `clean` would take out of `text`, for a scan of what is stored already: private sections are looked into."""
    text = _visible(text)
    spans = sorted([*_private_sections(text), *_secrets(text)], key=lambda span: (span.start, -span.end))
    found, line, counted = [], 1, 0
    for span in spans:
        line += text.count("\n", counted, span.start)
        counted = span.start
        shown = min(4, (span.end - span.start) // 4)  # four of eight would be half a password
        found.append(SecretMatch(span.kind, line, text[span.start : span.start + shown] + "…"))
    return tuple(found)


_LOOKS = 8

# -- invisible characters ---------------------------------------------------------------------------------------

# Zero-width, bidi controls, soft hyphen, invisible operators and the tag characters that smuggle ASCII.
_INVISIBLE = re.compile(
    # England, Scotland and Wales are flags spelt in tag characters: they may stay.
    "(\U0001f3f4[\U000e0061-\U000e007a]{4,5}\U000e007f)"
    "|[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]+"
)
# Joiners mean something between letters of scripts that join, and between emoji; elsewhere they only hide.
_JOINING = "[\u0590-\u1cff\u2190-\u2bff\u3030-\u30ff\ua800-\uabff\ufb1d-\ufdff\ufe0f\ufe70-\ufefc\U00010000-\U000dffff]"
_STRAY_JOINER = re.compile(f"(?<!{_JOINING})[\u200c\u200d]+|[\u200c\u200d]+(?!{_JOINING})|[\u200c\u200d]{{2,}}")


def _visible(text: str) -> str:
    if text.isascii():
        return text
    text = _INVISIBLE.sub(lambda match: match[1] or "", text)
    return _STRAY_JOINER.sub("", text)


# -- private sections -------------------------------------------------------------------------------------------

# An opening may have attributes, or lack its `>` when the text was cut off; `<` after the name keeps
# `<private<private>` from leaving a tag behind.
_TAG = re.compile(r"<private(?=[\s/><])[^>]*+(?P<empty>(?<=/)>)?>?|(?P<close></private\s*+>)", re.IGNORECASE)


def _private_sections(text: str) -> list[_Span]:
    """Outermost sections; one that is not closed reaches to the end."""
    sections: list[_Span] = []
    if "<private" not in text and "<private" not in text.lower():
        return sections
    depth = start = 0
    for tag in _TAG.finditer(text):
        if tag["close"]:
            if depth == 1:
                sections.append(_Span(start, tag.end(), "private"))
            depth = max(0, depth - 1)
        elif tag["empty"]:
            if not depth:
                sections.append(_Span(tag.start(), tag.end(), "private"))
        else:
            start = start if depth else tag.start()
            depth += 1
    if depth:
        sections.append(_Span(start, len(text), "private"))
    return sections


def _without(text: str, sections: Iterable[_Span], keep_lines: bool) -> str:
    """Cut, with a space where two words would otherwise become one that nobody wrote."""
    pieces: list[str] = []
    done = 0
    last = ""
    for section in sections:
        piece = text[done : section.start]
        last = piece[-1:] or last
        lines = "\n" * text.count("\n", section.start, section.end) if keep_lines else ""
        after = text[section.end : section.end + 1]
        gap = lines or (" " if last.strip() and after.strip() else "")
        pieces += (piece, gap)
        last = gap[-1:] or last
        done = section.end
    return "".join([*pieces, text[done:]])


# -- secrets ----------------------------------------------------------------------------------------------------

_REST = re.compile(r"[^\s\"'`<>|&,;)\]}]*+")


def _secrets(text: str) -> list[_Span]:
    """Every secret, in order; overlapping ones are one, named by the rule that comes first in the table."""
    lowered = _lowered(text)
    places: dict[tuple[str, ...], list[int]] = {}  # rules that start with the same words share the search for them
    hits: list[tuple[int, int, int]] = []
    for rank, rule in enumerate(RULES):
        if rule.starts not in places:
            places[rule.starts] = _places(lowered if rule.any_case else text, rule.starts)
        here = places[rule.starts]
        if rule.hints and any(hint in text for hint in rule.hints):
            here = [match.start() for match in rule.pattern.finditer(text)]
        hits += ((start, end, rank) for start, end in _accepted(rule, text, here))
    return _merged(sorted(hits))


def _lowered(text: str) -> str:
    """In lower case and of the same length, which `lower` alone does not promise."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


def _places(text: str, words: Iterable[str]) -> list[int]:
    """Where any of the words begins. `str.find` passes over ordinary text many times faster than a pattern."""
    places: list[int] = []
    for word in words:
        at = text.find(word)
        while at >= 0:
            places.append(at)
            at = text.find(word, at + 1)
    return sorted(places)


def _accepted(rule: Rule, text: str, places: Iterable[int]) -> Iterator[tuple[int, int]]:
    group = "v" if "v" in rule.pattern.groupindex else 0
    done = 0
    for place in places:
        # Places inside a secret are passed over unread, or a long one would be read again from each of them.
        match = rule.pattern.match(text, place) if place >= done else None
        if match and (not rule.check or rule.check(match)):
            start, done = match.span(group)
            if done - start >= LIMIT and (rest := _REST.match(text, done)):
                done = rest.end()
            yield start, done


def _merged(hits: Iterable[tuple[int, int, int]]) -> list[_Span]:
    spans: list[tuple[int, int, int]] = []
    for start, end, rank in hits:
        if spans and start < spans[-1][1]:
            first, last, best = spans.pop()
            start, end, rank = first, max(last, end), min(best, rank)
        spans.append((start, end, rank))
    return [_Span(start, end, RULES[rank].kind) for start, end, rank in spans]


def _blanked(text: str, spans: Iterable[_Span], keep_lines: bool) -> str:
    pieces: list[str] = []
    done = 0
    for span in spans:
        lines = "\n" * text.count("\n", span.start, span.end) if keep_lines else ""
        pieces += (text[done : span.start], f"[redacted:{span.kind}]", lines)
        done = span.end
    return "".join([*pieces, text[done:]])
