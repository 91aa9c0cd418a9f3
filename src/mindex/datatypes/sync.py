"""What `mindex sync` did, and the state of a sync folder."""

from mindex.values import dataclass


@dataclass(frozen=True, slots=True)
class IgnoredLine:
    """A line of a sync folder that was not used, and why. Line 0 is the whole file."""

    file: str
    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class HeldLines:
    """Lines of a file that are kept for later: their stamps are more than a day ahead of this machine's clock.

    `first` is the number of the first one, `latest_at` the highest time.
    """

    file: str
    first: int
    lines: int
    latest_at: int


@dataclass(frozen=True, slots=True)
class SyncConflict:
    """Two machines changed the same at the same time: the later change is in force, the other one in the history.

    `changed` names the properties, `machine` who made the change that is in force, `other` is a record that was
    retired because this one is the same ('' where one record was changed twice).
    """

    record: str
    kind: str
    summary: str
    changed: tuple[str, ...]
    machine: str
    other: str = ""


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What one sync did. Changes are counted: sent by this machine, received from others. A dry run takes no id.

    `updated` records were made or changed here by what was received; `merged` are pairs of records that two machines
    made of the same, the one that stays first; `purged` were removed because another machine purged them. `waiting`
    counts changes of records that have not arrived yet, `kept_back` pairs records that cannot be sent with the reason.
    `held` lines are kept for later; `restamped` counts the changes that got new stamps.
    """

    folder: str
    machine: str
    machines: int
    sent: int = 0
    received: int = 0
    updated: tuple[str, ...] = ()
    purged: int = 0
    merged: tuple[tuple[str, str], ...] = ()
    conflicts: tuple[SyncConflict, ...] = ()
    ignored: tuple[IgnoredLine, ...] = ()
    kept_back: tuple[tuple[str, str], ...] = ()
    waiting: int = 0
    held: tuple[HeldLines, ...] = ()
    restamped: int = 0
    dry_run: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SyncMachine:
    """One machine of a sync folder: its files, how much of them was not read here yet, and its last change here."""

    machine: str
    this: bool
    files: int
    changes: int
    unread_bytes: int
    last_change_at: int | None


@dataclass(frozen=True, slots=True)
class SyncStatus:
    """The state of a sync folder: its machines, and how many changes of this one are not in it yet.

    `out_of_range` counts changes in the database whose stamps are more than a day ahead of this machine's clock.
    """

    folder: str
    machine: str
    unsent: int
    machines: tuple[SyncMachine, ...]
    out_of_range: int = 0
