"""The graph of the MCP reference memory server: observations and relations become memories."""

from __future__ import annotations

from pathlib import Path

from mindex.transfer.importer_base import ExportRow, SkippedRow, detect_importer, load_importer
from tests.mindex_compat.importers.foreign_programs import lines


def records(path: Path) -> list[ExportRow]:
    return [one for one in load_importer("reference-memory").read(path) if isinstance(one, ExportRow)]


def test_an_observation_begins_with_the_name_of_its_entity(tmp_path: Path) -> None:
    entity = {
        "type": "entity",
        "name": "Ada",
        "entityType": "person",
        "observations": ["Speaks Greek", "Ada likes tea"],
    }
    greek, tea = (row.record for row in records(lines(tmp_path / "m.json", entity)))
    assert (greek.text, tea.text) == ("Ada: Speaks Greek", "Ada likes tea")
    assert (greek.type, greek.entities, greek.tags) == ("fact", ("Ada",), ("person",))


def test_entities_and_relations_are_memories(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "m.jsonl",
        {"type": "entity", "name": "ACME", "entityType": "company"},
        {"type": "relation", "from": "Ada", "to": "ACME", "relationType": "works_at"},
    )
    company, works = (row.record for row in records(path))
    assert (company.text, company.type) == ("ACME is a company", "entity")
    assert (works.text, works.type, works.entities) == ("Ada works at ACME", "relationship", ("Ada", "ACME"))


def test_odd_entities_are_converted_or_skipped(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "m.jsonl",
        {"type": "entity", "name": "", "observations": ["x"]},
        {"type": "entity", "name": "Ada", "observations": [" ", {"content": "tall"}, 7]},
        {"type": "entity", "name": "Bob", "observations": "one text"},
        {"type": "entity", "name": ["a"], "entityType": None},
        {"type": "thing"},
        "null",
    )
    found = list(load_importer("reference-memory").read(path))
    assert [one.record.text for one in found if isinstance(one, ExportRow)] == [
        'Ada: {"content": "tall"}',
        "Ada: 7",
        "Bob: one text",
        '["a"]',
    ]
    assert {one.where: one.reason for one in found if isinstance(one, SkippedRow)} == {
        "line 1": "an entity without a name",
        "line 2, observation 1": "it is empty",
        "line 5": "'thing' is neither an entity nor a relation",
        "line 6": "it is not a JSON object",
    }


def test_a_graph_is_recognised_after_a_broken_or_very_long_line(tmp_path: Path) -> None:
    long = {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["x" * 300_000]}
    assert detect_importer(lines(tmp_path / "m.jsonl", long)).name == "reference-memory"
    assert detect_importer(lines(tmp_path / "n.jsonl", "{", long)).name == "reference-memory"
    (tmp_path / "o.jsonl").write_bytes(b"\xef\xbb\xbf" + (tmp_path / "m.jsonl").read_bytes())
    assert len(records(tmp_path / "o.jsonl")) == 1
