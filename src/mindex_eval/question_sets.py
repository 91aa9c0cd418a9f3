"""Question sets: questions with known answers, and the detection of a folder's layout."""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

from mindex.errors import NotFoundError, UsageError

QUESTIONS_FILE = "questions.yaml"
# Labels that split the table by default.
CATEGORIES = ("category", "difficulty")
_LONGEST_LABEL = 60


@dataclass(frozen=True, slots=True)
class Text:
    """One document of a corpus: a memory, or a turn if it has a speaker or a response, or a file."""

    id: str
    text: str
    title: str = ""
    group: str = ""
    speaker: str = ""
    response: str = ""
    date: str = ""
    session: str = ""
    is_memory: bool = False

    @property
    def is_turn(self) -> bool:
        return bool(self.speaker or self.response) and not self.is_memory

    @property
    def session_key(self) -> str:
        """The session of a turn: its `session`, or its id up to a `#`. Empty for a text that is not a turn."""
        if not self.is_turn:
            return ""
        return f"{self.group}/{self.session or self.id.partition('#')[0]}"

    @property
    def is_entry(self) -> bool:
        """Whether it becomes an entry, not a file."""
        return self.is_memory or self.is_turn

    @property
    def message(self) -> str:
        """The text of its entry: the title, if there is one, and the text."""
        return "\n".join(part for part in (self.title, self.text) if part.strip())


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of a file that hold the answer: other lines of the file are not an answer."""

    path: str
    first: int
    last: int

    @property
    def id(self) -> str:
        return f"{self.path}:{self.first}-{self.last}"


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its answers: ids with their gains. A `silent` question has no answer and must get none.

    `excerpts` are the words of the documents that answer it: measured is the share of them that an answer contains.
    """

    id: str
    text: str
    gains: Mapping[str, int] = field(default_factory=dict)
    group: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    adversarial: bool = False
    silent: bool = False
    lines: tuple[Lines, ...] = ()
    excerpts: tuple[str, ...] = ()
    now: str = ""  # when it is asked


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """A question set as read. The corpus is either `texts` or `root`, a folder of real files."""

    name: str
    folder: Path
    questions: tuple[Question, ...]
    texts: tuple[Text, ...] = ()
    root: Path | None = None
    digest: str = ""  # of the corpus; empty for the user's notes, which are read again each time
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def label(self) -> str:
        """The label to split the table by, if the questions have one of the usual ones."""
        return next((name for name in CATEGORIES if any(name in one.labels for one in self.questions)), "")


def read_set(folder: Path, *, split: str = "test", adversarial: bool = False) -> QuestionSet:
    """Read a folder in BEIR or questions.yaml layout. Adversarial questions are left out unless wanted."""
    # They import this module.
    from mindex_eval.beir import read_beir
    from mindex_eval.questions_yaml import read_questions_yaml

    if not folder.is_dir():
        raise NotFoundError(f"there is no folder {folder}", "pass a folder with a question set")
    if (folder / "queries.jsonl").is_file():
        found = read_beir(folder, split)
    elif (folder / QUESTIONS_FILE).is_file():
        found = read_questions_yaml(folder, split)
    else:
        raise NotFoundError(
            f"{folder} contains neither queries.jsonl nor {QUESTIONS_FILE}",
            f"put a {QUESTIONS_FILE} beside your notes, or name a folder in BEIR layout",
        )
    if not found.questions:
        raise UsageError(f"{folder} holds no question that could be judged", "check its judgements")
    return found if adversarial else _without_adversarial(found)


def _without_adversarial(found: QuestionSet) -> QuestionSet:
    kept = tuple(one for one in found.questions if not one.adversarial)
    if len(kept) == len(found.questions):
        return found
    if not kept:
        raise UsageError(f"every question of {found.folder} is adversarial", "measure them with --adversarial")
    return replace(found, questions=kept, left_out={**found.left_out, "adversarial": len(found.questions) - len(kept)})


def sampled(questions: Sequence[Question], count: int | None) -> tuple[Question, ...]:
    """The same `count` questions each time, in any order of the file: the first by a hash of their ids."""
    if count is None or count >= len(questions):
        return tuple(questions)
    chosen = {question.id for question in sorted(questions, key=lambda one: hash_of(one.id))[:count]}
    return tuple(question for question in questions if question.id in chosen)


def answerable(found: QuestionSet, questions: Sequence[Question]) -> tuple[Question, ...]:
    """The questions with an answer. Raises UsageError when there is none."""
    kept = tuple(question for question in questions if not question.silent)
    if not kept:
        problem = f"none of the {len(questions)} questions of {found.name} has an answer"
        raise UsageError(problem, "leave the set out, or take a larger sample")
    return kept


def hash_of(id_: str) -> str:
    return hashlib.sha256(id_.encode("utf-8", "surrogatepass")).hexdigest()


def labels_of(given: Mapping[str, object], fields: Collection[str]) -> dict[str, str]:
    """The further short fields of a question: the labels that a table may be split by."""
    labels = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in given.items()
        if name not in fields and isinstance(value, str | int | float | date)
    }
    return {name: word for name, word in labels.items() if word and (name in CATEGORIES or len(word) <= _LONGEST_LABEL)}


def read_text(path: Path) -> str:
    """The text of a file in UTF-8. Raises NotFoundError for a missing file, UsageError for an unreadable one."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise NotFoundError(f"there is no {path}", "see `mindex eval --help` for the layout") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 ({error.reason} at byte {error.start})", "convert the file") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", "check its permissions") from None


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The non-blank lines of a text file with their numbers. Only `\\n` ends a line."""
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            yield number, line.rstrip("\r")
