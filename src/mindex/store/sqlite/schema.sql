-- All data of one memory. Times are milliseconds since 1970.

-- Facts about the file itself: `analyzer` is the version whose tokens records_fts holds.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- Folders that are indexed. A root is indexed once; its name is what people call it.
CREATE TABLE collections (
    key        INTEGER PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    root       TEXT NOT NULL UNIQUE,
    exclude    TEXT NOT NULL DEFAULT '[]',
    context    TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    indexed_at INTEGER
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
    text       TEXT NOT NULL
);
CREATE INDEX records_by_document ON records (document, position) WHERE document IS NOT NULL;
CREATE INDEX records_by_agent ON records (agent, kind);
CREATE INDEX records_by_time ON records (created_at);
CREATE INDEX records_by_expiry ON records (expires_at) WHERE expires_at IS NOT NULL;
CREATE UNIQUE INDEX records_by_number ON records (agent, number) WHERE number IS NOT NULL;
CREATE INDEX records_by_content ON records (content_hash) WHERE content_hash IS NOT NULL;
CREATE INDEX records_by_session ON records (json_extract(fields, '$.session_id'), created_at) WHERE kind = 'turn';

-- Every change of an entry, append-only: its state before and after, author and reason. Only a purge removes rows.
CREATE TABLE history (
    change INTEGER PRIMARY KEY AUTOINCREMENT,
    record TEXT NOT NULL,                 -- the record's id: history outlives the row's key
    at     INTEGER NOT NULL,
    by     TEXT NOT NULL,
    action TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    before TEXT,                          -- JSON; NULL before a record existed
    after  TEXT NOT NULL
);
CREATE INDEX history_by_record ON history (record, change);
CREATE INDEX history_by_time ON history (at);

-- Links between records, such as near duplicates, in both directions.
CREATE TABLE links (
    source     INTEGER NOT NULL REFERENCES records (key),
    target     INTEGER NOT NULL REFERENCES records (key),
    kind       TEXT NOT NULL,
    weight     REAL NOT NULL,
    created_at INTEGER NOT NULL,
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
    score  REAL
);
CREATE INDEX access_log_by_record ON access_log (record);
CREATE TABLE accesses (
    record  INTEGER PRIMARY KEY REFERENCES records (key),
    count   INTEGER NOT NULL,
    last_at INTEGER NOT NULL
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
    created_at  INTEGER NOT NULL
);

-- The vectors of a record in one space: one float32 row per piece of its text, concatenated.
CREATE TABLE vectors (
    key     INTEGER PRIMARY KEY,
    model   INTEGER NOT NULL REFERENCES models (key),
    record  INTEGER NOT NULL REFERENCES records (key),
    fluency REAL NOT NULL,                   -- words per word piece: how well this model reads this text
    data    BLOB NOT NULL,
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
    record INTEGER NOT NULL
);

-- Results that cost something to make and can be made again.
CREATE TABLE cache (
    kind    TEXT NOT NULL,
    key     TEXT NOT NULL,
    value   BLOB NOT NULL,
    used_at INTEGER NOT NULL,
    PRIMARY KEY (kind, key)
) WITHOUT ROWID;
CREATE INDEX cache_by_use ON cache (kind, used_at);
