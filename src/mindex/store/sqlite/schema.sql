-- All data of one memory, as release 0.1.0 made it. Times are milliseconds since 1970.
--
-- `checksum` is a CRC-32 over the other values of the row, as `row_checksums.py` computes it; NULL for a row of another
-- program. It and some other columns are at the end because SQLite adds columns there.

-- Facts about the file itself: `analyzer` is the version whose tokens records_fts holds, `space` the fingerprint of the
-- space that is searched, `next_space` that of the one being filled to replace it.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    checksum INTEGER
) WITHOUT ROWID;

-- Folders that are indexed. A root is indexed once; its name is what people call it.
CREATE TABLE collections (
    key        INTEGER PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    root       TEXT NOT NULL UNIQUE,
    exclude    TEXT NOT NULL DEFAULT '[]',
    context    TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    indexed_at INTEGER,
    checksum   INTEGER
);

-- One row per indexed file: what it was when its chunks were made. It changes in the same transaction as they do,
-- so the two can never disagree. `id` comes from the collection and the file's first path and moves with the file.
CREATE TABLE documents (
    key         INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    collection  INTEGER NOT NULL REFERENCES collections (key),
    path        TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    size        INTEGER NOT NULL,
    mtime_ns    INTEGER NOT NULL,
    title       TEXT NOT NULL DEFAULT '',
    domain      TEXT NOT NULL DEFAULT 'root',
    instruction INTEGER NOT NULL DEFAULT 0,
    tags        TEXT NOT NULL DEFAULT '[]',
    links       TEXT NOT NULL DEFAULT '[]',
    indexed_at  INTEGER NOT NULL,
    fields      TEXT NOT NULL DEFAULT '[]',  -- of the front matter, a JSON list of `key: value`; every chunk is found by them
    checksum    INTEGER,
    UNIQUE (collection, path)
);

-- Everything that can be found, of every kind: common columns, and one JSON object for what only a kind has.
-- Small columns come before the text, so that a filter never reads the text's overflow pages.
CREATE TABLE records (
    key        INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    kind       TEXT NOT NULL,
    agent      TEXT NOT NULL DEFAULT '',  -- '' is shared: indexed files belong to every agent
    document   INTEGER REFERENCES documents (key),
    position   INTEGER,                   -- of a chunk in its document
    first_line INTEGER,
    last_line  INTEGER,
    number     INTEGER,                   -- of an entry, unique per agent, for clients with integer ids
    type       TEXT NOT NULL DEFAULT '',
    importance INTEGER,
    confidence REAL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER,
    retired_at INTEGER,                   -- forgotten or superseded: the row stays, its index entries and vectors go
    superseded_by TEXT NOT NULL DEFAULT '',
    content_hash  TEXT,                   -- of an entry: the same content again is the same memory
    source     TEXT NOT NULL DEFAULT '',
    title      TEXT NOT NULL DEFAULT '',
    tags       TEXT NOT NULL DEFAULT '[]',
    entities   TEXT NOT NULL DEFAULT '[]',
    summary    TEXT NOT NULL DEFAULT '',
    context    TEXT NOT NULL DEFAULT '',
    fields     TEXT NOT NULL DEFAULT '{}',
    text       TEXT NOT NULL,
    checksum   INTEGER
);
CREATE INDEX records_by_document ON records (document, position) WHERE document IS NOT NULL;
CREATE INDEX records_by_agent ON records (agent, kind);
CREATE INDEX records_by_time ON records (created_at);
CREATE INDEX records_by_expiry ON records (expires_at) WHERE expires_at IS NOT NULL;
CREATE UNIQUE INDEX records_by_number ON records (agent, number) WHERE number IS NOT NULL;
CREATE INDEX records_by_content ON records (content_hash) WHERE content_hash IS NOT NULL;
CREATE INDEX records_by_session ON records (json_extract(fields, '$.session_id'), created_at) WHERE kind = 'turn';
-- The field `foreign_ids` has the ids by which other programs knew a record: an object of texts,
-- or of lists of texts where several rows were merged. `get` takes them.
CREATE INDEX records_of_other_programs ON records (kind) WHERE json_extract(fields, '$.foreign_ids') IS NOT NULL;

-- Every change of an entry, append-only: its state before and after, author and reason. Only a purge removes rows.
CREATE TABLE history (
    change INTEGER PRIMARY KEY AUTOINCREMENT,
    record TEXT NOT NULL,                 -- the record's id: history outlives the row's key
    at     INTEGER NOT NULL,
    by     TEXT NOT NULL,
    action TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    before TEXT,                          -- JSON; NULL before a record existed
    after  TEXT NOT NULL,
    batch  TEXT NOT NULL DEFAULT '',  -- changes with the same one were made as one; '' where one was made alone
    checksum INTEGER
);
CREATE INDEX history_by_record ON history (record, change);
CREATE INDEX history_by_time ON history (at);
CREATE INDEX history_by_batch ON history (batch) WHERE batch != '';

-- Links between records, such as near duplicates, in both directions.
CREATE TABLE links (
    source     INTEGER NOT NULL REFERENCES records (key),
    target     INTEGER NOT NULL REFERENCES records (key),
    kind       TEXT NOT NULL,
    weight     REAL NOT NULL,
    created_at INTEGER NOT NULL,
    checksum   INTEGER,
    PRIMARY KEY (source, kind, target)
) WITHOUT ROWID;
CREATE INDEX links_by_target ON links (target);

