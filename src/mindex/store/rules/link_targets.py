"""Links as they are returned, in every engine: by the record that they lead from."""

from collections.abc import Iterable


def targets_by_source(links: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return the targets of each source, in the order of the links."""
    found: dict[str, list[str]] = {}
    for source, target in links:
        found.setdefault(source, []).append(target)
    return {source: tuple(targets) for source, targets in found.items()}
