"""Redaction: what must never be stored, and what must come back as it was.

The fakes are put together at run time, so that no scanner finds a secret in this repository.
"""

from __future__ import annotations

import base64
import json
import re
import re._parser as parser  # type: ignore[import-not-found]  # the only way to see a pattern as a tree
import traceback
from collections.abc import Iterator
from time import process_time
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from mindex.errors import MindexError, SecretError
from mindex.redaction.patterns import RULES
from mindex.redaction.redactor import RedactionResult, Redactor

MIXED = "Zx7Qp2Lm9Rt4Vb8Ns1Wd6Kf3Hj5Gc0Ya2Ue7Io4Tq9Bn1Xs6Mv3Lz8Pw5Rk0Jd"
HEX = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
PIECES = {  # a first half and a second half
    "anthropic-key": ("sk-" + "ant-api03-", MIXED),
    "openai-key": ("sk-" + "proj-", MIXED),
    "github-token": ("gh" + "p_", MIXED[:36]),
    "gitlab-token": ("gl" + "pat-", MIXED[:20]),
    "slack-token": ("xo" + "xb-", "123456789012-" + MIXED[:24]),
    "slack-webhook": ("https://hooks.slack" + ".com/", "services/T0001/B0002/" + MIXED[:24]),
    "aws-key": ("AK" + "IA", "QWERTYUIOP234567"),
    "aws-secret": ("aws_secret_access_" + "key = ", MIXED[:40]),
    "google-key": ("AI" + "za", MIXED[:35]),
    "stripe-key": ("sk_" + "live_", MIXED[:24]),
    "sendgrid-key": ("S" + "G.", MIXED[:22] + "." + MIXED[:43]),
    "twilio-key": ("S" + "K", HEX[:32]),
    "npm-token": ("np" + "m_", MIXED[:36]),
    "pypi-token": ("py" + "pi-", MIXED),
    "huggingface-token": ("h" + "f_", MIXED[:34]),
    "groq-key": ("gs" + "k_", MIXED[:52]),
    "xai-key": ("xa" + "i-", MIXED),
    "perplexity-key": ("ppl" + "x-", MIXED[:48]),
    "digitalocean-token": ("do" + "p_v1_", HEX),
    "azure-key": ("Account" + "Key=", MIXED + "/+=="),
    "telegram-token": ("123456789", ":A" + "A" + MIXED[:33]),
    "shopify-token": ("shp" + "at_", HEX[:32]),
    "databricks-token": ("da" + "pi", HEX[:32]),
    "notion-token": ("nt" + "n_", MIXED[:46]),
    "linear-key": ("lin_" + "api_", MIXED[:40]),
    "vault-token": ("hv" + "s.", MIXED[:24]),
    "atlassian-token": ("ATA" + "TT3", MIXED),
    "age-key": ("AGE-SECRET-" + "KEY-1", "Q2W4E6R8" * 8),
    "authorization": ("Authorization: " + "Bearer ", MIXED[:20]),
    "url-password": ("postgres://app:" + "kq8!", "zzTop@db.internal:5432/main"),
    "url-token": ("https://api.host/x?access_" + "token=", MIXED[:24]),
    "card": ("4111 1111 ", "1111 1111"),
    "password": ("password=" + "hunter", "22"),
    "secret": ("client_" + "secret: ", MIXED[:24]),
    "jwt": (
        base64.urlsafe_b64encode(json.dumps({"alg": "HS256"}).encode()).decode().rstrip("="),
        "." + base64.urlsafe_b64encode(b'{"sub":"ada lovelace"}').decode().rstrip("=") + "." + MIXED[:43],
    ),
    "private-key": (
        "-----BEGIN RSA PRIV" + "ATE KEY-----\n",
        f"{MIXED}\n{MIXED}\nabc=\n-----END RSA PRIV" + "ATE KEY-----",
    ),
}
SECRETS = {kind: "".join(halves) for kind, halves in PIECES.items()}


REDACT, STRICT, OFF = Redactor(), Redactor("strict"), Redactor("off")


def redacted(text: str) -> str:
    return REDACT.redact_text(text)


