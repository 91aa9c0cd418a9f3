"""YAML front matter: title, tags and fields of a file, and how many lines it takes. No input makes it raise."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import yaml

# Strings all the way: no dates that do not exist, no `no` that becomes False, no merge keys.
_Loader: type[yaml.CBaseLoader] | type[yaml.BaseLoader] = getattr(yaml, "CBaseLoader", yaml.BaseLoader)

MAX_SIZE = 64 * 1024
MAX_DEPTH = 20
MAX_TAGS = 30
MAX_WORD = 200
# Every chunk of the document is found by its fields: a field of more characters, and all fields beyond this total,
# become a separate text.
MAX_FIELD = 500
MAX_FIELDS = 1_500

_OPENING = re.compile(r"---[ \t]*\n")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)
_KEY_FIRST = re.compile(r"\s*(?:#[^\n]*\n\s*)*[\w-]+[ \t]*:(?:\s|\Z)")
_FIELD = re.compile(r"^(title|tags|tag|keywords)[ \t]*:[ \t]*(.*?)[ \t]*$", re.MULTILINE | re.IGNORECASE)
_TAG_KEYS = ("tags", "tag", "keywords")
_KNOWN_KEYS = ("title", *_TAG_KEYS)


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """`lines` is how many lines of the file it takes, fences included; 0 when there is none.

    `fields` are its other fields, each `key: value`; of nested ones the key is a path (`hero.name`). `has_more`: it
    holds text that is in no other attribute (a long text, or YAML that cannot be read).
    """

    title: str = ""
    tags: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    lines: int = 0
    has_more: bool = False


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
        known: dict[str, object] = {m[1].lower(): m[2].strip("\"'[]") for m in _FIELD.finditer(source[:MAX_SIZE])}
        return FrontMatter(_word(known.get("title")), _tags(_raw_tags(known)), lines=lines, has_more=True)
    if loaded == "" or loaded is None:
        return FrontMatter(lines=lines)
    if not isinstance(loaded, Mapping):  # prose between two thematic breaks
        return FrontMatter()
    return _front_matter({str(key).lower(): value for key, value in loaded.items()}, lines)


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


def _front_matter(loaded: Mapping[str, object], lines: int) -> FrontMatter:
    fields = [
        f"{key}: {value}"
        for name, values in loaded.items()
        for key, value in _scalars(name, values)
        if value and name not in _KNOWN_KEYS
    ]
    size = 0
    short = []
    for field in dict.fromkeys(fields):
        if len(field) <= MAX_FIELD and size + len(field) <= MAX_FIELDS:
            short.append(field)
            size += len(field)
    title, tags = loaded.get("title", ""), _raw_tags(loaded)
    # A title or a tag that is too long, or not a text, is in the front matter only.
    known = len(tags) <= MAX_TAGS and all(isinstance(word, str) and len(word) <= MAX_WORD for word in (title, *tags))
    has_more = not known or len(short) < len(set(fields))
    return FrontMatter(_word(title), _tags(tags), tuple(short), lines, has_more)


def _scalars(key: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield each scalar of a value with the path of its keys."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _scalars(f"{key}.{name}", inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _scalars(key, inner)
    else:
        yield " ".join(key.replace(":", " ").split()), " ".join(str(value).split())


def _word(value: object) -> str:
    return " ".join(value.split())[:MAX_WORD] if isinstance(value, str) else ""


def _raw_tags(fields: Mapping[str, object]) -> list[object]:
    tags: list[object] = []
    for value in (fields[key] for key in _TAG_KEYS if key in fields):
        tags += value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    return tags


def _tags(words: Iterable[object]) -> tuple[str, ...]:
    return unique((_word(word).lstrip("#").strip("\"' ") for word in words), MAX_TAGS)


def unique(words: Iterable[str], most: int) -> tuple[str, ...]:
    """Return the first spelling of each word, case ignored, in order, `most` at most; empty words are left out."""
    seen: dict[str, str] = {}
    for word in words:
        if word and len(seen) < most:
            seen.setdefault(word.casefold(), word)
    return tuple(seen.values())
