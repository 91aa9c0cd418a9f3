-- What came with a million records: posting lists beside FTS5, which stays the truth. Only a large memory has them.

-- A segment is immutable: some records as they were at the change `seq`, at most 32,768. A record in a later segment
-- replaces the same record in an earlier one. A record that has gone is listed with length 0. In `meta`, `postings` is
-- the change that all segments together reflect; without it they are incomplete, and not searched.
CREATE TABLE posting_segments (
    segment INTEGER PRIMARY KEY AUTOINCREMENT,
    seq     INTEGER NOT NULL,
    records BLOB NOT NULL,                   -- int64: the keys, ascending
    lengths BLOB NOT NULL                    -- uint32: the tokens of each
);

-- Where a term occurs in the records of a segment, in order: the record's place, its column, the place in the column.
CREATE TABLE posting_lists (
    segment     INTEGER NOT NULL REFERENCES posting_segments (segment),
    term        TEXT NOT NULL,
    occurrences BLOB NOT NULL,               -- uint32: 16, 3 and 13 bits
    PRIMARY KEY (segment, term)
) WITHOUT ROWID;