# -- secrets ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_is_replaced_by_its_kind(kind: str) -> None:
    result = REDACT.redact(f"We use {SECRETS[kind]} for now.")
    assert result.redacted == (kind,)
    assert result.text.startswith("We use ") and result.text.endswith(" for now.")
    assert f"[redacted:{kind}]" in result.text
    assert PIECES[kind][1][:12] not in result.text


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("my password is ", "hunter22", ""),
        ("My password is ", "swordfish", "."),
        ("the wifi password: ", "correct-horse", ""),
        ('the wifi password is "', "correct horse battery", '"'),
        ("The password for the guest wifi is now ", "sunny-day-42", ", ask Anna"),
        ("", "Tr0ub4dor&3", " is my password"),
        ("log in as bob with password ", "hunter22", " please"),
        ("**Password:** ", "hunter22", ""),
        ("| password | ", "hunter22ab", " |"),
        ("Das Passwort lautet ", "Sommer2024!", ""),
        ("La contraseña del wifi es ", "gato-negro7", ""),
        ("Le mot de passe est ", "soleil99", "."),
        ("пароль: ", "privet123", ""),
        ("密码是", "hunter22", "。"),
        ("密码：", "hunter22", "。"),
        ("パスワードは ", "hunter22", " です"),
    ],
)
def test_a_password_in_a_sentence_is_replaced(before: str, value: str, after: str) -> None:
    assert redacted(before + value + after) == f"{before}[redacted:password]{after}"


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("password=", "hunter22", ""),
        ("export DB_PASSWORD=", "correcthorse", "\n"),
        ("  password: ", "swordfish", "\n  user: bob"),
        ("pwd = '", "sword-fish", "'"),
        ('{"user": "bob", "password": "', "swordfish", '", "port": 1}'),
        ('\\"password\\": \\"', "swordfish", '\\"'),
        ('config["password"] = "', "swordfish", '"'),
        ('password: str = "', "swordfish", '"'),
        ("password = b'", "swordfish", "'"),
        ("password=", "rubber22", "&user=x"),
        ("Server=db;Password=", "P@ss;w0rd", ";Database=x"),
        ("<password>", "hunter22", "</password>"),
        ("mysql --password ", "hunter22", " -h db"),
        ("password: ", "$tr0ngPw!", ""),
    ],
)
def test_a_password_in_an_assignment_is_replaced(before: str, value: str, after: str) -> None:
    assert redacted(before + value + after) == f"{before}[redacted:password]{after}"


@pytest.mark.parametrize("key", ["api_key", "api-key", "apiKey", "access_token", "client_secret", "x-api-key", "token"])
@pytest.mark.parametrize("form", ["{}={}", "{}: {}", '"{}": "{}"', "{} = '{}'", "export {}={}", "<{0}>{1}</{0}>"])
def test_tokens_in_assignments_are_replaced(key: str, form: str) -> None:
    assert MIXED[:20] not in redacted(form.format(key, MIXED[:20]))


