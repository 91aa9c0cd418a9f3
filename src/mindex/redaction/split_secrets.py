"""Secrets that begin in one text and end in the next one, or that the first names and the second holds."""

from collections.abc import Sequence

from mindex.redaction.secret_finder import SecretSpan, find_secret_spans
from mindex.redaction.user_rules import UserRule

_NEAR = 4_000  # about the length of a private key
# The text that may be between the two: the token was cut, a label is before its value, or the lines go on.
_GLUES = ("", " ", "\n")


def cut_split_secret(first: str, second: str, user_rules: Sequence[UserRule] = ()) -> tuple[str, str, tuple[str, ...]]:
    """Return both texts without a secret that needs both to be one, and its kinds; unchanged if there is none."""
    head, tail = first[:-_NEAR], first[-_NEAR:]
    start, rest = second[:_NEAR], second[_NEAR:]
    alone = find_secret_spans(tail, user_rules)
    ends_alone = any(span.end >= len(tail.rstrip()) for span in alone)
    for glue in _GLUES:
        if not glue and (ends_alone or not tail[-1:].isalnum() or not start[:1].isalnum()):
            continue  # whole words meet here, or the first text ends with a whole secret
        border = len(tail) + len(glue)
        spans = [span for span in find_secret_spans(tail + glue + start, user_rules) if span.end > border]
        known = {(span.start + border, span.end + border) for span in find_secret_spans(start, user_rules)}
        spans = [span for span in spans if span.start < border or (span.start, span.end) not in known]
        if spans:
            tail, start = _cut(tail, start, border, spans)
            return head + tail, start + rest, tuple(dict.fromkeys(span.kind for span in spans))
    return first, second, ()


def _cut(first: str, second: str, border: int, spans: list[SecretSpan]) -> tuple[str, str]:
    for span in reversed(spans):
        mark = f"[redacted:{span.kind}]"
        second = second[: max(0, span.start - border)] + mark + second[span.end - border :]
        if span.start < len(first):
            first = first[: span.start] + mark
    return first, second
