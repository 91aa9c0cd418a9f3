"""One table of a TOML text is set or removed; everything else stays."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.clients.toml_edit import parse, remove_key, remove_member, set_key, set_member

PATH = ("mcp_servers", "mindex")
ENTRY = {"command": "/bin/mindex", "args": ["serve", "--db", 'C:\\a "b".db']}

BLOCKS = [
    'model = "x" # mine\n',
    "# a comment\n\n",
    '[a]\nx = 1\ny = """\n[not.a.table]\n"""\n\n',
    '[mcp_servers.other]\ncommand = "b" # the other\nargs = [\n  "a",\n  "b", # two\n]\n',
    '[mcp_servers.other2.env]\nA = "1"\n',
    "# about z\n[z]\n",
    "[[list]]\nq = 1\n\n[[list]]\nq = 2\n",
]


@st.composite
def documents(draw: st.DrawFn) -> str:
    chosen = [block for block in BLOCKS if draw(st.booleans())]
    text = "".join(chosen)
    if draw(st.booleans()):
        text = text.rstrip("\n")
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


@given(documents())
def test_a_new_table_is_added_at_the_end_and_the_rest_stays(text: str) -> None:
    new = set_member(text, PATH, ENTRY)
    assert new.startswith(text)
    before = tomllib.loads(text)
    servers = before.get("mcp_servers", {})
    assert parse(new) == {**before, "mcp_servers": {**servers, "mindex": ENTRY}}
    assert set_member(new, PATH, ENTRY) == new
    if "\r\n" in text:
        assert new.count("\n") == new.count("\r\n")


@given(documents())
def test_a_removed_table_leaves_the_text_as_it_was(text: str) -> None:
    back = remove_member(set_member(text, PATH, ENTRY), PATH)
    assert back.rstrip("\r\n") == text.rstrip("\r\n")
    assert tomllib.loads(back) == tomllib.loads(text)


WRITTEN_BY_HAND = """\
[mcp_servers . "mindex"] # my memory
# slow machine
startup_timeout_sec = 30
args = [
  "serve", # as the README says
]
command = "mindex"

[mcp_servers.mindex.env]
MINDEX_AGENT = "me"

# the rest
[z]
a = 1
"""


def test_keys_and_comments_of_a_table_that_is_there_are_kept() -> None:
    new = set_member(WRITTEN_BY_HAND, PATH, {"command": "/bin/mindex", "args": ["serve"], "enabled": True})
    changed = WRITTEN_BY_HAND.replace('"mindex"\n', '"/bin/mindex"\nenabled = true\n')
    assert new == changed


def test_a_value_of_several_lines_is_replaced_as_a_whole() -> None:
    new = set_member(WRITTEN_BY_HAND, PATH, {"args": ["serve", "--agent", "x"]})
    assert parse(new)["mcp_servers"]["mindex"]["args"] == ["serve", "--agent", "x"]  # type: ignore[index]
    assert "as the README says" not in new
    assert "# slow machine" in new


def test_tables_below_the_removed_one_are_also_removed() -> None:
    assert remove_member(WRITTEN_BY_HAND, PATH) == "\n# the rest\n[z]\na = 1\n"


@pytest.mark.parametrize("text", ["[a", "a = ", "a = 1\na = 2\n", '[mcp_servers]\nx = "\n', "{}"])
def test_a_broken_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        set_member(text, PATH, ENTRY)
    with pytest.raises(ValueError):
        remove_member(text, PATH)


# ── single keys ───────────────────────────────────────────────────────────────────────────────────────────────

SETTINGS = (
    '# mine\nagent = "bob"  # me\n\n# the search\n[search]\nfloor = 0.4   # strict\n\n[search.weights]\nrrf = 50\n'
)


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        ("agent", 'an"na', 'agent = "an\\"na"  # me'),
        ("search.floor", 0.3, "floor = 0.3   # strict"),
        ("search.weak", False, "weak = false"),
        ("search.weights.rrf", 60, "rrf = 60"),
        ("index.exclude", ["a/", "b#"], 'exclude = ["a/", "b#"]'),
        ("index.domains", {"src/Auth": "security"}, 'domains = { "src/Auth" = "security" }'),
        ("db", "x.db", 'db = "x.db"'),
    ],
)
def test_a_key_is_set_and_everything_else_stays(path: str, value: object, line: str) -> None:
    new = set_key(SETTINGS, path.split("."), value)
    assert line in new.splitlines()
    kept = [old for old in SETTINGS.splitlines() if not old.startswith(line.partition(" ")[0] + " ")]
    assert [one for one in new.splitlines() if one in kept and one] == [one for one in kept if one]
    assert set_key(new, path.split("."), value) == new
    removed = tomllib.loads(remove_key(new, path.split(".")))
    before = tomllib.loads(remove_key(SETTINGS, path.split(".")))
    assert {name: held for name, held in removed.items() if held != {}} == before


def test_a_key_with_dots_is_set_where_it_is() -> None:
    text = "search.floor = 0.1 # low\nsearch.weights.rrf = 5\n"
    assert set_key(text, ["search", "floor"], 0.2) == "search.floor = 0.2 # low\nsearch.weights.rrf = 5\n"
    assert (
        set_key(text, ["search", "weak"], True)
        == "search.floor = 0.1 # low\nsearch.weak = true\nsearch.weights.rrf = 5\n"
    )


def test_a_table_of_pairs_with_a_header_is_replaced_as_a_whole() -> None:
    text = '[index.domains]\n"a" = "x"\n"b" = "y"\n'
    assert parse(set_key(text, ["index", "domains"], {"c": "z"})) == {"index": {"domains": {"c": "z"}}}


def test_a_key_of_an_inline_table_is_refused() -> None:
    with pytest.raises(ValueError, match="mindex cannot edit this syntax"):
        set_key("search = { floor = 0.1, weak = true }\n", ["search", "floor"], 0.2)


KEYS = st.sampled_from(["agent", "search.floor", "search.weights.rrf", "index.exclude", "z.y"])
VALUES = st.one_of(st.integers(0, 99), st.booleans(), st.text(max_size=20), st.lists(st.text(max_size=5), max_size=3))


@given(documents(), st.lists(st.tuples(KEYS, VALUES), max_size=6))
def test_any_keys_can_be_set_and_removed(text: str, changes: list[tuple[str, object]]) -> None:
    new = text
    for key, value in changes:
        new = set_key(new, key.split("."), value)
        held: object = parse(new)
        for name in key.split("."):
            assert isinstance(held, dict)
            held = held[name]
        assert held == value
    for key, _ in changes:
        new = remove_key(new, key.split("."))
    assert [line for line in text.splitlines() if "#" in line and line not in new.splitlines()] == []
