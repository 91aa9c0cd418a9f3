-- What keyword search matches and scores: the tokens of every live record as numbers (`words.term_number`), in ascending
-- order, and how often each occurs, each occurrence counted by the weight of its column. A number is found in a row by
-- bisection, and a row is a third as large as one of `words`, which is read only for phrases, prefixes and columns: both
-- together made the ranking statement four times as fast. Rows are not compressed. What has just been written waits in a short
-- list of the index, which every search reads.
CREATE TABLE terms (
    owner       text COLLATE "C" NOT NULL,
    record      text COLLATE "C" NOT NULL,
    seq         bigint NOT NULL,
    length      integer NOT NULL,
    terms       bigint[] NOT NULL,
    frequencies real[] NOT NULL,
    PRIMARY KEY (owner, record)
) WITH (toast_tuple_target = 8160);
ALTER TABLE terms ALTER COLUMN terms SET STORAGE EXTERNAL, ALTER COLUMN frequencies SET STORAGE EXTERNAL;
CREATE INDEX terms_by_number ON terms USING gin (terms) WITH (gin_pending_list_limit = 512);

DROP INDEX words_by_token;
ALTER TABLE words DROP COLUMN weights;

-- Has the keyword index rebuilt by the process that opens the memory.
UPDATE meta SET value = '0' WHERE key = 'analyzer' AND EXISTS (SELECT 1 FROM records);
