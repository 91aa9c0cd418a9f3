"""The limits of the rules: what is just long, near or mixed enough to be a secret, and what is not."""

from __future__ import annotations

import re

import pytest

from mindex.redaction import secret_checks
from mindex.redaction.redactor import Redactor

REDACT = Redactor()
TOKEN = "Zx7Qp2Lm9Rt4Vb8" + "Ns1Wd6Kf3"


@pytest.mark.parametrize(
    ("secret", "other"),
    [
        ("mysql -u root -p482913 shop", "mysql -u root -p48291 shop"),
        ("the pw is K7!aq", "the pw is K7aq9"),
        (
            "the password of my old aunt who lives in the very blue a1B!x9Kq",
            "the password of my old aunt who lives in the very blue house a1B!x9Kq",
        ),
        ('login("password", "Tigerq12")', 'login("password", "tigerq12")'),
        (f"the key is {TOKEN}", f"Key {TOKEN}"),
        (f"our credential, {TOKEN}", f"our wing, {TOKEN}"),
    ],
    ids=["digits of a command", "length", "words between", "both cases", "key before", "name"],
)
def test_one_is_just_a_secret_and_the_other_is_not(secret: str, other: str) -> None:
    assert "[redacted:" in REDACT.redact_text(secret)
    assert REDACT.redact_text(other) == other


def test_seven_different_characters_may_be_scrambled() -> None:
    assert secret_checks.scrambled("a1B2c3d")
    assert not secret_checks.scrambled("a1B2c3")


@pytest.mark.parametrize(("value", "counts"), [("Tiger12", True), ("tiger12", False), ("TIGER12", False)])
def test_a_password_after_a_slash_has_both_cases(value: str, counts: bool) -> None:
    match = re.match(r"/(?P<v>\w+)", f"/{value}")
    assert match is not None and secret_checks.is_slash_password(match) is counts