@pytest.mark.parametrize(
    "line",
    [
        "the password must have 12 characters",
        "reset your password, then pass the api_key argument; token count: 128000",
        "secret: see vault",
        "Password: required",
        "The password is case-sensitive and the token is valid for 15 minutes.",
        "my password is expired, my token was revoked, the password is base64-encoded",
        "Das Passwort ist abgelaufen",
        "La contraseña es obligatoria",
        "密码是必填项，用户登录系统时必须输入正确",
        "password = get_password()",
        "password = os.environ['PASSWORD']",
        "api_key: str",
        "api_key: str | None = None",
        "token = tokens[i]",
        "private_key: ed25519.Ed25519PrivateKey | Ed448PrivateKey",
        "def f(password=None, token='', secret: str = DEFAULT):",
        "connect(user=user, password=other_password2)",
        "self.password = credentials",
        "password = getpass.getpass('Password: ', stream=None)",
        "password: ${DB_PASSWORD}",
        "token: ${{ secrets.GITHUB_TOKEN }}",
        "password: <password>",
        "password: ********",
        "password: changeme",
        "api_key = 'YOUR_API_KEY'",
        "Authorization: Bearer <token>",
        "postgres://user:password@localhost/db",
        "secretName: my-app-tls",
        "| Name | Password | Token |\n|---|---|---|\n| bob | string | required |",
        "sk-learn and sk-learn-contrib-style-estimators, ghp_ alone, AKIA alone",
        "part AKIAZ7QF3KD9XPLM2WNT of the drawsheet, aws: AKIA0000000000000000, AWS key AKIAZ7QF3KD9XPLM2WNT7",
        f"commit {HEX[:40]}",
        f"sha256:{HEX}",
        "123e4567-e89b-12d3-a456-426614174000",
        "v1.2.3-rc.1+build.5",
        "ISBN 978-3-16-148410-0, 9783161484100",
        "+49 170 1234567890, order 4111111111111112, 1700000000000",
        "2024-01-02T03:04:05.123456Z",
        "0.4111111111111111 and 41111111111111110000 and a4111111111111111",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1234567890abcdef bob@example.com",
        "-----BEGIN PUBLIC KEY-----\n" + MIXED + "\n-----END PUBLIC KEY-----",
        "look for -----BEGIN PRIVATE KEY----- ... -----END PRIVATE KEY----- in it",
        "color: #4111ff; margin: 0 4px",
        "https://example.com:8080/path@v2?x=1&y=2 and git@github.com:a/b.git and mailto:bob@example.com",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUA",
        "compass=northwest1, bypass: yes-please, monkey=banana42",
        "the secret santa2024 draw, and the new password policy2025",
        "uses: actions/checkout@v4, docs/guide@main, @types/node@18.0.0",
        "Set-Cookie: theme=light; Path=/",
        "mysql -u root -p shop, docker run -p 8080:80 nginx, curl -u $USER:$PASS https://example.com",
        "tel 555-123-4567, part 12-34-5678, 2024-11-06",
        "password:\n  must have 8 characters\n",
        "description: |\n  The password of the user\n",
        "this that with from: words of four letters, none of them a password",
        '{"id": "msg_013Zva2CMHLNnXjNJJKqJ2EF", "input_tokens": 2095}',
        "https://www.youtube.com/watch?v=BgAlVknDFlQ&list=PL3MmuxUbc_hJed7dXYoJw8DoCuVHhGEQb has a token",
        "the token file-loader/src/app2/x86_64/v1beta1 is loaded by scikit-learn-1.2.3",
    ],
)
def test_ordinary_text_is_unchanged(line: str) -> None:
    assert REDACT.redact(line) == RedactionResult(line)
    assert REDACT.find(line) == ()


@pytest.mark.parametrize(
    "form", ["AWS_ACCESS_KEY_ID={}", "the Amazon key is {}.", '"accessKeyId": "{}"', "{} is our AWS id"]
)
def test_an_aws_key_id_of_any_digits_is_found_beside_a_word_for_it(form: str) -> None:
    key = "AKIA" + "Z7QF3KD9XPLM2WNT"
    assert Redactor().redact_text(form.format(key)) == form.format("[redacted:aws-key]")


def test_only_the_password_of_a_connection_string_is_replaced() -> None:
    assert (
        redacted("postgres://bob:" + "s3cr3t@pw" + "@db:5432/x") == "postgres://bob:[redacted:url-password]@db:5432/x"
    )


def test_kinds_are_named_once_in_the_order_of_the_text() -> None:
    token = SECRETS["github-token"]
    assert REDACT.redact(f"{SECRETS['card']}, {token}, {token}").redacted == ("card", "github-token")


def test_overlapping_secrets_are_one_named_by_the_more_specific_rule() -> None:
    assert redacted(f'api_key = "{SECRETS["openai-key"]}"') == 'api_key = "[redacted:openai-key]"'


@pytest.mark.parametrize("label", ["RSA ", "OPENSSH ", "ENCRYPTED ", "", "PGP "])
def test_a_private_key_is_replaced_whole_and_its_lines_can_stay(label: str) -> None:
    block = "BLOCK" if label == "PGP " else ""
    name = f"{label}PRIV" + f"ATE KEY {block}".rstrip()
    key = f"-----BEGIN {name}-----\nVersion: GnuPG v2\n\n{MIXED}\n{MIXED}\nshort\n=Ab1d\n-----END {name}-----"
    assert redacted(f"a\n{key}\nb") == "a\n[redacted:private-key]\nb"
    assert REDACT.redact(f"a\n{key}\nb", keep_lines=True).text == "a\n[redacted:private-key]" + "\n" * 7 + "\nb"


