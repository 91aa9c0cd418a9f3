"""Checks of a match: is it a secret, or a word about secrets, a placeholder, an expression? No check stores it."""

import base64
import binascii
import hashlib
import re

from mindex.redaction.password_words import GRAMMAR
from mindex.redaction.tables import Patterns

_PATTERN = Patterns("checks")
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def is_assigned_password(match: re.Match[str]) -> bool:
    """`password = "swordfish"`, not `password = get_password()`."""
    value, sep = match["v"], match["sep"]
    if not _can_be_assigned(match):
        return False
    if not _is_assignment(sep):
        return _is_apposed(match)
    if _PATTERN.dash.fullmatch(sep):
        return is_generated(match)
    if match["q"]:
        return not _is_label(value)
    if _is_strong(value) or value.isdigit():
        return True
    if not value.isalpha() or match.string[match.end() : match.end() + 1] not in ("", "\n"):
        return False
    if "=" not in sep:
        return value.islower() and not is_predicate(value)
    # A plain word is a setting of a shell or an INI file, unless the line reads like code.
    key = match[0].partition("=")[0].rstrip()
    return key.isupper() or (value.islower() and not _PATTERN.code.search(_before(match).rpartition("\n")[2]))


def is_assigned_secret(match: re.Match[str]) -> bool:
    """A token, not the type in `api_key: str`: tokens look random."""
    if not _can_be_assigned(match):
        return False
    if _PATTERN.dash.fullmatch(match["sep"]):
        return False
    return _is_random(match["v"]) if _is_assignment(match["sep"]) else _is_apposed(match)


def is_stated_password(match: re.Match[str]) -> bool:
    """`my password is hunter22`, not `the password is case-sensitive`."""
    value = match["v"].strip("*_~")
    if is_placeholder(value) or _PATTERN.verb.match(match[0]) or _PATTERN.other_thing.match(match[0]):
        return False
    if match["q"]:
        return not _is_label(value)
    if is_expression(value):
        return False
    if value.isalpha():  # a plain word is a password only after `my`, `our`, `her` …
        return (bool(_PATTERN.owner.search(_before(match))) and not is_predicate(value)) or _has_odd_case(value)
    return _is_strong(value) or value.isdigit()


def is_passphrase(match: re.Match[str]) -> bool:
    """`the password is correct horse battery staple`: four words or more, none of them of grammar."""
    parts = match["v"].split()
    return not GRAMMAR.intersection(parts) and not _PATTERN.said_of_it.fullmatch(parts[0])


def is_stated_secret(match: re.Match[str]) -> bool:
    """`the token is 8f3k…`, not `the token is invalid`."""
    value = match["v"]
    return not is_placeholder(value) and not is_expression(value) and _is_random(value)


def is_block_password(match: re.Match[str]) -> bool:
    """The line below `password: |`: one word, and no plain one."""
    value = match["v"].strip("\"'")
    return " " not in value and not is_placeholder(value) and (_is_strong(value) or value.isdigit())


def is_password_in_brackets(match: re.Match[str]) -> bool:
    """`the password (tR7!kd9q)`, not `the password (sha256)`."""
    value = match["v"]
    mixed = not value.islower() and not value.isupper() and not value.isdigit()
    return mixed and bool(_PATTERN.digit.search(value)) and not is_placeholder(value) and _is_strong(value)


def is_generated(match: re.Match[str]) -> bool:
    """A password as programs make them: a digit among letters of both cases, or a digit, letters and a sign."""
    return is_generated_password(match["v"])


def is_generated_password(value: str) -> bool:
    """Whether a value looks as if a program had made it: a digit among letters of both cases, or beside a sign."""
    has_case = value.lower() != value and value.upper() != value
    return (
        (has_case or bool(_PATTERN.sign.search(value)))
        and bool(_PATTERN.digit.search(value))
        and not is_placeholder(value)
        and not is_expression(value)
        and _is_strong(value)
    )


def is_value_first(match: re.Match[str]) -> bool:
    """`hunter22 is my password`: digits among letters, of any length."""
    value = match["v"]
    return len(_PATTERN.digit.findall(value)) > 1 and not is_placeholder(value) and _is_strong(value)


def is_in_link(match: re.Match[str]) -> bool:
    """A password or token of an address, a header or a tag, not the placeholder of one."""
    value = match["v"]
    return not is_placeholder(value) and value[0] != "[" and value.lower() not in ("pass", "pwd", "pw")


def is_mount_password(match: re.Match[str]) -> bool:
    """The password among the options of a mount, in any form; an argument of a call is not one."""
    line = match.string[max(0, match.start() - 200) : match.start()].rpartition("\n")[2]
    return "(" not in line and is_in_link(match) and not is_expression(match["v"])


def is_mixed(match: re.Match[str]) -> bool:
    """A random token has digits and letters; `sk-learn-style-estimators` has only words."""
    value = match[0][:64]
    digits = bool(_PATTERN.digit.search(value) and _PATTERN.letter.search(value))
    return (digits or len(_PATTERN.camel_case.findall(value)) >= 4) and len(set(value)) >= 8


