"""What makes a string a password and not a word: classes of values, from digits among letters to plain words."""

import re
from enum import Enum, auto

from mindex.redaction.secret_checks import is_expression, is_placeholder, is_technical
from mindex.word_cache import WordCache


class Value(Enum):
    """The class of a string, by what it is made of."""

    STRONG = auto()  # letters, digits and a sign: `Sommer2026!`, `k9#plum`
    MIXED = auto()  # digits among letters, or two of them behind: `matr3shka`, `Falcon77x`
    ENDING = auto()  # a word with one digit, or with a dash or a year and digits: `hunter2`, `policy2025`, `step-12`
    SIGNED = auto()  # letters around a sign, a word and a number: `P@ssw!rd`, `Ledger#2019`
    DIGITS = auto()
    WORD = auto()
    OTHER = auto()  # a placeholder, an expression, a path, a version, a date …


_LETTER = re.compile(r"[^\W\d_]")
_DIGIT = re.compile(r"[0-9]")
_SIGN = re.compile(r"[!#$%*?~^@§€]")  # `+` and `&` are in `CD4+` and `R&D`
_SIGN_INSIDE = re.compile(r"[^\W_][!#$%*?~^@§€]+[^\W_]")
_DIGIT_BEFORE_LETTER = re.compile(r"[0-9][^\W\d_]")
_ENDING = re.compile(r"[^\W\d_]+(?:[0-9]|(?:19|20)\d\d)|[^\W\d_]*[a-z]-\d+|[^\W\d_]+[_-]\d")
# Ids of tickets, standards and norms: `INC0048213`, `RFC-2104`, `T2`.
_ID = re.compile(r"[A-Z]{1,8}[-_]?\d[\d.-]*[A-Z]?|\d{1,3}[A-Z]{1,3}|[A-Z]+-\d+-\d+|#\d+|\d+[.,]\d+\S{0,3}|[+~]?\d+[%+]")
_NUMBERED = re.compile(
    r"(?:user|admin|test|server|host|node|db|web|app|client|group|role|file|key|value|name|arg|param|field|line|page|step"
    r"|table|figure|section|chapter|part|level|version|release|build|port|column|row|item|example|foo|bar|baz|pod|vm|srv"
    r"|account|service|secret|token|pass(?:word)?|option|day|week|note|phase|opt|var|my\w{1,10}|team|issue)[-_]?\d+",
    re.IGNORECASE,
)
# Words of computing that have digits, and what may follow them without making a password of them.
_TECHNICAL = re.compile(
    r"(?:n?varchar|varbinary|bytea|python|py|java|php|node|perl|ruby|pkcs|pbkdf|argon|scram|ntlm|mschap|wpa|tls|ssl|ed|curve|x|secp|prime|[hrep]s"
    r"|aes|blake|crc|fido|arm|amd|aarch|win|h|web|log|psycopg|sqlite|mysql|postgres(?:ql)?|boto|jinja|pyqt|urllib|bs|neo"
    r"|auth|qt|gtk|vue|angular|es|css|html|utf|latin|cp|db|bcrypt|scrypt|sha|md|des|rsa|p|http|oauth|openid|saml|ldap|ipv"
    r"|usb|ddr|ieee|cve|rfc|iso|nist|fips|din|ubuntu|debian|fedora|centos|rhel|el|macos|ios|windows|office|exchange|sql"
    r"|openssl|libressl|covid|mod|base|krb|jdk|jre|oracle|ora|pop|smtp|imap|keepass|swagger|openapi|bip|slip|int|uint|float"
    r"|u|i|f|id|kb|gb|mb|cuda|numpy|pandas|glibc|musl|go|rust|net|dotnet|c|g|r|v|q|t|s|k|fy|level|layer|api|ps)[-_]?"
    r"\d[\d.]*(?:[-_.]?(?:[a-z]{1,3}|beta|alpha|dev|final|sum|crypt|encoded?|encoding|client|server|hash|hasher|password"
    r"hasher|sha\d+|md5|hmac\w*|certificate|session|provider|mb4|min\w*|only|compat\w*|like|based|style)\d{0,3})?"
    r"|(?:s3|ec2|k8s|k3s|l10n|i18n|a11y|o11y|p2p|b2b|e2e|r53|o365|m365|u2f|2fa|x86_64|i[36]86|3des|mp[34]|4k|5g|2d|3d|log4j"
    r"|1password|7zip|9p|web3|u2f|u\+[0-9a-f]+|x25519|secp\w+|prime\w+|nist\w+|brainpool\w+)(?:[-_.][\w.-]{0,12})?",
    re.IGNORECASE,
)
_NOT_ALONE = re.compile(
    r"[(){}\[\]<>|\\`\"=;,]|://|::|[^\W\d_]\.[^\W\d_]|\d\.\d|^[./~@:+-]|^\d+[.:/-]|/|\.\.|^#|^%|^&|^\$(?:[A-Za-z]|\w+\$)|'"
    r"|\.(?:txt|md|py|js|ts|sh|json|ya?ml|toml|csv|log|conf|cfg|ini|html?|xml|pdf|docx?|xlsx?|zip|gz|pem|key|crt|sql|db)$"
    r"|[_-]v\d+$|&(?:#\w+|[A-Za-z]+\d?)$|^\d+[*^]\w+$|^[Uu]\+[0-9A-Fa-f]+$"
)
_NUMBER_SIGN = re.compile(r"\w+#\d{4,}")  # `Ledger#2019`, and the ids of tickets and players


def _find_value_class(value: str) -> Value:
    """The class of `value`, a run without blanks and without the punctuation around it."""
    value = value.replace("\u2011", "-")
    if value.isdigit():
        return Value.DIGITS
    if is_placeholder(value) or is_technical(value) or _NOT_ALONE.search(value) or not _LETTER.search(value):
        return Value.OTHER
    if is_expression(value):
        return Value.OTHER
    digits = len(_DIGIT.findall(value))
    has_sign = bool(_SIGN.search(value))
    if not digits:
        return _class_without_digits(value)
    if has_sign and _NUMBER_SIGN.fullmatch(value):
        return Value.SIGNED
    if has_sign:
        return Value.STRONG if not _is_address(value) else Value.OTHER
    if _TECHNICAL.fullmatch(value) or _ID.fullmatch(value) or _NUMBERED.fullmatch(value):
        return Value.OTHER
    if _ENDING.fullmatch(value):
        return Value.ENDING
    return Value.MIXED if _DIGIT_BEFORE_LETTER.search(value) or digits > 1 else Value.ENDING


# Each of ten words around every `password` is asked for.
value_class = WordCache(_find_value_class, 8192).__getitem__


def _class_without_digits(value: str) -> Value:
    if _SIGN_INSIDE.search(value) and len(value) >= 6 and not _is_address(value):
        return Value.SIGNED
    return Value.WORD if _LETTER.search(value) else Value.OTHER


def _is_address(value: str) -> bool:
    """`bob@host7`, `R&D2`: names on both sides of one sign. `Caju@9921` is not one: no host is a number."""
    left, _, right = value.partition("@")
    return bool(_LETTER.search(right)) and left.replace("-", "").replace("_", "").isalpha() and not _SIGN.search(right)
