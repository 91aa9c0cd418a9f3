"""The words of people who tell a password: tables by language, and the patterns made of them.

The words of a line are separated by `|`. `word` may be the end of a compound (`WLAN-Passwort`), `=word` stands alone,
`word~` may have an ending of its language (`şifresi`).
"""

import re
from collections.abc import Iterable, Mapping

Words = Mapping[str, str]

# Words that mean nothing but a password.
PASSWORDS: Words = {
    "en": "password|pasword|passwrd|passwd|passphrase|passcode|=pass|=pwd|=pswd|=psw|=psk|=pw",
    "de": "passwort|kennwort|losungswort",
    "fr": "mot de passe|mot-de-passe|mot_de_passe|=mdp",
    "es, pt": "contraseña|contrasena|palavra-passe|senha",
    "nl": "wachtwoord",
    "it, ro, tr": "parola|parolă|parolà|parolan~|şifre~",
    "pl, cs, hr": "hasło|hasłem|heslo|heslem|lozinka|lozinku",
    "sv, da, no, fi": "lösenord|lösenordet|adgangskode|adgangskoden|kodeord|kodeordet|passord|passordet|salasana~",
    "hu": "jelszó|jelszava~",
    "ru, uk, bg": "пароль|пароля|паролем|парола|пасворд|пассворд|=пасс",
    "el, he, ar, fa": "κωδικός|κωδικό|סיסמה|סיסמא|סיסמת|كلمة المرور|كلمة السر|باسورد|رمز عبور",
    "hi, th, vi, id": "पासवर्ड|รหัสผ่าน|mật khẩu|kata sandi~",
    "zh, ja, ko": "密码|密碼|口令|パスワード|パスコード|暗証番号|비밀번호|비번|패스워드",
}
# Of several passwords; rules about them are as frequent as the passwords themselves.
SEVERAL_PASSWORDS: Words = {
    "all": "passwords|passwörter|kennwörter|mots de passe|contraseñas|senhas|wachtwoorden|hasła|пароли|паролі|şifreler",
}
# Words that mean a password among other things, and colloquial ones: a value that is not a word decides.
COLLOQUIAL: Words = {
    "es, fr": "=clave|=la contra|=passe|=code secret",
    "nl, sv, id": "=ww|=lösen|=sandi",
    "pl, hr, tr": "=haslo|=šifra|=sifre|=sifresi|=sifra",
    "ru, uk": "=пас",
    "ja, ko": "パス|암호",
    "networks": "=wifi key|=wlan key|=wpa key|=wpa2 key|=network key|schlüssel|=clé wifi|=clé wpa|=chiave wifi"
    "|=ключ wifi|=klucz wifi|wifi密钥",
}
# Words of a code: those around them say of which.
CODES: Words = {
    "en, fr, nl, da": "code|=codes|=kode|=koder|=koden",
    "es, pt, it, ro": "=código|=códigos|=codigo|=codice|=codici",
    "pl, tr, sv, hu, cs, fi": "=kod~|=kód~|=koodi",
    "ru, uk": "=код|=коды|=кода|=коди",
    "zh, ja, ko": "码|碼|コード|코드|번호",
    "he, ar, hi, vi": "קוד|رمز|कोड|=mã",
}
# Words that are a code by themselves.
ONE_TIME_CODES: Words = {
    "all": "=otp|=totp|=2fa|=mfa|=tan|=mtan|验证码|驗證碼|ओटीपी",
}
PINS: Words = {
    "all": "=pin|=pincode|=passcode|=digicode"
    "|パスコード|暗証番号|=пин|=пин-код|=пін|=пін-код|핀번호|비번|비밀번호|密码|密碼"
}
# Words of a login: the name of a user and a password may follow as a pair.
LOGINS: Words = {
    "en": "=creds|=credentials|=login|=logins|=log in|=log in as|=log in with|=user|=username|=account|=logged in as"
    "|=logging in as|=sign in as|=logged in with|=login with|=log in using|=wifi|=wlan|=wi-fi",
    "de": "zugangsdaten|anmeldedaten|logindaten|=benutzer|=benutzername|=zugang|=anmeldung|=einloggen mit",
    "fr": "=identifiants|=identifiant|=utilisateur|=compte|=connexion|=accès",
    "es, pt, it": "=credenciales|=usuario|=cuenta|=acceso|=entra con|=entra como|=credenziali|=utente|=accesso"
    "|=entra come|=credenciais|=usuário|=utilizador",
    "nl, pl, cs": "=inloggegevens|=gebruiker|=gebruikersnaam|=dane logowania|=użytkownik|=uživatel",
    "ru, uk": "=логин|=учётка|=учетка|=доступ|=доступы|=учётные данные|=учетные данные|=логін|=пользователь",
    "sv, da, no, fi, tr": "=användare|=bruger|=bruker|=käyttäjä|=kullanıcı|=kullanıcı adı|=hesap",
    "zh, ja, ko": "账号|用户名|用户|帐号|帳號|ログイン|アカウント|ユーザー|계정|아이디|로그인",
}
# The names of accounts that need no word before them in `admin / hunter22`.
ACCOUNTS: Words = {"all": "=admin|=administrator|=root|=guest|=postgres|=superuser|=gast|=invite|=ubuntu"}


