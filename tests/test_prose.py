"""scripts/prose finds phrases that readers stumble over, and the repository is free of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_scripts import ROOT, script


@pytest.mark.parametrize(
    ("sentence", "phrase"),
    [
        ("Chinese text is found, too.", ", too"),
        ("The body is no JSON.", "is no"),
        ("It was told twice.", "told"),
        ("What it stands for.", "stands"),
        ("The index is made anew.", "anew"),
        ("Skip so many results.", "so many"),
        ("It changed meanwhile.", "meanwhile"),
        ("A note\nwhere nothing is found.", "where nothing"),
        ("None where it is missing.", "None where"),
    ],
)
def test_a_phrase_is_found_in_a_page_a_comment_a_docstring_and_a_message(
    tmp_path: Path, sentence: str, phrase: str
) -> None:
    page, module, message = tmp_path / "page.md", tmp_path / "module.py", tmp_path / "message.py"
    page.write_text(f"# Title\n\n{sentence}\n")
    comment = "".join(f"# {line}\n" for line in sentence.splitlines())
    module.write_text(f'{comment}\ndef f():\n    """{sentence}"""\n')
    message.write_text(f"print({sentence!r})\n")
    found = script("prose").findings
    assert [one.phrase for one in found(page)] == [phrase]
    assert [one.phrase for one in found(module)] == [phrase, phrase]
    assert [one.phrase for one in found(message)] == [phrase]


@pytest.mark.parametrize(
    "sentence",
    [
        "There is no entry of this name.",
        "It is no longer needed.",
        "The pattern `is no JSON` is code.",
        'The error "it is no JSON" is a quotation.',
        "It shows where the file is.",
        "There are too many.",
        "It is larger, too little to matter.",
        "The line stands out.",
    ],
)
def test_plain_sentences_code_and_quotations_are_left_alone(tmp_path: Path, sentence: str) -> None:
    page, module = tmp_path / "page.md", tmp_path / "module.py"
    page.write_text(f"{sentence}\n\n```console\n$ told anew\n```\n")
    module.write_text(f"# {sentence}\nstood = anew.told\n")
    assert script("prose").findings(page) == script("prose").findings(module) == []


def test_a_finding_names_file_line_phrase_and_replacement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prose = script("prose")
    (tmp_path / "page.md").write_text("One.\n\nIt is found, too.\n")
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    monkeypatch.setattr("sys.argv", ["prose", str(tmp_path / "page.md")])
    with pytest.raises(SystemExit) as ended:
        prose.main()
    assert ended.value.code == 1
    assert capsys.readouterr().out == "page.md:3: , too (write 'also' before the verb)\n1 phrases\n"


def test_the_names_of_tests_are_prose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prose = script("prose")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_x.py").write_text("def test_a_list_that_is_no_list():\n    assert 'told anew twice'\n")
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    assert [one.phrase for one in prose.findings(tmp_path / "tests" / "test_x.py")] == ["is no"]


@pytest.mark.parametrize(
    "line",
    [
        'PATTERN = r"(?:told|asked) me whoever it is"',
        'PATTERN = rf"\\s(?:told|asked) me whoever it is {x}"',
        'WORDS = word_set("told whoever stands meanwhile")',
        'SENTENCE = "A fixed sentence that is no text of ours."',
    ],
)
def test_regular_expressions_and_lists_of_words_are_data(tmp_path: Path, line: str) -> None:
    (tmp_path / "module.py").write_text(f"{line}\n")
    assert script("prose").findings(tmp_path / "module.py") == []


def test_the_repository_has_no_such_phrase() -> None:
    prose = script("prose")
    places = [ROOT / name for name in (*prose._PAGES, *prose._FOLDERS)]
    assert [finding for path in prose.files(places) for finding in prose.findings(path)] == []
