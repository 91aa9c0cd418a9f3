"""The rules of secrets, in their order of precedence: private keys, tokens, addresses, commands, passwords.

Every pattern takes linear time on hostile text: repeats are possessive or bounded, and none has an open end before a
literal that may never come. A token matches as far as it can and requires nothing after it, so that replacing one
secret does not uncover another.
"""

from mindex.redaction import secret_checks
from mindex.redaction.nearby_passwords import account_pairs, login_pairs, nearby_passwords
from mindex.redaction.one_time_codes import one_time_codes, pins
from mindex.redaction.password_words import first_words, run_words, words_pattern
from mindex.redaction.tables import Find, Rule, load_parts, load_rules

_CHECKS = vars(secret_checks)
_WORDS = {"password_words": words_pattern("passwords")}
PASSWORD = load_parts("stated", _WORDS)["password"]
PASSWORD_WORDS = first_words("passwords")


def _near(tables: str, *finds: tuple[str, Find]) -> tuple[Rule, ...]:
    """The rules of secrets near the words of some tables: the words are looked for once for all of them."""
    words = tables.split()
    head, starts, in_run = f"(?:{words_pattern(*words)})", first_words(*words), run_words(*words)
    return tuple(Rule(kind, "", starts, any_case=True, head=head, find=find, in_run=in_run) for kind, find in finds)


# The order is the precedence where two overlap: the more specific kind first.
RULES: tuple[Rule, ...] = (
    *load_rules("private_keys", _CHECKS),
    *load_rules("tokens", _CHECKS),
    *load_rules("addresses", _CHECKS),
    *load_rules("commands", _CHECKS),
    *load_rules("stated", _CHECKS, _WORDS, {"password": PASSWORD_WORDS}),
    *_near(
        "passwords several_passwords colloquial codes one_time_codes pins",
        ("one-time-code", one_time_codes),
        ("pin", pins),
        ("password", nearby_passwords),
    ),
    *_near("logins accounts", ("password", login_pairs), ("password", account_pairs)),
)
