"""Passwords in places where people and programs write them: commands, code, tables, pages, other languages."""

import pytest

from mindex.redaction.redactor import Redactor

PASSWORD = "tR7!kd9qWx"
REDACT = Redactor()

PLACES = [
    "net user bob {} /add",
    r"net use \\srv\share /user:dom\bob {}",
    "cmdkey /add:srv /user:bob /pass:{}",
    "schtasks /create /tn x /ru bob /rp {}",
    r"psexec \\srv -u bob -p {} cmd",
    "echo '{}' | sudo -S apt update",
    'echo "bob:{}" | chpasswd',
    "echo {} | docker login -u bob --password-stdin",
    "htpasswd -b /etc/nginx/.htpasswd bob {}",
    "mysqladmin -u root password {}",
    "7z x -p{} a.7z",
    "xfreerdp /v:h /u:bob /p:{}",
    "keytool -list -keystore a.jks -storepass {}",
    "security add-generic-password -a bob -s x -w {}",
    "lftp -u bob,{} ftp://h",
    "plink -ssh bob@h -pw {}",
    'ConvertTo-SecureString "{}" -AsPlainText -Force',
    "nmcli dev wifi connect Home password {}",
    "    storePassword '{}'",
    "ENV DB_PASS {}",
    "set -x DB_PASSWORD {}",
    "DB_PASSWORD ?= {}",
    '<add key="DbPassword" value="{}" />',
    "define('DB_PASSWORD', '{}');",
    'props.setProperty("password", "{}");',
    "auth=('bob', '{}')",
    'new NetworkCredential("bob", "{}")',
    "CREATE USER bob WITH PASSWORD '{}';",
    "ALTER USER bob IDENTIFIED BY '{}';",
    "SET PASSWORD FOR 'bob'@'%' = PASSWORD('{}');",
    "password: !!str {}",
    "password: &db {}",
    "password = '''{}'''",
    '"\\"{{\\\\\\"password\\\\\\": \\\\\\"{}\\\\\\"}}\\""',
    "db.example.com:5432:app:bob:{}",
    "pw: {}",
    "password → {}",
    "Password - {}",
    "Passwort — {}",
    "I reset your password to {}",
    "changed her password from oldone1 to {}",
    "temporary password {}",
    "Password:\n{}",
    "the password is:\n\n    {}\n",
    "**Password:**\n\n`{}`",
    "| user | password |\n|---|---|\n| bob | {} |",
    "user,password\nbob,{}\n",
    '"user","password","url"\n"bob, the first","{}","https://x"\n',
    "user\tpassword\nbob\t{}",
    "url,username,password,totp,extra,name\nhttps://x.com,bob,{},,,x",
    "| user | note | password |\n|---|---|---|\n|bob||{}|",
    "name,password\n,{}\n",
    "name\tpassword\n\t{}\n",
    'name,password\n"bob ""the"" first",{}\n',
    "user,hasło\nbob,{}\n",
    "user;lösenord\nbob;{}\n",
    "Password:&nbsp;{}",
    "<tr><th>Password</th><td>{}</td></tr>",
    "<b>Password:</b> {}",
    *(f"{word}: {{}}" for word in "Lösenord Adgangskode Passord Salasana Heslo Şifre Κωδικός סיסמה Jelszó".split()),
    *(f"{word}: {{}}" for word in ("كلمة المرور", "Mật khẩu", "पासवर्ड", "รหัสผ่าน", "Kata sandi", "Parolă", "Парола")),
    "口令：{}",
]


@pytest.mark.parametrize("place", PLACES)
def test_a_password_is_found_where_it_is_written(place: str) -> None:
    left = REDACT.redact_text(place.format(PASSWORD))
    assert "[redacted:" in left
    assert "kd9q" not in left


@pytest.mark.parametrize(
    "text",
    [
        "| parameter | password |\n|---|---|\n| type | string |\n| required | yes |",
        "name, password\nEnter both, then press Return.",
        "The password - at least 8 characters - is required.",
        "I changed the password to something longer.",
        "echo hello | sudo tee /etc/motd",
        "hf jobs run --secrets HF_TOKEN python:3.12 python script.py",
        "Users are identified by 'user_id' in the table.",
        "<b>Password:</b> required",
        "Basic knowledge is enough.",
        "name,password\r\n\r\nVersion 2,Build4217x\r\n",
        "security find-generic-password -w login.keychain-db",
        "-rw-r--r-- 1 root root 614400 Nov 18 07:23 base.db",
    ],
)
def test_what_only_looks_like_a_place_of_a_password_stays(text: str) -> None:
    assert REDACT.redact_text(text) == text


def test_a_token_behind_the_mark_of_a_diff_is_found() -> None:
    key = "AKIA" + "HITWYV6HAJERXRSC"
    assert key not in REDACT.redact_text(f"-old\n+{key}\n end")
