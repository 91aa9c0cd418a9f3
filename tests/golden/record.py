"""How an output is written into a golden file: JSON indented, and placeholders for values that nothing can fix.

Everything else is compared byte for byte.
The patterns see JSON as the golden files show it: indented, with a space behind each colon.
"""

from __future__ import annotations

import json
import re

Masks = tuple[tuple[str, str], ...]

# Durations, sizes of files, and the version of mindex.
VARIABLE: Masks = (
    (r'(?<="seconds": )[\d.]+', "<seconds>"),
    (r"(pending,|remaining,|about) [\d.]+ s\b", r"\1 <seconds> s"),
    (r'(?<="size_bytes": )\d+|(?<="size_before": )\d+|(?<="size_after": )\d+', "<bytes>"),
    (r"\d+(?= bytes before,)|(?<= bytes before, )\d+(?= after$)|\d+(?= bytes\)$)", "<bytes>"),
    (r'(?<="database_size_mb": )[\d.]+', "<megabytes>"),
    (r'(?<="p\d\d_ms": )[\d.]+', "<ms>"),
    (r"^((?:keyword|vector|hybrid)\S* .*?) +\d+\.\d +\d+\.\d$", r"\1 <ms> <ms>"),
    (r'(?<=mindex, version )\S+|(?<="version": )"[^"]+"', "<version>"),
)

# What a model computes differs in its last digits between processors, and so does the length of a text that shows it.
# Ranks, ids, names and texts stay.
_NUMBER = r"[+-]?\d+(?:\.\d+)?"
COMPUTED: Masks = (
    (r'"(?!confidence|average_|overlap|mrr)(\w+)": -?\d+\.\d+', r'"\1": <number>'),
    (rf"\b(score|relevance) {_NUMBER}", r"\1 <number>"),
    (rf" · {_NUMBER}(?= · \d{{4}}-\d\d-\d\d)", " · <number>"),
    (r"(?<=[a-z] )(?:[+-]\d+(?:\.\d+)?|\d+\.\d+)(?=[,;]|$)", "<number>"),  # the line that explains a result
    (r"(?<=the nearest is )'.*?' \([^,]+", "'<first words>' (<id>"),
    (r'^( "tokens(?:_used)?": )\d+|(?<="tokens": )\d+(?=,\n +"p50)', r"\1<tokens>"),
    (r"^(\d+ of \d+.* · )\d+(?= tokens)|\d+(?= <ms> <ms>$)", r"\1<tokens>"),
)

# What differs between stores: the version of the schema, what only a file has, and the digits of scores (`COMPUTED`).
OF_THE_STORE: Masks = (
    *COMPUTED,
    (r'(?<="schema": )\d+|(?<=\(schema )\d+', "<schema>"),
    (r"^ok +(?:file|access|vector index) .*\n", ""),
    (r'^  \{\s+"name": "(?:file|access|vector index)",\s+"ok": true,\s+"message": "[^"]*"\s+\},\n', ""),
    (r"<score>[\d.]+</score>", "<score><number></score>"),
    (r"^(\w+,(?:[^,]*,){5})0\.\d+(?=,)", r"\1<number>"),  # the score in a line of CSV
    (r"(?<=standing )[+-][\d.]+", "<number>"),
)


def masked(text: str, masks: Masks) -> str:
    for pattern, placeholder in masks:
        text = re.sub(pattern, placeholder, text, flags=re.MULTILINE)
    return text


def readable(text: str) -> str:
    """Text that ends with a line break. JSON on one line is shown on many, with a mark that says how it was written.

    Nothing is lost by that: whoever writes the value in the marked style has the same bytes again.
    """
    text = text.replace("\x1b", "␛").replace("\r", "␍")  # else a terminal would obey them
    end = "" if text.endswith("\n") else "(no line break at the end)\n"
    line = text.removesuffix("\n")
    try:
        value = json.loads(line)
    except ValueError:
        return f"{line}\n{end}"
    for style, separators in (("compact", (",", ":")), ("spaced", (", ", ": "))):
        if isinstance(value, dict | list) and line == json.dumps(value, ensure_ascii=False, separators=separators):
            return f"({style} JSON)\n{indented(value)}\n{end}"
    return f"{line}\n{end}"


def indented(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)
