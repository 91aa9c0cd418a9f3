"""The rules of secrets in everyday words, which are found near a word and not by a pattern."""

from mindex.redaction import password_words as words
from mindex.redaction.login_pairs import account_pairs, login_pairs
from mindex.redaction.nearby_passwords import nearby_passwords
from mindex.redaction.one_time_codes import one_time_codes, pins
from mindex.redaction.rule import Find, Rule


def _rules(finds: tuple[tuple[str, Find], ...], *tables: words.Words) -> tuple[Rule, ...]:
    """Rules that look for the same words: these are looked for once."""
    head, starts = f"(?:{words.words_pattern(*tables)})", words.first_words(*tables)
    in_run = words.run_words(*tables)
    return tuple(Rule(kind, "", starts, any_case=True, head=head, find=find, in_run=in_run) for kind, find in finds)


EVERYDAY_RULES: tuple[Rule, ...] = (
    *_rules(
        (("one-time-code", one_time_codes), ("pin", pins), ("password", nearby_passwords)),
        words.PASSWORDS,
        words.SEVERAL_PASSWORDS,
        words.COLLOQUIAL,
        words.CODES,
        words.ONE_TIME_CODES,
        words.PINS,
    ),
    *_rules((("password", login_pairs), ("password", account_pairs)), words.LOGINS, words.ACCOUNTS),
)
