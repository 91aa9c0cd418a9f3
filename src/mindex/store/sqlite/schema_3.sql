-- What came with changes that are undone as one.

-- Changes with the same batch were made as one; '' where a change was made alone. Changes of consolidations and of
-- undos that were made before there was this column get one by their equal reason, author and time.
ALTER TABLE history ADD COLUMN batch TEXT NOT NULL DEFAULT '';
CREATE INDEX history_by_batch ON history (batch) WHERE batch != '';
