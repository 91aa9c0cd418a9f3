"""The patterns of secrets: one table of kinds (private keys, API keys, tokens, passwords, cards).

Every pattern takes linear time on hostile text: repeats are possessive or bounded, and none has an open end before a
literal that may never come. A token matches as far as it can and requires nothing after it, so that replacing one
secret does not uncover another.
"""

from mindex.redaction import secret_checks as checks
from mindex.redaction.everyday_rules import EVERYDAY_RULES
from mindex.redaction.password_words import PASSWORDS, first_words, words_pattern
from mindex.redaction.private_keys import PRIVATE_KEY_RULES
from mindex.redaction.rule import LIMIT, Rule, any_case
from mindex.redaction.tables import load_rules

# Repeats of groups are atomic, `(?>…)`: Python before 3.11.5 has bugs in `(…)*+`.

# -- secrets after a word that names them -----------------------------------------------------------------------

_STAGE = r"(?>(?:[_-]?(?:prod|production|staging|live|dev|new|old|\d{1,2}))?)"
PASSWORD = rf"(?:{words_pattern(PASSWORDS)}|(?-i:(?<=[a-z])P(?:ass|wd)))" + _STAGE
_SECRET = (
    r"(?:secret|token|(?:api|secret|access|private|auth|signing|encryption|master|account|client|license)[ _-]?key)"
    + _STAGE
)
_CJK_WORDS = ("密码", "密碼", "口令", "パスワード", "비밀번호")
PASSWORD_WORDS = first_words(PASSWORDS)
_SECRET_WORDS = tuple("secret token api access private auth signing encryption master account client license".split())

# A value without quotes: `&`, `,` and `;` end it only before another field, a space or the line's end.
_BARE = r"(?:[^\s\"'`<>|&,;。，；、）」』]|[,;](?![\w.-]{0,40}[=:\s]|$)|&(?![\w.#-]{0,40}[=:;\s]|$))"
_QUOTED = r"(?:(?!(?P=q))(?:\\.|[^\n]))"
_END = r"(?<![.,;:)\]}?])"
_EQUALS = r"(?::(?![:/])|：|＝|\?=|={1,3}>?|:=|->|→)"
# Closing quote or bracket of the key, a type, bold marks; then a sign of assignment, a table's bar or just a space;
# a tag or an anchor of YAML.
_ASSIGNED = (
    r"(?>(?:\\{0,7}[\"'`]\]?)?)(?::[ ]?[\w\[\]., |]{2,30}?(?=[ ]?=))?"
    rf"(?P<sep>[ \t]*+(?:\*\*)?{_EQUALS}(?:\*\*)?[ \t]*+|[ ][-–—][ ]|[ \t]*+\|[ \t]*+|[ ]++)"
    r"(?>(?:[rbuf]{1,2}(?=[\"'])|!!str[ ]|&[A-Za-z]\w{0,20}[ ])?)"
    rf"(?>(?P<q>'{{3}}|\"{{3}}|\\{{0,7}}[\"'`])?)(?P<v>(?(q)(?>{_QUOTED}{{6,{LIMIT}}})|{_BARE}{{6,{LIMIT}}}{_END}))"
)
_STATED = (
    r"(?:[ ][^\n.:;!?=\"]{1,60}?)?[ ](?:is|was|are|use|ist|war|lautet|es|era|est|était|é|è|jest|это)"
    r"(?:[ ](?:now|still|currently|jetzt|ahora|maintenant))?(?:[ ](?:changed|set|reset|rotated)[ ]to)?:?[ ]++"
    rf"(?>(?P<q>[\"'`“„«])?)(?P<v>(?(q)[^\"'`”“»\n]{{6,{LIMIT}}}+|{_BARE}{{6,{LIMIT}}}{_END}))"
)
_PASSPHRASE = (
    r"(?:[ ][^\n.:;!?=\"]{1,40}?)?(?::|[ ](?:is|was|=|->|→|ist|lautet|est|es))[ ]"
    r"(?-i:(?P<v>[a-z]{3,12}(?:[ ][a-z]{3,12}){3,7}+))(?=[.!,;)]?(?:[ ]*+(?:\n|\Z)|[.!)][ ]))"
)
_STATED_CJK = rf"[ ]*+(?:是|为|為|は|는|은)[ ]*+(?>(?P<q>[\"'`“「『])?)(?P<v>[!-~]{{6,{LIMIT}}}+)"
_VALUE_FIRST = r"(?<!\S)(?P<v>\S{6,64}+)[ ](?:is|as)[ ](?:my|our|the|his|her|a)[ ](?:[\w-]{1,20}[ ]){0,2}" + PASSWORD
_VALUE_FIRST_HINTS = ("passw", "Passw", "passphrase")
# The value of a YAML key in the lines below it.
_BLOCK = rf"[\"']?:[ \t]*+(?:[|>][+-]?\d?)?[ \t]*+\r?\n[ \t]{{1,20}}+(?P<v>[^\s:#-][^\n:]{{5,{LIMIT}}})(?=\r?\n|$)"
# `name: DB_PASSWORD` and `value: …` below it, as lists of variables have them.
_NAME_AND_VALUE = (
    r"[\w-]{0,20}[\"']?,?\s{1,40}+[\"']?value[\"']?[ ]?:[ ]?(?>(?P<q>[\"'])?)"
    rf"(?P<v>(?(q)(?>{_QUOTED}{{6,{LIMIT}}})|{_BARE}{{6,{LIMIT}}}{_END}))"
)
# `Password:` and the value alone in the next line; `password to X`; `"password", "X"` as arguments or attributes.
_NEXT_LINE = (
    rf"(?:[ ](?:is|ist|est|es))?:[ \t*]*+\r?\n(?:[ \t]*+\r?\n)?[ \t>]*+[\"'`]?(?P<v>[^\s\"'`]{{6,{LIMIT}}}+)[\"'`]?"
    r"[ \t]*+(?=\r?\n|\Z)"
)
_CHANGED_TO = (
    r"(?:[ ](?:for|of|from|on)[ ][^\n.:;!?\"]{1,40}?)?[ ]to:?[ ](?>(?P<q>[\"'`])?)"
    rf"(?P<v>(?(q)[^\"'`\n]{{6,{LIMIT}}}+|{_BARE}{{6,{LIMIT}}}{_END}))"
)
_ARGUMENT = rf"[\w-]{{0,20}}[\"'](?:[ ]?,|[ ]value[ ]?=)[ ]?[\"'](?P<v>[^\"'\n]{{6,{LIMIT}}}+)[\"']"
# Tags of HTML between the word and its value.
_MARKED_UP = (
    rf":?(?>(?:[ ]?</?[a-z]\w{{0,9}}>|&nbsp;)+)[:\s]{{0,4}}(?>(?:<[a-z]\w{{0,9}}>)?)(?P<v>[^\s<>\"'`]{{6,{LIMIT}}}+)"
)
_IN_BRACKETS = rf"[ ]\((?P<v>[^\s()]{{6,{LIMIT}}}+)\)"
_TAGGED = rf">(?P<v>[^<>\s]{{6,{LIMIT}}}+)</"

