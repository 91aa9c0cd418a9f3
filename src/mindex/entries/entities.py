"""Entities: names of people, places, organisations, technologies, identifiers, acronyms, versions, @handles, #tags.

Found by rules alone. In doubt a word is a name: one too many costs a row, one missing costs an answer. So in German,
where every noun has a capital, nouns are also names.
"""

import re
from collections.abc import Iterator
from functools import cache

from mindex.analyzer import STOP_WORDS, word_set
from mindex.entries.summary import ABBREVIATIONS
from mindex.lexicon import dates, load

READ_LIMIT = 10_000  # characters: the names that a memory is about come early

# Never part of a name; they end a run of capitalised words ("Anna Monday"). Jan, April and June are also people.
_DATES = {*dates.MONTHS, *dates.MONTHS_SHORT, *dates.WEEKDAYS, *dates.WEEKDAYS_SHORT, "today", "tomorrow", "yesterday"}
_LISTS = load("names")
_NEVER_IN_NAMES = STOP_WORDS | (_DATES - {"jan", "april", "june"}) | word_set(_LISTS["never"])
_ORDINARY = word_set(_LISTS["ordinary"])
_NO_NAME = _NEVER_IN_NAMES | _ORDINARY
_NAME_STARTS = word_set(_LISTS["starts"])
_ABSTRACT = tuple(_LISTS["abstract"].split())
_COMPANY = word_set(_LISTS["company"])
_PROGRAM = word_set(_LISTS["program"])
_PRONOUNCEABLE = frozenset("aeiouy0123456789")

# `re` has no class for capitals: these are the Latin, Greek, Cyrillic and Armenian ones.
_UPPER = "".join(chr(code) for code in range(0x590) if chr(code).isupper())
_UNSPACED = re.compile("[\u0e00-\u0eff\u3005-\u3007\u3040-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f]")
_PARTICLE = "(?:van|von|der|den|de|del|della|di|da|dos|du|la|le|ten|ter|zu|bin|ibn|al|of|the)"
_QUOTED = re.compile(
    r"`(?P<code>[^`\n]{1,80})`|[\"“„«「『《](?P<name>[^\"“”„«»「」『』《》\n]{2,60})[\"”“»」』》]"
    r"|(?<!\w)'(?P<single>[A-Z][^'\n]{1,60})'(?!\w)"
)
_QUOTE = re.compile("[`'\"“„«「『《]")
_SHOUTED = re.compile(r"[A-Z](?<!\w.)[A-Z]*(?:['’][A-Z]+)?(?:,? [A-Z]+(?:['’][A-Z]+)?)+\b")


