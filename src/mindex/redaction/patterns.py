"""The rules of secrets, in their order of precedence: private keys, tokens, addresses, commands, passwords.

Every pattern takes linear time on hostile text: repeats are possessive or bounded, and none has an open end before a
literal that may never come. A token matches as far as it can and requires nothing after it, so that replacing one
secret does not uncover another.
"""

from mindex.redaction import secret_checks
from mindex.redaction.everyday_rules import EVERYDAY_RULES
from mindex.redaction.password_words import PASSWORDS, first_words, words_pattern
from mindex.redaction.private_keys import PRIVATE_KEY_RULES
from mindex.redaction.rule import Rule
from mindex.redaction.tables import load_parts, load_rules

_CHECKS = vars(secret_checks)
_WORDS = {"password_words": words_pattern(PASSWORDS)}
PASSWORD = load_parts("stated", _WORDS)["password"]
PASSWORD_WORDS = first_words(PASSWORDS)

# The order is the precedence where two overlap: the more specific kind first.
RULES: tuple[Rule, ...] = (
    *PRIVATE_KEY_RULES,
    *load_rules("tokens", _CHECKS),
    *load_rules("addresses", _CHECKS),
    *load_rules("commands", _CHECKS),
    *load_rules("stated", _CHECKS, _WORDS, {"password": PASSWORD_WORDS}),
    *EVERYDAY_RULES,
)