def is_not_sample(match: re.Match[str]) -> bool:
    """The keys in Amazon's documentation contain EXAMPLE."""
    return "EXAMPLE" not in match[0]


def is_named_aws_key(match: re.Match[str]) -> bool:
    """A key id with digits that Amazon's own have not (0, 1, 8, 9), beside a word for one."""
    beside = _before(match) + " " + match.string[match.end() : match.end() + 20]
    return is_not_sample(match) and len(set(match[0])) > 6 and bool(_PATTERN.aws_word.search(beside))


def has_jwt_header(match: re.Match[str]) -> bool:
    header = match["header"]
    try:
        decoded = base64.urlsafe_b64decode(header + "=" * (-len(header) % 4))
    except (binascii.Error, ValueError):
        return False
    return decoded.startswith(b"{") and b'"' in decoded and decoded.rstrip().endswith(b"}")


def is_card(match: re.Match[str]) -> bool:
    digits = match[0].replace(" ", "").replace("-", "")
    if not _PATTERN.card.fullmatch(digits) or (match[0].startswith("4") and match[0].isdigit() and len(digits) == 19):
        return False  # nineteen in one run that begin with 4 are message ids far more often than cards
    doubled = (2 * int(d) for d in digits[-2::-2])
    return (sum(map(int, digits[-1::-2])) + sum(d - 9 if d > 9 else d for d in doubled)) % 10 == 0


def _before(match: re.Match[str]) -> str:
    return match.string[max(0, match.start() - 40) : match.start()]


def _is_assignment(sep: str) -> bool:
    return not sep.isspace() and "|" not in sep


def _can_be_assigned(match: re.Match[str]) -> bool:
    value = match["v"]
    if is_placeholder(value) or _PATTERN.other_key.search(_before(match)):
        return False
    if match["q"] == "`" and match["sep"] == "=" and _PATTERN.command.match(value):
        return False
    if match["q"]:
        return value[0] not in " ,;)+"  # such a quote closes a prompt: `getpass("Password: ", stream)`
    if is_expression(value):
        return False
    after = match.string[match.end() : match.end() + 1]
    return not ("=" in match["sep"] and after in ("(", ")", ",", "[") and value.isidentifier())  # a variable passed on


def _is_apposed(match: re.Match[str]) -> bool:
    """`| password | hunter22ab |`, `--password hunter22`, `with password hunter22`."""
    value = match["v"]
    if "|" in match["sep"]:
        return _is_random(value)
    if match["q"]:
        return is_generated_password(value)
    if _PATTERN.option.search(_before(match)):
        return _is_strong(value)
    if _before(match).endswith("_") and match[0].split(" ")[0].isupper():  # `ENV DB_PASSWORD X`
        return is_generated_password(value)
    if _PATTERN.sign.search(value) and not _PATTERN.short.match(match[0]):
        return value.lower() != value and is_generated_password(value)
    if _PATTERN.year_at_end.fullmatch(value) and not _PATTERN.preposition.search(_before(match)):
        return False  # `secret santa2024`
    digits = len(_PATTERN.digit.findall(value))
    return (
        digits > 1
        and value.isalnum()
        and value[0].isalpha()
        and _is_strong(value)
        and not _PATTERN.short.match(match[0])
    )


def is_placeholder(value: str) -> bool:
    """A word in the place of a secret, or the same few letters."""
    return bool(_PATTERN.placeholder.match(value)) or len(set(value.lower())) < 4


def is_expression(value: str) -> bool:
    """Code, not a value: a call, an attribute, a variable (`new_password2`), a tag of YAML (`!vault`)."""
    return bool(_PATTERN.expression.match(value))


def is_technical(value: str) -> bool:
    """A version, a date, an address, the name of an algorithm."""
    return bool(_PATTERN.technical.match(value))


def is_predicate(word: str) -> bool:
    """`expired`, `missing`, `readable`: what is said of a password."""
    return bool(_PATTERN.predicate.match(word))


def _is_strong(value: str) -> bool:
    """No plain word: letters with digits or signs among them (`hunter22`, `correct-horse`, `P@ssw!rd`)."""
    words = value.replace("_", "")
    return bool(_PATTERN.letter.search(words)) and not words.isalpha() and not is_technical(value)


def _has_odd_case(value: str) -> bool:
    """Capitals as in no word or name: `kTvqPzRw`, not `JavaScript`."""
    mixed = len(value) >= 8 and not value.isupper() and not value.islower() and value.isascii()
    return mixed and sum(map(len, _PATTERN.humps.findall(value))) * 2 < len(value)


def _is_label(value: str) -> bool:
    """`Enter your password`, as programs show it."""
    return value.replace(" ", "").isalpha() and bool(_PATTERN.label.search(value.lower()))


def is_random_token(value: str) -> bool:
    """A token that a machine made, and no placeholder or expression."""
    return not is_placeholder(value) and not is_expression(value) and _is_random(value)