def test_a_truncated_private_key_is_replaced_to_its_end() -> None:
    key = "-----BEGIN PRIV" + f"ATE KEY-----\n{MIXED}\n{MIXED[:40]}"
    assert redacted(f"{key}\n\nThat was the key.") == "[redacted:private-key]\n\nThat was the key."


def test_a_private_key_in_json_is_replaced() -> None:
    key = "-----BEGIN PRIV" + f"ATE KEY-----\\n{MIXED}\\n{MIXED}\\n-----END PRIV" + "ATE KEY-----\\n"
    assert MIXED[:8] not in redacted(json.dumps({"private_key": key}))


def test_a_secret_longer_than_its_pattern_reads_is_replaced_to_its_end() -> None:
    assert redacted("password=" + MIXED * 9 + " and more") == "password=[redacted:password] and more"


# -- modes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SECRETS)
def test_strict_mode_refuses_a_secret_and_the_error_does_not_show_it(kind: str) -> None:
    with pytest.raises(SecretError) as raised:
        STRICT.redact(f"x {SECRETS[kind]} y")
    error = raised.value
    assert isinstance(error, MindexError) and error.kind == "secret"
    assert kind in error.message and "<private>" in error.hint
    assert error.__cause__ is None and error.__context__ is None
    shown = "".join([repr(error), str(error), repr(error.args), *traceback.format_exception_only(error)])
    assert not any(half[start : start + 8] in shown for half in PIECES[kind][1:] for start in range(len(half) - 7))


def test_strict_mode_accepts_private_sections() -> None:
    assert STRICT.redact(f"a <private>{SECRETS['jwt']}</private>") == RedactionResult("a ")


def test_off_mode_keeps_secrets_but_not_private_sections_and_invisible_characters() -> None:
    token = SECRETS["npm-token"]
    assert OFF.redact(f"{token}\u200b <private>x</private>") == RedactionResult(token + " ")


# -- private sections -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a <private>b</private> c", "a  c"),
        ("a<PRIVATE>b</Private>c", "a c"),
        ('a <private reason="x > y">b</private >c', "a c"),
        ("a <private>b <private>c</private> d</private> e", "a  e"),
        ("a <private>b", "a "),
        ("a <private>b <private>c</private> d", "a "),
        ("a <private \nb", "a "),
        ("a <private/> b", "a  b"),
        ("a </private> b", "a </private> b"),
        ("a <privateer> b", "a <privateer> b"),
        ("<pri<private>x</private>vate>a</private>", "<pri vate>a</private>"),
        ("<private<private>x</private> y>z", " y>z"),
        ("a <pri\u200bvate>b</private> c", "a  c"),
    ],
)
def test_private_sections_are_cut(text: str, left: str) -> None:
    assert redacted(text) == left


@pytest.mark.parametrize("tag", ["secret", "sensitive", "redact", "Secret"])
def test_other_tags_mark_private_sections_in_pairs(tag: str) -> None:
    assert redacted(f"a <{tag}>b</{tag}> c") == "a  c"
    assert redacted(f"a <{tag} kind='x'>b\n\nc</{tag} > d <{tag}>e</{tag}>") == "a  d "
    assert redacted(f"a <{tag}>b <{tag}>c</{tag}> d</{tag}> e") == "a  e"
    assert redacted(f"mount <{tag}> here, then <{tag}>b</{tag}> c") == f"mount <{tag}> here, then  c"


@pytest.mark.parametrize(
    "text", ["curl --user <secret> x", "</secret> a", "<secrets>a</secrets>", "<redact/>", "<secret>a</sensitive>"]
)
def test_a_tag_without_its_pair_is_a_placeholder(text: str) -> None:
    assert redacted(text) == text


