"""Passwords, PINs and codes as people write them in chats, notes, tickets and mails."""

from __future__ import annotations

import pytest

from mindex.redaction.redactor import Redactor
from tests.redaction.everyday_sentences import count_found, with_secrets, without_secrets

REDACT = Redactor().redact_text


def test_the_sentences_are_in_twelve_languages_and_many_styles() -> None:
    styles = {sentence.style for sentence in with_secrets()}
    assert len(with_secrets()) >= 150
    assert len({style.split()[0] for style in styles}) >= 12
    assert len({style.split()[1] for style in styles}) >= 10


@pytest.mark.parametrize(("held_aside", "share"), [(False, 0.97), (True, 0.85)])
def test_nearly_every_invented_secret_is_found(held_aside: bool, share: float) -> None:
    sentences = tuple(sentence for sentence in with_secrets() if sentence.held_aside == held_aside)
    found, missed = count_found(sentences, REDACT)
    assert found >= share * len(sentences), missed


def test_sentences_about_passwords_and_codes_stay_as_they_are() -> None:
    changed = [sentence.text for sentence in without_secrets() if REDACT(sentence.text) != sentence.text]
    assert len(changed) <= 3, changed


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("the pw is {}", "gato88x"),
        ("pw {} and enter", "Sommer2026!"),
        ("user bob pass {}", "hunter2"),
        ("creds: bob / {}", "hunter2"),
        ("login: bob {}", "k9#plumtree"),
        ("default admin / {}", "buildM3plz"),
        ("le mdp c'est {}", "croissant75"),
        ("la clave del wifi es: {}", "perroverde8"),
        ("пароль от сервера {}", "matr3shka"),
        ("пароль: {}", "зима2026"),
        ("Kennwort für das NAS auf {} gesetzt", "Keller#19"),
        ("hasło do wifi to {}", "pierogi77"),
        ("wachtwoord van jdevries gereset naar {}", "Zomer2026!"),
        ("密码改成{}了", "Gou!2026x"),
        ("비번은 {}이야", "kimchi77"),
        ("パスワードを {} に変更しました", "Natsu2026!"),
        ("{} <- that's the vault password", "Purple-Rain84"),
        ("entra con admin y {} de contraseña", "t0rtilla"),
        ("what's the wifi password?\nann: {}", "GuestHouse#5"),
        ("the password is {}", "correct horse battery staple"),
        ("my pw is {}", "swordfish"),
        ("the password is {}", "kTvqPzRwLm"),
        ("Pass for the tax zip = {}", "Ledger#2019"),
        ("a senha do e-mail mudou para {}", "Caju@9921"),
        ("服务器密码改成了{}", "Zhuhai@77"),
        ("guest/{} on the projector", "Welcome99!"),
        ("PIN: {}", "4711"),
        ("le digicode est {}", "47B12"),
        ("le mot de passe c’est {}", "Genievre88"),
        ("my pasword is {}", "Juniper88!"),
        ("pincode {}", "4410"),
        ("cambié la contra a {}", "Girasol!31"),
        ("zmieniłem hasło na {}", "Wisla#2044"),
        ("le mdp de la base est passé à {}", "Orage#2040"),
        ("비밀번호를 {} 로 바꿨어요", "Byeol#2031"),
        ("パスワードを {} に変更しました", "Sora#2031"),
        ("验证码是 {},请勿泄露", "883142"),
        ('"what\'s the netflix pass again?" "{}"', "sushi4Ever!"),
        ("connecte-toi avec luc / {}", "Moulin!a-vent3"),
        ("code wifi : {}", "violette-8841"),
        ("te paso la clave del banco: {}", "Roca&mar55"),
        ("كلمة مرور السيرفر: {}", "Zaytun!44"),
        ("pinkoden till larmet är {}", "9902"),
        ("暗証番号は{}です", "4410"),
        ("codice di sblocco {}", "441088"),
        ("{} is the code for the alarm", "8841"),
        ("{} ist die PIN für die Garage", "4471"),
        ("TAN für die Überweisung: {}", "771023"),
        ("der Türcode ist {}", "4471"),
        ("Passwort fürs NAS hab ich geändert, jetzt {}", "Zwiebel_88x"),
        ("поменял пароль, теперь {}", "Oblako_55x"),
        ("пароль от вайфая {}", "Berezka2021"),
        ("the password of the printer stayed {}", "0ldH4bits"),
        ("requirepass {}", "rabbit-hole-73"),
        ("my 2FA backup codes are\n1. {}", "a8f3-k2m9\n2. b7e2-l4n8"),
        ("Hab das Kennwort für Jira auf {} gesetzt.", "Winter2025"),
        ("E-mail\nann@example.org\nPassword\n{}\nSign in", "Giraffe!22"),
        ("enable secret 0 {}", "C1sc0Lab!"),
        ("snmp-server community {} RO", "pr1vateRO"),
        ("net use Z: \\\\srv\\share {} /user:corp\\jo", "Bluebell#3"),
        ("o código de acesso é {}", "440913"),
        ("recovery codes for github are {}", "k3j9-1mqp and 77ab-x0z2"),
        ("Your one-time code is {}.", "482913"),
        ("{} is your verification code", "771203"),
        ("Backup codes:\n{}", "7h2k-99qz\nm3p8-aa41\nx0x1-7g5t"),
        ("Kod jednorazowy: {}", "551 920"),
        ("您的一次性验证码是{}，请勿泄露", "440921"),
        ("jdbc:oracle:thin:scott/{}@//db:1521/X", "tiger7x"),
        ("//srv/share /mnt cifs user=svc,pass={},vers=3.0 0 0", "tiramisu"),
        ("<auth-user-pass>\nvpnuser\n{}\n</auth-user-pass>", "nQ4tunnel8"),
        ("db01:6432:inventory:stock:{}", "boxes4days"),
    ],
)
def test_the_secret_of_a_sentence_or_setting_is_replaced(text: str, secret: str) -> None:
    left = REDACT(text.format(secret))
    assert not any(part in left for part in secret.split("\n"))
    before, _, after = text.partition("{}")
    assert left.startswith(before) and left.endswith(after)