_AUTHORIZATION = (
    r"authorization[\"']?[ \t]*+[:=,][ \t]*+[\"']?(?:bearer|basic|token|apikey)[ \t]++(?P<v>[^\s\"'<>`,;]{8,}+)"
)
_URL_PASSWORD = r"://[^\s/:@\"'<>`]{0,99}+:(?P<v>[^\s/\"'<>`]{3,256})@(?=[\w.\[-])"
_PARAMETER = (
    r"[?&](?:[\w-]{0,40}?(?:token|sig|signature|secret|password|passwd|api[_-]?key|auth|[_-]key)|key)="
    rf"(?P<v>[^&\s\"'<>`#)\]]{{6,{LIMIT}}}+)"
)
# In groups as on the card, or in one run; not a piece of a longer number, a decimal, a hash or an id.
_CARD = r"\d(?<![\w.+-]\d)\d{3}(?:\d{10,15}|([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{3})?|([ -])\d{6}\2\d{4,5})(?![\w*]|[.-]\d)"

# The order is the precedence where two overlap: the more specific kind first.
RULES: tuple[Rule, ...] = (
    *PRIVATE_KEY_RULES,
    *load_rules("tokens", vars(checks)),
    any_case("authorization", _AUTHORIZATION, ("authorization",), checks.is_in_link),
    Rule("url-password", _URL_PASSWORD, ("://",), checks.is_in_link),
    Rule("url-token", r"://(?P<v>[\w-]{20,256}+)@(?=[\w.\[-])", ("://",), checks.is_mixed),
    any_case("url-token", _PARAMETER, ("?", "&"), checks.is_in_link),
    Rule("card", _CARD, check=checks.is_card, hints=tuple("23456")),
    *load_rules("commands", vars(checks)),
    any_case("password", _TAGGED, PASSWORD_WORDS, checks.is_in_link, head=PASSWORD),
    any_case("password", _BLOCK, PASSWORD_WORDS, checks.is_block_password, head=PASSWORD),
    any_case("password", _NAME_AND_VALUE, PASSWORD_WORDS, checks.is_in_link, head=PASSWORD),
    any_case("secret", _NAME_AND_VALUE, _SECRET_WORDS, checks.is_stated_secret, head=_SECRET),
    any_case("secret", _BLOCK, _SECRET_WORDS, checks.is_stated_secret, head=_SECRET),
    any_case("password", _ASSIGNED, PASSWORD_WORDS, checks.is_assigned_password, head=PASSWORD),
    any_case("password", _STATED, PASSWORD_WORDS, checks.is_stated_password, head=PASSWORD),
    any_case("password", _PASSPHRASE, PASSWORD_WORDS, checks.is_passphrase, head=PASSWORD),
    any_case("password", _STATED_CJK, _CJK_WORDS, checks.is_stated_password, head=PASSWORD),
    any_case("password", _NEXT_LINE, PASSWORD_WORDS, checks.is_generated, head=PASSWORD),
    any_case("password", _CHANGED_TO, PASSWORD_WORDS, checks.is_generated, head=PASSWORD),
    any_case("password", _ARGUMENT, PASSWORD_WORDS, checks.is_generated, head=PASSWORD),
    any_case("password", _MARKED_UP, PASSWORD_WORDS, checks.is_generated, head=PASSWORD),
    any_case("password", _IN_BRACKETS, PASSWORD_WORDS, checks.is_password_in_brackets, head=PASSWORD),
    any_case("password", _VALUE_FIRST, (), checks.is_value_first, hints=_VALUE_FIRST_HINTS),
    any_case("secret", _TAGGED, _SECRET_WORDS, checks.is_stated_secret, head=_SECRET),
    any_case("secret", _ASSIGNED, _SECRET_WORDS, checks.is_assigned_secret, head=_SECRET),
    any_case("secret", _STATED, _SECRET_WORDS, checks.is_stated_secret, head=_SECRET),
    *EVERYDAY_RULES,
)
