-- Which agents and collections a login may see, and write, once row-level security is on (`mindex admin grant`).
CREATE TABLE grants (
    login  text COLLATE "C" NOT NULL,
    scope  text COLLATE "C" NOT NULL CHECK (scope IN ('agent', 'collection')),
    name   text COLLATE "C" NOT NULL,
    writes boolean NOT NULL,
    PRIMARY KEY (login, scope, name)
);

-- An agent reads what its owner was granted: no other login puts a row among the entries of another agent.
ALTER TABLE records ADD CHECK (CASE kind WHEN 'chunk' THEN agent = '' ELSE agent = owner END);

-- Who has asked, and who has cached: '' while all logins see everything.
ALTER TABLE access_log ADD COLUMN login text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE cache ADD COLUMN login text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE cache DROP CONSTRAINT cache_pkey;
ALTER TABLE cache ADD PRIMARY KEY (kind, key, login);