def test_private_sections_of_different_tags_may_overlap() -> None:
    assert redacted("a <secret>b <private>c</secret> d</private> e") == "a  e"
    assert redacted("a <secret>b <private>c</secret> d") == "a "


def test_lines_after_a_private_section_keep_their_numbers() -> None:
    assert REDACT.redact("a\n<private>\nb\n</private>\nc", keep_lines=True).text == "a\n\n\n\nc"


# -- invisible characters ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "word",
    ["👩‍👩‍👧", "❤️‍🔥", "می‌خواهم", "क्‍ष", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "naïve", "日本語", "שלום"],
)
def test_joiners_that_scripts_and_emoji_need_stay(word: str) -> None:
    assert redacted(f"a {word} b") == f"a {word} b"


@pytest.mark.parametrize(
    "hidden", "\u200b \u200c \u200d \u2060 \ufeff \u202e \u2066 \u00ad \u200f \U000e0041".split(" ")
)
def test_an_invisible_character_is_removed_and_hides_no_secret(hidden: str) -> None:
    assert redacted(f"a{hidden}b") == "ab"
    token = SECRETS["anthropic-key"]
    assert redacted(hidden.join(token)) == "[redacted:anthropic-key]"


# -- find -------------------------------------------------------------------------------------------------------


def test_find_names_kind_and_line_and_shows_four_characters_at_most() -> None:
    token = SECRETS["github-token"]
    found = REDACT.find(f"one\ntwo {token}\n<private>\nmy password is hunter22\n</private>")
    assert [(hit.kind, hit.line) for hit in found] == [("github-token", 2), ("private", 3), ("password", 4)]
    assert [hit.preview for hit in found] == [token[:4] + "…", "<pri…", "hu…"]


def test_the_version_names_the_rules_and_the_mode_so_that_a_new_mode_indexes_files_again() -> None:
    assert [redactor.version for redactor in (REDACT, STRICT, OFF)] == ["b5redact", "b5strict", "b5off"]


def test_a_redactor_for_reading_never_refuses_a_text() -> None:
    token = SECRETS["npm-token"]
    assert STRICT.for_reading().redact_text(token) == "[redacted:npm-token]"
    assert OFF.for_reading().redact_text(token) == token


# -- laws -------------------------------------------------------------------------------------------------------

PARTS = st.sampled_from(
    [
        *SECRETS.values(),
        *(half for halves in PIECES.values() for half in halves),
        *"password=|password: |my password is |hunter22|token |secret=|<private>|</private>|<pri|vate>|<private ".split(
            "|"
        ),
        *[
            "'",
            '"',
            "`",
            "\\",
            "\n",
            " ",
            "\u200b",
            "\u200d",
            "[redacted:password]",
            "redacted:",
            "]",
            "@",
            "://",
            "&",
            ";",
            "4",
            "-",
        ],
    ]
)
HOSTILE = st.lists(PARTS | st.text(max_size=4), max_size=14).map("".join)
PROSE = st.text(st.sampled_from("abcdefghij klmnop.\n,éß日"), max_size=60)


@given(HOSTILE, st.booleans())
@example("AK" + "IAQWERTYUIOP234567" * 3, False)
def test_redaction_is_idempotent(text: str, keep_lines: bool) -> None:
    once = REDACT.redact(text, keep_lines=keep_lines)
    assert REDACT.redact(once.text, keep_lines=keep_lines) == RedactionResult(once.text)
    assert REDACT.find(once.text) == ()


@given(HOSTILE)
def test_with_keep_lines_the_number_of_lines_never_changes(text: str) -> None:
    assert REDACT.redact(text, keep_lines=True).text.count("\n") == text.count("\n")


@given(PROSE, st.sampled_from(sorted(SECRETS)), PROSE)
def test_no_secret_survives_in_prose(before: str, kind: str, after: str) -> None:
    secret = PIECES[kind][1][:10]
    assume(secret not in before + after)
    result = REDACT.redact(f"{before} {SECRETS[kind]} {after}")
    assert kind in result.redacted
    assert secret not in result.text


