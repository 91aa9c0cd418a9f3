"""The patterns of secrets: one table of kinds (private keys, API keys, tokens, passwords, cards).

Every pattern takes linear time on hostile text: repeats are possessive or bounded, and none has an open end before a
literal that may never come. A token matches as far as it can and requires nothing after it, so that replacing one
secret does not uncover another.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from mindex.redaction import secret_checks as checks

Check = Callable[[re.Match[str]], bool]

# A pattern with a check matches so many characters of a value; the rest of a secret is found when it is confirmed.
LIMIT = 128


@dataclass(frozen=True, slots=True)
class Rule:
    """The pattern is tried where one of `starts` occurs; without any, all over a text that has one of `hints`.

    The group `v` is the secret, or the whole match where there is no such group; `check` decides in the end.
    Rules in `any_case` have their `starts` in lower case.
    """

    kind: str
    pattern: re.Pattern[str]
    starts: tuple[str, ...] = ()
    check: Check | None = None
    any_case: bool = False
    hints: tuple[str, ...] = ()


def _token(kind: str, pattern: str, *starts: str, check: Check | None = None, hints: tuple[str, ...] = ()) -> Rule:
    return Rule(kind, re.compile(pattern), starts, check, hints=hints)


def _any_case(
    kind: str, pattern: str, starts: tuple[str, ...], check: Check | None = None, hints: tuple[str, ...] = ()
) -> Rule:
    return Rule(kind, re.compile(pattern, re.IGNORECASE), starts, check, any_case=True, hints=hints)


# Repeats of groups are atomic, `(?>…)`: Python before 3.11.5 has bugs in `(…)*+`.

# -- keys that are blocks of lines: PEM, PGP, PuTTY -------------------------------------------------------------

# Between the lines: quotes, the `\n` of JSON, comment and diff marks.
_BETWEEN = r"(?>(?:[\s\"'>|#*;,+]|\\[nrt]?|(?<=\n)-(?!-))*)"
_PRIVATE_KEY = (
    r"(?:-----BEGIN [A-Z0-9 ]{0,40}?PRIVATE KEY(?: BLOCK)?-----|Private-Lines: \d++)"
    rf"(?>(?:{_BETWEEN}[A-Za-z-]{{3,20}}: [^\n]{{0,200}}+){{0,10}})"
    rf"(?>(?:{_BETWEEN}[A-Za-z0-9+/=]{{16,}}+)+)"
    # The text up to END belongs to it; without END a short last line does when it has the padding of base64.
    r"(?:(?>(?:[^-]++|-(?!----))*)-----END [A-Z0-9 ]{0,40}?PRIVATE KEY(?: BLOCK)?-----"
    rf"|{_BETWEEN}[A-Za-z0-9+/]{{1,15}}={{1,2}})?"
)

# -- secrets after a word that names them -----------------------------------------------------------------------

_STAGE = r"(?>(?:[_-]?(?:prod|production|staging|live|dev|new|old|\d{1,2}))?)"
_PASSWORD = (
    r"(?:pass(?:word|wd|wort|phrase|code)|kennwort|contrase[ñn]a|mot[ _-]de[ _-]passe|senha|parola|wachtwoord|hasło"
    r"|пароль|密码|密碼|パスワード|비밀번호|(?<![a-z])(?:pwd|pass|psk)|(?-i:(?<=[a-z])P(?:ass|wd)))" + _STAGE
)
_SECRET = (
    r"(?:secret|token|(?:api|secret|access|private|auth|signing|encryption|master|account|client|license)[ _-]?key)"
    + _STAGE
)
_CJK_WORDS = ("密码", "密碼", "パスワード", "비밀번호")
_PASSWORD_WORDS = (*"pass pwd psk kennwort contrase mot senha parola wachtwoord hasło пароль".split(), *_CJK_WORDS)
_SECRET_WORDS = tuple("secret token api access private auth signing encryption master account client license".split())

# A value without quotes: `&`, `,` and `;` end it only before another field, a space or the line's end.
_BARE = r"(?:[^\s\"'`<>|&,;。，；、）」』]|[,;](?![\w.-]{0,40}[=:\s]|$)|&(?![\w.#-]{0,40}[=:;\s]|$))"
_QUOTED = r"(?:(?!(?P=q))(?:\\.|[^\n]))"
_END = r"(?<![.,;:)\]}?])"
_EQUALS = r"(?::(?![:/])|：|＝|={1,3}>?|:=|->)"
# Closing quote or bracket of the key, a type, bold marks; then a sign of assignment, a table's bar or just a space.
_ASSIGNED = (
    r"(?>(?:\\?[\"'`]\]?)?)(?::[ ]?[\w\[\]., |]{2,30}?(?=[ ]?=))?"
    rf"(?P<sep>[ \t]*+(?:\*\*)?{_EQUALS}(?:\*\*)?[ \t]*+|[ \t]*+\|[ \t]*+|[ ]++)(?>(?:[rbuf]{{1,2}}(?=[\"']))?)"
    rf"(?>(?P<q>\\?[\"'`])?)(?P<v>(?(q)(?>{_QUOTED}{{6,{LIMIT}}})|{_BARE}{{6,{LIMIT}}}{_END}))"
)
_STATED = (
    r"(?:[ ][^\n.:;!?=\"]{1,60}?)?[ ](?:is|was|are|ist|war|lautet|es|era|est|était|é|è|jest|это)"
    r"(?:[ ](?:now|still|currently|jetzt|ahora|maintenant))?:?[ ]++"
    rf"(?>(?P<q>[\"'`“„«])?)(?P<v>(?(q)[^\"'`”“»\n]{{6,{LIMIT}}}+|{_BARE}{{6,{LIMIT}}}{_END}))"
)
_STATED_CJK = rf"[ ]*+(?:是|为|為|は|는|은)[ ]*+(?>(?P<q>[\"'`“「『])?)(?P<v>[!-~]{{6,{LIMIT}}}+)"
_VALUE_FIRST = r"(?<!\S)(?P<v>\S{6,64}+)[ ](?:is|as)[ ](?:my|our|the|his|her|a)[ ](?:[\w-]{1,20}[ ]){0,2}" + _PASSWORD
_VALUE_FIRST_HINTS = ("passw", "Passw", "passphrase")
_TAGGED = rf">(?P<v>[^<>\s]{{6,{LIMIT}}}+)</"

_AUTHORIZATION = (
    r"authorization[\"']?[ \t]*+[:=,][ \t]*+[\"']?(?:bearer|basic|token|apikey)[ \t]++(?P<v>[\w+/=.~-]{8,}+)"
)
_URL_PASSWORD = r"://[^\s/:@\"'<>`]{0,99}+:(?P<v>[^\s/\"'<>`]{3,256})@(?=[\w.\[-])"
_PARAMETER = (
    r"[?&](?:[\w-]{0,40}?(?:token|sig|signature|secret|password|passwd|api[_-]?key|auth)|key)="
    rf"(?P<v>[^&\s\"'<>`#)\]]{{6,{LIMIT}}}+)"
)
# In groups as on the card, or in one run; not a piece of a longer number, a decimal, a hash or an id.
_CARD = r"\d(?<![\w.+-]\d)\d{3}(?:\d{10,15}|([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{3})?|([ -])\d{6}\2\d{4,5})(?![\w*]|[.-]\d)"

# The order is the precedence where two overlap: the more specific kind first.
RULES: tuple[Rule, ...] = (
    _token("private-key", _PRIVATE_KEY, "-----BEGIN ", "Private-Lines: "),
    _token("anthropic-key", r"sk-ant-[\w-]{16,}+", "sk-ant-"),
    _token("openai-key", r"sk-(?:proj|svcacct|admin|or|lf)-[\w-]{16,}+", "sk-"),
    _token("openai-key", rf"(?<![A-Za-z0-9])sk-[\w-]{{20,{LIMIT}}}+", "sk-", check=checks.is_mixed),
    _token("github-token", r"gh[pousr]_[A-Za-z0-9]{20,}+", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _token("github-token", r"github_pat_\w{20,}+", "github_pat_"),
    _token("gitlab-token", r"gl(?:pat|dt|rt|ptt|ft|soat|cbt|agent)-[\w-]{18,}+", "gl"),
    _token("slack-token", rf"(?:xox[abeoprs]|xapp)[-.][\w.-]{{10,{LIMIT}}}+", "xox", "xapp-", check=checks.is_mixed),
    _any_case(
        "slack-webhook", r"hooks\.slack\.com/(?P<v>(?:services|workflows|triggers)/[\w/-]{20,}+)", ("hooks.slack",)
    ),
    _token("aws-key", r"(?<![A-Za-z0-9+/])A[KS]IA[A-Z2-7]{16,}+", "AKIA", "ASIA", check=checks.is_not_sample),
    _any_case("aws-secret", r"aws.{0,20}?key[\"']?[ \t]{0,9}[:=][ \t]{0,9}[\"']?(?P<v>[A-Za-z0-9/+]{40})", ("aws",)),
    _token("google-key", r"AIza[\w-]{35,}+|GOCSPX-[\w-]{20,}+|ya29\.[\w-]{20,}+", "AIza", "GOCSPX-", "ya29."),
    _token("stripe-key", r"[srp]k_(?:live|test)_[A-Za-z0-9]{16,}+|whsec_[\w+/=]{24,}+", "sk_", "rk_", "pk_", "whsec_"),
    _token("sendgrid-key", r"SG\.[\w-]{16,}+\.[\w-]{16,}+", "SG."),
    _token("twilio-key", r"(?<![A-Za-z0-9])SK[0-9a-f]{32}", "SK"),
    _token("npm-token", r"npm_[A-Za-z0-9]{36,}+", "npm_"),
    _token("pypi-token", r"pypi-[\w-]{40,}+", "pypi-"),
    _token("huggingface-token", r"(?<![A-Za-z0-9])(?:hf|api_org)_[A-Za-z0-9]{30,}+", "hf_", "api_org_"),
    _token("groq-key", r"gsk_[A-Za-z0-9]{30,}+", "gsk_"),
    _token("xai-key", r"xai-[A-Za-z0-9]{40,}+", "xai-"),
    _token("perplexity-key", r"pplx-[A-Za-z0-9]{30,}+", "pplx-"),
    _token("digitalocean-token", r"do[opr]_v1_[0-9a-f]{40,}+", "dop_", "doo_", "dor_"),
    _any_case("azure-key", r"(?:account|access)key=(?P<v>[a-z0-9+/=]{40,}+)", ("accountkey=", "accesskey=")),
    _token("shopify-token", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}", "shp"),
    _token("databricks-token", r"(?<![A-Za-z0-9])dapi[0-9a-f]{32}", "dapi"),
    _token("notion-token", r"(?<![A-Za-z0-9])(?:ntn_|secret_)[A-Za-z0-9]{40,}+", "ntn_", "secret_"),
    _token("linear-key", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}+", "lin_"),
    _token("vault-token", r"(?<![A-Za-z0-9])hv[sb]\.[\w-]{24,}+", "hvs.", "hvb."),
    _token("atlassian-token", r"ATATT3[\w=-]{50,}+", "ATATT3"),
    _token("age-key", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}+", "AGE-SECRET-KEY-"),
    _token("telegram-token", r"(?<!\d)\d{8,10}:AA[\w-]{33}", hints=(":AA",)),
    _token("jwt", r"(?<![\w-])(?P<header>eyJ[\w-]{8,999}+)\.[\w-]{8,}+\.[\w-]*+", "eyJ", check=checks.has_jwt_header),
    _any_case("authorization", _AUTHORIZATION, ("authorization",), checks.is_in_link),
    _token("url-password", _URL_PASSWORD, "://", check=checks.is_in_link),
    _token("url-token", r"://(?P<v>[\w-]{20,256}+)@(?=[\w.\[-])", "://", check=checks.is_mixed),
    _any_case("url-token", _PARAMETER, ("?", "&"), checks.is_in_link),
    _token("card", _CARD, hints=tuple("23456"), check=checks.is_card),
    _any_case("password", _PASSWORD + _TAGGED, _PASSWORD_WORDS, checks.is_in_link),
    _any_case("password", _PASSWORD + _ASSIGNED, _PASSWORD_WORDS, checks.is_assigned_password),
    _any_case("password", _PASSWORD + _STATED, _PASSWORD_WORDS, checks.is_stated_password),
    _any_case("password", _PASSWORD + _STATED_CJK, _CJK_WORDS, checks.is_stated_password),
    _any_case("password", _VALUE_FIRST, (), checks.is_value_first, hints=_VALUE_FIRST_HINTS),
    _any_case("secret", _SECRET + _TAGGED, _SECRET_WORDS, checks.is_stated_secret),
    _any_case("secret", _SECRET + _ASSIGNED, _SECRET_WORDS, checks.is_assigned_secret),
    _any_case("secret", _SECRET + _STATED, _SECRET_WORDS, checks.is_stated_secret),
)
