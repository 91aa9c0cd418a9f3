"""YAML front matter: title, tags and type of a file, and how many lines it takes. No input makes it raise."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import yaml

# Strings all the way: no dates that do not exist, no `no` that becomes False, no merge keys.
_Loader: type[yaml.CBaseLoader] | type[yaml.BaseLoader] = getattr(yaml, "CBaseLoader", yaml.BaseLoader)

MAX_SIZE = 64 * 1024
MAX_DEPTH = 20
MAX_TAGS = 50
MAX_WORD = 200

_OPENING = re.compile(r"---[ \t]*\n")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)
_KEY_FIRST = re.compile(r"\s*(?:#[^\n]*\n\s*)*[\w-]+[ \t]*:(?:\s|\Z)")
_FIELD = re.compile(r"^(title|type|tags|tag|keywords)[ \t]*:[ \t]*(.*?)[ \t]*$", re.MULTILINE | re.IGNORECASE)
_TAG_KEYS = ("tags", "tag", "keywords")
_KNOWN_KEYS = frozenset({"title", "type", *_TAG_KEYS})


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """`lines` is how many lines of the file it takes, fences included; 0 when there is none.

    `has_prose`: it holds text that is in no other field (a description, or YAML that cannot be read).
    """

    title: str = ""
    tags: tuple[str, ...] = ()
    type: str = ""
    lines: int = 0
    has_prose: bool = False


class _TooComplex(Exception):
    """YAML that is too large, too deep, or has aliases: it is not loaded."""


def read_front_matter(text: str) -> FrontMatter:
    """Return the fields of the block between `---` and `---` (or `...`) at the very top; newlines are `\\n`."""
    opening = _OPENING.match(text)
    closing = _CLOSING.search(text, opening.end()) if opening else None
    if not opening or not closing:  # a `---` that never closes is a thematic break
        return FrontMatter()
    source = text[opening.end() : closing.start()]
    lines = text.count("\n", 0, closing.end()) + (not closing[0].endswith("\n"))
    try:
        loaded = _load(source)
    except (yaml.YAMLError, _TooComplex, ValueError):
        # Broken, huge or hostile. It is front matter if it begins like one; then its text is indexed as it is.
        if not _KEY_FIRST.match(source):
            return FrontMatter()
        fields: dict[str, object] = {m[1].lower(): m[2].strip("\"'[]") for m in _FIELD.finditer(source[:MAX_SIZE])}
        return _front_matter(fields, lines, has_prose=True)
    if loaded == "" or loaded is None:
        return FrontMatter(lines=lines)
    if not isinstance(loaded, Mapping):  # prose between two thematic breaks
        return FrontMatter()
    fields = {str(key).lower(): value for key, value in loaded.items()}
    more = any(_is_prose(value) for key, value in fields.items() if key not in _KNOWN_KEYS)
    return _front_matter(fields, lines, has_prose=more)


def _load(source: str) -> object:
    if len(source) > MAX_SIZE:
        raise _TooComplex
    depth = 0
    for event in yaml.parse(source, Loader=_Loader):
        # An alias can expand to a billion values, and the constructor recurses: check before building anything.
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH or isinstance(event, yaml.AliasEvent):
            raise _TooComplex
    return yaml.load(source, Loader=_Loader)


def _front_matter(fields: Mapping[str, object], lines: int, *, has_prose: bool) -> FrontMatter:
    tags = next((found for key in _TAG_KEYS if (found := _tags(fields.get(key)))), ())
    return FrontMatter(_word(fields.get("title")), tags, _word(fields.get("type")), lines, has_prose)


def _word(value: object) -> str:
    return " ".join(value.split())[:MAX_WORD] if isinstance(value, str) else ""


def _tags(value: object) -> tuple[str, ...]:
    tags = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return unique((_word(tag).lstrip("#").strip("\"' ") for tag in tags), MAX_TAGS)


def unique(words: Iterable[str], most: int) -> tuple[str, ...]:
    """Return the first spelling of each word, case ignored, in order, `most` at most; empty words are left out."""
    seen: dict[str, str] = {}
    for word in words:
        if word and len(seen) < most:
            seen.setdefault(word.casefold(), word)
    return tuple(seen.values())


def _is_prose(value: object) -> bool:
    """Return whether a value has three words or more: a description is worth finding, `layout: post` is not."""
    if isinstance(value, str):
        return len(value.split(None, 3)) >= 3
    if isinstance(value, Mapping):
        return any(map(_is_prose, value.values()))
    return isinstance(value, list) and any(map(_is_prose, value))
