"""What a secret looks like: one table of kinds. Nothing here keeps, prints or raises what it looked at.

Every pattern is linear on hostile text: repeats are possessive or bounded, and none has an open end before a
literal that may never come. Tokens take all they can and ask for nothing after them, so that blanking one
secret does not uncover another.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass

Check = Callable[[re.Match[str]], bool]

# Patterns with a check look at so much of a value; what proves to be a secret is then followed to its end.
LIMIT = 512


@dataclass(frozen=True, slots=True)
class Rule:
    """The pattern is tried where one of `starts` stands; without any, wherever it matches in a text with one of `hints`.

    The group `v` is the secret, or the whole match where there is no such group; `check` has the last word.
    Rules in `any_case` have their literals in lower case.
    """

    kind: str
    pattern: re.Pattern[str]
    starts: tuple[str, ...] = ()
    check: Check | None = None
    any_case: bool = False
    hints: tuple[str, ...] = ()


# -- values: is this somebody's secret, or a word about secrets? ------------------------------------------------

_STAND_IN = re.compile(
    r"\[redacted:|[<{%]|\$[({A-Za-z_]|\.{3}|…|//|\.{0,2}/|~/|\w+://"
    r"|(?:your|my|the|some|an?|insert|enter|replace|put|use|new|old|confirm|test|fake)[-_. ]"
    r"|.{0,20}?(?:change.?me|placeholder|redacted|example|dummy|xxxx|\*\*\*|os\.environ|process\.env|getenv|-here)"
    r"|(?:none|null|nil|true|false|undefined|unset|default|optional|required|string|boolean|integer|number|object"
    r"|bytes|unicode|secret|hidden|masked|missing|unknown|invalid|incorrect|correct|stored|encrypted|hashed|expired"
    r"|wrong|strong|secure|visible|stolen|always|really|longer|simple|complex|random|private|public|unique|useless"
    r"|bearer|basic|forgotten|reset|login|\w*pass(?:word|wd|wort|phrase)?|\w*token|\w*secret|\w*key)s?\W*$",
    re.IGNORECASE,
)
_EXPRESSION = re.compile(r"[\w$@&*!.:>-]*[(\[{]|[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_][\w-]*)+$|[@&*]\w+$|\W*$")
_TECHNICAL = re.compile(
    r"(?:sha|md|base|aes|rsa|utf|pbkdf|argon|oauth|bcrypt|hmac|http|ipv|py|v|iso|rfc|x|win|oauth|1pass)[-_]?\d"
    r"|\d+[-.:/]?[a-z]*$|\d+(?:st|nd|rd|th)|\d+-[a-z]+|\d{4}-\d\d|[\w.+-]+@[\w-]+\.[a-z.]+$"
    r"|[a-z-]+-(?:\w*ed|\w*ive|\w*able|\w*ing|only|free|less|like|in|by|up|to|level|wide|side|time|sign|on)$",
    re.IGNORECASE,
)
_PREDICATE = re.compile(r".*(?:ed|ing|ly|able|ible|ous|ful|less|er|en)$")
_LABEL = re.compile(
    r"(?:enter|your|please|must|invalid|forgot|confirm|the|for|and|or|not|is|of|to|in|with)\b| \w*(?:ed|s)$"
)
_MINE = re.compile(r"\b(?:my|our|his|her|their|meine?|unser|mi|mon|notre|minha|mijn)\b[^.\n]{0,30}$", re.IGNORECASE)
_DIGIT = re.compile(r"[0-9]")
_LETTER = re.compile(r"[^\W\d_]")
_HUMP = re.compile(r"[a-z][A-Z]")
_OPTION = re.compile(r"--[\w-]*$")


def _is_stand_in(value: str) -> bool:
    return bool(_STAND_IN.match(value)) or len(set(value.lower())) < 4


def _is_strong(value: str) -> bool:
    """Nobody's word: letters with digits or signs among them (`hunter22`, `correct-horse`, `P@ssw!rd`)."""
    words = value.replace("_", "")
    return bool(_LETTER.search(words)) and not words.isalpha() and not _TECHNICAL.match(value)


