-- Tokens by which people and programs reach this memory through a server.

-- `hash` is the SHA-256 of the token in hexadecimal: the token itself is nowhere. `agent` '*' sees every agent's entries.
-- `rights` is write, read or metrics. `collections` is a JSON list of names, empty for all of them.
CREATE TABLE tokens (
    name        TEXT PRIMARY KEY,
    hash        TEXT NOT NULL UNIQUE,
    agent       TEXT NOT NULL,
    rights      TEXT NOT NULL,
    collections TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER
) WITHOUT ROWID;
