-- What came with models that can be changed, and with models that write.

-- How a space's embedder is made again: JSON with `provider`, `model`, `url`, as the settings name them. In `meta`,
-- `space` is the fingerprint of the space that is searched, `next_space` of the one being filled to replace it.
ALTER TABLE models ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';
INSERT INTO meta SELECT 'space', fingerprint FROM models
    WHERE key = (SELECT model FROM vectors GROUP BY model ORDER BY count(*) DESC LIMIT 1);

-- A change may concern the vectors of one space only: processes that search another one need not look.
ALTER TABLE changes ADD COLUMN model INTEGER;

-- Turns whose facts were extracted, also if there were none: each is done once. A negative number counts the failed
-- attempts, `at` is the last one: such turns are tried again after the others.
CREATE TABLE extractions (
    record INTEGER PRIMARY KEY REFERENCES records (key),
    at     INTEGER NOT NULL,
    facts  INTEGER NOT NULL
);