@cache
def _tokens(ascii_only: bool) -> re.Pattern[str]:
    """The pattern of words, names and terms. For ASCII it is the same in less than half the time."""
    upper, lower = ("A-Z", "[a-z]") if ascii_only else (_UPPER, rf"[^\W\d_{_UPPER}]")
    capital = rf"(?:Mc|Mac|[{upper}]['’])?[{upper}]{lower}++(?:-[{upper}]{lower}++)*+(?!\w|[./_+#-]\w|\+\+)"
    plain = rf"{lower}++(?![\w./_+\#@:-])"
    return re.compile(
        rf"""(?<!\w)(?=[\w@\#./~])(?:
        (?P<name>(?:van\ (?:der?|den)\ )?(?:(?:{capital}|[{upper}]\.)\ (?:{_PARTICLE}\ ){{0,2}}){{0,4}}{capital})
        | (?P<plain>{plain}(?>(?:\ (?!van\ ){plain})*)                     # all that follow, at once
          |https?://\S++|[^\s,;()"]{{100}}[^\s,;()"]*+)                    # no name is that long
        | (?P<sure> [\w.+-]{{1,64}}+@[\w-]+(?:\.[\w-]+)+                   # anna@example.com
          | (?<![/&])[@\#]\w[\w-]*+(?:[./]\w[\w-]*+)*+                     # @anna, #search
          | (?:[vV]\d+(?:\.\d+)*|\d+(?:\.\d+){{2,}})(?:-?(?:alpha|beta|rc)[.\d]*)?(?!\w)         # v2.1.4
          | (?:[\w.~-]*/)+[\w-]+\.\w{{1,8}}(?!\w) | (?:~|\.{{1,2}})?/\w[\w./-]*\w | [\w-]+(?:/[\w-]+){{2,}}  # a/b.py
          | [\w-]+\.(?:{"|".join(_LISTS["file"].split())})(?!\w)             # Node.js, config.toml
          | \w*[^\W_]_\w*[^\W_]\w*                                         # user_id
          | [^\W\d_]*[a-z][A-Z]\w* | [A-Z]{{2,}}[a-z]{{2,}}\w*             # FastAPI, iOS, HTTPServer
          | [A-Z][A-Za-z]*-?\d[\w-]*+ | [a-z]+\d+[a-z\d]*+(?![\w-])        # S3, GPT-4, sha256
          | [A-Z](?:\+\+|\#) | (?<!\.)\.[A-Z]\w+ )                         # C++, C#, .NET
        | (?P<acronym>[A-Z][A-Z0-9]{{1,5}}+(?:[/&-][A-Z0-9]{{1,6}}+)*+)(?=s?(?!\w))
        | (?P<hyphened>[a-z][a-z0-9]*+(?:-[a-z0-9]++)++)(?![\w])
        | \w+ )""",
        re.VERBOSE | (re.ASCII if ascii_only else 0),
    )


_COMPANY_SUFFIX = re.compile(
    r",? (?:GmbH(?: & Co\. KG)?|AG|LLC|SE|KG|AB|BV|PLC|S\.?A\.?|(?:Inc|Ltd|Corp|Co)\b\.?)(?!\w)"
)
_RELEASE_SUFFIX = re.compile(r" (?:v?\d+(?:\.\d+)+)(?![\w.%]*\w)")
# What follows a lone capitalised word at a sentence's start when it is a name: a list, or a verb of people.
_AFTER_NAME = re.compile(
    rf"""(?: ['’]s\b | ,?\ (?:and|or|&)?\ ?[{_UPPER}] | \s*(?:\n|$) | \ (?:{"|".join(_LISTS["verbs"].split())})\b )""",
    re.VERBOSE,
)
_Found = list[tuple[int, str]]  # where each name starts, and the name


def extract_entities(text: str, most: int = 20) -> tuple[str, ...]:
    """Return up to `most` names in order of first appearance, each once in its best-cased form."""
    text = text[:READ_LIMIT]
    found: _Found = []
    if _QUOTE.search(text):
        text = _QUOTED.sub(lambda quoted: _collect_quoted(quoted, found), text)
    text = _SHOUTED.sub(_blank_shouted, text)
    if not text.isascii():
        text = _UNSPACED.sub("\t", text)  # letters without spaces around them must not become part of a name
    lone: _Found = []  # capitalised words that only start a sentence: names if they are names elsewhere in the text
    for token in _tokens(text.isascii()).finditer(text):
        kind, start, end = token.lastgroup, token.start(), token.end()
        if kind == "name":
            for start, end, sure in _names(text, token):
                _add(text, start, end, found if sure else lone)
        elif kind == "sure" or (kind in ("acronym", "hyphened") and _is_term(token[0])):
            _add(text, start, end, found)
    if lone:
        known = {word for _, name in found for word in (name.casefold(), *name.casefold().split())}
        found += [(start, name) for start, name in lone if name.casefold() in known]
    best: dict[str, str] = {}
    for _, name in sorted(found, key=lambda one: one[0]):
        key = name.casefold()
        if key not in best or _casing(name) > _casing(best[key]):
            best[key] = name
    return tuple(best.values())[: max(0, most)]


