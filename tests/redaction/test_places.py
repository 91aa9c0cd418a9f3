"""Where secrets are kept out besides texts: names, paths, patterns, anchors, logged queries, the sides of a turn."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from mindex.errors import MindexError, SecretError, UsageError
from mindex.memory import Memory
from mindex.redaction.redactor import Redactor

TOKEN = "gh" + "p_" + "Zx7Qp2Lm9Rt4Vb8Ns1Wd6Kf3Hj5Gc0Ya2Ue7"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("# Parcels\n\nThe parcel service tracks parcels.\n", encoding="utf-8")
    return folder


def stored_bytes(memory: Memory, tmp_path: Path) -> bytes:
    memory.close()
    return b"".join(path.read_bytes() for path in tmp_path.glob("memory.db*"))


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path / "memory.db", options={"embedding.provider": "none"})


def test_a_collection_is_not_named_by_a_secret(memory: Memory, notes: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"name of the collection contains a secret \(github-token\)"):
        memory.index(notes, name=TOKEN)
    with pytest.raises(UsageError, match="name of the collection"):
        memory.collections.add(notes, name=TOKEN)
    assert TOKEN.encode() not in stored_bytes(memory, tmp_path)


def test_a_folder_with_a_secret_in_its_path_is_not_indexed(memory: Memory, tmp_path: Path) -> None:
    folder = tmp_path / TOKEN
    folder.mkdir()
    with pytest.raises(UsageError) as raised:
        memory.index(folder)
    assert TOKEN not in str(raised.value)
    assert memory.collections.list() == ()


def test_an_exclude_pattern_holds_no_secret(memory: Memory, notes: Path) -> None:
    with pytest.raises(UsageError, match="exclude pattern"):
        memory.index(notes, exclude=[f"*{TOKEN}*"])
    memory.index(notes)
    with pytest.raises(UsageError, match="exclude pattern"):
        memory.index(notes, exclude=[f"{TOKEN}.md"])


def test_a_file_with_a_secret_in_its_path_is_skipped_and_named_without_it(
    memory: Memory, notes: Path, tmp_path: Path
) -> None:
    (notes / f"key {TOKEN}.md").write_text("# Key\n\nSomething else.\n", encoding="utf-8")
    (notes / TOKEN).mkdir()
    (notes / TOKEN / "b.md").write_text("# Below\n\nSomething below.\n", encoding="utf-8")
    report = memory.index(notes)
    assert {file.path for file in report.skipped} == {
        "key [redacted:github-token].md",
        "[redacted:github-token]/b.md",
    }
    assert all("rename it" in file.reason for file in report.skipped)
    assert [one.new for one in report.collections] == [1]
    assert memory.index(notes).collections[0].unchanged == 1
    assert TOKEN.encode() not in stored_bytes(memory, tmp_path)


def test_mode_off_takes_names_as_they_are(notes: Path, tmp_path: Path) -> None:
    memory = Memory(tmp_path / "memory.db", options={"embedding.provider": "none", "secrets.mode": "off"})
    assert memory.index(notes, name=TOKEN).collections[0].name == TOKEN


def test_the_path_of_an_anchor_holds_no_secret(memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(f"{TOKEN}.py").write_text("one\ntwo\n", encoding="utf-8")
    with pytest.raises(UsageError, match="path of the anchor") as raised:
        memory.add("This is about two lines.", anchor=f"{TOKEN}.py:1-2")
    assert TOKEN not in str(raised.value)


def test_a_query_is_redacted_before_it_is_cut(memory: Memory, tmp_path: Path) -> None:
    memory.add("The parcel service tracks parcels in Oslo.")
    query = "parcel " * 70 + TOKEN  # the token is from character 490 on: only ten of its characters are kept
    memory.search(query, floor=0)  # weak hits are not logged
    memory.close()
    with sqlite3.connect(tmp_path / "memory.db") as connection:
        (logged,) = connection.execute("SELECT query FROM access_log").fetchone()
    assert len(logged) == 500 and TOKEN[:8] not in logged


SPLITS = [
    (TOKEN[:20], TOKEN[20:]),
    (f"the token is {TOKEN[:20]}", f"{TOKEN[20:]} is the rest of it"),
    ("Remember: my password is", "hunter22"),
    ("api_key:", "8f3kd92kd0sLLQ9x7"),
]


@pytest.mark.parametrize(("user", "agent"), SPLITS)
def test_a_secret_over_both_sides_of_a_turn_is_removed_from_both(memory: Memory, user: str, agent: str) -> None:
    turn, kinds = memory.conversations.add(user, agent)
    assert kinds
    for piece in (TOKEN[4:20], TOKEN[20:36], "hunter22", "8f3kd92kd0sLLQ9x7"):
        assert piece not in turn.text + str(dict(turn.fields))


def test_the_second_half_of_a_private_key_is_removed_with_the_first() -> None:
    body = ["Zx7Qp2Lm9Rt4Vb8Ns1Wd6Kf3Hj5Gc0Ya2Ue7Io4Tq9Bn1Xs6Mv3Lz8Pw5Rk0Jd" + str(place) for place in range(6)]
    first = "\n".join(["-----BEGIN PRIV" + "ATE KEY-----", *body[:3]])
    second = "\n".join([*body[3:], "-----END PRIV" + "ATE KEY-----", "Thank you."])
    user, agent = Redactor().redact_pair(first, second)
    assert (user.text, agent.text) == ("[redacted:private-key]", "[redacted:private-key]\nThank you.")
    assert user.redacted == ("private-key",)


@pytest.mark.parametrize(
    ("user", "agent"),
    [
        ("What is the password?", "The password is in the vault."),
        ("My password is", "what you forgot again?"),
        ("", "hunter22"),
        ("Where is the parcel", "It is in Oslo since 10:30."),
    ],
)
def test_sides_without_a_secret_stay_as_they_are(user: str, agent: str) -> None:
    first, second = Redactor().redact_pair(user, agent)
    assert (first.text, second.text, first.redacted, second.redacted) == (user, agent, (), ())


def test_a_whole_token_at_the_end_of_a_side_leaves_the_other_side_alone() -> None:
    first, second = Redactor().redact_pair(f"Is it {TOKEN}", "Yes, it is.")
    assert (first.text, second.text) == ("Is it [redacted:github-token]", "Yes, it is.")


def test_strict_mode_refuses_a_split_secret_and_off_mode_keeps_it() -> None:
    with pytest.raises(SecretError) as raised:
        Redactor("strict").redact_pair(*SPLITS[2])
    assert isinstance(raised.value, MindexError) and "hunter22" not in str(raised.value)
    first, second = Redactor("off").redact_pair(*SPLITS[2])
    assert (first.text, second.text) == SPLITS[2]
