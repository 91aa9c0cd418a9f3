"""Conflict rules: do two texts say different things about the same, so that only one of them can be true now?

Precision comes first: a conflict that is none costs trust, one that is missed costs nothing that is not lost today. So
two sentences are compared only when they say the same but for one difference (docs/quality.md has the figures).
`contradict` asks less of the texts: whether another number or date, a negation or an opposite makes them no duplicates.
"""

import re
import unicodedata
from collections import Counter

from mindex.analyzer import analyze, fold
from mindex.entries.sentences import ParsedSentence, Value, Word, parse_sentences, same_value
from mindex.lexicon import dates
from mindex.lexicon import meaning as known
from mindex.values import dataclass, replace

READ_LIMIT = 10_000  # characters: texts that agree so far are alike; the rest is ignored

_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*(?:\s?[ap]\.?m\b)?|[〇一二三四五六七八九十百千万两]+")
_NOISE = re.compile(r",(?=\d{3}\b)|[\s.](?=[ap]?\.?m)")  # `1,000` is 1000, `3 p.m` is 3pm
_NUMBERS = {"zero": "0"} | {word: str(number) for word, number in dates.NUMBERS.items()}
_DATE_WORDS = frozenset((
    *dates.WEEKDAYS, *dates.MONTHS, *dates.DAYS, *dates.ORDINALS, *dates.FREQUENCIES, "second"
)) - {"morgen", "manana"}  # fmt: skip  # mornings as well
_NEGATION_INSIDE = re.compile(r"\b\w+n['’]t\b|\bn['’]\w|[不没沒無无]|未(?!来|來)|ない|ません")
_WORD = re.compile(r"[^\W\d_]+")
_APOSTROPHE = re.compile("['’]")

_MAX_CHANGED = 2  # values at once
_MIN_DENIED = 3  # words with a meaning: a subject, a verb and what it is about
_MAX_WORDS = 3  # of a value: more is a phrase that rules cannot judge


@dataclass(frozen=True, slots=True)
class Difference:
    """Why two texts cannot both be true, and whether the newer one says that it replaces the older."""

    why: str
    is_update: bool

    @property
    def before(self) -> str:
        """The value of the older text: of `different times: 9:30 and 10:00` the first."""
        return self.why.partition(": ")[2].partition(" and ")[0]


def find_conflict(older: str, newer: str) -> str:
    """Return why two texts cannot both be true, like `different times: 9:30 and 10:00`; '' if they can."""
    found = find_difference(older, newer)
    return found.why if found else ""


def find_difference(older: str, newer: str) -> Difference | None:
    """Return why two texts cannot both be true, and whether the newer one is an update; None if they can."""
    for one in parse_sentences(older, without_details=True):
        for other in parse_sentences(newer):
            if one.shortened and not other.update:
                continue
            if why := _conflict(one, other):
                return Difference(why, _is_update(one, other))
    return None


def _is_update(one: ParsedSentence, other: ParsedSentence) -> bool:
    is_weekday = any(value.parts[0][0] == "weekday" for value in one.values)
    if is_weekday and one.negated == other.negated and not _is_scheduled(one):
        return False  # one more day, perhaps
    if one.negated != other.negated and not _same_words(one, other):
        return False  # the detail that the newer one leaves out may hold
    if one.shortened and not other.negated:
        return False  # a second employer, perhaps
    if not other.corrects:
        return other.update
    values = {word for value in one.values for word in value.text.casefold().split()}
    return other.corrects in values or any(word.stem == other.corrects for word in one.words)


def is_update(text: str) -> bool:
    """Whether a text has words that say that something else held before."""
    return any(sentence.update for sentence in parse_sentences(text))


def _conflict(one: ParsedSentence, other: ParsedSentence) -> str:
    one = _as_moved(one, other)
    if one.unclear or other.unclear or one.first in known.folded("pronouns") or other.first in known.folded("pronouns"):
        return ""
    differing = _differing_values(one, other)
    if differing is None:
        return ""
    if differing:
        return _different_values(one, other, differing)
    if one.negated != other.negated:
        return _denial(one, other)
    return _opposites(one, other) or _other_order(one, other) or _other_value(one, other)


def _as_moved(one: ParsedSentence, other: ParsedSentence) -> ParsedSentence:
    """The sentence with `lives in` as `moved to`, if the other one says that its subject moved."""
    if not any(word.stem == known.MOVED for word in other.words):
        return one
    words = tuple(replace(word, stem=known.MOVED) if word.stem in known.stems("places") else word for word in one.words)
    return replace(one, words=words)


# ── numbers and dates ────────────────────────────────────────────────────────────────────────────────────────


