"""The questions that `bench/derived_queries.py` derives from pages, on small pages."""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
from pathlib import Path

import pytest

from mindex_eval.question_sets import read_set

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import derived_queries  # of the bench, which is not a package

FILLER = "The basin of the harbour silts up unless the dredger works at night. " * 3
PAGES = {
    "guide/tide-tables.md": (
        "---\ntitle: Reading tide tables\n---\n\n# Ignored\n\n## Neap tides { #neap }\n\nUse `--neap-only`.\n\n"
        f"## Options\n\n`spring.offset` is the default.\n\n```sh\n# Not a heading\n```\n\n{FILLER}"
    ),
    "guide/ropes.md": "# Ropes & knots\n\n## Options\n\n- `whip-length`: see `spring.offset`, `TideTable`.\n",
    "faq.md": "# Questions\n\n## `TideTable`\n\nA class. `whip-length` is elsewhere. The dredger sleeps.\n",
    ".snippets/faq.md": "# Hidden\n\nThe harbour basin.\n",
}


def asked(category: str, others: dict[str, str] | None = None) -> dict[str, tuple[str, ...]]:
    pages, elsewhere = (derived_queries.pages_of(texts) for texts in (PAGES, others or {}))
    found = derived_queries.questions(pages, elsewhere)
    return {one.text: one.pages for one in found if one.category == category}


def test_a_title_comes_from_front_matter_or_the_first_heading() -> None:
    titles = asked("title")
    assert titles["Reading tide tables"] == ("guide/tide-tables.md",)
    assert titles["Ropes & knots"] == ("guide/ropes.md",)
    assert "Hidden" not in titles


def test_a_heading_of_several_pages_is_not_asked_for() -> None:
    assert asked("heading") == {
        "Ignored": ("guide/tide-tables.md",),
        "Neap tides": ("guide/tide-tables.md",),
        "TideTable": ("faq.md",),
    }


def test_an_identifier_belongs_to_the_page_that_defines_it() -> None:
    assert asked("identifier") == {
        "--neap-only": ("guide/tide-tables.md",),
        "spring.offset": ("guide/tide-tables.md",),
        "whip-length": ("guide/ropes.md",),
    }


def test_a_file_is_asked_for_by_its_name_or_the_words_of_it() -> None:
    files = asked("file")
    assert set(files.values()) == {("guide/tide-tables.md",), ("guide/ropes.md",), ("faq.md",)}
    assert files.keys() <= {"tide-tables.md", "tide tables", "ropes.md", "ropes", "faq.md", "faq"}


def test_a_question_that_the_other_project_answers_is_left_out() -> None:
    other = {"manual.md": "# Reading tide tables\n\n## Neap tides\n\nThe flag --neap-only is ours, too.\n"}
    assert "Reading tide tables" not in asked("title", other)
    assert "Neap tides" not in asked("heading", other)
    assert set(asked("identifier", other)) == {"spring.offset", "whip-length"}


def test_the_sets_are_read_as_eval_reads_them(tmp_path: Path) -> None:
    counts = derived_queries.write_set(tmp_path / "s", PAGES, [])
    found = read_set(tmp_path / "s")
    assert len(found.questions) == sum(counts.values())
    assert found.label() == "category"
    assert found.notes == ()
    before = (tmp_path / "s" / "queries.jsonl").read_bytes()
    derived_queries.write_set(tmp_path / "s", PAGES, [])
    assert (tmp_path / "s" / "queries.jsonl").read_bytes() == before


def test_only_the_pinned_archive_is_opened(tmp_path: Path) -> None:
    source = derived_queries.SOURCES[0]
    path = tmp_path / source.archive
    with tarfile.open(path, "w:gz") as tar:
        for name in ("p-1/docs/a.md", "p-1/docs/b.txt", "p-1/src/c.md"):
            member = tarfile.TarInfo(name)
            member.size = 5
            tar.addfile(member, io.BytesIO(b"# One"))
    with pytest.raises(SystemExit, match="not the pinned archive"):
        derived_queries.archive_of(source, tmp_path)
    pinned = derived_queries.Source("s", "p==1", source.archive, hashlib.sha256(path.read_bytes()).hexdigest())
    assert derived_queries.documentation(derived_queries.archive_of(pinned, tmp_path)) == {"a.md": "# One"}
