"""No committed training row shares eight consecutive words with a dev set, whose texts are not here."""

from __future__ import annotations

import importlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

TRAINING = Path(__file__).parent.parent.parent / "training"

# A sentence of anthropic_docs (MIT).
DEV_TEXT = """As water evaporates from the surface of the ocean, it leaves behind dissolved salts, increasing the
concentration of salt in the remaining water."""

ENGLISH = "The lighthouse keeper counts nine grey seals on the northern rocks every single morning"
CHINESE = "灯塔看守人每天早上都在北边的礁石上数到九只灰色的海豹。"


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    monkeypatch.syspath_prepend(str(TRAINING))
    yield {name: importlib.import_module(name) for name in ("overlap", "rows", "facts", "preferences", "dialogues")}


@pytest.fixture
def overlap(modules: dict[str, ModuleType]) -> ModuleType:
    return modules["overlap"]


def row(text: str, *questions: str) -> dict[str, Any]:
    return {"t": "F", "d": text, "q": list(questions)}


@pytest.mark.slow
def test_no_committed_row_and_no_row_by_rule_overlaps_with_a_dev_set(modules: dict[str, ModuleType]) -> None:
    rows = list(modules["rows"].read_rows(TRAINING / "data" / "generated.jsonl.xz"))
    rows += modules["facts"].make_rows(random.Random(31), 24_000, 18_000, 90, 12)
    rows += modules["preferences"].make_rows(random.Random(32))
    rows += modules["dialogues"].make_rows(random.Random(34), 900, 2500)
    assert len(rows) == 21_767 + 43_556 + 2_520 + 18_700
    overlap = modules["overlap"]
    found = overlap.overlapping(rows, overlap.read_index(), sampled=True)
    assert [rows[position]["d"] for position in sorted(found)] == []


@pytest.mark.parametrize("hidden", [DEV_TEXT, f"Remember this: {DEV_TEXT.upper()}", DEV_TEXT.replace(" ", " - ")])
@pytest.mark.parametrize("field", ["d", "q", "hn", "no", "old"])
def test_a_dev_text_in_any_field_of_a_row_is_found_in_the_committed_file(
    overlap: ModuleType, field: str, hidden: str
) -> None:
    rows = [row(ENGLISH, "how many seals"), {**row(ENGLISH, "seals"), field: [hidden] if field != "d" else hidden}]
    assert overlap.overlapping(rows, overlap.read_index(), sampled=True) == {1}


def test_the_committed_file_is_small_and_has_a_quarter_of_the_shingles(overlap: ModuleType) -> None:
    known = overlap.read_index()
    assert overlap.INDEX.stat().st_size < 2_500_000
    assert 500_000 < len(known) < 600_000
    assert np.all(known[1:] > known[:-1]) and int(known[-1]) < 2**overlap.BITS


def test_eight_shared_words_are_an_overlap_and_seven_are_not(overlap: ModuleType) -> None:
    known = overlap.Shingles()([ENGLISH])[0]
    words = ENGLISH.split()
    rows = [row(" ".join([*words[:7], "sheep"])), row(" ".join(["today", *words[:8], "sheep"]))]
    assert overlap.overlapping(rows, known, sampled=False) == {1}


def test_thirteen_characters_of_unspaced_text_count_as_eight_words(overlap: ModuleType) -> None:
    known = overlap.Shingles()([CHINESE])[0]
    rows = [row(CHINESE[:12] + "很安静"), row("昨天" + CHINESE[:13])]
    assert overlap.overlapping(rows, known, sampled=False) == {1}


def test_words_of_two_texts_do_not_make_a_shingle(overlap: ModuleType) -> None:
    known = overlap.Shingles()([ENGLISH])[0]
    words = ENGLISH.split()
    rows = [row(" ".join(words[:7]), " ".join(words[7:]))]
    assert overlap.overlapping(rows, known, sampled=False) == set()


def test_every_text_of_a_dev_set_is_in_a_file_of_its_shingles(overlap: ModuleType, tmp_path: Path) -> None:
    """The file is written and read as the committed one; whether a text is found depends on its sample."""
    folder = tmp_path / "dev" / "set"
    (folder / "files").mkdir(parents=True)
    (folder / "files" / "page.md").write_text(" ".join(f"page{n}" for n in range(60)), encoding="utf-8")
    (folder / "ABOUT.md").write_text(" ".join(f"about{n}" for n in range(60)), encoding="utf-8")
    lines = {"corpus": {"text": " ".join(f"text{n}" for n in range(60)), "response": CHINESE * 3}}
    lines["queries"] = {"text": " ".join(f"query{n}" for n in range(60))}
    for name, line in lines.items():
        (folder / f"{name}.jsonl").write_text(json.dumps(line, ensure_ascii=False), encoding="utf-8")
    hashes = overlap.Shingles()(list(overlap.dev_texts(tmp_path / "dev")))[0]
    assert overlap.write_index(hashes, tmp_path / "index") == len(overlap.read_index(tmp_path / "index"))
    texts = [*lines["corpus"].values(), *lines["queries"].values()]
    texts += [path.read_text(encoding="utf-8") for path in (folder / "files" / "page.md", folder / "ABOUT.md")]
    found = overlap.overlapping([row(text) for text in texts], overlap.read_index(tmp_path / "index"), sampled=True)
    assert found == {0, 1, 2, 3}