def _is_random(value: str) -> bool:
    """What machines make: digits among letters, or capitals where no writer puts them."""
    value = value[:64]
    if len(value) < 10 or " " in value or _TECHNICAL.match(value):
        return False
    digits, humps = len(_DIGIT.findall(value)), len(_HUMP.findall(value))
    return (2 <= digits < len(value) and len(set(value)) >= 7) or humps * 6 > len(value) >= 20


def _assigned(match: re.Match[str], is_secret: Callable[[re.Match[str], str], bool]) -> bool:
    """What holds for `key = value` of any kind; `is_secret` judges the rest."""
    value, sep, quoted = match["v"], match["sep"], match["q"]
    if _is_stand_in(value) or not (quoted or not _EXPRESSION.match(value)):
        return False
    if sep.isspace() and not quoted and not _OPTION.search(match.string, max(0, match.start() - 40), match.start()):
        return _is_random(value) and value.isalnum()
    if "|" in sep:
        return _is_random(value)
    after = match.string[match.end() : match.end() + 1]
    if not quoted and "=" in sep and after in ("(", ")", ",", "[") and value.isidentifier():
        return False  # code passes a variable on
    return is_secret(match, value)


def _is_password(match: re.Match[str], value: str) -> bool:
    if match["q"]:
        return not (" " in value and _LABEL.search(value.lower()))
    if _is_strong(value) or value.isdigit():
        return True
    key, alone = match[0].split(match["sep"])[0], match.string[match.end() : match.end() + 1] in ("", "\n")
    return value.isalpha() and alone and (key.isupper() or (value.islower() and not _PREDICATE.match(value)))


def is_assigned_password(match: re.Match[str]) -> bool:
    return _assigned(match, _is_password)


def is_assigned_secret(match: re.Match[str]) -> bool:
    return _assigned(match, lambda _, value: _is_random(value))


def is_said(match: re.Match[str]) -> bool:
    """`my password is hunter22`, not `the password is case-sensitive`."""
    value = match["v"]
    if _is_stand_in(value):
        return False
    if match["q"]:
        return not _LABEL.search(value.lower())
    if _EXPRESSION.match(value):
        return False
    if value.isalpha():
        before = match.string[max(0, match.start() - 40) : match.start()]
        return bool(_MINE.search(before)) and not _PREDICATE.match(value)
    return _is_strong(value) or value.isdigit()


def is_said_secret(match: re.Match[str]) -> bool:
    value = match["v"]
    return not _is_stand_in(value) and not _EXPRESSION.match(value) and _is_random(value)


def is_in_link(match: re.Match[str]) -> bool:
    value = match["v"]
    return not _is_stand_in(value) and value.lower() not in ("pass", "pwd", "pw")


def is_mixed(match: re.Match[str]) -> bool:
    """A random token has digits and letters; `sk-learn-style-estimators` has only words."""
    value = match[0][:64]
    return bool(_DIGIT.search(value) and _LETTER.search(value)) and len(set(value)) >= 8


def has_jwt_header(match: re.Match[str]) -> bool:
    header = match["header"]
    try:
        decoded = base64.urlsafe_b64decode(header + "=" * (-len(header) % 4))
    except (binascii.Error, ValueError):
        return False
    return decoded.startswith(b"{") and b'"' in decoded and decoded.rstrip().endswith(b"}")


# First digits and lengths of the card networks.
_CARD = re.compile(
    r"4(?:\d{15}|\d{18})|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|6(?:011|5\d\d|4[4-9]\d)\d{12}|62\d{14}(?:\d{3})?|35(?:2[89]|[3-8]\d)\d{12}|3(?:0[0-5]|[68]\d)\d{11}"
)


