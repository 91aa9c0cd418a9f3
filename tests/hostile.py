"""Hostile texts as strategies of hypothesis: what a stranger's file, a broken client or an attacker sends."""

from __future__ import annotations

from hypothesis import strategies as st

CONTROLS = "".join(map(chr, [*range(0x20), 0x7F, *range(0x80, 0xA0)]))
BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f\ufe0f\U000e0041\U000e007f\u2028\u2029\u3164"
SURROGATES = "\ud800\udbff\udc00\udc80\udfff"
_STRANGE = st.text(st.sampled_from(CONTROLS + BIDI + INVISIBLE + "a é中\U0001f600"), max_size=60)
_LONE = st.text(st.sampled_from(SURROGATES + "ab "), min_size=1, max_size=20)
_ESCAPES = st.sampled_from(
    ["\x1b[2J", "\x1b]0;title\x07", "\x1b]52;c;YQ==\x07", "\x9b31m", "\x1b[8mhidden\x1b[0m", "a\rb", "\x08\x08"]
)

# Repeated to any length: each made some parser, somewhere, take quadratic time or worse.
UNITS = (
    "a", "A", " ", "\n", "\t", "0", "é", "中", "\U0001f600", "a ", "a\n", "(", ")", "[", "]", "{", "}", "<", ">", "`",
    "```\n",
    "~~~\n", "*", "**a", "_", "_a", "#", "# a\n", "- ", "  - a\n", "> ", "|", "|a", "|-", "---\n",
    "\\", "'", '"', '"a', "$", "%",
    "&", "&amp;", "<!--", "<a ", "<br>", "[a](", "![", "[[", "]]", "[^1]", "http://", "a@", "@", "a.", ".", "..",
    "../", "/", ":",
    "a:", "::", "a=", "=", "==", "a-", "-", "--", "AND ", "OR ", "NOT ", "a* ", "title:", "tag:", "+", "^", "~", "?",
    "sk-",
    "eyJ", "a/", "-----BEGIN ", "password=", "key: ", "0a", "0x", "1.", "1e", "+1 ", "\u0301", "\u200d", "\u202e",
    "\x00", "\x1b[",
    "yesterday ", "in 1 ", "2020-", "&a [*a]\n", "{\"a\":", "a,", ",", ";", "#1 ", "±1", "*a*", "\r", "\u2028",
)  # fmt: skip
_REPEATED = st.builds(
    lambda unit, times, end: unit * times + end, st.sampled_from(UNITS), st.integers(1, 400), st.text(max_size=3)
)
_BLOW_UPS = st.builds(
    lambda start, unit, times, end: start + unit * times + end,
    st.sampled_from(["", "a", "<", "[", "(", "{{", "`", '"', "title:", "AKIA", "eyJ"]),
    st.sampled_from(["a", "aa", "a ", " ", "(a", "a*", ".*", "(a+)+", "(a|a)*", "[a", "\\", "x=x", "ab-", "/a", "0"]),
    st.integers(1, 300),
    st.sampled_from(["", "!", "$", "b", "\n", "\x00", ")", "]", '"', "="]),
)
_BALANCED = {
    "(": ")",
    "[": "]",
    "{": "}",
    "<": ">",
    "`": "`",
    '"': '"',
    "**": "**",
    "[[": "]]",
    "```\n": "\n```",
    "<a>": "</a>",
}
_NESTED = st.builds(
    lambda bracket, depth, missing: bracket * depth + "a" + _BALANCED[bracket] * max(0, depth - missing),
    st.sampled_from(sorted(_BALANCED)), st.integers(1, 300), st.integers(0, 3),
)  # fmt: skip
_BOMBS = st.sampled_from(
    [
        "---\na: &a [x,x]\nb: &b [*a,*a,*a]\nc: &c [*b,*b,*b]\nd: [*c,*c,*c]\n---\ntext",
        "---\n" + "a: " * 200 + "\n---\n", "---\n!!python/object/apply:os.system [id]\n---\n", "---\n\ttabs: 1\n---",
        "---\ntags: " + "[" * 400 + "\n---\ntext", "---\ntitle: 2020-99-99\ndate: .inf\n---\ntext",
        "---\n? a\n: b\n---",
        "---\n<<: *missing\n---\ntext", "---\ntags: {a: {b: [1, null, true]}}\ntitle: [1]\n---\n", "---\n---\n---\n",
        "---",
        "+++\na = 1\n+++\n", "a = " + "[" * 300, "[a]\n[a]\n", "a.b.c = 1\na = 2\n", "a = 1e999999",
        "\ufeff---\ntitle: x\n---\n",
        "[" * 2_000, '{"a":' * 500, '{"a": 1e400}', '{"a": NaN}', '"\\ud800"', '{"a": ' + "9" * 5_000 + "}",
        "[" * 500 + "]" * 500,
        "null", "true", "-0", "1" * 400, "1e308", "NaN", "-Infinity", "9223372036854775808",
    ]
)  # fmt: skip
_QUERY_WORDS = st.sampled_from(
    ["AND", "OR", "NOT", "NEAR", "NEAR/0", "a", "crane", '"', "'", "(", ")", "*", "-", "^", ":", "title:", "tag:x",
    "kind:", "type:",
     "-a", '"a', "a*", "**", "{a b}", "col:", "#1", "+",
     "\\", "%", "_", "--", ";", "DROP TABLE records", "1=1", "\x00", "ﬀ", "İ"]
)  # fmt: skip
_QUERIES = st.lists(_QUERY_WORDS, min_size=1, max_size=12).map(" ".join)
_TIMES = st.sampled_from(
    ["yesterday", "in 5 minutes", "999999999d", "-1d", "1e9h", "2020-02-30", "0000-00-00", "9999-12-31T23:59:60Z",
    "24:00", "12:60",
     "2020-01-01T00:00:00+99:99", "٣ days", "1" * 30, "last " * 50, "10000-01-01", "P1Y", "0001-01-01",
     "99999999999999d ago"]
)  # fmt: skip
_REFERENCES = st.sampled_from(
    ["#0", "#-1", "#" + "9" * 30, "a±99999999999", "±", "a:1-", "a.md:0-0", "a.md:9-1", "a.md:1-" + "9" * 40,
    "history:", "links:",
     "timeline:..", "timeline:a..b", "profile.", "profile" + ".a" * 200, "doc://", "memory://",
     "doc://../../etc/passwd", "*", "**/*",
     "[", "[!", "{a,b", "?" * 200, ",,,,", ",".join("a" * 200), "mem_", "x:1:2:3", "due:", "conflicts:x"]
)  # fmt: skip
WINDOWS_NAMES = (
    "CON",
    "nul.md",
    "aux",
    "COM1.txt",
    "a:b",
    "a?b",
    "a ",
    "a.",
    "LPT¹",
    "C:\\x",
    "\\\\server\\share",
    "a\\..\\b",
)
# At most five steps up: a run that writes files does so in a folder that lies deeper.
_PATHS = st.one_of(
    st.integers(1, 5).map(lambda steps: "../" * steps + "x"),
    st.sampled_from(["..", "./..", "a/../../b", "%2e%2e/", "..%2f", "....//", "~", "~root/x", "$HOME", "-", "--",
    "-rf", *WINDOWS_NAMES]),
    st.sampled_from(["a" * 256, "a/" * 2_100, "é" * 130, "a" * 5_000, "x\x00y", "a\nb", " ", "\u202egpj.md"]),
)  # fmt: skip
_LONG_WORDS = st.builds(
    lambda unit, times: unit * times, st.sampled_from(["a", "é", "中", "0", "a1", "-"]), st.integers(1_000, 6_000)
)

hostile_texts: st.SearchStrategy[str] = st.one_of(
    _STRANGE, _LONE, _ESCAPES, _REPEATED, _BLOW_UPS, _NESTED, _BOMBS, _QUERIES, _TIMES, _REFERENCES, _PATHS,
    _LONG_WORDS,
    st.text(max_size=80),
    st.lists(st.one_of(_STRANGE, _ESCAPES, _REPEATED, _NESTED, _QUERIES, _BOMBS), min_size=2,
    max_size=4).map("\n".join),
)  # fmt: skip
"""Any of them; at most some 20,000 characters."""


def repeated(unit: str, size: int) -> str:
    """A text of `size` characters, for measuring what it costs."""
    return (unit * (size // len(unit) + 1))[:size]
