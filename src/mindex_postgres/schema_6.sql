-- What came with numbers for each program.

-- The numbers by which the tools of other programs know entries. A row outlives its record: a number is given once.
CREATE TABLE program_numbers (
    program text COLLATE "C" NOT NULL,
    kind    text COLLATE "C" NOT NULL,
    agent   text COLLATE "C" NOT NULL,
    number  bigint NOT NULL,
    record  text COLLATE "C" NOT NULL,    -- the record's id
    PRIMARY KEY (program, kind, number, agent)
);
CREATE INDEX program_numbers_by_record ON program_numbers (record, program);
