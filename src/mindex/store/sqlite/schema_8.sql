-- What came with damage that is noticed.

-- A CRC-32 over the other values of the row, as `row_checksums.py` computes it; NULL for a row of another program.
ALTER TABLE records ADD COLUMN checksum INTEGER;
ALTER TABLE history ADD COLUMN checksum INTEGER;
ALTER TABLE vectors ADD COLUMN checksum INTEGER;
ALTER TABLE collections ADD COLUMN checksum INTEGER;
ALTER TABLE documents ADD COLUMN checksum INTEGER;
ALTER TABLE links ADD COLUMN checksum INTEGER;
ALTER TABLE access_log ADD COLUMN checksum INTEGER;
ALTER TABLE accesses ADD COLUMN checksum INTEGER;
ALTER TABLE extractions ADD COLUMN checksum INTEGER;
ALTER TABLE models ADD COLUMN checksum INTEGER;
ALTER TABLE meta ADD COLUMN checksum INTEGER;
ALTER TABLE cache ADD COLUMN checksum INTEGER;
ALTER TABLE tokens ADD COLUMN checksum INTEGER;
ALTER TABLE synced_changes ADD COLUMN checksum INTEGER;
