"""`ms search`: memory-search's filters over a search of mindex."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from mindex import Memory
from mindex.clock import from_iso, now_ms
from mindex.datatypes import Hit, Mode
from mindex.errors import NotFoundError, UsageError
from mindex.mcp.dialect_parts import MAX_LIMIT, SearchOptions
from mindex_compat.memory_search.guidance import GUIDANCE, nothing_indexed
from mindex_compat.memory_search.passages import Passage, Passages, is_filled, memories_of, path_matches
from mindex_compat.memory_search.path_contexts import described, descriptions

MODES: Mapping[str, Mode] = {"hybrid": "hybrid", "bm25": "keyword", "vector": "vector"}
DEFAULT_LIMIT = 5
_MAX_PAGES = 10  # of hits that are looked through for those that pass the filters
_SNIPPET = 300
_CHARS_PER_TOKEN = 4
_AGE = re.compile(r"(\d{1,5})([dwmy])")


@dataclass(frozen=True, slots=True)
class Request:
    """What to search, and which of the hits to keep."""

    query: str
    limit: int = DEFAULT_LIMIT
    mode: Mode = "hybrid"
    expand: bool = False
    collection: str = ""
    path: str = ""
    type: str = ""
    concept: str = ""
    after: str = ""
    before: str = ""

    def keeps(self, one: Passage) -> bool:
        return (
            (not self.collection or self.collection in one.collections)
            and (not self.path or path_matches(one.file, self.path))
            and (not self.type or one.type == self.type)
            and (not self.concept or self.concept.lower() in one.concepts)
        )

    @property
    def is_filtered(self) -> bool:
        return bool(self.collection or self.path or self.type or self.concept)


@dataclass(frozen=True, slots=True)
class Result:
    """A hit as memory-search has it."""

    passage: Passage
    hit: Hit
    context: tuple[str, ...] = ()  # what its file, and the folders above it, are about

    @property
    def score(self) -> float:
        return round(self.hit.relevance, 3)

    @property
    def snippet(self) -> str:
        return self.passage.text[:_SNIPPET]

    @property
    def tokens(self) -> int:
        return tokens_of(self.snippet)

    def explained(self) -> dict[str, object]:
        trace = self.hit.trace
        found = {
            "bm25Rank": trace.keyword_rank,
            "bm25Score": trace.keyword_score,
            "semanticScore": trace.cosine,
            "rerankerScore": trace.rerank,
        }
        return {name: value for name, value in found.items() if value is not None}

    def json(self, *, explain: bool) -> dict[str, object]:
        one = self.passage
        shown = one.json()
        return {
            "file": one.file,
            "score": self.score,
            "lineStart": one.first_line,
            "lineEnd": one.last_line,
            "snippet": self.snippet,
            "chunkIndex": one.index,
            "chunkId": one.id,
            "shortId": one.short_id,
            "contentHash": shown["contentHash"],
            "fullContent": one.text,
            "fileMtime": one.modified,
            **({"context": list(self.context)} if self.context else {}),
            **({"explain": self.explained()} if explain else {}),
        }

    def compact(self) -> dict[str, object]:
        one = self.passage
        lines = [one.first_line, one.last_line]
        return {"id": one.id, "file": one.file, "score": self.score, "lines": lines, "tokens": self.tokens}

    def digest(self) -> dict[str, object]:
        return {
            "id": self.passage.id,
            "file": self.passage.file,
            "lines": [self.passage.first_line, self.passage.last_line],
        }


@dataclass(frozen=True, slots=True)
class Found:
    """The results of a request, and what the caller should know about them."""

    request: Request
    results: tuple[Result, ...]
    notes: tuple[str, ...] = ()


def search(memory: Memory, request: Request) -> Found:
    """Search; filters act on every hit, so they do not make a page shorter than it could be.

    Raises UsageError for an empty query, a limit below 1 or a time that cannot be read, NotFoundError for a collection
    that does not exist, and if nothing is indexed.
    """
    if not request.query.strip():
        raise UsageError("the query is empty", "write what you look for")
    if request.limit < 1:
        raise UsageError(f"--limit is {request.limit}", "use 1 or more")
    if not is_filled(memory):
        raise nothing_indexed(memory)
    own = {one.name for one in memory.collections.list()}
    options: SearchOptions = {
        "mode": request.mode,
        "expand": request.expand,
        "kinds": ["chunk", "memory"],
        "after": moment(request.after, "--after"),
        "before": moment(request.before, "--before"),
        "guidance": GUIDANCE,
    }
    if request.collection in own:
        options["collections"] = [request.collection]
    passages, known, kept = Passages(memory), descriptions(), []
    pages = _MAX_PAGES if request.is_filtered or request.limit > MAX_LIMIT else 1
    size = MAX_LIMIT if pages > 1 else request.limit
    notes: dict[str, None] = {}
    for page in range(pages):
        paged: SearchOptions = {**options, "limit": size, "offset": page * size}
        answer = memory.search(request.query, **paged)
        notes.update(dict.fromkeys(answer.notes))
        shown = ((passages.passage(hit.record), hit) for hit in answer.hits)
        kept += [Result(one, hit, described(one.file, known)) for one, hit in shown if request.keeps(one)]
        if len(kept) >= request.limit or not answer.has_more:
            break
    if not kept and request.collection and request.collection not in own and not _knows(memory, request.collection):
        raise NotFoundError(f"there is no collection '{request.collection}'", "`mindex ms collection list` shows them")
    return Found(request, tuple(kept[: request.limit]), tuple(notes))


def _knows(memory: Memory, collection: str) -> bool:
    """Whether an entry that was imported is in a collection of this name."""
    return any(
        collection in (one.fields.get("collections") or ())  # type: ignore[operator]
        for one in memories_of(memory)
    )


def moment(text: str, option: str) -> str | None:
    """Return a time as `Memory.search` takes it: `7d`, `2w`, `1m` (a month), `1y`, or ISO 8601. None for an empty one.

    Raises UsageError for any other text.
    """
    if not text:
        return None
    now = datetime.fromtimestamp(now_ms() / 1000, UTC)
    if match := _AGE.fullmatch(text.lower()):
        count, unit = int(match[1]), match[2]
        try:
            at = (
                now - timedelta(days=count * (7 if unit == "w" else 1))
                if unit in "dw"
                else _months_before(now, count * (12 if unit == "y" else 1))
            )
        except (ValueError, OverflowError):
            raise UsageError(f"{option} {text} is before the year 1", "use a shorter time") from None
        return at.isoformat()
    try:
        from_iso(text)
    except (ValueError, OverflowError):
        raise UsageError(f"{option} '{text}' is not a time", "write 7d, 2w, 1m, 1y or 2026-01-15") from None
    return text


def _months_before(now: datetime, months: int) -> datetime:
    year, month = divmod(now.year * 12 + now.month - 1 - months, 12)
    return now.replace(year=year, month=month + 1, day=min(now.day, monthrange(max(1, year), month + 1)[1]))


def tokens_of(text: str) -> int:
    return -(-len(text) // _CHARS_PER_TOKEN)
