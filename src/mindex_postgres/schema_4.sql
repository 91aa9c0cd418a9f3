-- Tokens by which people and programs reach this memory through a server.

-- `hash` is the SHA-256 of the token in hexadecimal: the token itself is nowhere. `agent` '*' sees every agent's entries.
-- `rights` is write, read or metrics. No `collections`: the files of all of them are seen.
CREATE TABLE tokens (
    name        text COLLATE "C" PRIMARY KEY,
    hash        text COLLATE "C" NOT NULL UNIQUE,
    agent       text COLLATE "C" NOT NULL,
    rights      text NOT NULL,
    collections text[] NOT NULL,
    created_at  bigint NOT NULL,
    expires_at  bigint
);