def _collect_quoted(quoted: re.Match[str], found: _Found) -> str:
    """Add a quoted name to `found` and return commas in its place: offsets hold, runs of capitals end there."""
    name = quoted[quoted.lastgroup or 0].strip()
    words = name.split()
    capitals = sum(word[0].isupper() or word in ("of", "the", "and") for word in words)
    short = len(words) <= 4 if quoted.lastgroup == "code" else len(words) <= 6 and 2 * capitals > len(words)
    if not (short or len(words) == 1) or name.casefold() in _NO_NAME or not name[:1].strip("-") or name[-1] in ".,!?;:":
        return quoted[0]
    found.append((quoted.start(), name))
    return "," * len(quoted[0])


def _blank_shouted(run: re.Match[str]) -> str:
    """Return commas for `DO NOT DEPLOY`, which has an ordinary or a long word; leave `AWS IAM`, which is two names."""
    shouts = any(len(word) > 6 or word.casefold() in _NO_NAME for word in run[0].replace(",", "").split())
    return "," * len(run[0]) if shouts else run[0]


def _names(text: str, run: re.Match[str]) -> Iterator[tuple[int, int, bool]]:
    """Yield start and end of the names in a run of capitalised words, and whether each is surely one."""
    opens = _opens_sentence(text, run.start())
    position = run.start()
    name: list[tuple[int, int]] = []
    for word in (*run[0].split(" "), ""):
        end = position + len(word)
        if word and (word[0].islower() or _is_name_word(word, opens and position == run.start())):
            name.append((position, end))
        else:
            # Particles come between names; an initial at the end is part of none.
            while name and (text[name[-1][0]].islower() or text[name[-1][1] - 1] == "."):
                name.pop()
            while name and text[name[0][0]].islower() and not text.startswith("van ", name[0][0]):
                name.pop(0)
            if len(name) > 1 or (name and text[slice(*name[0])].casefold() not in _ORDINARY):
                sure = len(name) > 1 or not (opens and name[0][0] == run.start())
                yield name[0][0], name[-1][1], sure or _is_subject(text, *name[0])
            name = []
        position = end + 1


def _is_name_word(word: str, opens: bool) -> bool:
    folded = word.casefold()
    return folded not in _NEVER_IN_NAMES and not (opens and folded in _ORDINARY and folded not in _NAME_STARTS)


def _opens_sentence(text: str, start: int) -> bool:
    before = text[:start].rstrip(" \"'“„«([*_#>-•|")
    if not before.endswith("."):
        return not before or before[-1] in "\n!?。！？"
    return before[:-1].rpartition(" ")[2].casefold() not in ABBREVIATIONS


def _is_subject(text: str, start: int, end: int) -> bool:
    if text.endswith(_ABSTRACT, start, end):
        return False
    return bool(_AFTER_NAME.match(text, end) or _RELEASE_SUFFIX.match(text, end) or _COMPANY_SUFFIX.match(text, end))


def _is_term(word: str) -> bool:
    """Return whether a word is a term (`TTL`, `sqlite-vec`) and not prose (`NEVER`, `well-known`)."""
    if word[0].isupper():
        return word.casefold() not in _NO_NAME
    parts = word.split("-")
    return parts[-1] in _PROGRAM or any(len(part) > 1 and not set(part) & _PRONOUNCEABLE for part in parts)


def _add(text: str, start: int, end: int, found: _Found) -> None:
    """Add a name to `found`, with the company's form or the release after it (`Acme GmbH`; `Python`, `Python 3.11`)."""
    if text[start:end].casefold() in _COMPANY:
        return
    company = _COMPANY_SUFFIX.match(text, end)
    if company:
        end = company.end()
    elif text[end : end + 1] == "." and text[text.rfind(" ", start, end) + 1 : end].casefold() in _COMPANY:
        end += 1
    found.append((start, text[start:end]))
    if not company and (release := _RELEASE_SUFFIX.match(text, end)):
        found.append((start, text[start : release.end()]))


def _casing(name: str) -> int:
    """Rank spellings of one name: `iOS` over `Ios` over `IOS` over `ios`."""
    if name.islower() or name.isupper():
        return int(name.isupper())
    return 2 if name.istitle() else 3
