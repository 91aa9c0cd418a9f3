-- All data of one memory, in one schema. Times are milliseconds since 1970. Texts are ordered by code point ("C").
--
-- `owner` is the agent of an entry, or the collection of a chunk. It leads every key of what belongs to a record, so
-- that all of it can be distributed over machines by it. Counts and logs are in separate tables: a row with
-- a vector is never updated.

-- Facts about the schema itself: `schema` is its version, `analyzer` the version whose tokens `words` holds, `space` and
-- `next_space` the fingerprints of the space that is searched and of the one being filled, `canary …` what the model of
-- a space made of one fixed sentence.
CREATE TABLE meta (
    key   text COLLATE "C" PRIMARY KEY,
    value text NOT NULL
);

-- Folders that are indexed. A root is indexed once; its name is what people call it.
CREATE TABLE collections (
    name       text COLLATE "C" PRIMARY KEY,
    root       text COLLATE "C" NOT NULL UNIQUE,
    exclude    text[] NOT NULL,
    context    text NOT NULL,
    created_at bigint NOT NULL,
    indexed_at bigint
);

-- One row per indexed file: what it was when its chunks were made. It changes in the same transaction as they do.
CREATE TABLE documents (
    collection  text COLLATE "C" NOT NULL REFERENCES collections (name),
    id          text COLLATE "C" NOT NULL UNIQUE,
    seq         bigint GENERATED ALWAYS AS IDENTITY,  -- the order in which documents were added
    path        text COLLATE "C" NOT NULL,
    fingerprint text NOT NULL,
    size        bigint NOT NULL,
    mtime_ns    bigint NOT NULL,
    title       text NOT NULL,
    domain      text COLLATE "C" NOT NULL,
    instruction boolean NOT NULL,
    tags        text[] NOT NULL,
    links       text[] NOT NULL,
    indexed_at  bigint NOT NULL,
    fields      text[] NOT NULL,  -- of its front matter, `key: value`: every chunk of the file is found by them
    PRIMARY KEY (collection, id),
    UNIQUE (collection, path)
);

-- Everything that can be found, of every kind: common columns, and one JSON object for what only a kind has.
CREATE TABLE records (
    owner      text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL UNIQUE,
    seq        bigint GENERATED ALWAYS AS IDENTITY,  -- the order in which records were added
    kind       text COLLATE "C" NOT NULL,
    agent      text COLLATE "C" NOT NULL DEFAULT '',  -- '' is shared: indexed files belong to every agent
    document   text COLLATE "C",
    position   integer,                   -- of a chunk in its document
    first_line integer,
    last_line  integer,
    number     bigint,                    -- of an entry, for clients with integer ids
    type       text COLLATE "C" NOT NULL DEFAULT '',
    importance integer,
    confidence double precision,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    expires_at bigint,
    retired_at bigint,                    -- forgotten or superseded: the row stays, its words and vectors go
    superseded_by text COLLATE "C" NOT NULL DEFAULT '',
    content_hash  text COLLATE "C",       -- of an entry: the same content again is the same memory
    source     text NOT NULL DEFAULT '',
    title      text COLLATE "C" NOT NULL DEFAULT '',
    tags       text[] NOT NULL DEFAULT '{}',
    entities   text[] NOT NULL DEFAULT '{}',
    folded_tags     text[] COLLATE "C" NOT NULL DEFAULT '{}',  -- as filters compare them
    folded_entities text[] COLLATE "C" NOT NULL DEFAULT '{}',
    summary    text NOT NULL DEFAULT '',
    context    text NOT NULL DEFAULT '',
    fields     json NOT NULL DEFAULT '{}',
    text       text COLLATE "C" NOT NULL,
    PRIMARY KEY (owner, id)
);
CREATE INDEX records_by_document ON records (document, position) WHERE document IS NOT NULL;
CREATE INDEX records_by_agent ON records (agent, kind);
CREATE INDEX records_by_time ON records (created_at);
CREATE INDEX records_by_expiry ON records (expires_at) WHERE expires_at IS NOT NULL;
CREATE UNIQUE INDEX records_by_number ON records (agent, number) WHERE number IS NOT NULL;
CREATE INDEX records_by_content ON records (content_hash) WHERE content_hash IS NOT NULL;
CREATE INDEX records_by_session ON records ((fields ->> 'session_id'), created_at) WHERE kind = 'turn';
CREATE INDEX records_by_successor ON records (superseded_by) WHERE superseded_by != '';
-- The field `foreign_ids` has the ids by which other programs knew a record: an object of texts, or of lists of texts.
CREATE INDEX records_of_other_programs ON records (kind) WHERE (fields -> 'foreign_ids') IS NOT NULL;
CREATE INDEX records_by_tag ON records USING gin (folded_tags);
CREATE INDEX records_by_entity ON records USING gin (folded_entities);

