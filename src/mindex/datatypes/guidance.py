"""What the caller of a search can do next, in the words of its interface: every entry point has its own."""

from mindex.values import dataclass


@dataclass(frozen=True, slots=True)
class Guidance:
    """What the caller can do, as parts of sentences."""

    fill: str  # how something gets into an empty memory
    add: str  # how a memory is added
    wait: str  # what to do while a folder is indexed for the first time
    vectors: str  # how missing vectors are made
    include_expired: str = ""  # the option that shows what has expired; '' if there is none
    settle: str = ""  # how the memory {newer} replaces {older}, with which it is in conflict; '' where it cannot
    all_conflicts: str = ""  # what shows all conflicts
    history: str = ""  # what shows the changes of the memory {id}


LIBRARY = Guidance(
    fill="`Memory.index` or `Memory.add` fills it",
    add="`Memory.add` adds one",
    wait="wait for `Memory.index` to return, or call it again if it was interrupted",
    vectors="`Memory.maintenance.backfill` makes the vectors",
    include_expired="include_expired=True",
    settle="`Memory.update('{newer}', supersedes='{older}')`",
    all_conflicts="`Memory.get('conflicts')`",
    history="`Memory.history('{id}')`",
)