@given(st.text(st.characters(exclude_categories=["Cf", "Nd", "Cs"], exclude_characters=":=<|")))
def test_text_without_a_trigger_comes_back_equal(text: str) -> None:
    assume(
        not re.search(
            r"pass|pwd|psk|wort|hasło|парол|密|パス|비밀|contrase|senha|parola|secret|token|key|码|pw|pin|user|log",
            text,
            re.I,
        )
    )
    assert REDACT.redact(text) == RedactionResult(text)


@given(HOSTILE)
def test_strict_raises_exactly_when_redact_would_have_redacted(text: str) -> None:
    kinds = REDACT.redact(text).redacted
    if not kinds:
        assert STRICT.redact(text).text == REDACT.redact(text).text
        return
    with pytest.raises(SecretError):
        STRICT.redact(text)


# -- cost -------------------------------------------------------------------------------------------------------


def endless_repeats(parsed: Any) -> Iterator[Any]:
    """The operators of all repeats without an upper bound, anywhere in a parsed pattern.

    A repeat that is all of an atomic group counts as possessive: that is what the two mean.
    """
    for operator, argument in parsed:
        if operator is parser.ATOMIC_GROUP and len(argument) == 1 and argument[0][0] in REPEATS:
            yield parser.POSSESSIVE_REPEAT
            yield from endless_repeats(argument[0][1][2])
            continue
        if operator in REPEATS and argument[1] is parser.MAXREPEAT:
            yield operator
        for part in argument if isinstance(argument, (tuple, list)) else (argument,):
            for inner in part if isinstance(part, list) else (part,):
                if isinstance(inner, parser.SubPattern):
                    yield from endless_repeats(inner)


REPEATS = (parser.MAX_REPEAT, parser.MIN_REPEAT, parser.POSSESSIVE_REPEAT)


def test_a_repeat_without_a_bound_is_possessive() -> None:
    """So no text can make a pattern try all the ways to share its letters between two repeats."""
    for rule in RULES:
        parsed = parser.parse(rule.pattern.pattern, rule.pattern.flags)
        assert set(endless_repeats(parsed)) <= {parser.POSSESSIVE_REPEAT}, rule.kind


def test_the_walk_over_patterns_finds_what_it_looks_for() -> None:
    assert list(endless_repeats(parser.parse("(?:a|(?P<x>b+)){2}(?(x)c*|d)"))) == [parser.MAX_REPEAT] * 2


HOSTILE_UNITS = [
    *(
        "ghp_\n",
        "sk-" + "ant-a1B2c3D4e5F6g7H8\n",
        "aB3d\n",
        "> ",
        "12→",
        "mysql -p",
        "curl -u a:",
        "Cookie: a=",
        "000-",
    ),
    *(
        "QUJDRA" * 8 + "\n",
        "a/b",
        "app password abcd ",
        "password:\n  ",
        "ｓｋ－",
        "LS0tLS1CRUdJTiBQUklWQVRF\n",
        "1//0",
    ),
    *("a", "1", "4111 ", "password=", "password is ", "password ", 'password="', "api_key=x1", "token is a "),
    *(
        "pw ",
        "pw:",
        "otp 1234 ",
        "otp 1999 ",
        "login bob ",
        "user a/b9 ",
        "пароль ",
        "密码",
        "code ",
        "pin 1234",
        "pw a9 ",
    ),
    *("sk-", "sk-" + "ant-", "eyJ", "://a:", "&token=", "<private>", "<private ", "<private/>", "密码是"),
    "-----BEGIN PRIVATE KEY-----\nA: ",
]


@pytest.mark.slow
def test_a_megabyte_of_base64_that_breaks_at_its_end_is_done_in_seconds() -> None:
    """Each of its lines could be the first of a block."""
    start = process_time()
    REDACT.redact(("QUFB" * 15 + "\n") * 16_000 + "////" * 15)
    assert process_time() - start < 20


@pytest.mark.slow
@pytest.mark.parametrize("unit", HOSTILE_UNITS)
def test_a_megabyte_of_hostile_text_is_done_in_seconds(unit: str) -> None:
    """A third of a second to two; with the square of the length it would be many minutes."""
    start = process_time()
    REDACT.redact(unit * (1_000_000 // len(unit)))
    assert process_time() - start < 20
