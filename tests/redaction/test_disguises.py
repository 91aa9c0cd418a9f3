"""Secrets in disguise: keys as readers, editors and web pages show them, tokens in pieces, base64, commands."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from itertools import product

import pytest

from mindex.redaction.redactor import Redactor
from tests.redaction.secret_values import KINDS, make_value, private_key

REDACT = Redactor()
NAMES = {
    "RSA": "RSA PRIV" + "ATE KEY",
    "OpenSSH": "OPENSSH PRIV" + "ATE KEY",
    "PGP": "PGP PRIV" + "ATE KEY BLOCK",
    "PKCS 8, encrypted": "ENCRYPTED PRIV" + "ATE KEY",
}
HEADERS = {
    "no header": "",
    "encrypted": "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF0123456789ABCDEF\n\n",
    "version": "Version: GnuPG v2\nComment: none\n\n",
}


def _numbered(form: str) -> Callable[[list[str]], str]:
    return lambda lines: "\n".join(form.format(number, line) for number, line in enumerate(lines, start=95))


SHOWN: dict[str, Callable[[list[str]], str]] = {
    "as it is": "\n".join,
    "with CRLF": "\r\n".join,
    "cat -n": _numbered("{:6}\t{}"),
    "an arrow": _numbered("{:6}→{}"),
    "grep -n": _numbered("{}:{}"),
    "grep -n -A": _numbered("{}-{}"),
    "a bar": _numbered("{:4} | {}"),
    "less -N": _numbered("{:7}  {}"),
    "quoted": lambda lines: "\n".join(f"> {line}" for line in lines),
    "quoted twice": lambda lines: "\n".join(f">> {line}" for line in lines),
    "HTML": "<br>".join,
    "HTML with lines": "<br/>\n".join,
    "JSON": lambda lines: json.dumps({"key": "\n".join(lines)}),
    "JSON in JSON": lambda lines: json.dumps(json.dumps("\n".join(lines))),
    "a diff": lambda lines: "\n".join(f"+{line}" for line in lines),
    "removed in a diff": lambda lines: "\n".join(f"-{line}" for line in lines),
    "a comment": lambda lines: "\n".join(f"# {line}" for line in lines),
    "a comment in C": lambda lines: "\n".join(f"// {line}" for line in lines),
    "YAML": lambda lines: "key: |\n" + "\n".join(f"    {line}" for line in lines),
    "code": lambda lines: "\n".join(f'    "{line}\\n" +' for line in lines),
    "one line": " ".join,
}


@pytest.mark.parametrize("shown", SHOWN)
def test_a_private_key_is_removed_however_it_is_shown(shown: str) -> None:
    for name, header, truncated in product(NAMES.values(), HEADERS.values(), (False, True)):
        lines = private_key(random.Random(5), name, header).split("\n")
        pieces = [line[8:24] for line in lines[1:-1] if len(line) > 24 and ":" not in line]
        text = SHOWN[shown](lines[:-1] if truncated else lines)
        left = REDACT.redact_text(f"This is it:\n{text}\nand the text goes on.")
        assert not [piece for piece in pieces if piece in left], text
        assert "This is it:" in left and "the text goes on." in left, text
        assert REDACT.redact_text(left) == left, text


@pytest.mark.parametrize("wrapped", [False, True], ids=["one line", "wrapped"])
@pytest.mark.parametrize("name", NAMES)
def test_the_base64_of_a_private_key_is_removed(name: str, wrapped: bool) -> None:
    key = private_key(random.Random(5), NAMES[name]).encode()
    text = (base64.encodebytes if wrapped else base64.b64encode)(key).decode()
    left = REDACT.redact_text(f"certs:\n{text}\nand the text goes on.")
    assert not [line for line in text.split() if line[8:24] in left]
    assert left == "certs:\n[redacted:private-key]\nand the text goes on." or wrapped


def test_a_certificate_and_a_public_key_are_not_secrets() -> None:
    for name in ("CERTIFICATE", "PUBLIC KEY", "PGP PUBLIC KEY BLOCK"):
        text = private_key(random.Random(5), name)
        assert REDACT.redact_text(text) == text


TOKENS = [
    "github personal token", "anthropic api key", "aws access key", "stripe secret key", "google api key", "npm token",
    "slack bot token", "sendgrid key", "docker hub token", "gitlab personal token", "json web token", "heroku key",
    "postman key", "openai key",
]  # fmt: skip


def _token(name: str) -> str:
    return make_value(KINDS[name], random.Random(9))


@pytest.mark.parametrize("hidden", ["\u034f", "\ufe0f", "\u200b", "\ufe00", "\U000e0100", "\u3164"])
def test_invisible_characters_hide_no_token(hidden: str) -> None:
    for name in TOKENS:
        left = REDACT.redact_text(f"use {hidden.join(_token(name))} for it")
        assert left.startswith("use [redacted:") and left.endswith("] for it"), name


def test_variation_selectors_that_emoji_need_stay() -> None:
    text = "1️⃣ ❤️ ☎️ #️⃣ ©️ はじめ"
    assert REDACT.redact_text(text) == text


@pytest.mark.parametrize("name", TOKENS)
def test_a_token_in_full_width_letters_is_found(name: str) -> None:
    wide = "".join(chr(ord(char) + 0xFEE0) for char in _token(name))
    left = REDACT.redact_text(f"使用 {wide} 。")
    assert wide[12:20] not in left and left.startswith("使用 [redacted:") and left.endswith(" 。")


@pytest.mark.parametrize("name", TOKENS)
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode], ids=["base64", "base64url"])
def test_the_base64_of_a_token_is_found(name: str, encode: Callable[[bytes], bytes]) -> None:
    for text in (_token(name), f"TOKEN={_token(name)}\n"):
        encoded = encode(text.encode()).decode()
        left = REDACT.redact_text(f"data: {encoded} end")
        assert encoded[12:24] not in left and left.endswith(" end")


@pytest.mark.parametrize("name", TOKENS)
def test_a_token_that_goes_on_in_the_next_line_is_removed_whole(name: str) -> None:
    token = _token(name)
    ends = ("\n", "\r\n", "\n    ", "\n> ", "\\\n", "<br>", "\\n")
    for place, end in product((10, len(token) // 2, len(token) - 8), ends):
        left = REDACT.redact_text(f"it is {token[:place]}{end}{token[place:]} and so on")
        assert token[place : place + 6] not in left and token[-6:] not in left and left.endswith(" and so on"), end


def test_a_line_after_a_token_is_not_part_of_it() -> None:
    token = _token("github personal token")
    for line in ("The next line.", "HOST_2=db1", "2. second point", "GitHub has it.", "path/to: x"):
        assert REDACT.redact_text(f"it is {token}\n{line}") == f"it is [redacted:github-token]\n{line}"


@pytest.mark.parametrize(
    ("before", "secret", "after"),
    [
        ("mysql -u root -p", "hunter22", " shop"),
        ("mysqldump -h db -p'", "S3cr3t!", "' shop > shop.sql"),
        ("curl -sS -u bob:", "hunter22", " https://example.com"),
        ("curl --user 'bob:", "hunter22", "' https://example.com"),
        ("sshpass -p ", "hunter22", " ssh bob@host"),
        ("docker login -u bob -p ", "hunter22", " registry.example.com"),
        ("redis-cli -h db -a ", "hunter22", " ping"),
        ("smbclient //host/share -U bob%", "hunter22", ""),
        ("sqlplus scott/", "tiger99", "@orcl"),
        ("connect as app_user/", "Zx7!kd9q", "@db.internal:1521/XE"),
        ("Cookie: ", "sid=8f3kd92kd0s; theme=dark", "\nHost: x"),
        ("the `Cookie: ", "sid=8f3kd92kd0s; theme=dark", "` header, which the server sets"),
        ("Set-Cookie: ", "session=Zx7Qp2Lm9Rt4; Path=/; HttpOnly", ""),
        ("password: |\n  ", "hunter22ab", "\nuser: x"),
        ("db:\n  password: >-\n    ", "Tr0ub4dor", "\n"),
        ("api_key: |-\n  ", "8f3kd92kd0sLLQ9x7", "\n"),
        ("- name: DB_PASSWORD\n  value: ", "TF1x3ok*pz9PJ6gr", "\n"),
        ("machine github.com\n  login bob\n  password ", "s3cr3tpw", "\n"),
        ("Gmail app password: ", "abcd efgh ijkl mnop", ""),
        ("the app-specific password is ", "qwzx-rtyp-bnmk-plok", ""),
        ("WordPress application password: ", "aB3d eF5h iJ7l mN9p qR1t uV3x", ""),
        ("my number is ", "219-09-9999", "."),
        ("SSN: ", "219 09 9999", ""),
        ("her social security number is ", "219099999", ""),
        ("the password was changed to ", "hunter22", ""),
        ("the wifi password (", "Zx7kd9q!", ")"),
    ],
)
def test_a_secret_is_known_by_its_place(before: str, secret: str, after: str) -> None:
    left = REDACT.redact_text(before + secret + after)
    assert left.startswith(before + "[redacted:") and left.endswith("]" + after)


def test_the_login_in_a_docker_configuration_is_removed() -> None:
    login = base64.b64encode(b"bob:hunter22").decode()
    assert login not in REDACT.redact_text(json.dumps({"auths": {"registry.example.com": {"auth": login}}}))


def test_the_key_of_a_kubeconfig_is_removed_and_the_certificate_stays() -> None:
    key, certificate = "LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFWS0tLS0t", "MIIDQTCCAimgAwIBAgITBmyfz5mjzQwMDAwM"
    left = REDACT.redact_text(f"client-certificate-data: {certificate}\nclient-key-data: {key}\n")
    assert key not in left and certificate in left