def words_pattern(*tables: Words) -> str:
    """The pattern of a word of the tables, the longest first; it is tried in any case."""
    words = sorted(_words(tables), key=lambda word: (-len(_plain(word)), word))
    alone = "|".join(_word_pattern(word) for word in words if word.startswith("="))
    parts = "|".join(_word_pattern(word) for word in words if not word.startswith("="))
    return "|".join([*([rf"(?<![^\W\d_])(?:{alone})(?![^\W\d_])"] if alone else []), *filter(None, [parts])])


def run_words(*tables: Words) -> tuple[frozenset[str], frozenset[str]]:
    """What a run without blanks has in every text in which `words_pattern` matches: whole words, or parts of one.

    Of several words it is the longest that is not a preposition. A word that begins like one for a password is reduced
    to that beginning, which is looked for already.
    """
    alone, parts = set(), set()
    for word in _words(tables):
        parts_of_word = _plain(word).split()
        longest = max((part for part in parts_of_word if part not in TARGETS | AS), key=len)
        if word.startswith("=") and longest.isalpha() and not word.endswith("~"):
            alone.add(longest)
        else:
            parts.add(next(filter(longest.startswith, first_words(PASSWORDS)), longest))
    return frozenset(alone), frozenset(parts)


def _words(tables: Iterable[Words]) -> set[str]:
    return {word for table in tables for line in table.values() for word in line.split("|")}


def _plain(word: str) -> str:
    return word.strip("=~")


def _word_pattern(word: str) -> str:
    return re.escape(_plain(word)) + (r"[^\W\d_]{0,6}+" if word.endswith("~") else "")


def first_words(*tables: Words) -> tuple[str, ...]:
    """Where `words_pattern` may match: the words, without those that begin like another one."""
    found: list[str] = []
    for word in sorted(set(map(_plain, _words(tables)))):
        if not found or not word.startswith(found[-1]):
            found.append(word)
    return tuple(found)


