-- What came with imports that lose nothing.

-- The field `foreign_ids` has the ids by which other programs knew a record: an object of texts,
-- or of lists of texts where several rows were merged. `get` takes them.
CREATE INDEX records_of_other_programs ON records (kind) WHERE json_extract(fields, '$.foreign_ids') IS NOT NULL;
