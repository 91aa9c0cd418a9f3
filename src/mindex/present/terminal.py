"""Text for a terminal: nothing that is stored or named can steer it.

Control characters (C0, DEL and C1) but newline and tab, and characters that change the direction of writing, are shown
as `\\u001b` and the like. Inside JSON these escapes mean the same characters, so a terminal shows valid JSON. What is
written to a file or a pipe is left as it is.
"""

import re

# What `present` itself writes: bold, dim, colours and their end.
_OURS = r"\x1b\[(?:0|1|2|32|33|36|1;31)m"
_STEERING = re.compile(
    _OURS + r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ufeff]"
)


def for_terminal(text: str) -> str:
    """Return a text whose characters are shown, not obeyed; our own colours stay."""
    return _STEERING.sub(lambda match: match[0] if len(match[0]) > 1 else f"\\u{ord(match[0]):04x}", text)