def _set(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


def _any(*lines: str) -> str:
    """The pattern of the beginnings of words; those of languages without blanks may be inside a run."""
    words = [word.replace("_", "[ -]?") for word in " ".join(lines).split()]
    unspaced = [word for word in words if word[0] >= "\u0590"]
    return "|".join([rf"(?<![^\W\d_])(?:{'|'.join(words)})", *unspaced])


# -- words around the word and its value -----------------------------------------------------------------------

# A code of which one of these is said works once, or in the place of a second factor. `_`: a blank, a dash or nothing.
ONE_TIME = _any(
    "one_time single_use 2fa mfa otp totp two_factor back_up recover rescue scratch emergency verif auth sms login",
    "sign_in log_in google telegram whatsapp einmal bestätigung sicherheit wiederherstell ersatz notfall usage_unique",
    "vérif secours récup validation un_solo_uso uso_único uso_unico respald recupera verifica seguridad monouso",
    "usa_e_getta eenmalig herstel jednoraz weryfik zapasow autoryz odzysk jednorázov ověřovac záložn egyszer ellenőrz",
    "engångs engangs verifier bekræft bekreft reserv kertakäyttö vahvistus tek_kullan doğrulama onay yedek kurtarma",
    "одноразов подтвержден проверочн резервн восстановлен смс підтвердж",
    "一次性 验证 驗證 动态 動態 恢复 备用 备份 ワンタイム 認証 確認 バックアップ",
    "リカバリ 復旧 回復 인증 일회용 복구 백업",
    "אימות חד_פעמי التحقق xác ओटीपी",
)
# A code of which one of these is said is a result, not a secret.
RESULT = _any(
    "error exit status stop return response result failure http reason fehler rückgabe beendigung erreur sortie salida",
    "retorno errore uscita erro saída fout fel fejl feil błęd chyb virhe hiba ошибк возврат помилк hata",
    "错误 錯誤 状态 退出 エラー 終了 오류 종료 שגיאה خطأ",
)
# A code of which one of these is said is a number that opens something.
PIN = _any(
    "pin door gate garage alarm entry access safe lock keypad unlock voicemail sim tür zugang zugangs tresor entsperr",
    "porte portail entrée secret accès carte puerta alarma acceso portão alarme cancello porta allarme segreto toegang",
    "sblocco drzwi bram domofon poort deur dør dörr ajtó ovi двер домофон сейф kapı kasa 门禁 暗証",
)

# A form of *to be*, or a sign in its place: the value is next.
COPULAS = _set(
    "is was are 's = : :: == => -> --> → ⇒ >> := – — ist war lautet heißt heisst sind est était c'est sera es era",
    "son será è sarà é são fica foi zijn luidt wordt jest brzmi będzie je bude znie это есть стал будет є це là är",
    "blir ble",
    "er oli az είναι ήταν היא הוא هي هو है hai adalah ialah itu it's equals remains became",
)
COPULAS_AT_END = tuple("是为為はを은는이가成로：")  # of languages without blanks between words
# Words between a form of *to be* and the value.
FILLERS = _set(
    "now still currently just simply again the a jetzt nun immer noch aktuell wieder einfach der das maintenant",
    "toujours",
    "désormais ahora todavía siempre ora adesso sempre ancora agora ainda nu nog steeds teraz nadal teď теперь пока",
    "сейчас следующий такой простой following probably şimdi new neu this like only actually called",
)
# What comes before a value that something is set to: `reset to X`, `auf X gesetzt`, `type X`.
TARGETS = _set(
    "to auf zu à en por a con in di pra para pro naar na на в с till til på ya by with mit using avec com met z cu",
    "bằng dengan use uses try nimm utilise usa gebruik",
)
# What asks for the value itself.
COMMANDS = _set(
    "type enter tippe tape saisis gib escribe introduce ingresa digita inserisci typ wpisz введи введите vul"
)
# Between a value and the word after it, when both are one phrase: `X as the password`.
AS = _set("as comme como als come jako как som olarak sebagai för")
# Between a password and another one: `X and Y`, `from X to Y`, `X, the new one is Y`.
JOINING = (
    TARGETS
    | COPULAS
    | FILLERS
    | _set(
        "and und y et e i и та och og ja en ve és a or oder ou o lub czy или eller veya / | & , + new neu neue neuer",
        "neues nouveau nouvelle nuevo nueva novo nova nuovo nuova nieuw nieuwe nowe nowy новый новая nytt ny yeni the",
        "one instead then dann luego poi potem",
    )
)
# What may follow the last word of a clause.
PARTICLES = "ya|lol|thx|thanks|btw|pls|please|bitte|haha|ok|okay|hai|oldu|dong|nih|tho|ja|oder|gell|danke|merci|gracias"

# What the password is for: `pw for the NAS X`, `пароль от сервера X`.
OWNERS = _set(
    "for of on from to für von vom zum zur fürs beim am im pour du de des la le del de el para do da dos no na della",
    "dello di per il al van voor het till för til od ze pro do k от для на к до untuk cho ka ki ke wifi wi-fi wlan vpn",
    "wifinya wifi'nin sunucunun email mail ssh root sudo db admin",
)
# Between a value and the word after it: `X is the pw`, `X as password`, `X comme mdp`.
VALUE_BEFORE = _set(
    "is was as are ist als war est comme c'est es era como de è come é jest jako это как som är je <- ← <-- <= = ==",
    "forfür pour para per voor dla для that's thats das's ως olarak sebagai là hai för adalah が は",
)
# Words of grammar and of texts about passwords, which no passphrase of four words has.
GRAMMAR = _set(
    "the a an and or not is are was were be been to of in on at by for with from as it its this that these those you",
    "your we our they their he she his her my me us if then than when while until unless so but no any all each every",
    "some must should can could will would may might shall has have had do does did only too very more most less also",
    "same what which who how why where there here into over under after before again still already never always one",
    "two",
    "via per set sent kept stored used left given made required needed case known wrong right incorrect longer",
    "shorter different visible available optional mandatory empty blank null none server side user text string file",
    "files line lines name names key keys token tokens field value values default about out up down",
)