@pytest.mark.parametrize(
    ("text", "secrets"),
    [
        ("changed the db password from {} to {} today", ("Walrus!9", "Otter!10")),
        ("pw: {} -> {}", ("Walrus-91x", "Otter-92x")),
        ("old password was {}, new one {}", ("Marble-8", "Granite-19x")),
        ("Passwort von {} auf {} geändert", ("Winter!1", "Sommer!2")),
        ("ancien mdp {}, nouveau {}", ("Hiver2025!", "Printemps26!")),
        ("la contraseña pasó de {} a {}", ("Gato#1a", "Perro#2b")),
        ("пароль был {}, теперь {}", ("Zima!24x", "Leto!25x")),
        ("The passwords are {} and {}", ("Alpha!77x", "Beta?88y")),
        ("passwords: {} (web), {} (ftp)", ("Alpha!77x", "Beta?88y")),
        ("Passwörter: NAS {}, Router {}", ("Giraffe!22", "Elefant!33")),
    ],
)
def test_each_password_of_a_sentence_is_replaced(text: str, secrets: tuple[str, ...]) -> None:
    left = REDACT(text.format(*secrets))
    assert left.count("[redacted:") == len(secrets), left
    assert not any(secret in left for secret in secrets)


@pytest.mark.parametrize(
    "text",
    [
        "password: !vault |",
        "password: !secret wifi_password",
        "error code 482913",
        "the build failed with exit code 134217",
        "login() returned code 403221 again",
        "The login page shows error code 403221.",
        "sms gateway status code: 200441",
        "Anmeldung: Fehlercode 771023",
        "vérification: code d'erreur 550123",
        "パスワードの変更手順はwiki2024を参照",
        "Common passwords are listed in rockyou2024.txt",
        "We store 3 passwords and 2 keys in vault_v2.",
        "use admin/users?id=1 and guest/foo#L23 as routes",
        "entry 4471 is the pin connector",
        "the tan 4501 leather",
        "暗証番号は2024年に変更しました",
        "コードは4410番の門です",
        "the password is required",
        "pass python3.11 and utf8mb4 as arguments",
        "the password of user1 on db-01 expires on 2026-03-02",
        "Passwords are hashed with PBKDF2-SHA512 or argon2id",
        "one-time payment of 129900 cents",
        "the recovery code in raid5.c runs after a crash",
        "pin 13 drives the LED",
        "the password is stored on the server",
        "connect(user=user, password=other_password2)",
        "self.client.login(username='testuser1', password='12345')",
        "密码长度至少8位，必须包含数字和字母。",
        "postcode 10115, barcode 4006381333931",
        "export PASSWORD=`aws ecr get-login-password`",
        "the password hash starts with $2b$12",
        "La clave primaria es user_id2",
        "Jag glömde lösenordet till GitHub2",
        "Door code review: see PR #5512",
        "The pass@1 metric rose from 0.42 to 0.57 with GPT-4o",
        "Set the password field to varchar128 in the migration",
        "We moved the password reset to issue#4412",
        "My password manager is KeePassXC 2.7.6.",
        "The pass rate was 98.5% in run_42b.",
        "This pass is called LoopUnroll2 and runs after mem2reg.",
        "assert password == expected_password1",
        "The password policy v2 is called StrongAuth2.",
    ],
)
def test_a_sentence_about_secrets_without_one_stays(text: str) -> None:
    assert REDACT(text) == text