def _is_random(value: str) -> bool:
    """Made by a machine: digits among letters, or many capitals inside."""
    value = value[:64]
    if len(value) < 10 or _PATTERN.technical.match(value) or _PATTERN.bracket_or_space.search(value):
        return False
    if "*" in value or "^" in value:  # a pattern, unless it has what password generators mix
        return bool(_PATTERN.digit.search(value)) and value.lower() != value and value.upper() != value
    digits, capitals = len(_PATTERN.digit.findall(value)), len(_PATTERN.camel_case.findall(value))
    return (digits > 1 and bool(_PATTERN.letter.search(value)) and len(set(value)) >= 7) or capitals * 6 > len(
        value
    ) >= 20


# -- secrets whose form or place names them ---------------------------------------------------------------------


def scrambled(value: str) -> bool:
    """Letters and digits alternate often, or in a way that no word has: a machine wrote this."""
    if len(set(value)) < 7:
        return False
    changes = len(_PATTERN.boundary.findall(value))
    if changes >= 4 and changes * 6 >= len(value):
        words = sum(map(len, _PATTERN.humps.findall(value)))
        if words * 8 < len(value) * 7:  # `ListRoute53HealthChecks` is made of words
            return True
    return len(value) >= 20 and changes >= 2 and bool(_PATTERN.consonants.search(value))


def _secret(match: re.Match[str]) -> str:
    return match["v"] if "v" in match.re.groupindex else match[0]


def is_scrambled(match: re.Match[str]) -> bool:
    """No words with digits: a prefix that code also has needs more than a digit."""
    return scrambled(_secret(match)[:64])


def is_command_password(match: re.Match[str]) -> bool:
    """`-pX`: not a port, a path, a variable or a word for the password."""
    value = match["v"]
    return (
        is_in_link(match) and not (value.isdigit() and len(value) < 6) and value[0] not in "-/$" and value[:2] != "rc"
    )


def is_slash_password(match: re.Match[str]) -> bool:
    """`scott/t1Ger!x@host`: digits with signs or with both cases, which names of packages rarely have."""
    value = match["v"]
    has_case = value.lower() != value and value.upper() != value
    return (
        bool(_PATTERN.digit.search(value))
        and (has_case or not value.replace("-", "").replace("_", "").isalnum())
        and (is_in_link(match) and "." not in value)
    )


def is_cookie(match: re.Match[str]) -> bool:
    """A cookie that identifies someone has a value that a machine made; `theme=dark; path=/` has none."""
    for pair in match["v"][:2000].split(";"):
        name, _, value = pair.strip().partition("=")
        if len(value) >= 8 and not _PATTERN.no_cookie.match(name) and not is_placeholder(value) and _is_strong(value):
            return True
    return False


def is_header_token(match: re.Match[str]) -> bool:
    value = match["v"]
    return (
        not is_placeholder(value) and bool(_PATTERN.digit.search(value)) and len(set(value)) >= 6 and "://" not in value
    )


def is_encoded_login(match: re.Match[str]) -> bool:
    """Base64 of `user:password`, or of anything a machine made."""
    text = decoded_text(match["v"])
    return ":" in text.strip(":") or (len(match["v"]) >= 16 and scrambled(match["v"]))


def is_basic_login(match: re.Match[str]) -> bool:
    """Base64 of `user:password` behind the word `Basic`."""
    return ":" in decoded_text(match["v"]).strip(":")


def decoded_text(value: str) -> str:
    """The text that `value` is the base64 of; empty when it is none, or no text."""
    data = value.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        text = base64.b64decode(data + "=" * (-len(data) % 4), validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return ""
    return text if text.replace("\n", "").replace("\r", "").replace("\t", "").isprintable() else ""


def has_discord_id(match: re.Match[str]) -> bool:
    """The first part of a Discord token is the base64 of a number."""
    return decoded_text(match[0].partition(".")[0]).isdigit()


def is_bitcoin_key(match: re.Match[str]) -> bool:
    """The last four bytes are a checksum."""
    number = 0
    for char in match[0]:
        number = number * 58 + _BASE58.index(char)
    data = number.to_bytes(39, "big").lstrip(b"\0")
    return hashlib.sha256(hashlib.sha256(data[:-4]).digest()).digest()[:4] == data[-4:]


def is_app_password(match: re.Match[str]) -> bool:
    """Four groups of four letters are also four words: of random letters some groups have no vowel or only vowels."""
    groups = re.split(r"[ -]", match["v"])
    if len(groups) == 6:
        return scrambled(match["v"].replace(" ", ""))
    return match[0].lower().startswith("app") or sum(not _PATTERN.vowel.search(group) for group in groups) > 1


def holds_key(match: re.Match[str]) -> bool:
    """`BEGIN … paste your key here … END` holds none: of base64 a third are capitals and a sixth are digits."""
    letters = "".join(_PATTERN.base64.findall(match["body"]))
    capitals = len(_PATTERN.capital.findall(letters))
    return len(letters) >= 40 and capitals * 6 > len(letters) and bool(_PATTERN.digit.search(letters))


def is_other_thing(text: str, start: int) -> bool:
    """Whether what is said at a place of a text is said of a `password manager`, a `pass rate`."""
    return bool(_PATTERN.other_thing.match(text, start))
