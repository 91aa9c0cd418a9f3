"""Secrets in commands, headers and configuration files, whose place and not whose form says what they are."""

from mindex.redaction import secret_checks as checks
from mindex.redaction.rule import LIMIT, Rule, any_case

_QUOTED_OR_BARE = rf"(?>(?P<q>[\"'])?)(?P<v>(?(q)[^\"'\n]{{3,{LIMIT}}}+|[^\s\"'|;<>]{{3,{LIMIT}}}+))"
_DATABASE = ("mysql", "mariadb", "mycli", "mytop", "innobackupex", "xtrabackup")
_LONG_OPTIONS = r"[^\n|;]{0,160}?[ ]"


def _command(names: tuple[str, ...], options: str) -> Rule:
    words = "|".join(names)
    source = rf"(?<![\w./-])(?:{words})(?:dump|admin|import|sh)?(?=[ ]){_LONG_OPTIONS}{options}{_QUOTED_OR_BARE}"
    return any_case("command-password", source, names, checks.is_command_password)


_PG_PORTS = ("5432", "5433", "6432")
_USER = r"(?P<user>[^\s:\"'$<>{}]{1,64}):"
COMMAND_RULES: tuple[Rule, ...] = (
    _command(_DATABASE, r"(?-i:-p)"),
    _command(("sshpass", "docker login", "mongo", "mongodump", "az login", "podman login", "helm"), r"(?-i:-p)[ ]?"),
    _command(("sqlcmd", "zip", "unzip", "bcp", "rabbitmqadmin"), r"(?-i:-[Pp])[ ]?"),
    _command(("redis-cli",), r"-a[ ]"),
    _command(("psexec", "evil-winrm", "rdesktop", "mongosh", "ipmitool"), r"-p[ ]"),
    _command(("keytool", "jarsigner", "pscp", "plink", "psftp"), r"-(?:storepass|keypass|pw)[ ]"),
    _command(("7z", "7za", "rar"), r"(?-i:-h?p)"),
    _command(("xfreerdp", "cmdkey", "schtasks"), r"/(?:p|pass|rp)(?::|[ ])"),
    _command(("lftp",), r"-u[ ][^\s,]{1,64},"),
    _command(
        ("security add-generic-password", "security add-internet-password", "snmpget", "snmpset", "snmpwalk"),
        r"(?-i:-[wAX])[ ]",
    ),
    _command(("convertto-securestring",), r"(?:-string[ ])?(?=[\"'])"),
    any_case(
        "command-password",
        rf"(?<![\w./-])net[ ](?:user[ ]\S{{1,64}}|use[ ][^\n|;]{{0,120}}?/user:\S{{1,64}})[ ]{_QUOTED_OR_BARE}",
        ("net user", "net use"),
        checks.is_generated,
    ),
    any_case(
        "command-password",
        r"(?<![\w./-])(?:htpasswd[ ]-\w{0,5}b\w{0,5}[ ]\S{1,128}[ ]\S{1,64}|mysqladmin[ ][^\n|;]{0,99}?[ ]password)[ ]"
        rf"{_QUOTED_OR_BARE}",
        ("htpasswd", "mysqladmin"),
        checks.is_command_password,
    ),
    # A password that a command reads from a pipe.
    any_case(
        "command-password",
        rf"(?<![\w./-])echo[ ](?:-n[ ])?{_QUOTED_OR_BARE}[\"']?[ ]?\|[ ]?"
        r"(?:sudo[ ](?:-\w{1,9}[ ])?-S|(?:sudo[ ])?chpasswd|kinit"
        r"|[^\n|;]{0,60}?--(?:password|passphrase)-(?:stdin|fd))",
        ("echo ",),
        checks.is_command_password,
    ),
    any_case(
        "password",
        rf"identified[ ](?:with[ ]\S{{1,40}}[ ])?(?:by|as)[ ](?:password[ ])?[\"'](?P<v>[^\"'\n]{{3,{LIMIT}}}+)[\"']",
        ("identified ",),
        checks.is_block_password,
    ),
    any_case("password", rf"password\([\"'](?P<v>[^\"'\n]{{6,{LIMIT}}}+)[\"']\)", ("password(",), checks.is_generated),
    # The second of two arguments that are a login.
    any_case(
        "password",
        r"(?:networkcredential|getconnection|mysqli|(?<![a-z])login|auth[ ]?=[ ]?)\([^()\n]{0,160}?,[ ]?[\"']"
        rf"(?P<v>[^\"'\n]{{6,{LIMIT}}}+)[\"']",
        ("networkcredential(", "getconnection(", "mysqli(", "login(", "auth"),
        checks.is_generated,
    ),
    any_case("authorization", r"(?<![\w.-])basic[ ](?P<v>[a-z0-9+/]{12,}+={0,2})", ("basic ",), checks.is_basic_login),
    # The lines of .pgpass, with the usual ports of PostgreSQL, its poolers and relatives.
    any_case(
        "password",
        rf"(?<![\w.:-])[\w.*-]{{1,99}}:(?:{'|'.join(_PG_PORTS)}|\*):(?!-?\d)[\w*-]{{1,64}}:[\w*-]{{1,64}}:(?P<v>[^\s:]{{6,{LIMIT}}}+)",
        (),
        checks.is_in_link,
        hints=(":*:", *(f":{port}:" for port in _PG_PORTS)),
    ),
    # OpenVPN's blocks: the user's line, then that of the password.
    any_case(
        "password",
        rf"<(?:auth-user-pass|http-proxy-user-pass)>[ \t]*+\r?\n[^\n]{{1,128}}\r?\n[ \t]*+(?P<v>[^\s<]{{3,{LIMIT}}}+)",
        ("<auth-user-pass>", "<http-proxy-user-pass>"),
        checks.is_in_link,
    ),
    # The options of a mount: `username=bob,pass=X,vers=3.0`.
    any_case(
        "password",
        rf"(?<![\w-])(?:pass(?:word|wd)?|passphrase|secret)=(?P<v>[^\s,\"']{{3,{LIMIT}}}+)"
        r"(?=,[a-z_]{1,30}(?:=|,|[ ]|$))",
        ("pass", "secret="),
        checks.is_mount_password,
    ),
    any_case(
        "password",
        rf"(?:username|user|uid|credentials)=[^\s,]{{1,64}},(?:[a-z_]{{1,30}}(?:=[^\s,]{{0,64}})?,){{0,6}}"
        rf"pass(?:word|wd)?=(?P<v>[^\s,\"']{{3,{LIMIT}}}+)",
        ("username=", "user=", "uid="),
        checks.is_mount_password,
    ),
    _command(("ldapsearch", "ldapmodify", "ldapadd"), r"-w[ ]?"),
    _command(("smbclient", "rpcclient"), r"(?-i:-U)[ ]?[\"']?[^\s%\"']{1,64}%"),
    _command(("openssl",), r"-pass(?:in|out)?[ ]pass:"),
    any_case(
        "command-password",
        rf"(?<![\w./-])(?:curl|http|https|wget|xh)(?=[ ]){_LONG_OPTIONS}(?:-u|--user|-a|--auth|--proxy-user)[ =]?"
        rf"[\"']?{_USER}(?P<v>[^\s\"']{{3,{LIMIT}}}+)",
        ("curl", "http", "wget", "xh"),
        checks.is_in_link,
    ),
    # Oracle's `user/password@host`; `actions/checkout@v4` and `docs/a@b` are none.
    any_case(
        "command-password",
        r"(?<![\w./:@-])(?:sqlplus|sqlldr|expdp|impdp|rman|conn|connect|exp|imp)[ ]*+(?:-\w{1,20}[ ]{1,4}){0,3}"
        rf"(?:target[ ])?[\"']?[\w$#]{{1,30}}/(?P<v>[^\s/@\"']{{3,{LIMIT}}}+)@(?=[\w/(])",
        ("sqlplus", "sqlldr", "expdp", "impdp", "rman", "conn", "exp", "imp"),
        checks.is_in_link,
    ),
    any_case(
        "command-password",
        rf"(?:oracle:)?(?:thin|oci8?|kprb):[\w$#]{{1,30}}/(?P<v>[^\s/@\"']{{3,{LIMIT}}}+)@(?=[\w/(])",
        ("oracle:thin:", "oracle:oci", "thin:"),
        checks.is_in_link,
    ),
    Rule(
        "command-password",
        r"(?<![\w./:@-])[A-Za-z][\w$#]{1,30}/(?P<v>[^\s/@\"'<>:]{6,64})@(?!v?\d|sha\d|\^|~|latest|main|master)(?=[A-Za-z/(])",
        hints=("@",),
        check=checks.is_slash_password,
    ),
    # Headers: the values of cookies, whatever their names.
    any_case(
        "cookie",
        r"(?:set-)?cookie[\"']?[ \t]*+[:=][ \t]*+[\"']?(?P<v>[\w.-]{1,64}=[^\s;\"'`<>]{1,4096}+"
        r"(?>(?:;[ ]?[\w.-]{1,64}(?:=[^\s;\"'`<>]*+)?)*))",
        ("cookie", "set-cookie"),
        checks.is_cookie,
    ),
    any_case(
        "cookie",
        rf"(?:--cookie|[ ]-b)[ =]?[\"']?(?P<v>[\w.-]{{1,64}}=[^\n\"'\s]{{8,{LIMIT}}})",
        ("--cookie", " -b"),
        checks.is_cookie,
    ),
    any_case(
        "cookie",
        rf"(?<![\w.-])(?:phpsessid|jsessionid|asp\.net_sessionid|connect\.sid|laravel_session|sessionid)="
        rf"(?P<v>[^\s;,\"'&<>]{{10,{LIMIT}}})",
        ("phpsessid=", "jsessionid=", "asp.net_sessionid=", "connect.sid=", "laravel_session=", "sessionid="),
    ),
    any_case(
        "authorization",
        r"(?<![\w:])(?:x-[\w-]{0,40}(?:key|token|secret|auth)|private-token|api-key|apikey|authorization)"
        rf"[\"']?[ \t]*+:[ \t]*+[\"']?(?P<v>[\w+/=.~:|-]{{12,{LIMIT}}}+)",
        ("x-", "private-token", "api-key", "apikey", "authorization"),
        checks.is_header_token,
    ),
    # Configuration: docker's and npm's `auth`, kubeconfig, netrc, pgpass, WireGuard, .htpasswd.
    any_case(
        "docker-auth",
        r"(?<![a-z0-9])_?auth[\"']?[ \t]*+[:=][ \t]*+[\"']?(?P<v>[a-z0-9+/]{8,}+={0,2})",
        ("auth",),
        checks.is_encoded_login,
    ),
    any_case("client-key", r"client-key-data[\"']?[ \t]*+:\s*+[\"']?(?P<v>[a-z0-9+/=]{20,}+)", ("client-key-data",)),
    any_case(
        "password",
        rf"machine[ ]\S{{1,99}}\s++login[ ]\S{{1,99}}\s++password[ ](?P<v>\S{{3,{LIMIT}}}+)",
        ("machine ",),
        checks.is_in_link,
    ),
    any_case(
        "private-key", r"\b(?:private|preshared)key[ ]*+=[ ]*+(?P<v>[a-z0-9+/]{43}=)", ("privatekey", "presharedkey")
    ),
    # Numbers of people.
    Rule(
        "social-security-number",
        r"\d(?<![\w.-]\d)(?<!9)\d\d(?<!000)(?<!666)-(?!00)\d\d-(?!0000)\d{4}(?![\w-]|\.\d)",
        hints=("-",),
        unbroken=11,
    ),
    any_case(
        "social-security-number",
        r"(?:ssn|social[ -]security)[^\n\d]{0,40}(?P<v>(?!000|666|9)\d{3}[ .]?(?!00)\d\d[ .]?(?!0000)\d{4})(?!\d)",
        ("ssn", "social security", "social-security"),
    ),
    # App passwords in groups of four: the word before them says what they are.
    any_case(
        "app-password",
        r"(?:app(?:lication)?(?:[ _-]specific)?[ _-]?pass(?:word|wd|code)?|gmail|icloud|smtp|imap|pass(?:word|wd))"
        r"[^\n]{0,40}?(?<![a-z0-9-])(?-i:(?P<v>[a-z]{4}(?:[ ][a-z]{4}){3}|[a-z]{4}(?:-[a-z]{4}){3}"
        r"|[A-Za-z0-9]{4}(?:[ ][A-Za-z0-9]{4}){5}))"
        r"(?![\w-])",
        ("app", "gmail", "icloud", "smtp", "imap", "pass"),
        checks.is_app_password,
    ),
)
