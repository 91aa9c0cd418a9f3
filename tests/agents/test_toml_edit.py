"""One table of a TOML text is set or removed; everything else stays."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.agents.toml_edit import parse, remove_member, set_member

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


def test_tables_below_the_removed_one_go_with_it() -> None:
    assert remove_member(WRITTEN_BY_HAND, PATH) == "\n# the rest\n[z]\na = 1\n"


@pytest.mark.parametrize("text", ["[a", "a = ", "a = 1\na = 2\n", '[mcp_servers]\nx = "\n', "{}"])
def test_a_broken_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        set_member(text, PATH, ENTRY)
    with pytest.raises(ValueError):
        remove_member(text, PATH)
