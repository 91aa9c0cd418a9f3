-- What came with numbers for each program.

-- The numbers by which the tools of other programs know entries. A row outlives its record: a number is given once.
CREATE TABLE program_numbers (
    program  TEXT NOT NULL,
    kind     TEXT NOT NULL,
    agent    TEXT NOT NULL,
    number   INTEGER NOT NULL,
    record   TEXT NOT NULL,               -- the record's id
    checksum INTEGER,
    PRIMARY KEY (program, kind, number, agent)
) WITHOUT ROWID;
CREATE INDEX program_numbers_by_record ON program_numbers (record, program);
