"""The user's own rules for secrets: what a file may contain, and that every way into the store applies it."""

from __future__ import annotations

import re
from pathlib import Path
from time import process_time

import pytest

from mindex import Memory
from mindex.errors import ConfigError
from mindex.redaction.redactor import Redactor
from mindex.redaction.user_rules import load_user_rules
from mindex.user_folders import user_config
from mindex.user_settings import set_setting

BADGE = "[[rule]]\nkind = 'badge'\npattern = 'badge number (?P<v>\\d{6})'\n"
KEY = "[[rule]]\nkind = 'acme-key'\npattern = 'acme_[a-z]{6}'\nstarts = ['acme_']\nany_case = true\n"


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.toml"
    path.write_text(BADGE + KEY)
    return path


def _redactor(tmp_path: Path, text: str, name: str = "rules.toml") -> Redactor:
    (tmp_path / name).write_text(text)
    return Redactor(rules=str(tmp_path / name))


def test_a_group_v_is_the_secret_or_the_whole_match(rules: Path) -> None:
    result = Redactor(rules=str(rules)).redact("His badge number 123456 opens it, Acme_QWERTY as well")
    assert result.text == "His badge number [redacted:badge] opens it, [redacted:acme-key] as well"
    assert result.redacted == ("badge", "acme-key")


def test_starts_are_of_any_case_where_the_pattern_itself_is(tmp_path: Path) -> None:
    redactor = _redactor(tmp_path, "[[rule]]\nkind = 'badge'\npattern = '(?i)ACME-[0-9]{6}'\nstarts = ['ACME-']\n")
    assert redactor.redact_text("ACME-123456 and acme-654321") == "[redacted:badge] and [redacted:badge]"


def test_the_rules_of_the_user_are_added_to_the_built_in_ones(rules: Path) -> None:
    token = "gh" + "p_" + "Zx7Qp2Lm9Rt4Vb8Ns1Wd6Kf3Hj5Gc0Ya2Ue7"
    assert Redactor(rules=str(rules)).redact(f"{token} acme_qwerty").redacted == ("github-token", "acme-key")


def test_a_secret_over_both_sides_of_a_turn_is_found_by_a_rule_of_the_user(rules: Path) -> None:
    first, second = Redactor(rules=str(rules)).redact_pair("His badge number", "123456 it is")
    assert "123456" not in first.text + second.text


def test_another_content_is_another_version_of_redaction(tmp_path: Path) -> None:
    versions = {
        Redactor().version,
        _redactor(tmp_path, BADGE, "one.toml").version,
        _redactor(tmp_path, KEY, "two.toml").version,
    }
    assert len(versions) == 3
    assert _redactor(tmp_path, KEY, "three.toml").version in versions


def test_memories_files_and_imports_are_redacted_by_the_rules_of_the_user(rules: Path, tmp_path: Path) -> None:
    set_setting("secrets.rules", str(rules))
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "door.md").write_text("# Door\n\nThe badge number 654321 opens the door.\n")
    with Memory(tmp_path / "memory.db", options={"embedding.provider": "none"}) as memory:
        added = memory.add("The badge number 123456 opens the lab")
        memory.index(notes)
        memory.transfer.export(tmp_path / "export.jsonl")
        texts = [hit.record.text for hit in memory.search("badge").hits]
    assert added.redacted == ("badge",)
    assert len(texts) == 2 and all("[redacted:badge]" in text for text in texts)
    line = (tmp_path / "export.jsonl").read_text().replace("[redacted:badge]", "987654")
    (tmp_path / "export.jsonl").write_text(line)
    with Memory(tmp_path / "other.db", options={"embedding.provider": "none"}) as memory:
        assert any("badge" in note for note in memory.transfer.import_(tmp_path / "export.jsonl").notes)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[[rule]]\nkind = 'a'\npattern = '('", "not a regular expression"),
        ("[[rule]]\nkind = 'a'\npattern = 'x{99999999999}'", "not a regular expression"),
        ("[[rule]]\nkind = 'a'\npattern = 'x*'", "matches an empty text"),
        ("[[rule]]\nkind = 'a'\npattern = '\\w{6,}'", "which replaces a secret"),
        ("[[rule]]\nkind = 'A b'\npattern = 'xyz'", "'kind' needs a name"),
        ("[[rule]]\nkind = 'a'\npattern = 'xyz'\nstart = 'x'", "unknown key 'start'"),
        ("[[rule]]\nkind = 'a'\npattern = 'xyz'\nstarts = [1]", "'starts' has a value that is not a text"),
        ("[[rule]]\nkind = 'a'\npattern = 5", "'pattern' is not a text"),
        ("kind = 'a'", "not a table of secret rules"),
        ("[[rule", "cannot read"),
    ],
)
def test_a_rule_that_cannot_be_used_is_an_error_that_says_why(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(reason)):
        _redactor(tmp_path, text).check_rules()


@pytest.mark.parametrize("pattern", ["(a+)+$", r"(\w+\s?)*:$", r"(x|xx)+y", r"a.*b.*c.*d", r"\w+acme\w+=\w+!"])
def test_a_pattern_that_takes_long_on_a_hostile_text_is_refused_in_little_time(tmp_path: Path, pattern: str) -> None:
    started = process_time()
    with pytest.raises(ConfigError, match="takes more than 50 ms for a text of"):
        _redactor(tmp_path, f"[[rule]]\nkind = 'slow'\npattern = '{pattern}'").check_rules()
    assert process_time() - started < 5


def test_a_file_is_checked_once_and_its_marker_is_kept(rules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_user_rules.cache_clear()
    load_user_rules(str(rules))
    load_user_rules.cache_clear()
    monkeypatch.setattr("mindex.redaction.user_rules._check_speed", lambda *_: pytest.fail("checked again"))
    assert len(load_user_rules(str(rules)).rules) == 2


def test_a_missing_file_opens_no_database(tmp_path: Path) -> None:
    user_config().parent.mkdir(parents=True, exist_ok=True)
    user_config().write_text("[secrets]\nrules = 'missing.toml'\n")
    with pytest.raises(ConfigError, match=re.escape(str(user_config().parent / "missing.toml"))):
        Memory(tmp_path / "memory.db")


def test_config_set_refuses_a_file_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read the secret rules"):
        set_setting("secrets.rules", str(tmp_path / "missing.toml"))


def test_a_projects_file_cannot_name_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".mindex.toml").write_text("[secrets]\nrules = 'missing.toml'\n")
    monkeypatch.chdir(tmp_path)
    with Memory(tmp_path / "memory.db", options={"embedding.provider": "none"}) as memory:
        assert memory.settings.text("secrets.rules") == ""
        assert any("secrets.rules" in note for note in memory.settings.notes)