-- The highest number that an entry was ever given: one row, which is locked by who gives the next one.
CREATE TABLE numbers (
    last bigint NOT NULL
);
INSERT INTO numbers VALUES (0);

-- Every change of an entry, append-only: its state before and after, author and reason. Only a purge removes rows.
CREATE TABLE history (
    change bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    record text COLLATE "C" NOT NULL,
    at     bigint NOT NULL,
    by     text NOT NULL,
    action text NOT NULL,
    reason text NOT NULL,
    batch  text COLLATE "C" NOT NULL,     -- changes with the same one were made as one; '' where one was made alone
    before text,                          -- JSON; NULL before a record existed
    after  text NOT NULL
);
CREATE INDEX history_by_record ON history (record, change);
CREATE INDEX history_by_time ON history (at);
CREATE INDEX history_by_batch ON history (batch) WHERE batch != '';

-- Links between records, such as near duplicates, in both directions.
CREATE TABLE links (
    source     text COLLATE "C" NOT NULL,
    target     text COLLATE "C" NOT NULL,
    kind       text COLLATE "C" NOT NULL,
    weight     double precision NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (source, kind, target)
);
CREATE INDEX links_by_target ON links (target);

-- Which record was returned for which query, written in the background and bounded; and the sums of it.
CREATE TABLE access_log (
    key    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    record text COLLATE "C" NOT NULL,
    at     bigint NOT NULL,
    action text NOT NULL,
    query  text NOT NULL,
    score  double precision
);
CREATE INDEX access_log_by_record ON access_log (record);
CREATE INDEX access_log_by_time ON access_log (at);
CREATE TABLE accesses (
    record  text COLLATE "C" PRIMARY KEY,
    count   bigint NOT NULL,
    last_at bigint NOT NULL
);

-- Turns whose facts were extracted, also if there were none. A negative number counts the failed attempts, `at` is
-- the last one.
CREATE TABLE extractions (
    record text COLLATE "C" PRIMARY KEY,
    at     bigint NOT NULL,
    facts  integer NOT NULL
);

-- The analyzer's finished tokens of every live record. `tokens` holds each once, `weights` how often it occurs, each
-- occurrence counted by the weight of its column. The columns hold them in order, each token between two spaces of its
-- own, so that a phrase is found and counted as a text. Rows stay whole up to a page: to look a token up in a row that
-- was compressed took ten times as long.
CREATE TABLE words (
    owner   text COLLATE "C" NOT NULL,
    record  text COLLATE "C" NOT NULL,
    seq     bigint NOT NULL,
    length  integer NOT NULL,
    tokens  text[] COLLATE "C" NOT NULL,
    weights real[] NOT NULL,
    title       text COLLATE "C" NOT NULL,
    text        text COLLATE "C" NOT NULL,
    summary     text COLLATE "C" NOT NULL,
    tags        text COLLATE "C" NOT NULL,
    identifiers text COLLATE "C" NOT NULL,
    PRIMARY KEY (owner, record)
) WITH (toast_tuple_target = 8160);
CREATE INDEX words_by_token ON words USING gin (tokens);

-- Counts as sums of their changes, so that no two writers wait for one row: the live records that hold a token, by the
-- token; all live records under ''; all their tokens under ' '; pieces of vectors under ` vectors SPACE GROUP`. Rows of
-- one name are merged in the background.
CREATE TABLE counts (
    name   text COLLATE "C" NOT NULL,
    change bigint NOT NULL
);
CREATE INDEX counts_by_name ON counts (name) INCLUDE (change);

-- Embedding spaces. Vectors of different spaces are never compared.
CREATE TABLE spaces (
    key         integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    fingerprint text COLLATE "C" NOT NULL UNIQUE,
    dimensions  integer NOT NULL,
    description text NOT NULL,            -- JSON: how the space's embedder is made again
    created_at  bigint NOT NULL
);

-- The vectors of a record in one space, one row per piece of its text. Large spaces have an HNSW index for each group
-- of kinds (0 chunks, 1 turns, 2 other entries), which is made when there are many vectors.
CREATE TABLE vectors (
    owner      text COLLATE "C" NOT NULL,
    record     text COLLATE "C" NOT NULL,
    space      integer NOT NULL REFERENCES spaces (key),
    piece      integer NOT NULL,
    kind_group smallint NOT NULL,
    fluency    real NOT NULL,             -- words per word piece: how well this model reads this text
    embedding  vector NOT NULL,
    PRIMARY KEY (owner, record, space, piece)
);
CREATE INDEX vectors_by_group ON vectors (space, kind_group);

-- Results that cost something to make and can be made again.
CREATE TABLE cache (
    kind    text COLLATE "C" NOT NULL,
    key     text COLLATE "C" NOT NULL,
    value   bytea NOT NULL,
    used_at bigint NOT NULL,
    PRIMARY KEY (kind, key)
);
CREATE INDEX cache_by_use ON cache (kind, used_at);