def is_card(match: re.Match[str]) -> bool:
    digits = re.sub(r"\D", "", match[0])
    if not _CARD.fullmatch(digits) or len(set(digits)) < 2:
        return False
    doubled = (2 * int(d) for d in digits[-2::-2])
    return (sum(map(int, digits[-1::-2])) + sum(d - 9 if d > 9 else d for d in doubled)) % 10 == 0


# -- patterns ---------------------------------------------------------------------------------------------------


def _token(kind: str, pattern: str, *starts: str, check: Check | None = None) -> Rule:
    return Rule(kind, re.compile(pattern), starts, check)


def _worded(kind: str, pattern: str, *starts: str, check: Check | None = None) -> Rule:
    return Rule(kind, re.compile(pattern, re.IGNORECASE), starts, check, any_case=True)


# Between the lines of a key stand quotes, the `\n` of JSON, comment and diff marks.
_BETWEEN = r"(?:[\s\"'>|#*;,+]|\\[nrt]?|(?<=\n)-(?!-))*+"
_PRIVATE_KEY = (
    r"(?:-----BEGIN [A-Z0-9 ]{0,40}?PRIVATE KEY(?: BLOCK)?-----|Private-Lines: \d+)"
    rf"(?:{_BETWEEN}[A-Za-z-]{{3,20}}: [^\n]{{0,200}}+){{0,10}}+"
    rf"(?:{_BETWEEN}[A-Za-z0-9+/=]{{16,}}+)++"
    # The last line is short: it belongs when END follows, or when its padding says that it is base64.
    rf"(?:(?:{_BETWEEN}[A-Za-z0-9+/=]{{1,76}}+){{0,3}}{_BETWEEN}-----END [A-Z0-9 ]{{0,40}}?PRIVATE KEY(?: BLOCK)?-----"
    rf"|{_BETWEEN}[A-Za-z0-9+/]{{1,15}}={{1,2}})?"
)

_STAGE = r"(?:[_-]?(?:prod|production|staging|live|dev|new|old|\d{1,2}))?+"
_PASSWORD = (
    r"(?:pass(?:word|wd|wort|phrase|code)|kennwort|contrase[ñn]a|mot[ _-]de[ _-]passe|senha|parola|wachtwoord|hasło"
    r"|пароль|密码|密碼|パスワード|비밀번호|(?<![a-z])(?:pwd|pass|psk)|(?-i:(?<=[a-z])P(?:ass|wd)))" + _STAGE
)
_SECRET = (
    r"(?:secret|token|credential|(?:api|secret|access|private|auth|signing|encryption|master|account|client|license)"
    r"[ _-]?key)" + _STAGE
)
_CJK_WORDS = ("密码", "密碼", "パスワード", "비밀번호")
_PASSWORD_WORDS = (
    "pass",
    "pwd",
    "psk",
    "kennwort",
    "contrase",
    "senha",
    "parola",
    "wachtwoord",
    "hasło",
    "пароль",
    *_CJK_WORDS,
)
_SECRET_WORDS = (
    *("secret", "token", "credential", "api", "access", "private", "auth", "signing", "encryption", "master"),
    *("account", "client", "license"),
)

# What may stand without quotes: `&`, `,` and `;` end it only before another field, a space or the line's end.
_BARE = r"(?:[^\s\"'`<>|&,;。，；、）」』]|[&,;](?![\w.-]{0,40}[=:\s]|$))"
_QUOTED = r"(?:(?!(?P=q))(?:\\.|[^\n]))"
_END = r"(?<![.,;:)\]}?])"
_EQUALS = r"(?::(?![:/])|：|＝|={1,3}>?|:=|->)"
# Closing quote or bracket of the key, a type, bold marks; then what says "equals", a table's bar or just a space.
_ASSIGNED = (
    r"(?:\\?[\"'`]\]?)?+(?::[ ]?[\w\[\]., |]{2,30}?(?=[ ]?=))?"
    rf"(?P<sep>[ \t]*+(?:\*\*)?{_EQUALS}(?:\*\*)?[ \t]*+|[ \t]*+\|[ \t]*+|[ ]+)"
    rf"[rbu]{{0,2}}(?P<q>\\?[\"'`])?+(?P<v>(?(q){_QUOTED}{{6,{LIMIT}}}+|{_BARE}{{6,{LIMIT}}}{_END}))"
)
_SAID = (
    r"(?:[ ][^\n.:;!?=\"]{1,60}?)?[ ](?:is|was|are|ist|war|lautet|es|era|est|était|é|è|jest|это)"
    r"(?:[ ](?:now|still|currently|jetzt|ahora|maintenant))?:?[ ]++"
    rf"(?P<q>[\"'`“„«])?+(?P<v>(?(q)[^\"'`”“»\n]{{6,128}}+|{_BARE}{{6,128}}{_END}))"
)
_SAID_CJK = r"[ ]*+(?:是|为|為|は|는|은)[ ]*+(?P<q>[\"'`“「『])?+(?P<v>[!-~]{6,128}+)"