def _differing_values(one: ParsedSentence, other: ParsedSentence) -> tuple[Value, Value] | tuple[()] | None:
    """The one pair of values that differs, or none; None when more differs, or one text has a value more.

    A value more is a condition or a detail: `on Fridays the standup is at 11:00`.
    """
    rest = list(other.values)
    unmatched: list[Value] = []
    for value in one.values:
        same = next((candidate for candidate in rest if same_value(value, candidate)), None)
        if same is None:
            unmatched.append(value)
        else:
            rest.remove(same)
    if not unmatched and not rest:
        return ()
    # `moved to Thursdays at 15:00` changes the day and the time.
    most = _MAX_CHANGED if other.update else 1
    if not len(unmatched) == len(rest) <= most:
        return None
    if any(same_value(before, after) is None for before, after in zip(unmatched, rest, strict=True)):
        return None
    return unmatched[0], rest[0]


_NAMES = {"share": "numbers", "money": "amounts"}  # other kinds of values have their own plural


def _different_values(one: ParsedSentence, other: ParsedSentence, differing: tuple[Value, Value]) -> str:
    if one.event or other.event or one.negated != other.negated or not _same_words(one, other):
        return ""
    first, second = differing
    if (first.names_subject and second.names_subject) or first.bound != second.bound:
        return ""
    if first.of_name and second.of_name and not known.stems("listing").isdisjoint(word.stem for word in one.words):
        return ""
    if first.parts[0][0] == "weekday" and not _is_scheduled(one) and not other.update:
        return ""
    return f"different {_NAMES.get(first.kind, f'{first.kind}s')}: {first.text} and {second.text}"


def _is_scheduled(sentence: ParsedSentence) -> bool:
    """Whether it says when something takes place; what is open on Mondays may be open on Fridays as well."""
    stems = {word.stem for word in sentence.words}
    return not known.SCHEDULED.isdisjoint(stems) and known.stems("opening").isdisjoint(stems)


def _same_words(one: ParsedSentence, other: ParsedSentence) -> bool:
    return bool(one.content) and one.content == other.content


# ── negation and opposites ───────────────────────────────────────────────────────────────────────────────────


def _denial(one: ParsedSentence, other: ParsedSentence) -> str:
    if one.event != other.event or not (_same_words(one, other) or _denies_more(one, other)):
        return ""
    return f"only {'the older' if one.negated else 'the newer'} is negated"


def _denies_more(one: ParsedSentence, other: ParsedSentence) -> bool:
    """Whether the older one says what the newer one denies, with a detail behind it: `coffee with milk`."""
    shared = _common(one.words, other.words)
    if not (other.negated and other.update) or shared != len(other.words) or shared == len(one.words):
        return False
    detail = fold(one.words[shared].text)
    has_object = sum(word.content for word in other.words) >= _MIN_DENIED
    return has_object and detail in known.folded("prepositions") and detail not in known.BOUNDS


def _opposites(one: ParsedSentence, other: ParsedSentence) -> str:
    only_one, only_other = one.content - other.content, other.content - one.content
    if one.content & other.content and len(only_one) == len(only_other) == 1:
        (a,), (b,) = only_one, only_other
        is_said = _in_predicate(one, a) and _in_predicate(other, b)
        if b in known.OPPOSITES.get(a, ()) and is_said and not _small_opposites(one, other):
            return f"opposites: {_written(one, a)} and {_written(other, b)}"
    if one.content == other.content and (found := _small_opposites(one, other)):
        return f"opposites: {found[0].text} and {found[1].text}"
    return ""


def _in_predicate(sentence: ParsedSentence, stem: str) -> bool:
    """Whether a word belongs to what is said of the subject: `the left door is locked` and the right one are two."""
    words = sentence.words
    at = next(place for place, word in enumerate(words) if word.stem == stem)
    predicate = next((place for place, word in enumerate(words) if word.folded in known.PREDICATE), None)
    if predicate is None:
        return at > 0 or stem in known.stems("opposite_verbs")
    return at > predicate


def _small_opposites(one: ParsedSentence, other: ParsedSentence) -> tuple[Word, ...]:
    """The words by which two sentences of the same length differ, where these are `on` and `off`, or alike."""
    if len(one.words) != len(other.words):
        return ()
    for a, b in zip(one.words, other.words, strict=True):
        if frozenset((a.folded, b.folded)) in known.SMALL_OPPOSITES:
            return a, b
    return ()


def _written(sentence: ParsedSentence, stem: str) -> str:
    return next(word.text for word in sentence.words if word.stem == stem)


def _other_order(one: ParsedSentence, other: ParsedSentence) -> str:
    """`prefers tea over coffee` and `prefers coffee over tea`."""
    first, second = ([word.stem for word in sentence.words] for sentence in (one, other))
    if "over" not in first or first == second or sorted(first) != sorted(second):
        return ""
    return f"the other order: {_phrase(one.words[-3:])} and {_phrase(other.words[-3:])}"


# ── another value of the same attribute ──────────────────────────────────────────────────────────────────────


