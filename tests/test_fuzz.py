"""Hostile texts for everything that takes a text; `bench/fuzz.py` does the same for as long as is wanted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fuzz_laws import CostGrows, check_cost, check_target
from tests.fuzz_targets import LEFT_OUT, Broken, Target, all_targets
from tests.hostile import UNITS

pytestmark = [pytest.mark.serial, pytest.mark.slow]

# A stranger who can write a file or send one message to an agent reaches these.
EXPOSED = ("native:search query", "native:remember text", "native:get refs[]", "file: a note", "api:add text")


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Target]]:
    with all_targets(tmp_path_factory.mktemp("fuzz")) as found:
        yield {target.name: target for target in found}


def test_every_interface_and_dialect_is_a_target(targets: dict[str, Target]) -> None:
    """They are found in schemas and tables: a new tool, command or operation is included automatically."""
    interfaces = {name.partition(":")[0] for name in targets if ":" in name.partition(" ")[0]}
    assert interfaces >= {"native", "memory-mcp", "mudpuppy", "memorizer", "anthropic", "openai", "api", "file"}
    assert {"native:remember tags[]", "mindex add tags", "mindex search QUERY"} <= {*targets}
    assert not [name for name in targets if name.split()[0] == "mindex" and name.split()[1] in LEFT_OUT]
    assert len(targets) > 400


def test_each_target_answers_or_refuses_hostile_texts(targets: dict[str, Target]) -> None:
    """Two of each here, other ones for each target."""
    for number, target in enumerate(targets.values()):
        check_target(target, number, 2)


@pytest.mark.parametrize("name", EXPOSED)
def test_the_most_exposed_targets_answer_many_hostile_texts(targets: dict[str, Target], name: str) -> None:
    check_target(targets[name], 11, 60)


@pytest.mark.parametrize("name", EXPOSED)
def test_time_grows_no_faster_than_the_text(targets: dict[str, Target], name: str) -> None:
    for unit in UNITS[::7]:
        check_cost(targets[name], unit)


def test_the_laws_find_what_breaks_them() -> None:
    def quadratic(text: str) -> None:
        for _ in range(len(text) ** 2):
            pass

    def raises(text: str) -> None:
        if "\ud800" in text:
            raise ValueError(text)

    with pytest.raises(CostGrows, match="quadratic with 'a'"):
        check_cost(Target("quadratic", quadratic), "a", 1_500)
    with pytest.raises(Broken, match=r"raises with '\\ud800': ValueError"):
        check_target(Target("raises", raises), 1, 500)
