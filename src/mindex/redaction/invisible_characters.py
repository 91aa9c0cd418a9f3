"""Invisible characters: removed from every text, since they hide instructions and split secrets."""

import re

# Zero-width, bidi controls, soft hyphen, invisible operators and the tag characters that smuggle ASCII.
_INVISIBLE = re.compile(
    # England, Scotland and Wales are flags spelt in tag characters: they may stay.
    "(\U0001f3f4[\U000e0061-\U000e007a]{4,5}\U000e007f)"
    "|[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]+"
)
# Joiners mean something between letters of scripts that join, and between emoji; elsewhere they only hide.
_JOINING = "[\u0590-\u1cff\u2190-\u2bff\u3030-\u30ff\ua800-\uabff\ufb1d-\ufdff\ufe0f\ufe70-\ufefc\U00010000-\U000dffff]"
# Between ASCII characters the combining joiner and variation selectors only split words; `1️⃣` and `❤️` need theirs.
_SPLITTER = re.compile("(?<=[!-~])[\u034f\u115f\u1160\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]++(?!\u20e3)")
_STRAY_JOINER = re.compile(f"(?<!{_JOINING})[\u200c\u200d]+|[\u200c\u200d]+(?!{_JOINING})|[\u200c\u200d]{{2,}}")


def remove_invisible(text: str) -> str:
    """Return `text` without zero-width, bidi and tag characters; joiners and selectors stay where they are needed."""
    if text.isascii():
        return text
    text = _SPLITTER.sub("", _INVISIBLE.sub(lambda match: match[1] or "", text))
    return _STRAY_JOINER.sub("", text)
