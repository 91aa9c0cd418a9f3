-- What came with front matter that belongs to the document.

-- The short fields of a file's front matter, a JSON list of `key: value`: every chunk of the file is found by them.
ALTER TABLE documents ADD COLUMN fields TEXT NOT NULL DEFAULT '[]';