-- Which record was returned for which query, written in the background and bounded; and the sums of it.
CREATE TABLE access_log (
    key    INTEGER PRIMARY KEY,
    record INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    action TEXT NOT NULL,
    query  TEXT NOT NULL DEFAULT '',
    score  REAL,
    checksum INTEGER
);
CREATE INDEX access_log_by_record ON access_log (record);
CREATE TABLE accesses (
    record  INTEGER PRIMARY KEY REFERENCES records (key),
    count   INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    checksum INTEGER
);

-- Tags for filtering, folded. What is shown comes from records.tags.
CREATE TABLE tags (
    tag    TEXT NOT NULL,
    record INTEGER NOT NULL REFERENCES records (key),
    PRIMARY KEY (tag, record)
) WITHOUT ROWID;
CREATE INDEX tags_by_record ON tags (record);

-- Names that entries mention, folded, for filtering.
CREATE TABLE entities (
    entity TEXT NOT NULL,
    record INTEGER NOT NULL REFERENCES records (key),
    PRIMARY KEY (entity, record)
) WITHOUT ROWID;
CREATE INDEX entities_by_record ON entities (record);

-- The analyzer's finished tokens, rowid = records.key. Written and deleted with the row by the store itself: no
-- trigger, no SQL function, nothing another connection could lack.
CREATE VIRTUAL TABLE records_fts USING fts5 (
    title, text, summary, tags, identifiers,
    tokenize = "ascii tokenchars '_'"
);
CREATE VIRTUAL TABLE records_vocabulary USING fts5vocab (records_fts, row);

-- Embedding spaces. Vectors of different spaces are never compared.
CREATE TABLE models (
    key         INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE,
    dimensions  INTEGER NOT NULL,
    packed_seq  INTEGER NOT NULL DEFAULT 0,  -- vector_blocks reflect every change up to this one
    created_at  INTEGER NOT NULL,
    settings    TEXT NOT NULL DEFAULT '{}',  -- JSON: how the space's embedder is made again
    checksum    INTEGER
);

-- The vectors of a record in one space: one float32 row per piece of its text, concatenated.
CREATE TABLE vectors (
    key     INTEGER PRIMARY KEY,
    model   INTEGER NOT NULL REFERENCES models (key),
    record  INTEGER NOT NULL REFERENCES records (key),
    fluency REAL NOT NULL,                   -- words per word piece: how well this model reads this text
    data    BLOB NOT NULL,
    checksum INTEGER,
    UNIQUE (model, record)
);
CREATE INDEX vectors_by_record ON vectors (record);

-- The same vectors packed for a fast start: sign bits and int8 codes of 1,024 pieces a row, in random order.
-- Derived, and rebuilt when enough has changed; newer changes are read from `vectors`.
CREATE TABLE vector_blocks (
    model   INTEGER NOT NULL REFERENCES models (key),
    block   INTEGER NOT NULL,
    records BLOB NOT NULL,                   -- int64
    fluency BLOB NOT NULL,                   -- float16
    scales  BLOB NOT NULL,                   -- float32
    bits    BLOB NOT NULL,                   -- uint64, word-major
    codes   BLOB NOT NULL,                   -- int8
    PRIMARY KEY (model, block)
);

-- What changed, in order: how other processes bring what they hold in memory up to date.
CREATE TABLE changes (
    seq    INTEGER PRIMARY KEY AUTOINCREMENT,
    record INTEGER NOT NULL,
    model  INTEGER  -- of a change of vectors of this space alone: processes that search another one need not look
);

-- Results that cost something to make and can be made again.
CREATE TABLE cache (
    kind    TEXT NOT NULL,
    key     TEXT NOT NULL,
    value   BLOB NOT NULL,
    used_at INTEGER NOT NULL,
    checksum INTEGER,
    PRIMARY KEY (kind, key)
) WITHOUT ROWID;
CREATE INDEX cache_by_use ON cache (kind, used_at);

-- Turns whose facts were extracted, also if there were none: each is done once. A negative number counts the failed
-- attempts, `at` is the last one: such turns are tried again after the others.
CREATE TABLE extractions (
    record   INTEGER PRIMARY KEY REFERENCES records (key),
    at       INTEGER NOT NULL,
    facts    INTEGER NOT NULL,
    checksum INTEGER
);

-- Access tokens, by which people and programs reach this memory through a server.
-- `hash` is the SHA-256 of the token in hexadecimal: the token itself is nowhere. `agent` '*' sees every agent's entries.
-- `rights` is write, read or metrics. `collections` is a JSON list of names, empty for all of them.
CREATE TABLE tokens (
    name        TEXT PRIMARY KEY,
    hash        TEXT NOT NULL UNIQUE,
    agent       TEXT NOT NULL,
    rights      TEXT NOT NULL,
    collections TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER,
    checksum    INTEGER
) WITHOUT ROWID;

-- Changes that went to other machines or came from them. `stamp` orders all changes of all machines, `line` is the
-- change as it travels ('' once its record was purged), `change` the row of the history that is the same change.
CREATE TABLE synced_changes (
    stamp  TEXT NOT NULL UNIQUE,
    record TEXT NOT NULL,
    change INTEGER,
    line   TEXT NOT NULL,
    checksum INTEGER
);
CREATE INDEX synced_changes_by_record ON synced_changes (record);
CREATE INDEX synced_changes_by_change ON synced_changes (change) WHERE change IS NOT NULL;
CREATE INDEX synced_changes_purged ON synced_changes (record) WHERE line = '';

-- Posting lists beside FTS5, which stays the truth. Only a large memory has them.
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