def _other_value(one: ParsedSentence, other: ParsedSentence) -> str:
    a, b = one.words, other.words
    start = _common(a, b)
    end = _common(a[start:][::-1], b[start:][::-1])
    mine, others = a[start : len(a) - end], b[start : len(b) - end]
    if one.event or other.event or not (_is_value(mine) and _is_value(others)):
        return ""
    before, after = a[:start], a[len(a) - end :]
    if any(word.folded in known.PREDICATE for word in after) and any(word.content for word in before):
        return ""  # it tells which subject is meant: `the big red box is full`
    if any(word.content for word in before):
        excludes = _excludes(before, mine, others, after)
    else:  # `Paul is the product owner`, `Lena leads the search team`
        excludes = _all_names(mine, others) and _is_role(after)
    return f"different values: {_phrase(mine)} and {_phrase(others)}" if excludes else ""


def _common(a: tuple[Word, ...], b: tuple[Word, ...]) -> int:
    count = 0
    while count < min(len(a), len(b)) and a[count].stem == b[count].stem:
        count += 1
    return count


def _is_value(words: tuple[Word, ...]) -> bool:
    return 1 <= len(words) <= _MAX_WORDS and all(word.content for word in words)


def _excludes(
    before: tuple[Word, ...], mine: tuple[Word, ...], others: tuple[Word, ...], after: tuple[Word, ...]
) -> bool:
    """Whether a subject has one of these values at a time. `before` and `after` are what both sentences say."""
    stems = [word.stem for word in before]
    names, values, last = _all_names(mine, others), (*mine, *others), before[-1].folded

    def has(row: str) -> bool:
        return not known.stems(row).isdisjoint(stems)

    if has("many_valued") or all(word.stem in known.stems("platforms") for word in values):
        return False
    if len(values) == 2 and (len(after) <= 1 or not after[0].content):
        line = known.ALTERNATIVES.get(mine[0].stem)
        if line is not None and line == known.ALTERNATIVES.get(others[0].stem):
            return True
    if stems[-1] in known.stems("any_value"):
        return True
    if names and (
        (stems[-1] == known.USE and any(word.content for word in after))
        or (last in known.folded("prepositions") and has("tool_verbs"))
        or any(tuple(stems[-length:]) in known.SINGLE_VALUED for length in (1, 2, 3))
    ):
        return True
    if after or last not in known.folded("be"):
        return False
    if has("only_one") or any(stem.startswith(known.ONLY_ONE_STARTS) for stem in stems):
        return names or not any(word.folded.endswith("ed") for word in values)
    return names and has("attributes")


def _all_names(*phrases: tuple[Word, ...]) -> bool:
    return all(phrase[0].is_name for phrase in phrases)


def _is_role(predicate: tuple[Word, ...]) -> bool:
    """Whether it names a role that one person has: `is the treasurer`, `leads the search team`."""
    if len(predicate) < 2:
        return False
    leads = predicate[0].stem in known.stems("role_verbs")
    is_role = predicate[0].folded in ("is", "ist", "est", "es") and predicate[1].follows_article
    return leads or is_role


def _phrase(words: tuple[Word, ...]) -> str:
    return " ".join(word.text for word in words)


# ── texts of any form, which may be duplicates ────────────────────────────────────────────────────────────────


def contradict(a_text: str, b_text: str) -> bool:
    """Return whether their numbers or dates differ, only one of them is negated, or one has a word's opposite.

    A number that only one text gives is more detail; a number in each that the other lacks is a difference. Two texts
    that are in conflict always contradict each other.
    """
    a, b = _normalize(a_text), _normalize(b_text)
    a_numbers, b_numbers = _numbers(a), _numbers(b)
    if (a_numbers - b_numbers and b_numbers - a_numbers) or _is_negated(a) != _is_negated(b):
        return True
    a_stems, b_stems = frozenset(analyze(a).words), frozenset(analyze(b).words)
    only_b = b_stems - a_stems
    if any(not only_b.isdisjoint(known.DIFFERENT[word]) for word in a_stems - b_stems if word in known.DIFFERENT):
        return True
    return bool(find_conflict(a_text, b_text) or find_conflict(b_text, a_text))


def numbers_and_dates(text: str) -> frozenset[str]:
    """Return the numbers and the words for dates in a text."""
    return frozenset(_numbers(_normalize(text)))


def _normalize(text: str) -> str:
    text = text[:READ_LIMIT]
    return fold(text if text.isascii() else unicodedata.normalize("NFKC", text))


def _words(text: str) -> list[str]:
    return _WORD.findall(_APOSTROPHE.sub("", text))


def _numbers(text: str) -> Counter[str]:
    found = Counter(_NOISE.sub("", number) for number in _NUMBER.findall(text))
    found.update(_NUMBERS.get(word, word) for word in _words(text) if word in _NUMBERS or word in _DATE_WORDS)
    return found


def _is_negated(text: str) -> bool:
    return not known.ANY_NEGATIONS.isdisjoint(_words(text)) or _NEGATION_INSIDE.search(text) is not None
