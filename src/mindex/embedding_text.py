"""The texts that are embedded for a record: its title and text, split so that the model reads all of it."""

import re
from collections.abc import Iterable

from mindex.datatypes import DESCRIPTIVE_FIELDS, Record

PIECE_SIZE = 800
_TITLE_SIZE = 200
_FIELDS_SIZE = 200
_CONTEXT_SIZE = 400
# Each character of these scripts is a token of the model, where Latin text has one for three or four characters.
_DENSE = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")
# A word: three letters, or one character of a script whose characters are words.
_WORD = re.compile(r"[^\W\d_]{3}|[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")
# A value of a profile: `user.languages[0]: German`. The words of its path are those of `packageManager` or `os_name`.
_VALUE = re.compile(r"(?P<path>[^:]+): ")
_KEY_WORD = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+|[^\W\d_A-Z]+")
_OWN_PIECES = 200  # values of a profile that are a piece each
_HEADING_MARK = re.compile(r" {0,3}#{1,6}(?=\s|$)")
_BREAKS = (re.compile(r"\n\s*\n"), re.compile(r"\n"), re.compile(r"(?<=[.!?。！？；])\s*"), re.compile(r"\s+"))


def embedding_pieces(record: Record) -> list[str]:
    """Return the texts to embed for a record: one per piece of at most 800 characters, each with the title in front.

    The description of a chunk's document and the context of the chunk are also put in front. Of a run of bare headings
    each is a piece: they have little to do with each other (of 60 facts as headings, 44 are found instead of 16). So is
    each value of a profile.
    """
    title, place = embedding_title(record), _place(record)
    header = "\n".join(part for part in (title, place) if part)
    pieces = _bare_headings(record) or _profile_values(record) or split(record.text, _piece_size(record))
    return [f"{header}\n{piece}" if header else piece for piece in pieces]


def piece_ranges(record: Record) -> list[tuple[int, int]]:
    """Return the characters of a record's text that each of its embedded pieces is made of; none if that is not known.

    That is not known of a run of headings or a profile, whose pieces get a new wording.
    """
    if _bare_headings(record) or record.kind == "profile":
        return []
    ranges: list[tuple[int, int]] = []
    end = 0
    for piece in split(record.text, _piece_size(record)):
        start = record.text.find(piece, end)
        end = start + len(piece)
        ranges.append((start, end))
    return ranges


def embedded_text(record: Record) -> str:
    """Return all that an embedder reads of a record: a vector that was made of another text is not stored for it."""
    return "\n".join((embedding_title(record), _place(record), record.text))


def _piece_size(record: Record) -> int:
    """Return the characters of a piece. What places a chunk makes it shorter: the model's window does not grow."""
    return max(PIECE_SIZE - _weight(_place(record)), PIECE_SIZE // 2)


def _bare_headings(record: Record) -> list[str]:
    """Return the headings of a chunk that is nothing else, each once and without its mark; none for other records."""
    lines = [line for line in record.text.split("\n") if line.strip()] if record.kind == "chunk" else []
    titles = [line[mark.end() :].strip() for line in lines if (mark := _HEADING_MARK.match(line))]
    return list(dict.fromkeys(filter(None, titles))) if len(titles) == len(lines) else []


def _profile_values(record: Record) -> list[str]:
    """Return each value of a profile as its user would say it, `My home: Lisbon`; none for other records.

    "Where do I live" is near to that, and not to all values in one piece. After the first values, many share a piece.
    """
    if record.kind != "profile":
        return []
    said: list[str] = []
    for line in record.text.split("\n"):
        if value := _VALUE.match(line):
            steps = value["path"].removeprefix("user.")
            said.append(f"My {' '.join(_KEY_WORD.findall(steps)) or steps}: {line[value.end() :]}")
        else:  # of a value in several lines
            said[-1:] = [f"{said[-1]}\n{line}" if said else line]
    alone, rest = said[:_OWN_PIECES], "\n".join(said[_OWN_PIECES:])
    return [piece for one in (*alone, *([rest] if rest else [])) for piece in split(one)]


def embedded_fields(fields: Iterable[str]) -> str:
    """Return what is embedded of a document's front matter, in one line; `status: done` would only blur its chunks."""
    named = (field.partition(": ") for field in fields)
    return _cut_to(". ".join(value for key, _, value in named if key in DESCRIPTIVE_FIELDS), _FIELDS_SIZE)


def _place(record: Record) -> str:
    """What places a chunk: the description of its document, and its context."""
    if record.kind != "chunk":
        return ""
    parts = (embedded_fields(record.document_fields), _cut_to(record.context, _CONTEXT_SIZE))
    return "\n".join(part for part in parts if part)


def _cut_to(text: str, weight: int) -> str:
    return text[: weight * len(text) // max(_weight(text), 1)]


def embedding_title(record: Record) -> str:
    """Return the title to embed: none for a turn or a profile, nor for one without a word (`000123`).

    The text of a turn has its date; a profile has the name of its agent, which its user does not ask for.
    """
    if record.kind in ("turn", "profile") or not _WORD.search(record.title):
        return ""
    return record.title[:_TITLE_SIZE]


def split(text: str, size: int = PIECE_SIZE) -> list[str]:
    """Split a text into pieces of about equal weight, at the most natural break near each cut."""
    text = text.strip()
    weight = _weight(text)
    if weight <= size:
        return [text]
    count = -(-weight // size)
    target = max(1, len(text) // count)
    longest = max(1, int(size * len(text) / weight))
    pieces = []
    start = 0
    while len(text) - start > longest:
        end = _cut(text, start + target // 2, min(start + longest, len(text)))
        pieces.append(text[start:end].strip())
        start = end
    pieces.append(text[start:].strip())
    return [piece for piece in pieces if piece]


def _cut(text: str, earliest: int, latest: int) -> int:
    for pattern in _BREAKS:
        ends = [match.end() for match in pattern.finditer(text, earliest, latest)]
        if ends and ends[-1] > earliest:
            return ends[-1]
    return latest


def _weight(text: str) -> int:
    return len(text) if text.isascii() else len(text) + 2 * len(_DENSE.findall(text))
