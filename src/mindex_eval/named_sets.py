"""Question sets as the command line names them: `SET`, `SET:memory`, `SET@GROUP`."""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mindex.errors import UsageError
from mindex.ids import content_hash
from mindex_eval.question_sets import Question, QuestionSet, read_set

_MEMORY = ":memory"
_GROUPS_NAMED = 10


@dataclass(frozen=True, slots=True)
class SetName:
    """A folder, and what of it is meant."""

    folder: Path
    as_memories: bool = False
    group: str | None = None  # None: all groups, empty: the first one

    @property
    def label(self) -> str:
        """How tables name the set."""
        group = "" if self.group is None else f"@{self.group}"
        return f"{self.folder.resolve().name}{_MEMORY * self.as_memories}{group}"


def parse_set_name(name: str | Path) -> SetName:
    """Split a name at the last `@` and `:memory` behind a folder that exists: a path may contain both."""
    text = str(name)
    cuts = [len(text), *(index for index in reversed(range(len(text))) if text[index] == "@")]
    for cut in cuts:
        group = text[cut + 1 :] if cut < len(text) else None
        for folder in dict.fromkeys((text[:cut], text[:cut].removesuffix(_MEMORY))):
            if folder and Path(folder).is_dir():
                return SetName(Path(folder), folder != text[:cut], group)
    return SetName(Path(text))


def read_named_set(
    name: Path, *, split: str = "test", adversarial: bool = False, one_group: bool = False
) -> QuestionSet:
    """Read a set and keep what its name means. With `one_group` it is the first group if none is named."""
    named = parse_set_name(name)
    found = read_set(named.folder, split=split, adversarial=adversarial)
    groups = tuple(dict.fromkeys(text.group for text in found.texts))
    group = named.group
    if one_group and group is None and len(groups) > 1:
        group = ""
    if group is not None:
        found = _one_group(found, _group_named(found, group, groups))
    if named.as_memories:
        found = _as_memories(found)
    return _without_repeated_memories(found)


def _group_named(found: QuestionSet, group: str, groups: Collection[str]) -> str:
    if found.root is not None:
        raise UsageError(f"{found.name} holds real files, which have no groups", f"name it {found.name}")
    if not group:
        return next(iter(groups))
    if group not in groups:
        more = ", …" if len(groups) > _GROUPS_NAMED else ""
        known = ", ".join(sorted(filter(None, groups))[:_GROUPS_NAMED])
        raise UsageError(f"{found.name} has no group '{group}'", f"it has {known}{more}" if known else "it has none")
    return group


def _one_group(found: QuestionSet, group: str) -> QuestionSet:
    """The texts of one group and the questions that are answered there."""
    texts = tuple(text for text in found.texts if text.group == group)
    ids = {text.id for text in texts}
    questions = []
    for one in found.questions:
        gains = {id_: gain for id_, gain in one.gains.items() if id_ in ids}
        if (gains or one.silent) and one.group in ("", group):
            questions.append(replace(one, gains=gains))
    if not any(one.gains for one in questions):
        raise UsageError(f"no question of {found.name} is answered in '{group}'", "name another group")
    left_out = {**found.left_out, "of other groups": len(found.questions) - len(questions)}
    return replace(
        found,
        name=f"{found.name}@{group}" if group else found.name,
        texts=texts,
        questions=tuple(questions),
        digest=_digest(found, "group", group),
        left_out={why: count for why, count in left_out.items() if count},
    )


def _as_memories(found: QuestionSet) -> QuestionSet:
    if found.root is not None:
        raise UsageError(f"{found.name} contains real files, which are indexed, not added", f"name it {found.name}")
    name, _, group = found.name.partition("@")
    return replace(
        found,
        name=f"{name}{_MEMORY}{'@' * bool(group)}{group}",
        texts=tuple(replace(text, is_memory=True) for text in found.texts),
        digest=_digest(found, "memory"),
    )


def _digest(found: QuestionSet, *parts: str) -> str:
    return hashlib.sha256("\0".join((found.digest, *parts)).encode("utf-8", "surrogatepass")).hexdigest()


def _without_repeated_memories(found: QuestionSet) -> QuestionSet:
    """The same text added twice is one memory, so a question about either is answered by it."""
    first: dict[tuple[str, str], str] = {}
    same = {
        text.id: first.setdefault((text.group, content_hash(text.message)), text.id)
        for text in found.texts
        if text.is_memory
    }
    repeated = sum(id_ != other for id_, other in same.items())
    if not repeated:
        return found
    note = f"{repeated} of its texts say the same as another one: as memories they are one"
    return replace(
        found,
        texts=tuple(text for text in found.texts if same.get(text.id, text.id) == text.id),
        questions=tuple(_answered_by(one, same) for one in found.questions),
        notes=(*found.notes, note),
    )


def _answered_by(question: Question, same: Mapping[str, str]) -> Question:
    gains: dict[str, int] = {}
    for id_, gain in question.gains.items():
        kept = same.get(id_, id_)
        gains[kept] = max(gain, gains.get(kept, 0))
    return replace(question, gains=gains)
