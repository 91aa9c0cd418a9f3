"""Private keys that are blocks of lines (PEM, OpenSSH, PGP, PuTTY), as files have them and as they are quoted.

A reader or an editor puts something before each line (`12→`, `   12\t`, `> `, `+`), and a web page or a JSON text
something else than a newline between them (`<br>`, `\\n`).
"""

import re

from mindex.redaction.rule import Rule

# Between two lines. Repeats of groups are atomic, `(?>…)`: Python before 3.11.5 has bugs in `(…)*+`.
BETWEEN_LINES = (
    r"(?>(?:[\s\"'`>|#*;,+→│…]|\\{1,4}[nrt]?|\d{1,6}(?=[ \t→│|:)-])|(?<=\d)[:)-]|//[ ]|<br[ ]?/?>|&#1[03];|&gt;"
    r"|(?<=\n)-(?!-))*)"
)
_NAME = r"[A-Z0-9 ]{0,40}?PRIVATE KEY(?: BLOCK)?"
# Everything between BEGIN and END, if there are enough letters of base64 in it: see `_holds_key`.
_WHOLE = rf"-----BEGIN {_NAME}-----(?P<body>(?>(?:[^-]++|-(?!----))*))-{{5,6}}END {_NAME}-----"
# Without END: lines of base64, of which a short last one belongs to it when it has the padding.
_TRUNCATED = (
    rf"(?:-----BEGIN {_NAME}-----|Private-Lines: \d++)"
    rf"(?>(?:{BETWEEN_LINES}[A-Za-z-]{{3,20}}: [^\n\\<]{{0,200}}+){{0,10}})"
    rf"(?>(?:{BETWEEN_LINES}[A-Za-z0-9+/=]{{16,}}+)+)"
    rf"(?:{BETWEEN_LINES}[A-Za-z0-9+/]{{1,15}}={{1,2}})?"
    r"(?:\s{1,4}Private-MAC: [0-9a-f]{20,}+)?"
)
_BASE64 = re.compile(r"[A-Za-z0-9+/=]")
_CAPITAL = re.compile(r"[A-Z]")
_DIGIT = re.compile(r"[0-9]")


def _holds_key(match: re.Match[str]) -> bool:
    """`BEGIN … paste your key here … END` holds none: of base64 a third are capitals and a sixth are digits."""
    letters = "".join(_BASE64.findall(match["body"]))
    return len(letters) >= 40 and len(_CAPITAL.findall(letters)) * 6 > len(letters) and bool(_DIGIT.search(letters))


PRIVATE_KEY_RULES = (
    Rule("private-key", _WHOLE, ("-----BEGIN ",), _holds_key),
    Rule("private-key", _TRUNCATED, ("-----BEGIN ", "Private-Lines: ")),
)
