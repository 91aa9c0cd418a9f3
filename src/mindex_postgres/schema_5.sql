-- What came with `mindex sync`.

-- Changes that went to other machines or came from them. `stamp` orders all changes of all machines, `line` is the
-- change as it travels ('' once its record was purged), `change` the row of the history that is the same change.
CREATE TABLE synced_changes (
    stamp  text COLLATE "C" PRIMARY KEY,
    record text COLLATE "C" NOT NULL,
    change bigint,
    line   text NOT NULL
);
CREATE INDEX synced_changes_by_record ON synced_changes (record);
CREATE INDEX synced_changes_by_change ON synced_changes (change) WHERE change IS NOT NULL;
CREATE INDEX synced_changes_purged ON synced_changes (record) WHERE line = '';