# The order is the precedence where two overlap: the more telling name first.
RULES: tuple[Rule, ...] = (
    _token("private-key", _PRIVATE_KEY, "-----BEGIN ", "Private-Lines: "),
    _token("anthropic-key", r"sk-ant-[\w-]{16,}+", "sk-ant-"),
    _token("openai-key", r"sk-(?:proj|svcacct|admin|or|lf)-[\w-]{16,}+", "sk-"),
    _token("openai-key", rf"(?<![A-Za-z0-9])sk-[\w-]{{20,{LIMIT}}}+", "sk-", check=is_mixed),
    _token(
        "github-token",
        r"github_pat_\w{20,}+|gh[pousr]_[A-Za-z0-9]{20,}+",
        "github_pat_",
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
    ),
    _token("gitlab-token", r"gl(?:pat|dt|rt|ptt|ft|soat|cbt|agent)-[\w-]{18,}+", "gl"),
    _token("slack-token", r"xox[a-z](?:\.xox[a-z])?-[\w-]{10,}+|xapp-\d-[\w-]{20,}+", "xox", "xapp-"),
    _worded(
        "slack-webhook", r"hooks\.slack\.com/(?P<v>(?:services|workflows|triggers)/[\w/-]{20,}+)", "hooks.slack.com/"
    ),
    _token("aws-key", r"(?<![A-Za-z0-9+/])A(?:KIA|SIA|BIA|CCA)[A-Z2-7]{16,}+", "AKIA", "ASIA", "ABIA", "ACCA"),
    _worded("aws-secret", r"aws.{0,20}?key[\"']?[ \t]{0,9}[:=][ \t]{0,9}[\"']?(?P<v>[A-Za-z0-9/+]{40})", "aws"),
    _token("google-key", r"AIza[\w-]{35,}+|GOCSPX-[\w-]{20,}+|ya29\.[\w-]{20,}+", "AIza", "GOCSPX-", "ya29."),
    _token(
        "stripe-key",
        r"[srp]k_(?:live|test)_[A-Za-z0-9]{16,}+|whsec_[A-Za-z0-9+/=]{24,}+",
        "sk_",
        "rk_",
        "pk_",
        "whsec_",
    ),
    _token("sendgrid-key", r"SG\.[\w-]{16,}+\.[\w-]{16,}+", "SG."),
    _token("twilio-key", r"(?<![A-Za-z0-9])SK[0-9a-f]{32}", "SK"),
    _token("npm-token", r"npm_[A-Za-z0-9]{36,}+", "npm_"),
    _token("pypi-token", r"pypi-[\w-]{40,}+", "pypi-"),
    _token("huggingface-token", r"(?<![A-Za-z0-9])(?:hf|api_org)_[A-Za-z0-9]{30,}+", "hf_", "api_org_"),
    _token("groq-key", r"gsk_[A-Za-z0-9]{30,}+", "gsk_"),
    _token("xai-key", r"xai-[A-Za-z0-9]{40,}+", "xai-"),
    _token("perplexity-key", r"pplx-[A-Za-z0-9]{30,}+", "pplx-"),
    _token("digitalocean-token", r"do[opr]_v1_[0-9a-f]{40,}+", "dop_", "doo_", "dor_"),
    _worded("azure-key", r"(?:Account|Access)Key=(?P<v>[A-Za-z0-9+/=]{40,}+)", "accesskey=", "accountkey="),
    Rule("telegram-token", re.compile(r"(?<!\d)\d{8,10}:AA[\w-]{33}"), hints=(":AA",)),
    _token("shopify-token", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}", "shp"),
    _token("databricks-token", r"(?<![A-Za-z0-9])dapi[0-9a-f]{32}", "dapi"),
    _token("notion-token", r"(?<![A-Za-z0-9])(?:ntn_|secret_)[A-Za-z0-9]{40,}+", "ntn_", "secret_"),
    _token("linear-key", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}+", "lin_"),
    _token("vault-token", r"(?<![A-Za-z0-9])hv[sb]\.[\w-]{24,}+", "hvs.", "hvb."),
    _token("atlassian-token", r"ATATT3[\w=-]{50,}+", "ATATT3"),
    _token("age-key", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}+", "AGE-SECRET-KEY-"),
    _token("jwt", r"(?<![\w-])(?P<header>eyJ[\w-]{8,999}+)\.[\w-]{8,}+\.[\w-]*+", "eyJ", check=has_jwt_header),
    _worded(
        "authorization",
        r"authorization[\"']?[ \t]*+[:=,][ \t]*+[\"']?(?:bearer|basic|token|apikey)[ \t]++(?P<v>[\w+/=.~-]{8,512}+)",
        "authorization",
        check=is_in_link,
    ),
    _token(
        "url-password", r"://[^\s/:@\"'<>`]{0,99}+:(?P<v>[^\s/\"'<>`]{3,256})@(?=[\w.\[-])", "://", check=is_in_link
    ),
    _token("url-token", r"://(?P<v>[\w-]{20,256}+)@(?=[\w.\[-])", "://", check=is_mixed),
    _worded(
        "url-token",
        r"[?&](?:[\w-]{0,40}?(?:token|sig|signature|secret|password|passwd|api[_-]?key|auth)|key)="
        rf"(?P<v>[^&\s\"'<>`#)\]]{{6,{LIMIT}}}+)",
        *("?", "&"),
        check=is_in_link,
    ),
    Rule(
        "card",
        re.compile(
            r"\d(?<![\w.+-]\d)\d{3}(?:\d{10,15}|([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{3})?|([ -])\d{6}\2\d{4,5})(?!\w|[.-]\d)"
        ),
        check=is_card,
        hints=tuple("23456"),
    ),
    _worded("password", _PASSWORD + rf">(?P<v>[^<>\s]{{6,{LIMIT}}}+)</", *_PASSWORD_WORDS, check=is_in_link),
    _worded("secret", _SECRET + rf">(?P<v>[^<>\s]{{6,{LIMIT}}}+)</", *_SECRET_WORDS, check=is_said_secret),
    _worded("password", _PASSWORD + _ASSIGNED, *_PASSWORD_WORDS, check=is_assigned_password),
    _worded("secret", _SECRET + _ASSIGNED, *_SECRET_WORDS, check=is_assigned_secret),
    _worded("password", _PASSWORD + _SAID, *_PASSWORD_WORDS, check=is_said),
    _worded("password", _PASSWORD + _SAID_CJK, *_CJK_WORDS, check=is_said),
    _worded("secret", _SECRET + _SAID, *_SECRET_WORDS, check=is_said_secret),
    Rule(
        "password",
        re.compile(
            r"(?<!\S)(?P<v>\S{6,64}+)[ ](?:is|as)[ ](?:my|our|the|his|her|a)[ ](?:[\w-]{1,20}[ ]){0,2}" + _PASSWORD,
            re.IGNORECASE,
        ),
        check=is_said_secret,
        hints=("password", "Password", "passwd", "passphrase"),
    ),
)
